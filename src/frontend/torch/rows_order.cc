// Sorting, and what follows from an order.
#include "base/codes/frontend.h"
#include "frontend/common/order.h"
#include "frontend/common/unique.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

const DType kI64 = DType::Int(64);

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

Values searchsorted(NodeContext& ctx, const char* sequence, const char* values) {
  Expr sorted_sequence = ctx.tensor(sequence);
  Expr x = ctx.find(values) != nullptr && ctx.find(values)->name() == nullptr
               ? ctx.number_as(*ctx.number(values), Builder::dtype_of(sorted_sequence))
               : ctx.tensor(values);
  if (ctx.has("sorter")) ctx.unsupported("a search in what is not sorted");
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

// The different elements in order, which of them each element is, and how many there are of each.
Values unique_row(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  ctx.find("sorted");  // sorted is one of the orders that are allowed
  const bool inverse = ctx.truth("return_inverse", false),
             counts = ctx.truth("return_counts", false);
  const Unique u = unique(ctx, x, std::nullopt, true);
  Expr none = ctx.full(0, {dim(0)}, kI64);
  return {value_of(u.values),
          value_of(inverse ? ctx.reshape(u.inverse, Builder::shape_of(x)) : none),
          value_of(counts ? u.counts : none)};
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
      {"aten._unique2.default", unique_row},
      {"aten.median.default", median},
      {"aten.median.dim", median},
      {"aten.nanmedian.default", nanmedian},
      {"aten.nanmedian.dim", nanmedian},
      {"aten.kthvalue.default", kthvalue},
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
