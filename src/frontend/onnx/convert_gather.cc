// Operators that read or write at computed places.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

[[noreturn]] void index_out_of_range(NodeContext& ctx, int64_t index, int64_t size) {
  ctx.fail(codes::frontend_attribute, "an index is out of range",
           "between " + std::to_string(-size) + " and " + std::to_string(size - 1),
           std::to_string(index));
}

// Whether the indices of an input are known and lie inside: entry i is an index into a dimension of
// `sizes[i % sizes.size()]`. Fails for one that is known to be outside.
bool known_inside(NodeContext& ctx, size_t input, const std::vector<Dim>& sizes) {
  std::vector<int64_t> places;
  if (Tensor data = ctx.constant_data(input)) {
    for (int64_t i = 0; i < data.num_elements(); ++i) places.push_back(data.get_as_int(i));
  } else if (auto known = ctx.known(input); known && known->is_constant()) {
    for (int64_t i = 0; i < static_cast<int64_t>(known->size()); ++i)
      places.push_back(known->int_at(i));
  } else {
    return false;
  }
  bool all = true;
  for (size_t i = 0; i < places.size() && !sizes.empty(); ++i) {
    auto n = as_const(sizes[i % sizes.size()]);
    if (n && (places[i] < -*n || places[i] >= *n)) index_out_of_range(ctx, places[i], *n);
    all &= n.has_value();
  }
  return all;
}

const Dim& size_along(const Expr& e, int64_t axis) {
  return NodeContext::shape_of(e)[static_cast<size_t>(axis)];
}

// The last axis, which holds the coordinates of GatherND and ScatterND, becomes the first.
Expr coordinates_first(NodeContext& ctx, Expr indices) {
  int64_t rank = NodeContext::rank_of(indices);
  std::vector<int64_t> axes{rank - 1};
  for (int64_t a = 0; a + 1 < rank; ++a) axes.push_back(a);
  return ctx.transpose(std::move(indices), axes);
}

// The coordinate lists of GatherND, and of ScatterND, whose operator checks what is not known here.
Expr coordinates(NodeContext& ctx, size_t input, const Expr& data, int64_t batch_dims, bool check) {
  Expr indices = ctx.in(input);
  int64_t rank = NodeContext::rank_of(indices);
  if (rank < 1) ctx.fail(codes::type_rank, "the indices must have at least one dimension");
  int64_t depth = ctx.const_dim(indices, rank - 1, "the length of a coordinate");
  if (depth + batch_dims > NodeContext::rank_of(data)) {
    ctx.fail(codes::type_rank, "a coordinate has more entries than the data has dimensions",
             "at most " + std::to_string(NodeContext::rank_of(data) - batch_dims),
             std::to_string(depth));
  }
  auto first = NodeContext::shape_of(data).begin() + batch_dims;
  bool inside = known_inside(ctx, input, {first, first + depth});
  indices = coordinates_first(ctx, std::move(indices));
  return inside || !check ? indices
                          : checked_index(ctx, std::move(indices), data, batch_dims, depth);
}

std::string reduction(NodeContext& ctx) {
  std::string r = ctx.attr_string("reduction", "none");
  if (r == "none") return "update";
  if (r == "add" || r == "mul" || r == "min" || r == "max") return r;
  ctx.fail(codes::frontend_attribute, "attribute 'reduction' has an unknown value",
           "none, add, mul, min or max", r);
}

Values convert_gather(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(data));
  auto n = as_const(size_along(data, axis));
  // One constant place is a slice.
  if (auto k = ctx.known(1); k && k->is_constant() && k->shape.empty() && n) {
    int64_t at = k->int_at(0);
    if (at >= -*n && at < *n) return {value_of(ctx.select(data, axis, at < 0 ? at + *n : at))};
  }
  Expr indices = ctx.in(1);
  if (!known_inside(ctx, 1, {size_along(data, axis)}))
    indices = checked_index(ctx, indices, data, axis);
  // "fast" counts negative indices from the end, "clip" does not.
  return {
      value_of(ctx.call("take", {data, indices}, {{"axis", axis}, {"mode", std::string("fast")}}))};
}

