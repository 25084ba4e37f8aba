// Reductions, arg-reductions, running sums and elements in order.
#include <algorithm>
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/order.h"
#include "frontend/common/reduction.h"
#include "frontend/common/slices.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

// The axes of a reduction, sorted, without repetitions.
std::vector<int64_t> reduced_axes(NodeContext& ctx) {
  std::vector<int64_t> axes = ctx.axes_of(1, Builder::rank_of(ctx.in(0)));
  std::ranges::sort(axes);
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

template <Reduction kKind>
Values reduce(NodeContext& ctx) {
  const bool keep = ctx.options<schema::Reducer>().keep_dims();
  const bool sums = kKind == Reduction::Sum || kKind == Reduction::Mean || kKind == Reduction::Prod;
  if (sums && ctx.is_quantized()) {
    if (kKind == Reduction::Prod)
      return one(quantized_reduce_product(ctx, reduced_axes(ctx), keep));
    return one(quantized_mean_or_sum(ctx, reduced_axes(ctx), keep, kKind == Reduction::Mean));
  }
  return known_or_open(
      ctx,
      [&](NodeContext& known) {
        return one(reduce_axes(known, kKind, known.in(0), reduced_axes(known), keep));
      },
      [&](NodeContext& open) {
        Expr axes = int_vector(open, 1, "the list of axes");
        return one(reduce_at_run_time(open, kKind, open.in(0), axes, keep, false));
      });
}

template <bool kMax>
Values arg_reduce(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.const_int(1, "the axis"), Builder::rank_of(x));
  Expr places = ctx.call(kMax ? "argmax" : "argmin", {x}, {{"axis", to_value({axis})}});
  return one(ctx.cast(places, ctx.out_dtype()));
}

Values top_k_of(NodeContext& ctx) {
  Expr x = ctx.in_of_rank(0, 1);
  const TopSpec spec{.axis = Builder::rank_of(x) - 1};
  const DType places = ctx.out_dtype(1);
  Ordered top = known_or_open(
      ctx, [&](NodeContext& known) { return top_k(known, x, known.const_int(1, "k"), spec); },
      [&](NodeContext& open) {
        Expr k = open.reshape(open.cast(open.in(1), DType::Int(64)), std::vector<int64_t>{1});
        return top_k_at_run_time(open, x, k, spec);
      });
  return {value_of(top.values), value_of(ctx.cast(top.places, places))};
}

Values cumulative_sum(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Cumsum>();
  Expr x = ctx.in(0);
  const int64_t axis = ctx.axis(ctx.const_int(1, "the axis"), Builder::rank_of(x));
  return one(running(ctx, Running::Sum, x, axis, o.exclusive(), o.reverse()));
}

// The different elements of a vector in the order in which they come first, and where each element is among them.
Values unique(NodeContext& ctx) {
  Expr x = ctx.in(0);
  Expr all = ctx.call("unique", {x}, {{"sorted", false}});
  Expr count = ctx.reshape(ctx.cast(ctx.item(all, 3), DType::Int(64)), std::vector<int64_t>{1});
  Expr values = ctx.item(all, 0);
  OpenSlice front{.begin = ctx.ints({0}), .end = count, .axes = std::vector<int64_t>{0}};
  return {value_of(slice_at_run_time(ctx, values, front)),
          value_of(ctx.cast(ctx.item(all, 2), ctx.out_dtype(1)))};
}

// How many boundaries, which are in order, are not above each element; all of them for NaN.
Values bucketize(NodeContext& ctx) {
  const auto* list = ctx.options<schema::Bucketize>().boundaries();
  std::vector<float> boundaries;
  if (list != nullptr) boundaries.assign(list->begin(), list->end());
  const bool has_nan = std::ranges::any_of(boundaries, [](float b) { return std::isnan(b); });
  if (has_nan || !std::ranges::is_sorted(boundaries))
    ctx.fail(codes::frontend_attribute, "the boundaries are not in order");
  // Integers are compared as float32.
  const DType dtype = ctx.in_dtype(0) == DType::Float(64) ? DType::Float(64) : DType::Float(32);
  Expr x = ctx.cast(ctx.in(0), dtype);
  const int64_t rank = Builder::rank_of(x);
  Expr below =
      ctx.call("less", {ctx.expand_dims(x, rank), ctx.constant(float_vector(boundaries, dtype))});
  Expr reached = ctx.cast(ctx.call("logical_not", {below}), DType::Int(32));
  return one(ctx.reduce("sum", reached, {rank}, false));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Reduce>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"ARG_MAX", arg_reduce<true>, O::arg_max},
      {"ARG_MIN", arg_reduce<false>, O::arg_min},
      {"BUCKETIZE", bucketize, O::bucketize},
      {"CUMSUM", cumulative_sum, O::cumsum},
      {"MEAN", reduce<Reduction::Mean>, O::reducer},
      {"REDUCE_ALL", reduce<Reduction::Min>, O::reducer},
      {"REDUCE_ANY", reduce<Reduction::Max>, O::reducer},
      {"REDUCE_MAX", reduce<Reduction::Max>, O::reducer},
      {"REDUCE_MIN", reduce<Reduction::Min>, O::reducer},
      {"REDUCE_PROD", reduce<Reduction::Prod>, O::reducer},
      {"SUM", reduce<Reduction::Sum>, O::reducer},
      {"TOPK_V2", top_k_of, O::top_k},
      {"UNIQUE", unique, O::unique},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
