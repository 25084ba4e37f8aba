// Losses.
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/common/activation.h"
#include "frontend/common/gather.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// PyTorch's numbers: 0 for every element, 1 for their mean, 2 for their sum.
Expr reduced(NodeContext& ctx, const Expr& loss) {
  const int64_t how = ctx.integer("reduction", 1);
  if (how == 0) return loss;
  if (how != 1 && how != 2) ctx.fail(codes::frontend_attribute, "there is no such reduction");
  return ctx.reduce(how == 1 ? "mean" : "sum", loss, Builder::all_axes(Builder::rank_of(loss)), false);
}

Expr apart(NodeContext& ctx) {
  Expr a = ctx.tensor("self"), b = ctx.tensor("target");
  const DType dtype = ctx.promoted({a, b});
  return ctx.sub(ctx.cast(a, dtype), ctx.cast(b, dtype));
}

Values mse_loss(NodeContext& ctx) {
  Expr d = apart(ctx);
  return {value_of(reduced(ctx, ctx.mul(d, d)))};
}
Values l1_loss(NodeContext& ctx) {
  return {value_of(reduced(ctx, ctx.call("abs", {apart(ctx)})))};
}
// Quadratic near 0; `smooth` divides by the border, as smooth_l1 does and Huber's loss does not.
Values huber(NodeContext& ctx, const char* border, bool smooth) {
  const double beta = ctx.real(border, 1);
  Expr d = ctx.call("abs", {apart(ctx)});
  if (beta == 0) return {value_of(reduced(ctx, d))};
  auto c = [&](double v) { return ctx.scalar_like(v, d); };
  Expr near = ctx.mul(ctx.mul(d, d), c(smooth ? 0.5 / beta : 0.5));
  Expr far = ctx.sub(d, c(0.5 * beta));
  if (!smooth) far = ctx.mul(far, c(beta));
  return {value_of(reduced(ctx, ctx.call("where", {ctx.call("less", {d, c(beta)}), near, far})))};
}

Values binary_cross_entropy(NodeContext& ctx) {
  Expr p = ctx.tensor("self"), t = ctx.tensor("target");
  auto c = [&](double v) { return ctx.scalar_like(v, p); };
  // A logarithm is at least -100, so that no product is NaN.
  auto log = [&](const Expr& e) { return ctx.call("maximum", {ctx.call("log", {e}), c(-100)}); };
  Expr loss = ctx.sub(ctx.mul(ctx.sub(t, c(1)), log(ctx.sub(c(1), p))), ctx.mul(t, log(p)));
  if (Expr w = ctx.tensor_or_null("weight")) loss = ctx.mul(loss, w);
  return {value_of(reduced(ctx, loss))};
}

Values binary_cross_entropy_with_logits(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), t = ctx.tensor("target");
  auto c = [&](double v) { return ctx.scalar_like(v, x); };
  // (1 - t) * x + weight * log(1 + exp(-x))
  Expr log = softplus(ctx, ctx.call("negative", {x}));
  if (Expr w = ctx.tensor_or_null("pos_weight"))
    log = ctx.mul(log, ctx.add(ctx.mul(ctx.sub(w, c(1)), t), c(1)));
  Expr loss = ctx.add(ctx.mul(ctx.sub(c(1), t), x), log);
  if (Expr w = ctx.tensor_or_null("weight")) loss = ctx.mul(loss, w);
  return {value_of(reduced(ctx, loss))};
}

struct ClassLoss {
  Expr loss, weight;  // of each item, 0 for those that are left out
};

// -weight[target] * log_probabilities[target]; classes are along axis 1, or 0 of one item.
ClassLoss class_loss(NodeContext& ctx, const Expr& log, const Expr& target, const Expr& weight,
                     int64_t ignored) {
  const int64_t axis = Builder::rank_of(log) == 1 ? 0 : 1;
  Expr at = ctx.cast(target, DType::Int(64));
  Expr out = ctx.call("equal", {at, ctx.scalar_like(static_cast<double>(ignored), at)});
  Expr safe = ctx.call("where", {out, ctx.scalar_like(0, at), at});
  ValuePtr places = ctx.importer().with_known(value_of(ctx.expand_dims(safe, axis)));
  Expr of = ctx.squeeze(gather_elements(ctx, log, places, axis), {axis});
  Expr zero = ctx.scalar_like(0, log);
  Expr w = weight ? take_along(ctx, weight, ctx.importer().with_known(value_of(safe)), 0)
                  : ctx.full(1, Builder::shape_of(of), Builder::dtype_of(of));
  w = ctx.call("where", {out, zero, w});
  return {ctx.call("negative", {ctx.mul(w, of)}), w};
}