// Columns of the last axis.
Values convert_array_feature_extractor(NodeContext& ctx) {
  Expr x = ctx.in(0), places = ctx.in(1);
  if (NodeContext::rank_of(x) == 0) ctx.fail(codes::type_rank, "the input needs a dimension");
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  const std::vector<Dim>& shape = NodeContext::shape_of(places);
  places = ctx.reshape(places, {product(shape, 0, shape.size())});
  const int64_t last = NodeContext::rank_of(x) - 1;
  if (!known_inside(ctx, 1, {size_along(x, last)})) places = checked_index(ctx, places, x, last);
  return {value_of(ctx.call("take", {x, places}, {{"axis", last}, {"mode", std::string("fast")}}))};
}

Values convert_gather_elements(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(data));
  const bool checked = !known_inside(ctx, 1, {size_along(data, axis)});
  return {value_of(ctx.call("gather", {data, ctx.in(1)}, {{"axis", axis}, {"checked", checked}}))};
}

Values convert_gather_nd(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t batch_dims = ctx.attr("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= NodeContext::rank_of(data)) {
    ctx.fail(codes::frontend_attribute, "attribute 'batch_dims' is out of range",
             "0 to " + std::to_string(NodeContext::rank_of(data) - 1), std::to_string(batch_dims));
  }
  Expr indices = coordinates(ctx, 1, data, batch_dims, true);
  return {value_of(ctx.call("gather_nd", {data, indices}, {{"batch_dims", batch_dims}}))};
}

Values convert_scatter_elements(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(data));
  // The operator checks what is not known here.
  known_inside(ctx, 1, {size_along(data, axis)});
  return {value_of(ctx.call("scatter_elements", {data, ctx.in(1), ctx.in(2)},
                            {{"axis", axis}, {"reduction", reduction(ctx)}}))};
}

Values convert_scatter_nd(NodeContext& ctx) {
  Expr data = ctx.in(0);
  Expr indices = coordinates(ctx, 1, data, 0, false);
  return {value_of(ctx.call("scatter_nd", {data, indices, ctx.in(2)}, {{"mode", reduction(ctx)}}))};
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
  Expr index = ctx.cast(ctx.in(0), DType::Int(64));
  Expr below = ctx.call("less", {index, ctx.scalar(0, DType::Int(64))});
  Expr end = ctx.scalar(static_cast<double>(depth), DType::Int(64));
  index = ctx.call("where", {below, ctx.add(index, end), index});
  int64_t axis = ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(index) + 1);
  // The operator's axis counts the new dimension, -1 being the last.
  if (axis == NodeContext::rank_of(index)) axis = -1;
  return {value_of(ctx.call("one_hot", {index, on, off},
                            {{"depth", depth}, {"axis", axis}, {"dtype", to_value(dtype)}}))};
}

// Each index compared with all numbers below the depth.
Values one_hot_open(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr depth = one_number(ctx, 1, i64);
  Expr index = ctx.cast(ctx.in(0), i64), values = ctx.in(2);
  int64_t rank = NodeContext::rank_of(index);
  int64_t axis = ctx.axis(ctx.attr("axis", -1), rank + 1);
  Expr below = ctx.call("less", {index, ctx.scalar(0, i64)});
  index = ctx.call("where", {below, ctx.add(index, depth), index});
  Expr places = open_range(ctx, ctx.scalar(0, i64), depth);
  Expr hit =
      ctx.call("equal", {ctx.expand_dims(index, axis), ctx.expand_dims(places, 1, rank - axis)});
  return {value_of(ctx.call("where", {hit, ctx.select(values, 0, 1), ctx.select(values, 0, 0)}))};
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
