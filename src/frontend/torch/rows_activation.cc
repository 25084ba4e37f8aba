// Activation functions and softmax.
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/activation.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

Expr self(NodeContext& ctx) { return ctx.tensor("self"); }

template <Expr (*kFunction)(const Builder&, const Expr&)>
Values by(NodeContext& ctx) {
  return {value_of(kFunction(ctx, self(ctx)))};
}

Values clip(NodeContext& ctx, double low, double high) {
  Expr x = self(ctx);
  if (Builder::dtype_of(x).is_floating())
    return {value_of(ctx.call("clip", {x}, {{"a_min", low}, {"a_max", high}}))};
  Expr least = ctx.scalar_like(low, x), greatest = ctx.scalar_like(high, x);
  return {value_of(ctx.call("minimum", {ctx.call("maximum", {x, least}), greatest}))};
}

Values relu(NodeContext& ctx) { return {value_of(ctx.call("nn.relu", {self(ctx)}))}; }

Values leaky_relu(NodeContext& ctx) {
  return {value_of(
      ctx.call("nn.leaky_relu", {self(ctx)}, {{"alpha", ctx.real("negative_slope", 0.01)}}))};
}

Values gelu_row(NodeContext& ctx) {
  const std::string approximate = ctx.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") {
    ctx.fail(codes::frontend_attribute, "argument 'approximate' has an unknown value",
             "none or tanh", approximate);
  }
  Expr x = self(ctx);
  return {value_of(approximate == "tanh" ? gelu_by_tanh(ctx, x) : gelu(ctx, x))};
}

Values silu(NodeContext& ctx) { return {value_of(swish(ctx, self(ctx)))}; }
Values hardsigmoid(NodeContext& ctx) {
  return {value_of(hard_sigmoid(ctx, self(ctx), 1.0 / 6, 0.5))};
}

// max(0, scale * x) + min(0, scale * alpha * (exp(input_scale * x) - 1))
Values elu_row(NodeContext& ctx) {
  const double alpha = ctx.real("alpha", 1), scale = ctx.real("scale", 1),
               input_scale = ctx.real("input_scale", 1);
  Expr x = self(ctx);
  if (input_scale == 1) {
    Expr y = elu(ctx, x, alpha);
    return {value_of(scale == 1 ? y : ctx.mul(y, ctx.scalar_like(scale, y)))};
  }
  Expr zero = ctx.scalar_like(0, x);
  Expr low = ctx.mul(ctx.call("minimum", {x, zero}), ctx.scalar_like(input_scale, x));
  Expr e = ctx.mul(ctx.sub(ctx.call("exp", {low}), ctx.scalar_like(1, x)),
                   ctx.scalar_like(alpha * scale, x));
  Expr high = ctx.mul(ctx.call("maximum", {x, zero}), ctx.scalar_like(scale, x));
  return {value_of(ctx.add(high, e))};
}

Values celu(NodeContext& ctx) {
  const double alpha = ctx.real("alpha", 1);
  if (alpha == 0) ctx.fail(codes::frontend_attribute, "alpha must not be zero");
  return {value_of(elu(ctx, self(ctx), alpha, alpha))};
}

Values selu(NodeContext& ctx) {
  constexpr double kAlpha = 1.6732632423543772848, kScale = 1.0507009873554804934;
  Expr y = elu(ctx, self(ctx), kAlpha);
  return {value_of(ctx.mul(y, ctx.scalar_like(kScale, y)))};
}

Values softplus_row(NodeContext& ctx) {
  const double beta = ctx.real("beta", 1), threshold = ctx.real("threshold", 20);
  Expr x = self(ctx), by_beta = beta == 1 ? x : ctx.mul(x, ctx.scalar_like(beta, x));
  Expr y = softplus(ctx, by_beta);
  if (beta != 1) y = ctx.div(y, ctx.scalar_like(beta, y));
  Expr above = ctx.call("greater", {by_beta, ctx.scalar_like(threshold, x)});
  return {value_of(ctx.call("where", {above, x, y}))};
}

Values log_sigmoid(NodeContext& ctx) {
  Expr minus = softplus(ctx, ctx.call("negative", {self(ctx)}));
  return {value_of(ctx.call("negative", {minus}))};
}

// The second result is exp(-|x|), which the gradient reads.
Values log_sigmoid_forward(NodeContext& ctx) {
  Expr x = self(ctx);
  return {log_sigmoid(ctx)[0],
          value_of(ctx.call("exp", {ctx.call("negative", {ctx.call("abs", {x})})}))};
}

Values threshold(NodeContext& ctx) {
  Expr x = self(ctx);
  Expr above = ctx.call("greater", {x, ctx.scalar_like(ctx.real("threshold"), x)});
  return {value_of(ctx.call("where", {above, x, ctx.scalar_like(ctx.real("value"), x)}))};
}

