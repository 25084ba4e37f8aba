// Sorting, and what follows from an order.
#include "base/codes/frontend.h"
#include "frontend/common/gather.h"
#include "frontend/common/order.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/unique.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

Values in_order(NodeContext& ctx, const Expr& x, int64_t axis, bool descending) {
  if (Builder::rank_of(x) == 0) return {value_of(x), value_of(ctx.scalar(0, kI64))};
  const Ordered all = sorted(ctx, x, {.axis = axis, .least = !descending});
  return {value_of(all.values), value_of(all.places)};
}

Values sort(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  ctx.find("stable");  // an order is always stable here
  return in_order(ctx, x, ctx.axis_of("dim", Builder::rank_of(x), -1),
                  ctx.truth("descending", false));
}

Values argsort(NodeContext& ctx) { return {sort(ctx)[1]}; }

Values topk(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), -1);
  const int64_t k = ctx.integer("k");
  const bool greatest = ctx.truth("largest", true);
  ctx.find("sorted");  // sorted is one of the orders that are allowed
  if (Builder::rank_of(x) == 0) {
    if (k != 1) ctx.unsupported("topk of other than one element of a number");
    return {value_of(x), value_of(ctx.scalar(0, kI64))};
  }
  const Ordered top = top_k(ctx, x, k, {.axis = axis, .least = !greatest});
  return {value_of(top.values), value_of(top.places)};
}

// The element in the middle, the lower one of two; NaN where there is one.
Values median(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x);
  const bool along = ctx.has("dim");
  const bool keeps = ctx.truth("keepdim", false);
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, kI64))};
  int64_t axis = 0;
  if (along) {
    axis = ctx.axis_of("dim", rank, std::nullopt);
  } else {
    x = ctx.merge_axes(x, 0, static_cast<size_t>(rank));
  }
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  if (n == 0) ctx.unsupported("the median of no elements");
  Values all = in_order(ctx, x, axis, false);
  Values out;
  // NaN is last in the order.
  Expr last = ctx.slice(ctx.expr_of(all[0]), axis, n - 1, n);
  Expr none = ctx.call("isnan", {last});
  for (const ValuePtr& v : all) {
    Expr e = ctx.expr_of(v);
    Expr middle = ctx.slice(e, axis, (n - 1) / 2, (n - 1) / 2 + 1);
    if (Builder::dtype_of(x).is_floating())
      middle = ctx.call("where", {none, ctx.slice(e, axis, n - 1, n), middle});
    out.push_back(value_of(keeps ? middle : ctx.squeeze(middle, {axis})));
  }
  return out;
}

// The same of the elements that are not NaN.
Values nanmedian(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x);
  const bool keeps = ctx.truth("keepdim", false), along = ctx.has("dim");
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, kI64))};
  const int64_t axis = along ? ctx.axis_of("dim", rank, std::nullopt) : 0;
  if (!along) x = ctx.merge_axes(x, 0, static_cast<size_t>(rank));
  Expr missing = Builder::dtype_of(x).is_floating()
                     ? ctx.call("isnan", {x})
                     : ctx.full(0, Builder::shape_of(x), DType::Bool());
  Expr there = ctx.cast(ctx.call("logical_not", {missing}), kI64);
  Expr count = ctx.reduce("sum", there, {axis}, true);
  Expr middle =
      ctx.call("floor_divide", {ctx.sub(count, ctx.scalar(1, kI64)), ctx.scalar(2, kI64)});
  middle = ctx.maximum(middle, ctx.scalar(0, kI64));
  Values out;
  for (const ValuePtr& v : in_order(ctx, x, axis, false)) {
    Expr e = ctx.call("gather", {ctx.expr_of(v), middle}, {{"axis", axis}, {"checked", false}});
    out.push_back(value_of(keeps ? e : ctx.squeeze(e, {axis})));
  }
  return out;
}

Values kthvalue(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, -1);
  const int64_t k = ctx.integer("k");
  const bool keeps = ctx.truth("keepdim", false);
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, kI64))};
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  if (k < 1 || k > n) ctx.fail(codes::frontend_attribute, "k is out of range");
  Values out;
  for (const ValuePtr& v : in_order(ctx, x, axis, false)) {
    Expr e = ctx.slice(ctx.expr_of(v), axis, k - 1, k);
    out.push_back(value_of(keeps ? e : ctx.squeeze(e, {axis})));
  }
  return out;
}

