// The tensors of a value that is a tensor or nested tuples of tensors, in order.
#pragma once

#include <vector>

#include "runtime/core/value.h"

namespace relay::runtime {

// The tensors of a value: itself, or the leaves of (nested) tuples in order. False when the value
// holds anything else.
bool flatten_tensors(const Value& value, std::vector<Tensor>& out);

// The value with other tensors as its leaves, in order.
Value with_leaves(const Value& value, const std::vector<Tensor>& leaves);

}  // namespace relay::runtime
