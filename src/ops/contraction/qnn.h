// What the operators of the quantised dialect share: relations and expressions of quantised tensors.
#pragma once

#include <utility>

#include "ops/common.h"

namespace relay::ops {

// Of zero points, sums of products and biases.
inline const DType kInt = DType::Int(32);

// Whether arguments `scale` and `zero` (float32, int32) are numbers, or vectors of the size of `axis`
// in `shape`; fails in `ctx` when not.
bool check_quantization(RelationContext& ctx, size_t scale, size_t zero,
                        const std::vector<Dim>& shape, int64_t axis);
// Throws UserError E0806 when a constant scale is not above 0 and finite, or a constant zero point is
// no value of `dtype`, which is that of the quantised data.
void check_constants(const relay::CallNode& call, const Expr& scale, const Expr& zero, DType dtype);

// A scale or zero point such that it broadcasts against data of that rank.
Expr along_data(const Expr& p, int64_t axis, int64_t rank);
// A constant, all zeros.
bool is_zero(const Expr& e);

// The integers less their zero point, in int32.
Expr centred(const Expr& q, const Expr& zero, int64_t axis);
// The real numbers, in float32.
Expr dequantized(const Expr& q, const Expr& scale, const Expr& zero, int64_t axis);
// clip(round(real / scale) + zero), halves to the even neighbour.
Expr quantized(const Expr& real, const Expr& scale, const Expr& zero, int64_t axis, DType to);
// Integers in a wider dtype, or in floats, as the nearest of `to`.
Expr saturated(const Expr& integers, DType to);
// The least and the greatest integer of a dtype.
std::pair<double, double> range_of(DType dtype);

// The operator of `row`, a convolution or a transposed one over any number of axes in layouts without blocks, of integers
// less their zero points: x (one zero point) and w (one, or one for each output channel). Exact in int32, by products of bytes
// where the zero point of the weights is 0.
Expr integer_convolution(const OpInfo& row, const Attrs& attrs, const Span& span, const Expr& x,
                         const Expr& w, const Expr& x_zero, const Expr& w_zero);

// The layout rule of an operator that takes the first arguments of a quantised one; scales and zero points have no layout.
LayoutRule layout_rule_of(const OpInfo& row);

// A row of the dialect: an operator written in others, whose examples have formulas over NumPy.
OpInfo quantized_row(std::string name, std::string doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                     TypeRelation relation, DefinitionRule definition, CostRule cost,
                     std::vector<OpExample> examples);

}  // namespace relay::ops
