// Programs as text, arguments for them, and the targets that tests compile for.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "codegen/test/runnable_targets.h"
#include "driver/compile.h"
#include "ir/text/text.h"
#include "types/infer.h"

namespace relay::driver_test {

inline Module parse(const std::string& text) {
  initialize();
  return infer_types(parse_module("test.relay", "#[version = \"0.0.5\"]\n" + text));
}

// Numbers between low and high, the same in every run; integers are rounded down.
inline void fill(const Tensor& t, double low, double high, uint64_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    double v = low + (high - low) * (static_cast<double>(state >> 11) * 0x1p-53);
    if (t.dtype().is_floating()) {
      t.set_from_double(i, v);
    } else {
      t.set_from_int(i, t.dtype().is_bool() ? static_cast<int64_t>(state >> 40 & 1)
                                            : static_cast<int64_t>(std::floor(v)));
    }
  }
}

// Tensors for the parameters of @main, which have static shapes.
inline std::vector<Tensor> arguments(const Module& mod) {
  std::vector<Tensor> out;
  for (const Var& p : mod->find("main")->params) {
    auto* t = as<TensorTypeNode>(p->type);
    out.push_back(Tensor::empty(t->dtype, *t->const_shape()));
    fill(out.back(), -1, 1, out.size());
  }
  return out;
}

using codegen_test::runnable_target_names;

}  // namespace relay::driver_test
