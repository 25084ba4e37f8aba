// The arithmetic of single values of a dtype: what a constant folder and an evaluator share.
#pragma once

#include <cstdint>
#include <optional>

#include "tir/expr.h"

namespace relay::tir {

// The value as the dtype holds it: integers wrap to its width and are sign- or zero-extended, a
// bool is `value != 0`.
int64_t wrap_to(DType dtype, int64_t value);

// The nearest value of a floating dtype.
double round_to(DType dtype, double value);

// Truncates towards zero and saturates to the integer dtype; NaN gives 0.
int64_t float_to_int(DType dtype, double value);

// Whether operations on the dtype may take the value for zero: by the mode of the run, which is not known before it.
bool is_denormal(DType dtype, double value);

// One operation on operands of `dtype`. Null where it is undefined (division by zero, a shift by
// the width or more). A comparison gives 0 or 1; for floats use `fold_float_compare`.
std::optional<int64_t> fold_int(BinaryOp op, DType dtype, int64_t a, int64_t b);
// Null for operators that floats do not have.
std::optional<double> fold_float(BinaryOp op, DType dtype, double a, double b);
std::optional<bool> fold_float_compare(BinaryOp op, double a, double b);

// floor(a / b) and its remainder, b != 0.
constexpr int64_t floor_div_int(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
constexpr int64_t floor_mod_int(int64_t a, int64_t b) {
  int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

}  // namespace relay::tir
