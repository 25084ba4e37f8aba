// Reductions, arg-reductions, sorting and running sums.
#include <algorithm>
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/reduction.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

Reduction reduction_of(NodeContext& ctx) {
  static constexpr std::pair<std::string_view, Reduction> kNames[] = {
      {"ReduceSum", Reduction::Sum},       {"ReduceMean", Reduction::Mean},
      {"ReduceMax", Reduction::Max},       {"ReduceMin", Reduction::Min},
      {"ReduceProd", Reduction::Prod},     {"ReduceL1", Reduction::L1},
      {"ReduceL2", Reduction::L2},         {"ReduceSumSquare", Reduction::SumSquare},
      {"ReduceLogSum", Reduction::LogSum}, {"ReduceLogSumExp", Reduction::LogSumExp}};
  auto row =
      std::ranges::find(kNames, ctx.op_type(), &std::pair<std::string_view, Reduction>::first);
  RELAY_CHECK(row != std::end(kNames), ctx.op_type());
  return row->second;
}

Values reduce(NodeContext& ctx, std::vector<int64_t> axes) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  bool noop = ctx.attr("noop_with_empty_axes", 0) != 0;
  if (axes.empty() && !noop) axes = Builder::all_axes(rank);
  axes = ctx.axes(axes, rank);
  std::sort(axes.begin(), axes.end());
  return {value_of(reduce_axes(ctx, reduction_of(ctx), x, axes, ctx.attr("keepdims", 1) != 0))};
}

Values convert_reduce_attr(NodeContext& ctx) { return reduce(ctx, ctx.attr_ints("axes")); }

Values convert_reduce_input(NodeContext& ctx) {
  std::vector<int64_t> axes;
  if (ctx.has(1)) axes = ctx.const_ints(1, "the list of axes");
  return reduce(ctx, std::move(axes));
}

Values reduce_open(NodeContext& ctx) {
  const bool keeps = ctx.attr("keepdims", 1) != 0;
  Expr axes = keeps ? int_list(ctx, 1, "the list of axes") : int_vector(ctx, 1, "the list of axes");
  if (!has_open_length(axes) && length_of_vector(axes) == 0) return reduce(ctx, {});
  return {value_of(reduce_at_run_time(ctx, reduction_of(ctx), ctx.in(0), axes, keeps,
                                      ctx.attr("noop_with_empty_axes", 0) == 0))};
}

Values convert_reduce(NodeContext& ctx) {
  return known_or_open(ctx, convert_reduce_input, reduce_open);
}

Values convert_arg_reduce(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::vector<int64_t> axis{ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x))};
  Expr y = ctx.call(ctx.op_type() == "ArgMax" ? "argmax" : "argmin", {x},
                    {{"axis", to_value(axis)},
                     {"keepdims", ctx.attr("keepdims", 1) != 0},
                     {"select_last_index", ctx.attr("select_last_index", 0) != 0}});
  return {value_of(ctx.cast(y, DType::Int(64)))};
}

// The first k in order; all for a k of 0.
Values top_k(NodeContext& ctx, int64_t k) {
  Expr x = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(x));
  int64_t size = as_const(NodeContext::shape_of(x)[static_cast<size_t>(axis)])
                     .value_or(std::numeric_limits<int64_t>::max());
  if (k < 0 || k > size) {
    ctx.fail(codes::frontend_attribute, "k is out of range", "0 to " + std::to_string(size),
             std::to_string(k));
  }
  bool ascending = ctx.attr("largest", 1) == 0;
  Expr both = ctx.call("topk", {x},
                       {{"k", k},
                        {"axis", axis},
                        {"ret_type", std::string("both")},
                        {"is_ascend", ascending},
                        {"dtype", to_value(DType::Int(64))}});
  return {value_of(ctx.item(both, 0)), value_of(ctx.item(both, 1))};
}

Values convert_top_k_attr(NodeContext& ctx) { return top_k(ctx, ctx.attr("k", -1)); }

