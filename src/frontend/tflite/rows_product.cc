// Matrix products.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

// (x, weights (out, in), bias); the axes of x but the last are kept or joined.
Values fully_connected(NodeContext& ctx) {
  const auto& o = ctx.options<schema::FullyConnected>();
  if (o.weights_format() != schema::WeightsFormat::plain)
    ctx.unsupported("weights that are shuffled for a processor");
  Expr x = ctx.in(0), w = ctx.in(1);
  if (Builder::rank_of(w) != 2)
    ctx.fail(codes::type_rank, "the weight must be a matrix", "rank 2", to_string(w->type));
  const int64_t in = ctx.const_dim(w, 1, "the columns of the weight");
  if (in < 1) ctx.fail(codes::type_shape, "the weight has no columns", "1 or more", "0");
  std::vector<Dim> shape = Builder::shape_of(x);
  if (!o.keep_num_dims() || shape.empty() || as_const(shape.back()) != in) {
    x = ctx.reshape(x, {floor_div(product(shape, 0, shape.size()), dim(in)), dim(in)});
    shape = Builder::shape_of(x);
  }
  if (shape.size() != 2) x = ctx.reshape(x, {product(shape, 0, shape.size() - 1), dim(in)});
  shape.back() = dim(ctx.const_dim(w, 0, "the rows of the weight"));
  Expr y;
  if (ctx.is_quantized(0)) {
    y = quantized_dense(ctx, x, o.activation());
  } else {
    y = ctx.is_quantized(1) ? hybrid_dense(ctx, x, o.asymmetric_inputs())
                            : ctx.call("nn.dense", {x, w});
    if (ctx.has(2)) y = ctx.add(y, ctx.in(2));
    y = ctx.activated(y, o.activation());
  }
  return one(shape.size() == 2 ? y : ctx.reshape(y, shape));
}

Values batch_matmul(NodeContext& ctx) {
  const auto& o = ctx.options<schema::BatchMatMul>();
  Expr a = ctx.in_of_rank(0, 2), b = ctx.in_of_rank(1, 2);
  if (o.adj_x()) a = ctx.swap_last(a);
  if (o.adj_y()) b = ctx.swap_last(b);
  if (ctx.is_quantized(0)) return one(quantized_matmul(ctx, a, b));
  if (ctx.is_quantized(1)) ctx.unsupported("a product of floats and integers");
  return one(ctx.matmul(a, b));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Product>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"BATCH_MATMUL", batch_matmul, O::batch_matmul},
      {"FULLY_CONNECTED", fully_connected, O::fully_connected},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
