// Losses.
#include <utility>

#include "base/codes/frontend.h"
#include "frontend/common/activation.h"
#include "frontend/common/gather.h"
#include "frontend/common/loss.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// PyTorch's numbers: 0 for every element, 1 for their mean, 2 for their sum.
Expr reduced(NodeContext& ctx, const Expr& loss) {
  const int64_t how = ctx.integer("reduction", 1);
  if (how == 0) return loss;
  if (how != 1 && how != 2) ctx.fail(codes::frontend_attribute, "there is no such reduction");
  return ctx.reduce(how == 1 ? "mean" : "sum", loss, Builder::all_axes(Builder::rank_of(loss)),
                    false);
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
Values l1_loss(NodeContext& ctx) { return {value_of(reduced(ctx, ctx.call("abs", {apart(ctx)})))}; }
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

// Classes are along axis 1, or 0 of one item, which gets a batch.
struct Classes {
  Expr log, target;
  Loss loss;
  bool one = false;
};

Classes classes_of(NodeContext& ctx, Expr log) {
  Classes c{std::move(log), ctx.tensor("target"), {}, false};
  if (Builder::dtype_of(c.target).is_floating())
    ctx.unsupported("a loss of probabilities of classes");
  c.one = Builder::rank_of(c.log) == 1;
  if (c.one) {
    c.log = ctx.expand_dims(c.log, 0);
    c.target = ctx.expand_dims(c.target, 0);
  }
  c.loss.weights = ctx.tensor_or_null("weight");
  c.loss.ignored = ctx.integer("ignore_index", -100);
  const int64_t how = ctx.integer("reduction", 1);
  c.loss.reduction = how == 0   ? LossReduction::None
                     : how == 1 ? LossReduction::Mean
                                : LossReduction::Sum;
  return c;
}

// What each item counts for: the weight of its class, 0 for those that are left out.
Expr counts_of(NodeContext& ctx, const Classes& c) {
  Expr at = ctx.cast(c.target, DType::Int(64));
  Expr out = ctx.call("equal", {at, ctx.scalar_like(static_cast<double>(*c.loss.ignored), at)});
  Expr zero = ctx.scalar_like(0, c.log);
  if (!c.loss.weights) return ctx.where(out, zero, ctx.scalar_like(1, c.log));
  Expr safe = ctx.where(out, ctx.scalar_like(0, at), at);
  return ctx.where(out, zero, take_along(ctx, c.loss.weights, value_of(safe), 0));
}

Expr loss_of(NodeContext& ctx, const Classes& c) {
  Expr y = negative_log_likelihood(ctx, c.log, c.target, c.loss);
  return c.one && Builder::rank_of(y) > 0 ? ctx.squeeze(y, {0}) : y;
}

Values nll_loss(NodeContext& ctx) {
  const Classes c = classes_of(ctx, ctx.tensor("self"));
  Values out{value_of(loss_of(ctx, c))};
  if (ctx.outputs().size() < 2) return out;
  Expr counts = counts_of(ctx, c);
  const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(counts));
  const bool sums = c.loss.reduction != LossReduction::None;
  out.push_back(
      value_of(sums ? ctx.reduce("sum", counts, all, false) : ctx.scalar_like(0, counts)));
  return out;
}

Values cross_entropy(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t axis = Builder::rank_of(x) == 1 ? 0 : 1;
  const double smoothing = ctx.real("label_smoothing", 0);
  Classes c = classes_of(ctx, softmax(ctx, Softmax::Log, x, axis));
  if (smoothing == 0) return {value_of(loss_of(ctx, c))};
  if (c.loss.weights) ctx.unsupported("smoothed labels with weights of classes");
  // A part of the loss is that of all classes alike.
  const LossReduction how = std::exchange(c.loss.reduction, LossReduction::None);
  const int64_t n = ctx.const_dim(c.log, 1, "the number of classes");
  Expr counts = counts_of(ctx, c);
  Expr others = ctx.mul(ctx.call("negative", {ctx.reduce("sum", c.log, {1}, false)}), counts);
  Expr own = negative_log_likelihood(ctx, c.log, c.target, c.loss);
  Expr y = ctx.add(ctx.mul(own, ctx.scalar_like(1 - smoothing, own)),
                   ctx.mul(others, ctx.scalar_like(smoothing / static_cast<double>(n), own)));
  if (how == LossReduction::None) return {value_of(c.one ? ctx.squeeze(y, {0}) : y)};
  const std::vector<int64_t> all = Builder::all_axes(Builder::rank_of(y));
  Expr sum = ctx.reduce("sum", y, all, false);
  if (how == LossReduction::Mean) sum = ctx.div(sum, ctx.reduce("sum", counts, all, false));
  return {value_of(sum)};
}

// log(1 + exp(-target * x))
Values soft_margin_loss(NodeContext& ctx) {
  Expr product = ctx.mul(ctx.tensor("self"), ctx.tensor("target"));
  return {value_of(reduced(ctx, softplus(ctx, ctx.call("negative", {product}))))};
}

Values kl_div(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), t = ctx.tensor("target");
  Expr loss;
  if (ctx.truth("log_target", false)) {
    loss = ctx.mul(ctx.call("exp", {t}), ctx.sub(t, x));
  } else {
    Expr log = ctx.mul(t, ctx.sub(ctx.call("log", {t}), x));
    loss = ctx.call("where",
                    {ctx.call("greater", {t, ctx.scalar_like(0, t)}), log, ctx.scalar_like(0, t)});
  }
  return {value_of(reduced(ctx, loss))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Loss>() {
  static constexpr Row kRows[] = {
      {"aten.mse_loss.default", mse_loss, kInFloat32},
      {"aten.l1_loss.default", l1_loss, kInFloat32},
      {"aten.smooth_l1_loss.default", [](NodeContext& ctx) { return huber(ctx, "beta", true); },
       kInFloat32},
      {"aten.huber_loss.default", [](NodeContext& ctx) { return huber(ctx, "delta", false); },
       kInFloat32},
      {"aten.binary_cross_entropy.default", binary_cross_entropy, kInFloat32},
      {"aten.binary_cross_entropy_with_logits.default", binary_cross_entropy_with_logits,
       kInFloat32},
      {"aten.nll_loss.default", nll_loss, kInFloat32},
      {"aten.nll_loss_nd.default", nll_loss, kInFloat32},
      {"aten.nll_loss2d.default", nll_loss, kInFloat32},
      {"aten.nll_loss_forward.default", nll_loss, kInFloat32},
      {"aten.nll_loss2d_forward.default", nll_loss, kInFloat32},
      {"aten.cross_entropy_loss.default", cross_entropy, kInFloat32},
      {"aten.soft_margin_loss.default", soft_margin_loss, kInFloat32},
      {"aten.kl_div.default", kl_div, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
