// What the lanes of a batch give, as the batch gives it: a new first axis of every tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/core/value.h"

namespace relay::eval_test {

inline runtime::Value stacked(const std::vector<runtime::Value>& lanes) {
  if (!lanes[0].is_tensor()) {
    std::vector<runtime::Value> fields;
    for (size_t i = 0; i < lanes[0].num_fields(); ++i) {
      std::vector<runtime::Value> each;
      for (const runtime::Value& l : lanes) each.push_back(l.field(i));
      fields.push_back(stacked(each));
    }
    return runtime::Value::tuple(fields);
  }
  const Tensor first = lanes[0].tensor();
  std::vector<int64_t> shape(first.shape().begin(), first.shape().end());
  shape.insert(shape.begin(), static_cast<int64_t>(lanes.size()));
  Tensor out = Tensor::empty(first.dtype(), shape);
  auto* to = static_cast<std::byte*>(out.data());
  for (const runtime::Value& l : lanes) {
    const Tensor part = l.tensor();
    if (part.byte_size() != 0) std::memcpy(to, part.data(), part.byte_size());
    to += part.byte_size();
  }
  return out;
}

}  // namespace relay::eval_test
