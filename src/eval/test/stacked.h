// What the lanes of a batch give, as the batch gives it: a new first axis of every tensor.
#pragma once

#include <cstdint>
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
  int64_t at = 0;
  for (const runtime::Value& l : lanes) {
    for (int64_t i = 0; i < l.tensor().num_elements(); ++i)
      out.set_from_double(at++, l.tensor().get_as_double(i));
  }
  return out;
}

}  // namespace relay::eval_test
