// Indices into small tensors of known sizes, in row-major order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/op_facts.h"

namespace relay {

inline int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

inline size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

// The position of the element at an index.
inline int64_t flat(const ElementIndex& at, const std::vector<int64_t>& shape) {
  int64_t out = 0;
  for (size_t a = 0; a < shape.size(); ++a) out = out * shape[a] + at[a];
  return out;
}

// The position in a tensor that is broadcast to the result's index.
inline int64_t broadcast_flat(const ElementIndex& at, const std::vector<int64_t>& shape) {
  int64_t out = 0;
  size_t lead = at.size() - shape.size();
  for (size_t a = 0; a < shape.size(); ++a) {
    out = out * shape[a] + (shape[a] == 1 ? 0 : at[lead + a]);
  }
  return out;
}

// Calls `visit` with the index of every element.
template <class Visit>
void each_index(const std::vector<int64_t>& shape, Visit visit) {
  ElementIndex at(shape.size(), 0);
  for (int64_t i = count_of(shape); i > 0; --i) {
    visit(at);
    for (size_t a = shape.size(); a-- > 0;) {
      if (++at[a] < shape[a]) break;
      at[a] = 0;
    }
  }
}

}  // namespace relay