// The mean over items is weighted.
Expr reduced_classes(NodeContext& ctx, const ClassLoss& c) {
  const int64_t how = ctx.integer("reduction", 1);
  if (how == 0) return c.loss;
  const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(c.loss));
  Expr sum = ctx.reduce("sum", c.loss, all, false);
  return how == 2 ? sum : ctx.div(sum, ctx.reduce("sum", c.weight, all, false));
}

Values nll_loss(NodeContext& ctx) {
  const ClassLoss c = class_loss(ctx, ctx.tensor("self"), ctx.tensor("target"),
                                 ctx.tensor_or_null("weight"), ctx.integer("ignore_index", -100));
  Values out{value_of(reduced_classes(ctx, c))};
  if (ctx.outputs().size() > 1) {
    const bool sums = ctx.integer("reduction", 1) != 0;
    const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(c.weight));
    out.push_back(value_of(sums ? ctx.reduce("sum", c.weight, all, false) : ctx.scalar_like(0, c.weight)));
  }
  return out;
}

Values cross_entropy(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), target = ctx.tensor("target");
  const int64_t axis = Builder::rank_of(x) == 1 ? 0 : 1;
  const double smoothing = ctx.real("label_smoothing", 0);
  Expr log = softmax(ctx, Softmax::Log, x, axis), weight = ctx.tensor_or_null("weight");
  const int64_t ignored = ctx.integer("ignore_index", -100);
  if (Builder::dtype_of(target).is_floating()) ctx.unsupported("a loss of probabilities of classes");
  if (smoothing == 0)
    return {value_of(reduced_classes(ctx, class_loss(ctx, log, target, weight, ignored)))};
  if (weight) ctx.unsupported("smoothed labels with weights of classes");
  ClassLoss c = class_loss(ctx, log, target, nullptr, ignored);
  const int64_t n = ctx.const_dim(x, axis, "the number of classes");
  Expr others = ctx.mul(ctx.call("negative", {ctx.reduce("sum", log, {axis}, false)}), c.weight);
  c.loss = ctx.add(ctx.mul(c.loss, ctx.scalar_like(1 - smoothing, log)),
                   ctx.mul(others, ctx.scalar_like(smoothing / static_cast<double>(n), log)));
  return {value_of(reduced_classes(ctx, c))};
}

Values kl_div(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), t = ctx.tensor("target");
  Expr loss;
  if (ctx.truth("log_target", false)) {
    loss = ctx.mul(ctx.call("exp", {t}), ctx.sub(t, x));
  } else {
    Expr log = ctx.mul(t, ctx.sub(ctx.call("log", {t}), x));
    loss = ctx.call("where", {ctx.call("greater", {t, ctx.scalar_like(0, t)}), log, ctx.scalar_like(0, t)});
  }
  return {value_of(reduced(ctx, loss))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Loss>() {
  static constexpr Row kRows[] = {
      {"aten.mse_loss.default", mse_loss, kInFloat32},
      {"aten.l1_loss.default", l1_loss, kInFloat32},
      {"aten.smooth_l1_loss.default", [](NodeContext& ctx) { return huber(ctx, "beta", true); }, kInFloat32},
      {"aten.huber_loss.default", [](NodeContext& ctx) { return huber(ctx, "delta", false); }, kInFloat32},
      {"aten.binary_cross_entropy.default", binary_cross_entropy, kInFloat32},
      {"aten.binary_cross_entropy_with_logits.default", binary_cross_entropy_with_logits, kInFloat32},
      {"aten.nll_loss.default", nll_loss, kInFloat32},
      {"aten.nll_loss_nd.default", nll_loss, kInFloat32},
      {"aten.nll_loss2d.default", nll_loss, kInFloat32},
      {"aten.nll_loss_forward.default", nll_loss, kInFloat32},
      {"aten.nll_loss2d_forward.default", nll_loss, kInFloat32},
      {"aten.cross_entropy_loss.default", cross_entropy, kInFloat32},
      {"aten.kl_div.default", kl_div, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
