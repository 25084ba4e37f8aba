// What the tests of convolutions share: types as text, and tensors.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "passes/test/pass_test.h"

namespace relay::pass_test {

using Ints = std::vector<int64_t>;

inline std::string type_text(const Ints& shape, const std::string& dtype = "float32") {
  std::string out;
  for (int64_t d : shape) out += (out.empty() ? "(" : ", ") + std::to_string(d);
  return "Tensor[" + out + "), " + dtype + "]";
}

// No two elements the same.
inline Tensor filled(const Ints& shape, float step) {
  Tensor out = Tensor::empty(DType::Float(32), shape);
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    out.data<float>()[i] = std::sin(static_cast<float>(i) * step);
  }
  return out;
}

}  // namespace relay::pass_test
