// Scalars and lists as they are written on a command line: 5, -2.5, true, [1, 2, 3], [[1, 2], [3, 4]].
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/tensor.h"

namespace relay::cli {

enum class LiteralKind {
  none,    // no scalar and no list
  whole,   // one whole number
  scalar,  // any other number, inf, nan, true, false
  list,    // something that starts with "["
};
LiteralKind literal_kind(std::string_view text);

// The literal as a tensor of `dtype`. Whole numbers must be exact in it, others are rounded to it, as in source code.
// UserError E0702 that names the input: a number outside the dtype's range, a fraction for integers, a number for bool
// or the other way round, lists whose rows differ in length, brackets that do not fit.
runtime::Tensor read_literal(const std::string& input, const std::string& text,
                             runtime::DType dtype);

}  // namespace relay::cli
