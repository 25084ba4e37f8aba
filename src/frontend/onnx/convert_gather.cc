// Operators that read or write at computed places.
#include <algorithm>
#include <string_view>
#include <utility>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/gather.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

Scatter reduction(NodeContext& ctx) {
  static constexpr std::pair<std::string_view, Scatter> kNames[] = {{"none", Scatter::Update},
                                                                    {"add", Scatter::Add},
                                                                    {"mul", Scatter::Mul},
                                                                    {"min", Scatter::Min},
                                                                    {"max", Scatter::Max}};
  const std::string r = ctx.attr_string("reduction", "none");
  auto row = std::ranges::find(kNames, r, &std::pair<std::string_view, Scatter>::first);
  if (row != std::end(kNames)) return row->second;
  ctx.fail(codes::frontend_attribute, "attribute 'reduction' has an unknown value",
           "none, add, mul, min or max", r);
}

// The axis of the data that places are along.
int64_t axis_of(NodeContext& ctx) {
  return ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(ctx.in(0)));
}

Values convert_gather(NodeContext& ctx) {
  return {value_of(take_along(ctx, ctx.in(0), ctx.value(1), axis_of(ctx)))};
}

// Columns of the last axis.
Values convert_array_feature_extractor(NodeContext& ctx) {
  Expr x = ctx.in(0), places = ctx.in(1);
  if (NodeContext::rank_of(x) == 0) ctx.fail(codes::type_rank, "the input needs a dimension");
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  const std::vector<Dim>& shape = NodeContext::shape_of(places);
  places = ctx.reshape(places, {product(shape, 0, shape.size())});
  const int64_t last = NodeContext::rank_of(x) - 1;
  if (!known_inside(ctx, ctx.value(1), {NodeContext::shape_of(x).back()})) {
    places = checked_index(ctx, places, x, last);
  }
  return {value_of(ctx.call("take", {x, places}, {{"axis", last}, {"mode", std::string("fast")}}))};
}

Values convert_gather_elements(NodeContext& ctx) {
  return {value_of(gather_elements(ctx, ctx.in(0), ctx.value(1), axis_of(ctx)))};
}

Values convert_gather_nd(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t batch_dims = ctx.attr("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= NodeContext::rank_of(data)) {
    ctx.fail(codes::frontend_attribute, "attribute 'batch_dims' is out of range",
             "0 to " + std::to_string(NodeContext::rank_of(data) - 1), std::to_string(batch_dims));
  }
  return {value_of(gather_nd(ctx, data, ctx.value(1), batch_dims))};
}

Values convert_scatter_elements(NodeContext& ctx) {
  return {value_of(
      scatter_elements(ctx, ctx.in(0), ctx.value(1), ctx.in(2), axis_of(ctx), reduction(ctx)))};
}

Values convert_scatter_nd(NodeContext& ctx) {
  return {value_of(scatter_nd(ctx, ctx.in(0), ctx.value(1), ctx.in(2), reduction(ctx)))};
}

// The new axis of OneHot.
int64_t one_hot_axis(NodeContext& ctx) {
  return ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(ctx.in(0)) + 1);
}

Values one_hot_known(NodeContext& ctx) {
  KnownValue d = ctx.must_know(1, "the depth");
  if (d.size() != 1 || !d.is_constant()) {
    ctx.fail(codes::frontend_dynamic, "the depth must be one known number");
  }
  double wanted = d.float_at(0);
  if (!(wanted >= 1 && wanted < 1e12)) {
    ctx.fail(codes::frontend_attribute, "the depth is out of range", "1 or more",
             std::to_string(wanted));
  }
  auto depth = static_cast<int64_t>(wanted);
  Expr values = ctx.in(2);
  DType dtype = NodeContext::dtype_of(values);
  Expr on, off;
  if (auto k = ctx.known(2); k && k->size() == 2 && k->is_constant()) {
    off = ctx.scalar(k->float_at(0), dtype);
    on = ctx.scalar(k->float_at(1), dtype);
  } else {
    off = ctx.select(values, 0, 0);
    on = ctx.select(values, 0, 1);
  }
  return {value_of(one_hot(ctx, ctx.in(0), depth, on, off, one_hot_axis(ctx)))};
}

Values one_hot_open(NodeContext& ctx) {
  Expr values = ctx.in(2);
  return {value_of(one_hot_at_run_time(ctx, ctx.in(0), one_number(ctx, 1, DType::Int(64)),
                                       ctx.select(values, 0, 1), ctx.select(values, 0, 0),
                                       one_hot_axis(ctx)))};
}

Values convert_one_hot(NodeContext& ctx) { return known_or_open(ctx, one_hot_known, one_hot_open); }

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Gather>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Gather", 1, convert_gather},
      {kOnnx, "GatherElements", 11, convert_gather_elements},
      {kOnnx, "GatherND", 11, convert_gather_nd},
      {kMicrosoft, "GatherND", 1, convert_gather_nd},
      {kOnnx, "OneHot", 9, convert_one_hot},
      {kOnnx, "Scatter", 9, convert_scatter_elements},
      {kOnnx, "ScatterElements", 11, convert_scatter_elements},
      {kOnnx, "ScatterND", 11, convert_scatter_nd},
      {kMl, "ArrayFeatureExtractor", 1, convert_array_feature_extractor},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
