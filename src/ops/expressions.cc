#include "ops/expressions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/lanes.h"
#include "base/codes/types.h"

namespace relay::ops {

Expr apply(std::string_view op, std::vector<Expr> args,
           const std::vector<std::pair<std::string, AttrValue>>& attrs) {
  return make_call(op, std::move(args), attrs, Span{});
}

const TensorTypeNode& type_of(const Expr& e) {
  const TensorTypeNode* t = tensor_of(e);
  // Definitions of operators are asked before their arguments are known to fit.
  if (t == nullptr) {
    throw UserError(Diagnostic(codes::type_mismatch, e->span, "the operator takes tensors")
                        .expected("a tensor")
                        .found(e->type ? to_string(e->type) : "something of no known type"));
  }
  return *t;
}
int64_t rank_of(const Expr& e) { return type_of(e).rank(); }

Expr scalar(double value, const Expr& like) { return constant(value, type_of(like).dtype); }

Expr operator+(const Expr& a, const Expr& b) { return apply("add", {a, b}); }
Expr operator-(const Expr& a, const Expr& b) { return apply("subtract", {a, b}); }
Expr operator*(const Expr& a, const Expr& b) { return apply("multiply", {a, b}); }
Expr operator/(const Expr& a, const Expr& b) { return apply("divide", {a, b}); }
Expr operator*(double a, const Expr& b) { return b * scalar(a, b); }
Expr operator-(double a, const Expr& b) { return scalar(a, b) - b; }
Expr operator+(double a, const Expr& b) { return b + scalar(a, b); }
Expr negative(const Expr& a) { return apply("negative", {a}); }
Expr choose(const Expr& condition, const Expr& if_true, const Expr& if_false) {
  return apply("where", {condition, if_true, if_false});
}
Expr is_greater(const Expr& a, const Expr& b) { return apply("greater", {a, b}); }
Expr is_greater(const Expr& a, double b) { return is_greater(a, scalar(b, a)); }
Expr is_equal(const Expr& a, const Expr& b) { return apply("equal", {a, b}); }
Expr is_equal(const Expr& a, double b) { return is_equal(a, scalar(b, a)); }
Expr indicator(const Expr& condition, const Expr& like) {
  return cast_to(condition, type_of(like).dtype);
}
Expr kept(const Expr& condition, const Expr& g) { return choose(condition, g, scalar(0, g)); }

Expr finite_quotient(const Expr& g, const Expr& b) {
  if (isa<ConstantNode>(b)) return g / b;
  // Of NaN as of 0 no one can say that it is greater than 0.
  Expr useless = apply("logical_not", {is_greater(apply("abs", {b}), 0)});
  Expr both = apply("logical_and", {is_equal(g, 0), useless});
  return g / choose(both, scalar(1, b), b);
}

Expr finite_product(const Expr& g, const Expr& d) {
  Expr infinite = apply("logical_not", {apply("isfinite", {d})});
  Expr both = apply("logical_and", {is_equal(g, 0), infinite});
  return g * choose(both, scalar(0, d), d);
}

AttrValue shape_value(const std::vector<Dim>& shape) {
  if (std::ranges::any_of(shape, is_any)) return AttrValue();
  return to_value(Dims(shape.begin(), shape.end()));
}

namespace {

Expr filled_like(const char* op, const char* op_like, const Expr& e) {
  const TensorTypeNode& t = type_of(e);
  AttrValue shape = shape_value(t.shape);
  if (shape.is_none()) return apply(op_like, {e});
  return apply(op, {}, {{"shape", shape}, {"dtype", t.dtype.to_string()}});
}

// Whether the two have one shape for certain.
bool has_shape(const Expr& e, const std::vector<Dim>& shape) {
  return std::ranges::equal(type_of(e).shape, shape, dim_equal);
}

Ints all_axes(int64_t rank) {
  Ints out(static_cast<size_t>(rank));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

}  // namespace

Expr zeros_like(const Expr& e) { return filled_like("zeros", "zeros_like", e); }
Expr ones_like(const Expr& e) { return filled_like("ones", "ones_like", e); }
Expr cast_to(const Expr& e, DType dtype) {
  return type_of(e).dtype == dtype ? e : apply("cast", {e}, {{"dtype", dtype.to_string()}});
}

Expr reshape_to(const Expr& e, const std::vector<Dim>& shape) {
  if (has_shape(e, shape)) return e;
  return apply("reshape", {e}, {{"newshape", shape_value(shape)}, {"allowzero", true}});
}
Expr reshape_like(const Expr& e, const Expr& like) {
  const std::vector<Dim>& shape = type_of(like).shape;
  return std::ranges::any_of(shape, is_any) ? apply("reshape_like", {e, like})
                                            : reshape_to(e, shape);
}
Expr join_leading(const Expr& e, int64_t axes) {
  const std::vector<Dim>& from = type_of(e).shape;
  const auto rest = from.begin() + static_cast<std::ptrdiff_t>(axes);
  // Not -1: beside a size of 0 it is not told by how many elements there are.
  if (std::any_of(from.begin(), rest, is_any)) {
    Expr out = e;
    for (; axes > 1; --axes) {
      out = apply("reshape", {out}, {{"newshape", to_value(Ints{-3, -2})}});
    }
    return out;
  }
  std::vector<Dim> shape{dim(1)};
  for (auto d = from.begin(); d != rest; ++d) shape[0] = shape[0] * *d;
  shape.insert(shape.end(), rest, from.end());
  return reshape_to(e, shape);
}
Expr broadcast_like(const Expr& e, const Expr& like) {
  const TensorTypeNode& t = type_of(like);
  if (has_shape(e, t.shape)) return e;
  AttrValue shape = shape_value(t.shape);
  return shape.is_none() ? apply("broadcast_to_like", {e, like})
                         : apply("broadcast_to", {e}, {{"shape", shape}});
}

Expr unbroadcast(const Expr& e, const Expr& like) {
  const std::vector<Dim>&from = type_of(e).shape, &to = type_of(like).shape;
  if (has_shape(e, to)) return e;
  AttrValue shape = shape_value(to);
  if (shape.is_none()) return apply("collapse_sum_like", {e, like});
  size_t lead = from.size() - to.size();
  Ints axes;
  for (size_t d = 0; d < from.size(); ++d) {
    bool one = d >= lead && as_const(to[d - lead]) == 1;
    if (d < lead || (one && as_const(from[d]) != 1)) {
      axes.push_back(static_cast<int64_t>(d));
    } else if (!dim_equal(from[d], to[d - lead])) {
      // Only a run tells whether this axis was repeated.
      return apply("collapse_sum_to", {e}, {{"shape", shape}});
    }
  }
  return reshape_to(sum_over(e, axes), to);
}

Expr transposed(const Expr& e, const Ints& axes) {
  if (std::ranges::is_sorted(axes)) return e;
  return apply("transpose", {e}, {{"axes", to_value(axes)}});
}
Expr move_axis(const Expr& e, int64_t from, int64_t to) {
  return with_axis_moved(e, static_cast<size_t>(from), static_cast<size_t>(to));
}
Expr sum_over(const Expr& e, const Ints& axes, bool keepdims) {
  if (axes.empty()) return e;
  return apply("sum", {e}, {{"axis", to_value(axes)}, {"keepdims", keepdims}});
}
Expr sum_over_all_but(const Expr& e, int64_t axis) {
  Ints axes = all_axes(rank_of(e));
  axes.erase(axes.begin() + from_front(axis, rank_of(e)));
  return sum_over(e, axes);
}
Expr along(const Expr& v, int64_t axis, int64_t rank) {
  int64_t behind = rank - 1 - from_front(axis, rank);
  if (behind == 0) return v;
  return apply("expand_dims", {v}, {{"axis", int64_t{1}}, {"num_newaxis", behind}});
}

Expr size_as(const Dim& size, const Expr& like) {
  if (auto known = as_const(size)) return scalar(static_cast<double>(*known), like);
  RELAY_CHECK(!is_any(size), "a size that only the data tells");
  Expr counted = apply("zeros", {}, {{"shape", to_value(Dims{size})}, {"dtype", "bool"}});
  return cast_to(apply("ndarray_size", {counted}, {{"dtype", "int64"}}), type_of(like).dtype);
}

Expr slice_axis(const Expr& e, int64_t axis, const Dim& begin, const Dim& size) {
  if (as_const(begin) == 0 && dim_equal(size, type_of(e).shape[static_cast<size_t>(axis)]))
    return e;
  return apply("strided_slice", {e},
               {{"begin", to_value(Dims{begin})},
                {"end", to_value(Dims{begin + size})},
                {"axes", to_value(Ints{axis})}});
}
Expr pad_axis(const Expr& e, int64_t axis, const Dim& before, const Dim& after) {
  if (as_const(before) == 0 && as_const(after) == 0) return e;
  ValueList widths(static_cast<size_t>(rank_of(e)), to_value(Ints{0, 0}));
  widths[static_cast<size_t>(axis)] = to_value(Dims{before, after});
  return apply("nn.pad", {e, scalar(0, e)}, {{"pad_width", AttrValue(std::move(widths))}});
}

}  // namespace relay::ops
