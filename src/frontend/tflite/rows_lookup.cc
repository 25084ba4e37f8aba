// Lines of tables by their number or their key.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/gather.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

Expr vector_in(NodeContext& ctx, size_t i) {
  Expr e = ctx.in(i);
  if (Builder::rank_of(e) != 1)
    ctx.fail(codes::type_rank, "input " + std::to_string(i) + " must be a vector", "rank 1",
             to_string(e->type));
  return e;
}

// Appends axes of size 1 to `e` until it has `rank` axes.
Expr of_rank(NodeContext& ctx, const Expr& e, int64_t rank) {
  const int64_t own = Builder::rank_of(e);
  return ctx.expand_dims(e, own, rank - own);
}

// (places, table)
Values embedding_lookup(NodeContext& ctx) {
  Expr y = take_along(ctx, ctx.in_of_rank(1, 1), ctx.value(0), 0);
  if (!ctx.is_quantized(1) || !ctx.out_dtype().is_floating()) return one(y);
  const Quantization q = ctx.in_quantization(1);
  if (q.per_axis()) ctx.unsupported("a table with a scale for each row");
  y = ctx.sub(ctx.cast(y, DType::Float(32)),
              ctx.scalar(static_cast<double>(q.zero[0]), DType::Float(32)));
  return one(ctx.mul(y, ctx.scalar(q.scale[0], DType::Float(32))));
}

// (places, coordinates, sizes, weights, table): weighted lines of the table, combined where their coordinates agree in all
// but the last. Lines without a place are 0.
Values embedding_lookup_sparse(NodeContext& ctx) {
  Expr places = vector_in(ctx, 0), coordinates = ctx.in(1), weights = vector_in(ctx, 3);
  Expr table = ctx.in_of_rank(4, 1);
  const std::vector<int64_t> sizes = ctx.const_ints(2, "the sizes");
  const int64_t rank = Builder::rank_of(table), last = static_cast<int64_t>(sizes.size()) - 1;
  if (last < 0 || Builder::rank_of(coordinates) != 2 ||
      ctx.const_dim(coordinates, 1, "the number of coordinates") != last + 1) {
    ctx.fail(codes::type_shape, "the coordinates do not fit the sizes",
             "a column for each of " + std::to_string(sizes.size()) + " sizes",
             to_string(coordinates->type));
  }
  std::vector<Dim> shape;
  for (int64_t a = 0; a < last; ++a) shape.push_back(dim(sizes[static_cast<size_t>(a)]));
  const std::vector<Dim> line_shape(Builder::shape_of(table).begin() + 1,
                                    Builder::shape_of(table).end());
  shape.insert(shape.end(), line_shape.begin(), line_shape.end());
  check_sizes(ctx, shape);
  const Dim count = product(shape, 0, static_cast<size_t>(last));
  std::vector<Dim> lines{count};
  lines.insert(lines.end(), line_shape.begin(), line_shape.end());
  // The number of the line of the result, as coordinates of a tensor of one axis.
  Expr line = ctx.full(0, {Builder::shape_of(places)[0]}, DType::Int(64));
  for (int64_t a = 0; a < last; ++a) {
    Expr step = ctx.scalar(static_cast<double>(sizes[static_cast<size_t>(a)]), DType::Int(64));
    Expr column = ctx.cast(ctx.select(coordinates, 1, a), DType::Int(64));
    line = ctx.add(ctx.mul(line, step), column);
  }
  const ValuePtr to = ctx.program().with_known(value_of(ctx.expand_dims(line, 1)));
  auto gathered = [&](const Expr& each, const std::vector<Dim>& into) {
    return scatter_nd(ctx, ctx.full(0, into, Builder::dtype_of(each)), to, each, Scatter::Add);
  };
  Expr y = gathered(ctx.mul(take_along(ctx, table, ctx.value(0), 0), of_rank(ctx, weights, rank)),
                    lines);
  const schema::Combiner combiner = ctx.options<schema::EmbeddingSparse>().combiner();
  if (combiner != schema::Combiner::sum) {
    const bool root = combiner == schema::Combiner::sqrtn;
    Expr total = gathered(root ? ctx.mul(weights, weights) : weights, {count});
    if (root) total = ctx.call("sqrt", {total});
    Expr none = ctx.call("equal", {total, ctx.scalar_like(0, total)});
    y = ctx.div(y, of_rank(ctx, ctx.where(none, ctx.scalar_like(1, total), total), rank));
  }
  return one(ctx.reshape(y, shape));
}

// (keys to look up, the keys of a table, its lines): the lines, 0 for keys that are not there, and whether they are.
Values hashtable_lookup(NodeContext& ctx) {
  Expr query = vector_in(ctx, 0), keys = vector_in(ctx, 1), table = ctx.in_of_rank(2, 1);
  if (!dim_equal(Builder::shape_of(keys)[0], Builder::shape_of(table)[0])) {
    ctx.fail(codes::type_shape, "the keys and the lines of a table differ in number",
             to_string(keys->type), to_string(table->type));
  }
  Expr equal = ctx.call("equal", {ctx.expand_dims(query, 1), keys});
  Expr there = ctx.reduce("any", equal, {1}, false);
  Expr place = ctx.call("argmax", {ctx.cast(equal, DType::Int(32))}, {{"axis", to_value({1})}});
  Expr found =
      ctx.call("take", {table, place}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  Expr zero = ctx.call("zeros_like", {found});
  Expr y = ctx.where(of_rank(ctx, there, Builder::rank_of(found)), found, zero);
  return {value_of(y), value_of(ctx.cast(there, DType::UInt(8)))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Lookup>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"EMBEDDING_LOOKUP", embedding_lookup},
      {"EMBEDDING_LOOKUP_SPARSE", embedding_lookup_sparse, O::embedding_sparse},
      {"HASHTABLE_LOOKUP", hashtable_lookup},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
