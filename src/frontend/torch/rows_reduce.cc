// Reductions over axes, and running ones.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/order.h"
#include "frontend/common/shape_args.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/special.h"

namespace relay::frontend::torch {
namespace {

// The axes that `dim` names; all of them where it is left out or empty. Sorted.
std::vector<int64_t> reduced_axes(NodeContext& ctx, int64_t rank) {
  std::vector<int64_t> asked = ctx.ints("dim", std::vector<int64_t>{});
  if (asked.empty()) return Builder::all_axes(rank);
  for (int64_t& a : asked) a = ctx.axis(a, std::max<int64_t>(rank, 1));
  std::ranges::sort(asked);
  if (std::ranges::adjacent_find(asked) != asked.end())
    ctx.fail(codes::frontend_attribute, "an axis is given twice");
  if (rank == 0) asked.clear();
  return asked;
}

Dim count_along(const Expr& x, const std::vector<int64_t>& axes) {
  Dim count = dim(1);
  for (int64_t a : axes) count = count * Builder::shape_of(x)[static_cast<size_t>(a)];
  return count;
}

// A size as a scalar of the dtype.
Expr size_as(NodeContext& ctx, const Expr& x, const std::vector<int64_t>& axes, DType dtype) {
  const Dim count = count_along(x, axes);
  if (auto n = as_const(count)) return ctx.scalar(static_cast<double>(*n), dtype);
  if (!is_any(count)) return ctx.cast(ctx.expr_of(value_of(known_scalar(count))), dtype);
  Expr one = ctx.call("ones_like", {ctx.cast(x, dtype)});
  return ctx.reduce("sum", one, Builder::all_axes(Builder::rank_of(x)), false);
}

Expr extreme_of(NodeContext& ctx, const Expr& x, bool greatest, const std::vector<int64_t>& axes,
                bool keeps) {
  const char* op = greatest ? "max" : "min";
  if (Builder::dtype_of(x).is_bool()) op = greatest ? "any" : "all";
  return ctx.reduce(op, x, axes, keeps);
}

// A sum or product, of integers in int64. That of truth values is their greatest or least.
Values accumulate(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const DType dtype = ctx.dtype().value_or(ctx.out_dtype());
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  const bool keeps = ctx.truth("keepdim", false);
  x = ctx.cast(x, dtype);
  const std::string op(ctx.relay_op());
  if (dtype.is_bool()) return {value_of(extreme_of(ctx, x, op == "sum", axes, keeps))};
  return {value_of(ctx.reduce(op.c_str(), x, axes, keeps))};
}

Values mean(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  x = ctx.cast(x, ctx.dtype().value_or(Builder::dtype_of(x)));
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  return {value_of(ctx.reduce("mean", x, axes, ctx.truth("keepdim", false)))};
}

Values nansum(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  x = ctx.cast(x, ctx.dtype().value_or(ctx.out_dtype()));
  x = ctx.call("where", {ctx.call("isnan", {x}), ctx.scalar_like(0, x), x});
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  return {value_of(ctx.reduce("sum", x, axes, ctx.truth("keepdim", false)))};
}

Values extreme(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  return {value_of(extreme_of(ctx, x, ctx.relay_op() == "max", axes, ctx.truth("keepdim", false)))};
}

Values aminmax(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  std::vector<int64_t> axes = Builder::all_axes(Builder::rank_of(x));
  if (ctx.has("dim")) axes = reduced_axes(ctx, Builder::rank_of(x));
  const bool keeps = ctx.truth("keepdim", false);
  return {value_of(extreme_of(ctx, x, false, axes, keeps)),
          value_of(extreme_of(ctx, x, true, axes, keeps))};
}

Expr place_of_extreme(NodeContext& ctx, const Expr& x, bool greatest, int64_t axis, bool keeps) {
  Expr of = Builder::dtype_of(x).is_bool() ? ctx.cast(x, DType::UInt(8)) : x;
  Expr at = ctx.call(greatest ? "argmax" : "argmin", {of},
                     {{"axis", to_value(std::vector<int64_t>{axis})}, {"keepdims", keeps}});
  return ctx.cast(at, DType::Int(64));
}

Values place(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const bool greatest = ctx.relay_op() == "argmax", keeps = ctx.truth("keepdim", false);
  const int64_t rank = Builder::rank_of(x);
  if (ctx.has("dim") && rank > 0)
    return {value_of(place_of_extreme(ctx, x, greatest, ctx.axis_of("dim", rank, 0), keeps))};
  ctx.find("dim");
  const std::vector<Dim> shape = Builder::shape_of(x);
  Expr flat = ctx.reshape(x, {product(shape, 0, shape.size())});
  Expr at = place_of_extreme(ctx, flat, greatest, 0, false);
  if (keeps) at = ctx.reshape(at, std::vector<int64_t>(static_cast<size_t>(rank), 1));
  return {value_of(at)};
}

// The extreme along an axis, and where it is.
Values extreme_with_place(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const bool greatest = ctx.relay_op() == "max", keeps = ctx.truth("keepdim", false);
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, DType::Int(64)))};
  return {value_of(extreme_of(ctx, x, greatest, {axis}, keeps)),
          value_of(place_of_extreme(ctx, x, greatest, axis, keeps))};
}