// The element of which there are most along an axis, the least one of several, and its last place. Every element is
// compared with every other one.
Values mode(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, -1);
  const bool keeps = ctx.truth("keepdim", false);
  if (rank == 0) return {value_of(x), value_of(ctx.scalar(0, kI64))};
  const int64_t n = ctx.const_dim(x, axis, "the size of the axis");
  constexpr int64_t kMost = 4096;
  if (n == 0 || n > kMost) ctx.unsupported("the mode of no elements, or of more than 4096");
  // (..., element, other element, ...)
  Expr same = ctx.call("equal", {ctx.expand_dims(x, axis + 1), ctx.expand_dims(x, axis)});
  Expr count = ctx.reduce("sum", ctx.cast(same, kI64), {axis + 1}, false);
  Expr most = ctx.call("equal", {count, ctx.reduce("max", count, {axis}, true)});
  const DType dtype = Builder::dtype_of(x);
  Expr ordered = dtype.is_bool() ? ctx.cast(x, DType::UInt(8)) : x;
  Expr none = ctx.reduce("max", ordered, {axis}, true);
  Expr value = ctx.reduce("min", ctx.where(most, ordered, none), {axis}, true);
  Expr places = ctx.call("arange", {}, {{"stop", AttrValue(n)}, {"dtype", to_value(kI64)}});
  places = ctx.expand_dims(places, 1, rank - 1 - axis);
  Expr at = ctx.where(ctx.call("equal", {ordered, value}), places, ctx.scalar(-1, kI64));
  at = ctx.reduce("max", at, {axis}, true);
  value = ctx.cast(value, dtype);
  return {value_of(keeps ? value : ctx.squeeze(value, {axis})),
          value_of(keeps ? at : ctx.squeeze(at, {axis}))};
}

Values searchsorted(NodeContext& ctx, const char* sequence, const char* values) {
  Expr sorted_sequence = ctx.tensor(sequence);
  Expr x = ctx.find(values) != nullptr && ctx.find(values)->name() == nullptr
               ? ctx.number_as(*ctx.number(values), Builder::dtype_of(sorted_sequence))
               : ctx.tensor(values);
  if (Expr order = ctx.tensor_or_null("sorter")) {
    sorted_sequence = ctx.call("gather", {sorted_sequence, order},
                               {{"axis", Builder::rank_of(sorted_sequence) - 1}});
  }
  bool right = ctx.truth("right", false);
  if (const std::string side = ctx.text("side", ""); !side.empty()) right = side == "right";
  const DType dtype = ctx.promoted({sorted_sequence, x});
  const DType out = ctx.truth("out_int32", false) ? DType::Int(32) : kI64;
  const bool scalar = Builder::rank_of(x) == 0;
  if (scalar) x = ctx.reshape(x, std::vector<int64_t>{1});
  Expr y = ctx.call("searchsorted", {ctx.cast(sorted_sequence, dtype), ctx.cast(x, dtype)},
                    {{"right", right}, {"dtype", to_value(out)}});
  return {value_of(scalar ? ctx.reshape(y, std::vector<int64_t>{}) : y)};
}

// Inverse and counts, or what stands for them where they are not asked for.
Values unique_results(NodeContext& ctx, const Unique& u, const std::vector<Dim>& of) {
  const bool inverse = ctx.truth("return_inverse", false),
             counts = ctx.truth("return_counts", false);
  Expr none = ctx.full(0, {dim(0)}, kI64);
  return {value_of(u.values), value_of(inverse ? ctx.reshape(u.inverse, of) : none),
          value_of(counts ? u.counts : none)};
}

// The different elements in order, which of them each element is, and how many there are of each.
Values unique_row(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  ctx.find("sorted");  // sorted is one of the orders that are allowed
  return unique_results(ctx, unique(ctx, x, std::nullopt, true), Builder::shape_of(x));
}

// Each index as often as its count says: those of elements that are repeated.
Values repeated_places(NodeContext& ctx) {
  ctx.find("output_size");  // the sum of the counts
  Expr counts = ctx.cast(ctx.tensor("repeats"), kI64);
  if (as_const(Builder::shape_of(counts)[0]) == 0)
    return {value_of(ctx.full(0, {dim(0)}, ctx.out_dtype()))};
  Expr ends = running(ctx, Running::Sum, counts, 0, false, false);
  Expr zero = ctx.scalar(0, kI64), one = ctx.scalar(1, kI64);
  Expr all = ctx.call("dyn.arange", {zero, ctx.reduce("sum", counts, {0}, false), one});
  Expr at = ctx.call("searchsorted", {ends, all}, {{"right", true}, {"dtype", to_value(kI64)}});
  return {value_of(ctx.cast(at, ctx.out_dtype()))};
}

// The different lines along an axis.
Values unique_lines(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  ctx.find("sorted");
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  return unique_results(ctx, unique(ctx, x, axis, true),
                        {Builder::shape_of(x)[static_cast<size_t>(axis)]});
}

