// Expressions made of calls of operators: what definitions and gradients of operators consist of.
#pragma once

#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/calls.h"
#include "ops/common.h"

namespace relay::ops {

// The operator applied to arguments.
Expr apply(std::string_view op, std::vector<Expr> args,
           const std::vector<std::pair<std::string, AttrValue>>& attrs = {});
// A constant of the dtype of `like`.
Expr scalar(double value, const Expr& like);

// Element by element, with broadcasting.
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator*(double a, const Expr& b);
Expr operator-(double a, const Expr& b);
Expr operator+(double a, const Expr& b);
Expr negative(const Expr& a);
Expr choose(const Expr& condition, const Expr& if_true, const Expr& if_false);
// Compares with a constant, or with another tensor.
Expr is_greater(const Expr& a, double b);
Expr is_greater(const Expr& a, const Expr& b);
Expr is_equal(const Expr& a, double b);
Expr is_equal(const Expr& a, const Expr& b);
// 1 where the condition holds, else 0.
Expr indicator(const Expr& condition, const Expr& like);
// The elements of `g` where the condition holds, else 0.
Expr kept(const Expr& condition, const Expr& g);

// g / b, but 0 where g is 0 and b is 0 or NaN.
Expr finite_quotient(const Expr& g, const Expr& b);
// g * d, but 0 where g is 0 and d is not finite.
Expr finite_product(const Expr& g, const Expr& d);

const TensorTypeNode& type_of(const Expr& e);
int64_t rank_of(const Expr& e);
// The sizes as an attribute; None when one of them is `?`.
AttrValue shape_value(const std::vector<Dim>& shape);
Expr zeros_like(const Expr& e);
Expr ones_like(const Expr& e);
Expr cast_to(const Expr& e, DType dtype);

// The elements in another shape; `like` tells it where a size is `?`.
Expr reshape_to(const Expr& e, const std::vector<Dim>& shape);
Expr reshape_like(const Expr& e, const Expr& like);
// The first `axes` axes as one.
Expr join_leading(const Expr& e, int64_t axes);
Expr broadcast_like(const Expr& e, const Expr& like);
// The sum over what a broadcast of `like` to `e` has repeated.
Expr unbroadcast(const Expr& e, const Expr& like);
Expr transposed(const Expr& e, const Ints& axes);
Expr move_axis(const Expr& e, int64_t from, int64_t to);
Expr sum_over(const Expr& e, const Ints& axes, bool keepdims = false);
// Over all axes but one.
Expr sum_over_all_but(const Expr& e, int64_t axis);
// A vector along an axis of a tensor of that rank.
Expr along(const Expr& v, int64_t axis, int64_t rank);
// A size, as a scalar of the dtype of `like`.
Expr size_as(const Dim& size, const Expr& like);
// The places [begin, begin + size) of an axis.
Expr slice_axis(const Expr& e, int64_t axis, const Dim& begin, const Dim& size);
// Zeros around an axis, of widths that are not negative.
Expr pad_axis(const Expr& e, int64_t axis, const Dim& before, const Dim& after);

}  // namespace relay::ops