Values truth_of(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  Expr y = ctx.reduce(std::string(ctx.relay_op()).c_str(), ctx.cast(x, DType::Bool()), axes,
                      ctx.truth("keepdim", false));
  return {value_of(ctx.cast(y, ctx.out_dtype()))};
}

struct Moments {
  Expr variance, mean;
};

Moments moments(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  const bool keeps = ctx.truth("keepdim", false);
  double correction = 1;
  if (ctx.has("unbiased")) correction = ctx.truth("unbiased", true) ? 1 : 0;
  if (ctx.has("correction")) correction = ctx.real("correction", 1);
  const DType dtype = Builder::dtype_of(x);
  Expr mean = ctx.reduce("mean", x, axes, true);
  Expr centred = ctx.sub(x, mean);
  Expr squares = ctx.reduce("sum", ctx.mul(centred, centred), axes, keeps);
  Expr count = ctx.sub(size_as(ctx, x, axes, dtype), ctx.scalar(correction, dtype));
  count = ctx.call("maximum", {count, ctx.scalar(0, dtype)});
  return {ctx.div(squares, count), keeps ? mean : ctx.squeeze(mean, axes)};
}

Values var(NodeContext& ctx) { return {value_of(moments(ctx).variance)}; }
Values std_row(NodeContext& ctx) { return {value_of(ctx.call("sqrt", {moments(ctx).variance}))}; }
Values var_mean(NodeContext& ctx) {
  Moments m = moments(ctx);
  return {value_of(m.variance), value_of(m.mean)};
}
Values std_mean(NodeContext& ctx) {
  Moments m = moments(ctx);
  return {value_of(ctx.call("sqrt", {m.variance})), value_of(m.mean)};
}

Values logsumexp(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  if (!Builder::dtype_of(x).is_floating()) x = ctx.cast(x, DType::Float(32));
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  const bool keeps = ctx.truth("keepdim", false);
  if (axes.empty()) return {value_of(x)};
  return {value_of(ctx.call("logsumexp", {x}, {{"axis", to_value(axes)}, {"keepdims", keeps}}))};
}

Expr p_norm(NodeContext& ctx, Expr x, double p, const std::vector<int64_t>& axes, bool keeps) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  Expr size = ctx.call("abs", {x});
  if (p == kInf) return ctx.reduce("max", size, axes, keeps);
  if (p == -kInf) return ctx.reduce("min", size, axes, keeps);
  if (p == 0) {
    Expr other = ctx.call("not_equal", {x, ctx.scalar_like(0, x)});
    return ctx.reduce("sum", ctx.cast(other, Builder::dtype_of(x)), axes, keeps);
  }
  if (p == 1) return ctx.reduce("sum", size, axes, keeps);
  if (p == 2) return ctx.call("sqrt", {ctx.reduce("sum", ctx.mul(x, x), axes, keeps)});
  Expr sum = ctx.reduce("sum", ctx.call("power", {size, ctx.scalar_like(p, x)}), axes, keeps);
  return ctx.call("power", {sum, ctx.scalar_like(1 / p, x)});
}

Values norm(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  x = ctx.cast(x, ctx.dtype().value_or(Builder::dtype_of(x)));
  const double p = ctx.has("p") ? ctx.real("p") : ctx.real("ord", 2);
  const std::vector<int64_t> axes = reduced_axes(ctx, Builder::rank_of(x));
  return {value_of(p_norm(ctx, x, p, axes, ctx.truth("keepdim", false)))};
}