Values shrink_row(NodeContext& ctx, bool soft) {
  const double lambd = ctx.real("lambd", 0.5);
  return {value_of(shrink(ctx, self(ctx), lambd, soft ? lambd : 0))};
}

Values prelu_row(NodeContext& ctx) {
  Expr x = self(ctx), slope = ctx.tensor("weight");
  // A slope for each channel, which are along the second axis.
  if (Builder::rank_of(slope) == 1 && Builder::rank_of(x) > 2 &&
      as_const(Builder::shape_of(slope)[0]) != 1) {
    slope = ctx.expand_dims(slope, 1, Builder::rank_of(x) - 2);
  }
  return {value_of(prelu(ctx, x, slope))};
}

Values glu(NodeContext& ctx) {
  Expr x = self(ctx);
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), -1);
  std::vector<Expr> halves = ctx.split(x, axis, 2);
  return {value_of(ctx.mul(halves[0], ctx.call("sigmoid", {halves[1]})))};
}

Values softmax_row(NodeContext& ctx, Softmax kind) {
  Expr x = self(ctx);
  // The element type is taken before, so that nothing is rounded between.
  if (auto dtype = ctx.dtype()) x = ctx.cast(x, *dtype);
  ctx.find("half_to_float");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  if (rank == 0) {
    Expr one = ctx.reshape(x, std::vector<int64_t>{1});
    return {value_of(ctx.reshape(softmax(ctx, kind, one, 0), std::vector<int64_t>{}))};
  }
  return {value_of(softmax(ctx, kind, x, axis))};
}

// 0 where every element is -inf, as of a query that sees no key.
Values safe_softmax(NodeContext& ctx) {
  Expr x = self(ctx);
  const std::vector<int64_t> axis{ctx.axis_of("dim", Builder::rank_of(x), std::nullopt)};
  Expr y = ctx.expr_of(softmax_row(ctx, Softmax::Plain)[0]);
  Expr none = ctx.call("equal", {ctx.reduce("max", x, axis, true),
                                 ctx.scalar_like(-std::numeric_limits<double>::infinity(), x)});
  return {value_of(ctx.call("where", {none, ctx.scalar_like(0, y), y}))};
}

Values plain_softmax(NodeContext& ctx) { return softmax_row(ctx, Softmax::Plain); }
Values log_softmax(NodeContext& ctx) { return softmax_row(ctx, Softmax::Log); }

}  // namespace

template <>
std::span<const Row> rows<Family::Activation>() {
  static constexpr Row kRows[] = {
      {"aten.relu.default", relu},
      {"aten.relu6.default", [](NodeContext& ctx) { return clip(ctx, 0, 6); }},
      {"aten.hardtanh.default",
       [](NodeContext& ctx) { return clip(ctx, ctx.real("min_val", -1), ctx.real("max_val", 1)); }},
      {"aten.leaky_relu.default", leaky_relu},
      {"aten.gelu.default", gelu_row, kInFloat32},
      {"aten.silu.default", silu, kInFloat32},
      {"aten.hardsigmoid.default", hardsigmoid, kInFloat32},
      {"aten.hardswish.default", by<hard_swish>, kInFloat32},
      {"aten.mish.default", by<mish>, kInFloat32},
      {"aten.softplus.default", softplus_row, kInFloat32},
      {"aten.elu.default", elu_row, kInFloat32},
      {"aten.celu.default", celu, kInFloat32},
      {"aten.selu.default", selu, kInFloat32},
      {"aten.log_sigmoid.default", log_sigmoid, kInFloat32},
      {"aten.log_sigmoid_forward.default", log_sigmoid_forward, kInFloat32},
      {"aten.threshold.default", threshold},
      {"aten.hardshrink.default", [](NodeContext& ctx) { return shrink_row(ctx, false); }},
      {"aten.softshrink.default", [](NodeContext& ctx) { return shrink_row(ctx, true); }},
      {"aten.prelu.default", prelu_row},
      {"aten._prelu_kernel.default", prelu_row},
      {"aten.glu.default", glu, kInFloat32},
      {"aten.softmax.int", plain_softmax, kInFloat32},
      {"aten._softmax.default", plain_softmax, kInFloat32},
      {"aten.special_softmax.int", plain_softmax, kInFloat32},
      {"aten._safe_softmax.default", safe_softmax, kInFloat32},
      {"aten.log_softmax.int", log_softmax, kInFloat32},
      {"aten._log_softmax.default", log_softmax, kInFloat32},
      {"aten.special_log_softmax.int", log_softmax, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