// All in order, and the first k of them.
Values top_k_open(NodeContext& ctx) {
  Values all = top_k(ctx, 0);
  Expr k = int_vector_of(ctx, 1, "k", 1);
  int64_t axis = ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(ctx.in(0)));
  for (ValuePtr& v : all) {
    v = value_of(open_slice(ctx, v->expr, ctx.ints({0}), k, ctx.ints({1}), {axis}, true));
  }
  return all;
}

Values convert_top_k(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        int64_t k = known.const_int(1, "k");
        Values all = top_k(known, k);
        if (k > 0) return all;
        // The operator takes a k of 0 for all.
        int64_t axis = known.axis(known.attr("axis", -1), NodeContext::rank_of(known.in(0)));
        for (ValuePtr& v : all) v = value_of(known.slice(v->expr, axis, 0, 0));
        return all;
      },
      top_k_open);
}

Expr cumulative(NodeContext& ctx, Expr x, int64_t axis) {
  bool reverse = ctx.attr("reverse", 0) != 0;
  auto flip = [&](Expr e) { return ctx.call("reverse", {std::move(e)}, {{"axis", axis}}); };
  if (reverse) x = flip(x);
  Expr y = ctx.call(ctx.op_type() == "CumSum" ? "cumsum" : "cumprod", {x},
                    {{"axis", axis},
                     {"dtype", to_value(NodeContext::dtype_of(x))},
                     {"exclusive", ctx.attr("exclusive", 0) != 0}});
  return reverse ? flip(y) : y;
}

Values convert_cumulative(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        Expr x = known.in(0);
        int64_t axis = known.axis(known.const_int(1, "the axis"), NodeContext::rank_of(x));
        return Values{value_of(cumulative(known, x, axis))};
      },
      [](NodeContext& open) {
        Expr x = open.in(0), axis = one_number(open, 1, DType::Int(64));
        return Values{value_of(along_open_axis(open, x, axis, true, [&](const Expr& e) {
          return cumulative(open, e, NodeContext::rank_of(e) - 1);
        }))};
      });
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Reduce>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "ArgMax", 1, convert_arg_reduce},
      {kOnnx, "ArgMin", 1, convert_arg_reduce},
      {kOnnx, "CumProd", 26, convert_cumulative},
      {kOnnx, "CumSum", 11, convert_cumulative},
      {kOnnx, "ReduceL1", 1, convert_reduce_attr},
      {kOnnx, "ReduceL1", 18, convert_reduce},
      {kOnnx, "ReduceL2", 1, convert_reduce_attr, kInFloat32},
      {kOnnx, "ReduceL2", 18, convert_reduce, kInFloat32},
      {kOnnx, "ReduceLogSum", 1, convert_reduce_attr, kInFloat32},
      {kOnnx, "ReduceLogSum", 18, convert_reduce, kInFloat32},
      {kOnnx, "ReduceLogSumExp", 1, convert_reduce_attr, kInFloat32},
      {kOnnx, "ReduceLogSumExp", 18, convert_reduce, kInFloat32},
      {kOnnx, "ReduceMax", 1, convert_reduce_attr},
      {kOnnx, "ReduceMax", 18, convert_reduce},
      {kOnnx, "ReduceMean", 1, convert_reduce_attr},
      {kOnnx, "ReduceMean", 18, convert_reduce},
      {kOnnx, "ReduceMin", 1, convert_reduce_attr},
      {kOnnx, "ReduceMin", 18, convert_reduce},
      {kOnnx, "ReduceProd", 1, convert_reduce_attr},
      {kOnnx, "ReduceProd", 18, convert_reduce},
      {kOnnx, "ReduceSum", 1, convert_reduce_attr},
      {kOnnx, "ReduceSum", 13, convert_reduce},
      {kOnnx, "ReduceSumSquare", 1, convert_reduce_attr, kInFloat32},
      {kOnnx, "ReduceSumSquare", 18, convert_reduce, kInFloat32},
      {kOnnx, "TopK", 1, convert_top_k_attr},
      {kOnnx, "TopK", 10, convert_top_k},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
