// Quantised tensors: integers (or floats of at most 8 bits) with scales and zero points.
//
// Where the operators of the quantised dialect (qnn.*) hold them they are used; what they do not have - blocks, scales
// of rows, narrow types - is spelt out in exact integer arithmetic and float scales. A zero point is a value of the
// model, null for none, since one that is known to be 0 costs nothing.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

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

// What qnn.dense and qnn.conv take beside data and weights: both zero points and both scales (1 where these are null).
// Empty where they do not take such data: bytes with one zero point and scale, weights with one or one for each column.
std::vector<Expr> byte_parameters(const Builder& build, const Expr& x, const Expr& w,
                                  const ValuePtr& x_zero, const ValuePtr& w_zero,
                                  const Expr& x_scale, const Expr& w_scale);
// The product of bytes by a matrix, as int32; null where qnn.dense does not take them.
Expr byte_product(const Builder& build, const Expr& x, const Expr& w, const ValuePtr& x_zero,
                  const ValuePtr& w_zero, const Expr& x_scale, const Expr& w_scale);
// A sum that stands for sum * scale, with the scale and zero point of the result, in the type of that zero point.
Expr requantize(const Builder& build, const Expr& sum, const Expr& scale, int64_t axis,
                const Expr& out_scale, const Expr& zero);
// The scale of a product: of numbers and vectors along one axis.
Expr product_scale(const Builder& build, Expr a, Expr b);

// A product of integers, as floats.
struct ScaledOperands {
  Expr a, b, a_scale, b_scale;
  ValuePtr a_zero, b_zero;
};
Expr scaled_product(const Builder& build, const ScaledOperands& operands);

}  // namespace relay::frontend
