// The different elements of a tensor, or its different lines along an axis.
#pragma once

#include <optional>

#include "frontend/common/builder.h"

namespace relay::frontend {

struct Unique {
  Expr values;
  Expr first;    // where each of them comes first
  Expr inverse;  // which of them each element is
  Expr counts;   // how many elements each of them is
};
// Of all elements, or of the lines along an axis in [0, rank), whose other sizes are known; numbers are int64. In order, or
// in that in which they come first.
Unique unique(const Builder& build, const Expr& x, std::optional<int64_t> axis, bool sorted);

}  // namespace relay::frontend