// The norm of a difference.
Values dist(NodeContext& ctx) {
  Expr d = ctx.sub(ctx.tensor("self"), ctx.tensor("other"));
  const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(d));
  return {value_of(p_norm(ctx, d, ctx.real("p", 2), all, false))};
}
// The norms of the differences of all pairs of rows.
Values cdist(NodeContext& ctx) {
  Expr a = ctx.tensor("x1"), b = ctx.tensor("x2");
  ctx.find("compute_mode");
  Expr d = ctx.sub(ctx.expand_dims(a, Builder::rank_of(a) - 1),
                   ctx.expand_dims(b, Builder::rank_of(b) - 2));
  return {value_of(p_norm(ctx, d, ctx.real("p", 2), {Builder::rank_of(d) - 1}, false))};
}

// ---- Running reductions ------------------------------------------------------------------------

Values running_row(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  x = ctx.cast(x, ctx.dtype().value_or(ctx.out_dtype()));
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  if (Builder::rank_of(x) == 0) return {value_of(x)};
  const auto kind = ctx.relay_op() == "cumsum" ? Running::Sum : Running::Product;
  return {value_of(running(ctx, kind, x, axis, false, false))};
}

// The extreme up to each element and where it is, the last of several: what 1, 2, 4, ... elements before it say.
Values running_extreme(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  const DType i64 = DType::Int(64);
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, i64))};
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  Expr at = ctx.call("arange", {}, {{"stop", AttrValue(n)}, {"dtype", to_value(i64)}});
  at = ctx.broadcast_to(ctx.expand_dims(at, 1, rank - 1 - axis), Builder::shape_of(x));
  const DType dtype = Builder::dtype_of(x);
  Expr value = dtype.is_bool() ? ctx.cast(x, DType::UInt(8)) : x;
  const char* better = ctx.relay_op() == "max" ? "greater_equal" : "less_equal";
  for (int64_t step = 1; step < n; step *= 2) {
    auto shifted = [&](const Expr& e) {
      return ctx.concat({ctx.slice(e, axis, 0, step), ctx.slice(e, axis, 0, n - step)}, axis);
    };
    Expr other = shifted(value);
    Expr keep =
        ctx.call("logical_or", {ctx.call(better, {value, other}), ctx.call("isnan", {value})});
    at = ctx.where(keep, at, shifted(at));
    value = ctx.where(keep, value, other);
  }
  return {value_of(ctx.cast(value, dtype)), value_of(at)};
}

// log(exp(a) + exp(b)), of infinities too.
Expr log_add(NodeContext& ctx, const Expr& a, const Expr& b) {
  Expr greatest = ctx.maximum(a, b), least = ctx.minimum(a, b);
  Expr sum = ctx.add(greatest, log_one_plus(ctx, ctx.call("exp", {ctx.sub(least, greatest)})));
  return ctx.where(ctx.call("isinf", {greatest}), greatest, sum);
}

// The logarithm of the running sum of exponentials: what 1, 2, 4, ... elements before each one say.
Values logcumsumexp(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  if (rank == 0) return {value_of(x)};
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  for (int64_t step = 1; step < n; step *= 2) {
    std::vector<Dim> shape = Builder::shape_of(x);
    shape[static_cast<size_t>(axis)] = dim(step);
    Expr none = ctx.full(-std::numeric_limits<double>::infinity(), shape, Builder::dtype_of(x));
    x = log_add(ctx, x, ctx.concat({none, ctx.slice(x, axis, 0, n - step)}, axis));
  }
  return {value_of(x)};
}

Values diff(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  if (ctx.integer("n", 1) != 1 || ctx.has("prepend") || ctx.has("append"))
    ctx.unsupported("diff of a higher order, or with more elements");
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), -1);
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  if (n == 0) return {value_of(x)};
  Expr y = ctx.call(Builder::dtype_of(x).is_bool() ? "logical_xor" : "subtract",
                    {ctx.slice(x, axis, 1, n), ctx.slice(x, axis, 0, n - 1)});
  return {value_of(y)};
}

