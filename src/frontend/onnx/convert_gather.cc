// Operators that read or write at computed places.
#include <algorithm>
#include <limits>
#include <numeric>

#include "frontend/onnx/converters.h"

namespace relay::importer {
namespace {

// Indices count from the end when negative. Constant ones are made positive (and checked) here,
// others by an expression; those that are certainly not negative stay as they are.
Expr positive_indices(NodeContext& ctx, size_t input, const Dim& size) {
  auto n = as_const(size);
  Tensor data = ctx.constant_data(input);
  if (data && n) {
    bool negative = false;
    for (int64_t i = 0; i < data.num_elements(); ++i) {
      int64_t v = data.get_as_int(i);
      if (v < -*n || v >= *n) {
        ctx.fail(codes::frontend_attribute, "an index is out of range",
                 "between " + std::to_string(-*n) + " and " + std::to_string(*n - 1),
                 std::to_string(v));
      }
      negative |= v < 0;
    }
    if (!negative) return ctx.in(input);
    Tensor fixed = data.copy();
    for (int64_t i = 0; i < data.num_elements(); ++i) {
      int64_t v = data.get_as_int(i);
      fixed.set_from_int(i, v < 0 ? v + *n : v);
    }
    return ctx.constant(std::move(fixed));
  }
  Expr index = ctx.in(input);
  DType dtype = NodeContext::dtype_of(index);
  if (dtype.is_uint()) return index;
  if (!n) {
    // The size is read off at run time.
    Known k = known_scalar(size, dtype);
    Expr extent = ctx.expr_of(value_of(std::move(k)));
    Expr below = ctx.call("less", {index, ctx.scalar(0, dtype)});
    return ctx.call("where", {below, ctx.add(index, extent), index});
  }
  Expr below = ctx.call("less", {index, ctx.scalar(0, dtype)});
  return ctx.call("where",
                  {below, ctx.add(index, ctx.scalar(static_cast<double>(*n), dtype)), index});
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

// Coordinate lists with negative entries made positive.
Expr positive_coordinates(NodeContext& ctx, size_t input, const Expr& data, int64_t batch_dims) {
  Expr indices = ctx.in(input);
  int64_t rank = NodeContext::rank_of(indices);
  if (rank < 1) ctx.fail(codes::type_rank, "the indices must have at least one dimension");
  DType dtype = NodeContext::dtype_of(indices);
  if (dtype.is_uint()) return indices;
  int64_t depth = ctx.const_dim(indices, rank - 1, "the length of a coordinate");
  if (depth + batch_dims > NodeContext::rank_of(data)) {
    ctx.fail(codes::type_rank, "a coordinate has more entries than the data has dimensions",
             "at most " + std::to_string(NodeContext::rank_of(data) - batch_dims),
             std::to_string(depth));
  }
  std::vector<int64_t> extents;
  for (int64_t i = 0; i < depth; ++i) {
    extents.push_back(ctx.const_dim(data, i + batch_dims, "the size of an indexed dimension"));
  }
  if (Tensor t = ctx.constant_data(input)) {
    Tensor fixed = t.copy();
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      int64_t v = t.get_as_int(i), n = extents[static_cast<size_t>(i % depth)];
      if (v < -n || v >= n) {
        ctx.fail(codes::frontend_attribute, "an index is out of range",
                 "between " + std::to_string(-n) + " and " + std::to_string(n - 1),
                 std::to_string(v));
      }
      fixed.set_from_int(i, v < 0 ? v + n : v);
    }
    return ctx.constant(std::move(fixed));
  }
  Expr below = ctx.call("less", {indices, ctx.scalar(0, dtype)});
  return ctx.call("where", {below, ctx.add(indices, ctx.ints(extents, dtype)), indices});
}

std::string reduction(NodeContext& ctx) {
  std::string r = ctx.attr_string("reduction", "none");
  if (r == "none") return "update";
  if (r == "add" || r == "mul" || r == "min" || r == "max") return r;
  ctx.fail(codes::frontend_attribute, "attribute 'reduction' has an unknown value",
           "none, add, mul, min or max", r);
}

}  // namespace

std::optional<Known> fold_gather(NodeContext& ctx) {
  auto k = ctx.foldable(0), index = ctx.foldable(1);
  if (!k || k->shape.size() != 1 || !index || !index->is_int() || !index->is_constant()) {
    return std::nullopt;
  }
  ctx.axis(ctx.attr("axis", 0), 1);
  int64_t n = k->shape[0];
  Known out{k->dtype, index->shape, {}, {}};
  for (int64_t i = 0; i < index->size(); ++i) {
    int64_t at = index->int_at(i);
    if (at < -n || at >= n) {
      ctx.fail(codes::frontend_attribute, "an index is out of range",
               "between " + std::to_string(-n) + " and " + std::to_string(n - 1),
               std::to_string(at));
    }
    auto from = static_cast<size_t>(at < 0 ? at + n : at);
    if (k->is_int()) {
      out.ints.push_back(k->ints[from]);
    } else {
      out.floats.push_back(k->floats[from]);
    }
  }
  return out;
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
  Expr indices = positive_indices(ctx, 1, size_along(data, axis));
  return {value_of(ctx.call("take", {data, indices}, {{"axis", axis}}))};
}

Values convert_gather_elements(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(data));
  Expr indices = positive_indices(ctx, 1, size_along(data, axis));
  return {value_of(ctx.call("gather", {data, indices}, {{"axis", axis}}))};
}

Values convert_gather_nd(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t batch_dims = ctx.attr("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= NodeContext::rank_of(data)) {
    ctx.fail(codes::frontend_attribute, "attribute 'batch_dims' is out of range",
             "0 to " + std::to_string(NodeContext::rank_of(data) - 1), std::to_string(batch_dims));
  }
  Expr indices = coordinates_first(ctx, positive_coordinates(ctx, 1, data, batch_dims));
  return {value_of(ctx.call("gather_nd", {data, indices}, {{"batch_dims", batch_dims}}))};
}

Values convert_scatter_elements(NodeContext& ctx) {
  Expr data = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(data));
  Expr indices = positive_indices(ctx, 1, size_along(data, axis));
  return {value_of(ctx.call("scatter_elements", {data, indices, ctx.in(2)},
                            {{"axis", axis}, {"reduction", reduction(ctx)}}))};
}

Values convert_scatter_nd(NodeContext& ctx) {
  Expr data = ctx.in(0);
  Expr indices = positive_coordinates(ctx, 1, data, 0);
  return {value_of(ctx.call("scatter_nd", {data, coordinates_first(ctx, indices), ctx.in(2)},
                            {{"mode", reduction(ctx)}}))};
}

Values convert_one_hot(NodeContext& ctx) {
  Known d = ctx.must_know(1, "the depth");
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

}  // namespace relay::importer
