// Locality-sensitive hashes.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/bits.h"
#include "frontend/tflite/farm_hash.h"
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// Bytes of a line, and functions, beyond which a projection is refused: the tables of places grow with them.
constexpr int64_t kMostHashed = int64_t{1} << 20;

// (seeds: a line for each function, a column for each of its bits; lines; their weights): a bit is whether the weighted sum of
// the lines' hashes is positive. Dense gives all bits; sparse gives for each function the number of its bits, after the
// numbers of the functions before it.
Values lsh_projection(NodeContext& ctx) {
  Expr seeds = ctx.in(0), lines = ctx.in_of_rank(1, 1);
  if (Builder::rank_of(seeds) != 2)
    ctx.fail(codes::type_rank, "the seeds must be a matrix", "rank 2", to_string(seeds->type));
  if (Builder::dtype_of(seeds) != DType::Float(32)) ctx.unsupported_dtype(Builder::dtype_of(seeds));
  const DType dtype = Builder::dtype_of(lines);
  if (dtype.is_string() || dtype.bits % 8 != 0) ctx.unsupported_dtype(dtype);
  const int64_t functions = ctx.const_dim(seeds, 0, "the number of hash functions");
  const int64_t bits = ctx.const_dim(seeds, 1, "the number of bits");
  const schema::LshKind kind = ctx.options<schema::LshProjection>().kind();
  if (kind != schema::LshKind::sparse && kind != schema::LshKind::dense)
    ctx.fail(codes::frontend_attribute, "the kind of projection is unknown", "SPARSE or DENSE",
             std::to_string(static_cast<int>(kind)));
  const bool sparse = kind == schema::LshKind::sparse;
  if (bits > (sparse ? 31 : 32)) ctx.unsupported("so many bits of one hash function");
  if (functions > kMostHashed) ctx.unsupported("more than 2^20 hash functions");
  int64_t length = dtype.bytes();
  for (int64_t a = 1; a < Builder::rank_of(lines); ++a) {
    length *= ctx.const_dim(lines, a, "a size of a line");
    if (length > kMostHashed) ctx.unsupported("lines of more than 2^20 bytes");
  }

  Expr all = ctx.reshape(seeds, std::vector<int64_t>{functions * bits});
  Expr hashes = with_bits_of(ctx, farm_hashes(ctx, all, lines), DType::Int(64));
  Expr scores = ctx.cast(hashes, DType::Float(64));
  if (ctx.has(2)) {
    Expr weights = ctx.in(2);
    if (Builder::rank_of(weights) != 1 ||
        !dim_equal(Builder::shape_of(weights)[0], Builder::shape_of(lines)[0])) {
      ctx.fail(codes::type_shape, "the weights do not fit the lines", to_string(lines->type),
               to_string(weights->type));
    }
    scores = ctx.mul(scores, ctx.cast(weights, DType::Float(64)));
  }
  Expr score = ctx.reduce("sum", scores, {1}, false);
  Expr bit = ctx.cast(ctx.call("greater", {score, ctx.scalar_like(0, score)}), DType::Int(32));
  if (!sparse) return one(bit);
  std::vector<int64_t> powers, offsets;
  for (int64_t i = bits; i-- > 0;) powers.push_back(int64_t{1} << i);
  for (int64_t i = 0; i < functions; ++i)
    offsets.push_back(static_cast<int32_t>(static_cast<uint32_t>(i) << bits));
  const DType i32 = DType::Int(32);
  Expr parts =
      ctx.mul(ctx.reshape(bit, std::vector<int64_t>{functions, bits}), ctx.ints(powers, i32));
  return one(ctx.add(ctx.reduce("sum", parts, {1}, false), ctx.ints(offsets, i32)));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Hash>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {{"LSH_PROJECTION", lsh_projection, O::lsh_projection}};
  return kRows;
}

}  // namespace relay::frontend::tflite
