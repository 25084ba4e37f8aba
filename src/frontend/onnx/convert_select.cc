// Sorting and scattering written out with comparisons, for builds of Relay that have no operator
// for them. Every pair of positions is compared, which is fine for the small sizes of models that
// do this at their end, and refused for others.
#include <limits>
#include <numeric>

#include "frontend/onnx/converters.h"

namespace relay::importer {
namespace {

constexpr int64_t kMaxPairs = int64_t{1} << 26;

void check_pairs(NodeContext& ctx, int64_t a, int64_t b) {
  if (a > 0 && b > kMaxPairs / a) {
    ctx.fail(codes::frontend_unsupported, "the operator is built in only for small sizes",
             "at most " + std::to_string(kMaxPairs) + " pairs of positions",
             std::to_string(a) + " times " + std::to_string(b));
  }
}

Expr counting(NodeContext& ctx, int64_t n, DType dtype = DType::Int(64)) {
  ctx.charge_bytes(n, dtype);
  Tensor t = Tensor::empty(dtype, {n});
  for (int64_t i = 0; i < n; ++i) t.set_from_int(i, i);
  return ctx.constant(std::move(t));
}

// What leaves the other operand of a reduction as it is.
Expr neutral(NodeContext& ctx, const std::string& reduction, DType dtype) {
  if (reduction == "mul") return ctx.scalar(1, dtype);
  if (reduction == "add" || reduction == "update") return ctx.scalar(0, dtype);
  bool least = reduction == "max";
  if (dtype.is_floating()) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    return ctx.scalar(least ? -kInf : kInf, dtype);
  }
  Tensor t = Tensor::empty(dtype, runtime::Shape{});
  int64_t width = dtype.bits - (dtype.is_int() ? 1 : 0);
  uint64_t top = width >= 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  auto low = dtype.is_int() ? -static_cast<int64_t>(top) - 1 : 0;
  t.set_from_int(0, least ? low : static_cast<int64_t>(top));
  return ctx.constant(std::move(t));
}

// `data` with `updates` merged where `hit` holds; both have one more axis, `axis`, over which the
// updates of an element are gathered. Of several plain updates the result is unspecified.
Expr merge(NodeContext& ctx, const Expr& data, const Expr& hit, const Expr& updates, int64_t axis,
           const std::string& reduction) {
  DType dtype = NodeContext::dtype_of(data);
  Expr chosen = ctx.call("where", {hit, updates, neutral(ctx, reduction, dtype)});
  if (reduction == "add") return ctx.add(data, ctx.reduce("sum", chosen, {axis}, false));
  if (reduction == "mul") return ctx.mul(data, ctx.reduce("prod", chosen, {axis}, false));
  if (reduction == "max" || reduction == "min") {
    const char* both = reduction == "max" ? "maximum" : "minimum";
    return ctx.call(both, {data, ctx.reduce(reduction.c_str(), chosen, {axis}, false)});
  }
  Expr any = ctx.reduce("any", hit, {axis}, false);
  return ctx.call("where", {any, ctx.reduce("sum", chosen, {axis}, false), data});
}

}  // namespace

// The rank of an element is the number of elements that come before it.
Values select_top_k(NodeContext& ctx, int64_t k, int64_t axis, bool ascending) {
  Expr x = ctx.in(0);
  DType dtype = NodeContext::dtype_of(x), i32 = DType::Int(32), i64 = DType::Int(64);
  int64_t rank = NodeContext::rank_of(x);
  int64_t n = ctx.const_dim(x, axis, "the size of the sorted axis");
  check_pairs(ctx, n, n);
  std::vector<int64_t> to_last, back;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) to_last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  to_last.push_back(axis);
  x = ctx.transpose(x, to_last);
  Expr own = ctx.expand_dims(x, rank), other = ctx.expand_dims(x, rank - 1);
  Expr places = counting(ctx, n, i32);
  Expr earlier = ctx.call("less", {places, ctx.expand_dims(places, 1)});
  Expr before = ctx.call(ascending ? "less" : "greater", {other, own});
  Expr tie = ctx.call("logical_and", {ctx.call("equal", {other, own}), earlier});
  before = ctx.call("logical_or", {before, tie});
  Expr order = ctx.reduce("sum", ctx.cast(before, i32), {rank}, true);
  // (..., n, k): whether an element is the k-th.
  Expr hit = ctx.call("equal", {order, counting(ctx, k, i32)});
  Expr values =
      ctx.reduce("sum", ctx.call("where", {hit, own, ctx.scalar(0, dtype)}), {rank - 1}, false);
  Expr numbers = ctx.expand_dims(counting(ctx, n, i64), 1);
  Expr indices =
      ctx.reduce("sum", ctx.call("where", {hit, numbers, ctx.scalar(0, i64)}), {rank - 1}, false);
  return {value_of(ctx.transpose(values, back)), value_of(ctx.transpose(indices, back))};
}

