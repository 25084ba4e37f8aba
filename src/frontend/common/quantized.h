// Quantised tensors: integers (or floats of at most 8 bits) with scales and zero points.
//
// Where the operators of the quantised dialect (qnn.*) hold them they are used; what they do not have - blocks, scales
// of rows, narrow types - is spelt out in exact integer arithmetic and float scales. A zero point is a value of the
// model, null for none, since one that is known to be 0 costs nothing.
#pragma once

#include <vector>

#include "frontend/common/window.h"

namespace relay::frontend {

// Whether a scale or zero point is one number for the whole tensor.
bool is_one_number(const Expr& e);
// A zero point as the dialect takes it: int32, 0 for none.
Expr zero_point(const Builder& build, const ValuePtr& zero);
// A scale or zero point with one entry for each line of `axis`, shaped to broadcast against `x`. One
// number broadcasts as it is; blocks of `block` lines, which have as many dimensions as `x`, are repeated.
Expr along_axis(const Builder& build, Expr parameter, const Expr& x, int64_t axis, int64_t block);

// Rounds numbers that are divided by their scale to a type; `zero` is shaped to broadcast, or null.
Expr to_levels(const Builder& build, const Expr& scaled, const Expr& zero, DType to);
// Integers less their zero point, in int32.
Expr without_zero(const Builder& build, const Expr& x, const ValuePtr& zero, int64_t axis);
// x / scale + zero in the type `to`, and back in the dtype of the scale.
Expr quantize_linear(const Builder& build, Expr x, Expr scale, const ValuePtr& zero, int64_t axis,
                     int64_t block, DType to);
Expr dequantize_linear(const Builder& build, const Expr& x, const Expr& scale, const ValuePtr& zero,
                       int64_t axis, int64_t block);

// 256 levels between the least and the greatest element of a tensor, of which 0 is one: the scale, and the zero point,
// which is still a float.
struct Levels {
  Expr scale, zero;
};
Levels dynamic_levels(const Builder& build, const Expr& x);
// Floats rounded to these levels.
Expr dynamically_quantized(const Builder& build, const Expr& x);

// Integers with a scale, a number or one for each line of an axis (null for 1), and a zero point.
struct QuantizedOperand {
  Expr x, scale = nullptr;
  ValuePtr zero = nullptr;
};
// As floats, and floats in the type `to` with such a scale and zero point; of one scale for the whole tensor.
Expr in_floats(const Builder& build, const QuantizedOperand& q);
Expr in_levels(const Builder& build, const Expr& y, const Expr& scale, const ValuePtr& zero,
               DType to);

// The product of bytes by a matrix, as int32; null where qnn.dense does not take them.
Expr byte_product(const Builder& build, const QuantizedOperand& x, const QuantizedOperand& w);
// The matrix product of integers less their zero points, as int32: one for all, for each row of `a` or column of `b`.
Expr integer_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b);
// The same as floats, by the scales.
Expr scaled_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b);
// The same with the scale and zero point of a result, in the type of that zero point.
Expr quantized_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b,
                       const Expr& scale, const Expr& zero);
// The convolution of integers less their zero points (of `w` one for each channel of the result), as int32.
Expr integer_convolution(const Builder& build, const QuantizedOperand& x, const QuantizedOperand& w,
                         const Window& window, int64_t groups);
// The same plus a bias in int32, null for none, with the scale and zero point of a result.
Expr quantized_convolution(const Builder& build, const QuantizedOperand& x,
                           const QuantizedOperand& w, const Window& window, int64_t groups,
                           const Expr& bias, const Expr& scale, const Expr& zero);
// A sum that stands for sum * scale, with the scale and zero point of the result, in the type of that zero point.
Expr requantize(const Builder& build, const Expr& sum, const Expr& scale, int64_t axis,
                const Expr& out_scale, const Expr& zero);

}  // namespace relay::frontend
