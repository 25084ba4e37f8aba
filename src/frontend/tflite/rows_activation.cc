// Activation functions and softmax.
#include "base/codes/frontend.h"
#include "frontend/common/activation.h"
#include "frontend/common/norm.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values elementwise(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_unary(ctx));
  return one(ctx.call(ctx.relay_op(), {ctx.in(0)}));
}

Values clamped(NodeContext& ctx, double low, double high) {
  if (ctx.is_quantized()) return one(quantized_relu(ctx, low, high));
  return one(ctx.clip(ctx.in(0), low, high));
}
Values relu(NodeContext& ctx) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (ctx.is_quantized()) return one(quantized_relu(ctx, 0, kInfinity));
  return one(ctx.call("nn.relu", {ctx.in(0)}));
}
Values relu6(NodeContext& ctx) { return clamped(ctx, 0, 6); }
Values relu_n1_to_1(NodeContext& ctx) { return clamped(ctx, -1, 1); }
Values relu_0_to_1(NodeContext& ctx) { return clamped(ctx, 0, 1); }

Values leaky(NodeContext& ctx) {
  const double alpha = ctx.options<schema::LeakyRelu>().alpha();
  if (ctx.is_quantized()) return one(quantized_leaky_relu(ctx, alpha));
  return one(ctx.call("nn.leaky_relu", {ctx.in(0)}, {{"alpha", alpha}}));
}

Values parametric(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_prelu(ctx));
  return one(prelu(ctx, ctx.in(0), ctx.in(1)));
}

Values elu_of(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_unary(ctx));
  return one(elu(ctx, ctx.in(0), 1));
}

Values hard_swish_of(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_hard_swish(ctx));
  return one(hard_swish(ctx, ctx.in(0)));
}

Values gelu_of(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_unary(ctx));
  return one(ctx.options<schema::Gelu>().approximate() ? gelu_by_tanh(ctx, ctx.in(0))
                                                       : gelu(ctx, ctx.in(0)));
}

Values softmax_of(NodeContext& ctx) {
  const double beta = ctx.options<schema::Softmax>().beta();
  if (ctx.is_quantized()) return one(quantized_softmax(ctx, beta));
  Expr x = ctx.in_of_rank(0, 1);
  if (beta != 1) x = ctx.mul(x, ctx.scalar_like(beta, x));
  return one(softmax(ctx, Softmax::Plain, x, Builder::rank_of(x) - 1));
}

Values log_softmax(NodeContext& ctx) {
  if (ctx.is_quantized()) ctx.unsupported("log_softmax of integers");
  return one(softmax(ctx, Softmax::Log, ctx.in_of_rank(0, 1), Builder::rank_of(ctx.in(0)) - 1));
}

// Divided by the root of the sum of squares along the last axis.
Values l2_normalization(NodeContext& ctx) {
  if (ctx.is_quantized()) ctx.unsupported("normalisation of integers");
  Expr x = ctx.in_of_rank(0, 1);
  Expr squares = ctx.reduce("sum", ctx.mul(x, x), {Builder::rank_of(x) - 1}, true);
  Expr norm = ctx.maximum(ctx.call("sqrt", {squares}), ctx.scalar_like(1e-6, x));
  return one(ctx.activated(ctx.div(x, norm), ctx.options<schema::Activated>().activation()));
}

Values local_response(NodeContext& ctx) {
  const auto& o = ctx.options<schema::LocalResponse>();
  if (o.radius() < 0 || o.radius() > (1 << 20))
    ctx.fail(codes::frontend_attribute, "the radius is out of range", "0 or more",
             std::to_string(o.radius()));
  const int64_t size = 2 * int64_t{o.radius()} + 1;
  // The operator divides alpha by the size.
  return one(ctx.call("nn.lrn", {ctx.in_of_rank(0, 1)},
                      {{"size", size},
                       {"axis", Builder::rank_of(ctx.in(0)) - 1},
                       {"bias", static_cast<double>(o.bias())},
                       {"alpha", static_cast<double>(o.alpha()) * static_cast<double>(size)},
                       {"beta", static_cast<double>(o.beta())}}));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Activation>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"ELU", elu_of},
      {"GELU", gelu_of, O::gelu},
      {"HARD_SWISH", hard_swish_of, O::hard_swish},
      {"L2_NORMALIZATION", l2_normalization, O::l2_norm},
      {"LEAKY_RELU", leaky, O::leaky_relu},
      {"LOCAL_RESPONSE_NORMALIZATION", local_response, O::local_response},
      {"LOGISTIC", elementwise, O::NONE, "sigmoid"},
      {"LOG_SOFTMAX", log_softmax, O::log_softmax},
      {"PRELU", parametric},
      {"RELU", relu},
      {"RELU6", relu6},
      {"RELU_0_TO_1", relu_0_to_1},
      {"RELU_N1_TO_1", relu_n1_to_1},
      {"SOFTMAX", softmax_of, O::softmax},
      {"TANH", elementwise, O::NONE, "tanh"},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
