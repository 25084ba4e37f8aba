// Operators that choose by data how many elements their results have.
#include <limits>
#include <optional>

#include "frontend/common/open_args.h"
#include "frontend/common/unique.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

const DType kI64 = DType::Int(64);

Values convert_non_max_suppression(NodeContext& ctx) {
  Expr boxes = ctx.in(0), scores = ctx.in(1);
  if (NodeContext::rank_of(boxes) == 3 && NodeContext::rank_of(scores) == 3) {
    // Models name the same size twice, and differently.
    boxes = with_size(ctx, boxes, 2, dim(4));
    scores = with_size(ctx, scores, 2, NodeContext::shape_of(boxes)[1]);
    scores = with_size(ctx, scores, 0, NodeContext::shape_of(boxes)[0]);
  }
  auto number = [&](size_t input, double otherwise, DType dtype) {
    return ctx.has(input) ? one_number(ctx, input, dtype) : ctx.scalar(otherwise, dtype);
  };
  const DType f32 = DType::Float(32);
  return {value_of(ctx.call("vision.all_class_non_max_suppression",
                            {boxes, scores, number(2, 0, kI64), number(3, 0, f32),
                             number(4, -std::numeric_limits<double>::infinity(), f32)},
                            {{"center_point_box", ctx.attr("center_point_box", 0) != 0}}))};
}

Values convert_unique(NodeContext& ctx) {
  std::optional<int64_t> axis;
  Expr x = ctx.in(0);
  if (ctx.has_attr("axis")) axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  Unique u = unique(ctx, x, axis, ctx.attr("sorted", 1) != 0);
  return {value_of(u.values), value_of(u.first), value_of(u.inverse), value_of(u.counts)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Select>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "NonMaxSuppression", 10, convert_non_max_suppression},
      {kOnnx, "Unique", 11, convert_unique},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