Expr select_scatter_elements(NodeContext& ctx, const Expr& data, const Expr& indices,
                             const Expr& updates, int64_t axis, const std::string& reduction) {
  int64_t rank = NodeContext::rank_of(data);
  if (NodeContext::rank_of(indices) != rank) {
    ctx.fail(codes::type_rank, "data and indices must have the same rank", to_string(data->type),
             to_string(indices->type));
  }
  for (int64_t a = 0; a < rank; ++a) {
    auto at = static_cast<size_t>(a);
    if (a != axis &&
        !dim_equal(NodeContext::shape_of(data)[at], NodeContext::shape_of(indices)[at])) {
      ctx.unsupported("scattering into a part of the other dimensions");
    }
  }
  int64_t n = ctx.const_dim(data, axis, "the size of the scattered axis");
  int64_t m = ctx.const_dim(indices, axis, "the number of updates");
  check_pairs(ctx, n, m);
  // The updates get an axis of their own behind the scattered one.
  auto apart = [&](const Expr& e) { return ctx.expand_dims(e, axis); };
  Expr places = ctx.expand_dims(counting(ctx, n, NodeContext::dtype_of(indices)), 1, rank - axis);
  Expr hit = ctx.call("equal", {apart(indices), places});
  return merge(ctx, data, hit, apart(updates), axis + 1, reduction);
}

Expr select_scatter_nd(NodeContext& ctx, const Expr& data, const Expr& indices, const Expr& updates,
                       const std::string& reduction) {
  // Coordinates become row numbers of the data as a matrix.
  DType dtype = NodeContext::dtype_of(indices);
  int64_t index_rank = NodeContext::rank_of(indices);
  int64_t depth = ctx.const_dim(indices, index_rank - 1, "the length of a coordinate");
  const std::vector<Dim> shape = NodeContext::shape_of(data);
  std::vector<int64_t> strides(static_cast<size_t>(depth), 1);
  int64_t rows = 1;
  for (int64_t i = depth; i-- > 0;) {
    strides[static_cast<size_t>(i)] = rows;
    rows *= ctx.const_dim(data, i, "the size of an indexed dimension");
  }
  Dim width = dim(1), count = dim(1);
  for (size_t a = static_cast<size_t>(depth); a < shape.size(); ++a) width = width * shape[a];
  for (int64_t a = 0; a + 1 < index_rank; ++a) {
    count = count * NodeContext::shape_of(indices)[static_cast<size_t>(a)];
  }
  check_pairs(ctx, rows, as_const(count).value_or(1));
  Expr numbers =
      ctx.reduce("sum", ctx.mul(indices, ctx.ints(strides, dtype)), {index_rank - 1}, false);
  numbers = ctx.expand_dims(ctx.reshape(numbers, std::vector<Dim>{count}), 1, 2);
  Expr hit = ctx.call("equal", {numbers, ctx.expand_dims(counting(ctx, rows, dtype), 1)});
  Expr flat = ctx.reshape(data, {dim(rows), width});
  Expr lines = ctx.expand_dims(ctx.reshape(updates, {count, width}), 1);
  return ctx.reshape(merge(ctx, flat, hit, lines, 0, reduction), shape);
}

Expr select_reverse_sequence(NodeContext& ctx, const Expr& x, const Expr& lengths, int64_t time,
                             int64_t batch) {
  DType i64 = DType::Int(64);
  int64_t rank = NodeContext::rank_of(x);
  int64_t n = ctx.const_dim(x, time, "the length of the sequences");
  Expr t = ctx.expand_dims(counting(ctx, n), 1, rank - time - 1);
  Expr length = ctx.expand_dims(ctx.cast(lengths, i64), 1, rank - batch - 1);
  Expr mirrored = ctx.sub(ctx.sub(length, ctx.scalar(1, i64)), t);
  Expr inside = ctx.call("less", {t, length});
  Expr place = ctx.call("where", {inside, mirrored, t});
  place = ctx.broadcast_to(place, NodeContext::shape_of(x));
  return ctx.call("gather", {x, place}, {{"axis", time}});
}

}  // namespace relay::importer