Values count_nonzero(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.cast(ctx.tensor("self"), DType::Bool()), DType::Int(64));
  return {value_of(ctx.reduce("sum", x, reduced_axes(ctx, Builder::rank_of(x)), false))};
}

Values trace(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.tensor("self"), ctx.out_dtype());
  const int64_t n = std::min(ctx.const_dim(x, 0, "the rows"), ctx.const_dim(x, 1, "the columns"));
  const int64_t columns = ctx.const_dim(x, 1, "the columns");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < n; ++i) places.push_back(i * columns + i);
  Expr flat = ctx.merge_axes(x, 0, 2);
  Expr diagonal = ctx.call("take", {flat, ctx.ints(places)},
                           {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  return {value_of(ctx.reduce("sum", diagonal, {0}, false))};
}

// The sum over what broadcasting repeated.
Values sum_to_size(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<Dim> size = ctx.sizes("size");
  if (std::ranges::any_of(size, is_any))
    ctx.fail(codes::frontend_dynamic, "a size is known only in a run", "a number");
  return {value_of(ctx.call("collapse_sum_to", {x},
                            {{"shape", relay::to_value(Dims(size.begin(), size.end()))}}))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Reduce>() {
  static constexpr Row kRows[] = {
      {"aten.sum.default", accumulate, "sum"},
      {"aten.sum.dim_IntList", accumulate, "sum"},
      {"aten.prod.default", accumulate, "prod"},
      {"aten.prod.dim_int", accumulate, "prod"},
      {"aten.mean.default", mean, kInFloat32},
      {"aten.mean.dim", mean, kInFloat32},
      {"aten.nansum.default", nansum},
      {"aten.amax.default", extreme, "max"},
      {"aten.amin.default", extreme, "min"},
      {"aten.max.default", extreme, "max"},
      {"aten.min.default", extreme, "min"},
      {"aten.max.dim", extreme_with_place, "max"},
      {"aten.min.dim", extreme_with_place, "min"},
      {"aten.aminmax.default", aminmax},
      {"aten.argmax.default", place, "argmax"},
      {"aten.argmin.default", place, "argmin"},
      {"aten.any.default", truth_of, "any"},
      {"aten.any.dim", truth_of, "any"},
      {"aten.any.dims", truth_of, "any"},
      {"aten.all.default", truth_of, "all"},
      {"aten.all.dim", truth_of, "all"},
      {"aten.all.dims", truth_of, "all"},
      {"aten.var.default", var, kInFloat32},
      {"aten.var.dim", var, kInFloat32},
      {"aten.var.correction", var, kInFloat32},
      {"aten.std.default", std_row, kInFloat32},
      {"aten.std.dim", std_row, kInFloat32},
      {"aten.std.correction", std_row, kInFloat32},
      {"aten.var_mean.default", var_mean, kInFloat32},
      {"aten.var_mean.dim", var_mean, kInFloat32},
      {"aten.var_mean.correction", var_mean, kInFloat32},
      {"aten.std_mean.default", std_mean, kInFloat32},
      {"aten.std_mean.dim", std_mean, kInFloat32},
      {"aten.std_mean.correction", std_mean, kInFloat32},
      {"aten.logsumexp.default", logsumexp, kInFloat32},
      {"aten.norm.Scalar", norm, kInFloat32},
      {"aten.norm.ScalarOpt_dim", norm, kInFloat32},
      {"aten.norm.ScalarOpt_dim_dtype", norm, kInFloat32},
      {"aten.linalg_vector_norm.default", norm, kInFloat32},
      {"aten.cumsum.default", running_row, "cumsum"},
      {"aten.cumprod.default", running_row, "cumprod"},
      {"aten.cummax.default", running_extreme, "max"},
      {"aten.cummin.default", running_extreme, "min"},
      {"aten.logcumsumexp.default", logcumsumexp, kInFloat32},
      {"aten._logcumsumexp.default", logcumsumexp, kInFloat32},
      {"aten.dist.default", dist, kInFloat32},
      {"aten._cdist_forward.default", cdist, kInFloat32},
      {"aten.diff.default", diff},
      {"aten.count_nonzero.default", count_nonzero},
      {"aten.count_nonzero.dim_IntList", count_nonzero},
      {"aten.trace.default", trace},
      {"aten.sum_to_size.default", sum_to_size},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