// The elements that differ from the one before them.
Values unique_consecutive(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  if (ctx.has("dim")) ctx.unsupported("the lines that differ from the one before them");
  const std::vector<Dim> shape = Builder::shape_of(x);
  Expr flat = ctx.reshape(x, {product(shape, 0, shape.size())});
  const int64_t n = ctx.const_dim(flat, 0, "the number of elements");
  if (n == 0) ctx.unsupported("the different elements of none");
  Expr begins = ctx.call("not_equal", {ctx.slice(flat, 0, 1, n), ctx.slice(flat, 0, 0, n - 1)});
  begins = ctx.concat({ctx.full(1, {dim(1)}, DType::Bool()), begins}, 0);
  Expr at = ctx.cast(ctx.reshape(ctx.call("argwhere", {begins}), {dim_any()}), kI64);
  Unique u;
  u.values = ctx.call("take", {flat, at}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  Expr number = running(ctx, Running::Sum, ctx.cast(begins, kI64), 0, false, false);
  u.inverse = ctx.sub(number, ctx.scalar(1, kI64));
  // From each first place to the next one.
  const AttrList from_one{{"begin", to_value(std::vector<int64_t>{1})},
                          {"end", to_value(std::vector<int64_t>{n + 1})},
                          {"strides", to_value(std::vector<int64_t>{1})}};
  Expr ends = ctx.concat({at, ctx.ints(std::vector<int64_t>{n})}, 0);
  u.counts = ctx.sub(ctx.call("strided_slice", {ends}, from_one), at);
  return unique_results(ctx, u, shape);
}

// How often each number from 0 on occurs, or the sum of its weights. A negative number has no place, as a run tells.
Values bincount(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.tensor("self"), kI64);
  Expr weights = ctx.tensor_or_null("weights");
  const int64_t least = ctx.integer("minlength", 0);
  if (Builder::rank_of(x) != 1 || least < 0)
    ctx.fail(codes::frontend_attribute, "bincount takes a vector and a least number of bins");
  // With -1 behind them, no numbers have a greatest one, too.
  Expr top = ctx.reduce("max", ctx.concat({x, ctx.ints({-1})}, 0), {0}, false);
  Expr count =
      ctx.maximum(ctx.add(top, ctx.scalar(1, kI64)), ctx.scalar(static_cast<double>(least), kI64));
  Expr outside = ctx.add(count, ctx.scalar(1, kI64));
  x = ctx.where(ctx.call("less", {x, ctx.scalar(0, kI64)}), outside, x);
  const bool narrow = weights && Builder::dtype_of(weights) == DType::Float(32);
  const DType dtype = !weights ? kI64 : narrow ? DType::Float(32) : DType::Float(64);
  Expr each = weights ? ctx.cast(weights, dtype) : ctx.full(1, Builder::shape_of(x), dtype);
  Expr zeros = ctx.call("dyn.zeros", {ctx.reshape(count, std::vector<int64_t>{1})},
                        {{"dtype", to_value(dtype)}});
  return {value_of(scatter_elements(ctx, zeros, value_of(x), each, 0, Scatter::Add))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Order>() {
  static constexpr Row kRows[] = {
      {"aten.sort.default", sort},
      {"aten.sort.stable", sort},
      {"aten.msort.default",
       [](NodeContext& ctx) { return Values{in_order(ctx, ctx.tensor("self"), 0, false)[0]}; }},
      {"aten.argsort.default", argsort},
      {"aten.argsort.stable", argsort},
      {"aten.topk.default", topk},
      {"aten.bincount.default", bincount},
      {"aten._unique.default", unique_row},
      {"aten._unique2.default", unique_row},
      {"aten.repeat_interleave.Tensor", repeated_places},
      {"aten.median.default", median},
      {"aten.median.dim", median},
      {"aten.nanmedian.default", nanmedian},
      {"aten.nanmedian.dim", nanmedian},
      {"aten.kthvalue.default", kthvalue},
      {"aten.mode.default", mode},
      {"aten.unique_dim.default", unique_lines},
      {"aten.unique_consecutive.default", unique_consecutive},
      {"aten.searchsorted.Tensor",
       [](NodeContext& ctx) { return searchsorted(ctx, "sorted_sequence", "self"); }},
      {"aten.searchsorted.Scalar",
       [](NodeContext& ctx) { return searchsorted(ctx, "sorted_sequence", "self"); }},
      {"aten.bucketize.Tensor",
       [](NodeContext& ctx) { return searchsorted(ctx, "boundaries", "self"); }},
      {"aten.bucketize.Scalar",
       [](NodeContext& ctx) { return searchsorted(ctx, "boundaries", "self"); }},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
