// Reductions, arg-reductions, sorting and running sums.
#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/order.h"
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

TopSpec top_spec(NodeContext& ctx) {
  return {.axis = ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(ctx.in(0))),
          .least = ctx.attr("largest", 1) == 0};
}

Values outputs_of(const Ordered& top) { return {value_of(top.values), value_of(top.places)}; }

Values convert_top_k_attr(NodeContext& ctx) {
  return outputs_of(top_k(ctx, ctx.in(0), ctx.attr("k", -1), top_spec(ctx)));
}

Values convert_top_k(NodeContext& ctx) {
  return known_or_open(
      ctx,
      [](NodeContext& known) {
        return outputs_of(top_k(known, known.in(0), known.const_int(1, "k"), top_spec(known)));
      },
      [](NodeContext& open) {
        Expr k = int_vector_of(open, 1, "k", 1);
        return outputs_of(top_k_at_run_time(open, open.in(0), k, top_spec(open)));
      });
}

Expr cumulative(NodeContext& ctx, const Expr& x, int64_t axis) {
  return running(ctx, ctx.op_type() == "CumSum" ? Running::Sum : Running::Product, x, axis,
                 ctx.attr("exclusive", 0) != 0, ctx.attr("reverse", 0) != 0);
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
