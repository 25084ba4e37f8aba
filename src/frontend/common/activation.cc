#include "frontend/common/activation.h"

#include <vector>

namespace relay::frontend {

Expr softplus(const Builder& build, const Expr& x) {
  Expr small = build.call("exp", {build.call("negative", {build.call("abs", {x})})});
  Expr log = build.call("log", {build.add(small, build.scalar_like(1, x))});
  return build.add(build.maximum(x, build.scalar_like(0, x)), log);
}

Expr elu(const Builder& build, const Expr& x, double alpha, double beta) {
  Expr zero = build.scalar_like(0, x);
  Expr low = build.minimum(x, zero);
  if (beta != 1) low = build.div(low, build.scalar_like(beta, x));
  Expr e = build.sub(build.call("exp", {low}), build.scalar_like(1, x));
  if (alpha != 1) e = build.mul(e, build.scalar_like(alpha, x));
  return build.add(build.maximum(x, zero), e);
}

Expr hard_sigmoid(const Builder& build, const Expr& x, double alpha, double beta) {
  Expr line = build.add(build.mul(x, build.scalar_like(alpha, x)), build.scalar_like(beta, x));
  return build.clip(line, 0, 1);
}

Expr hard_swish(const Builder& build, const Expr& x) {
  return build.mul(x, hard_sigmoid(build, x, 1.0 / 6, 0.5));
}

Expr swish(const Builder& build, const Expr& x, double alpha) {
  Expr scaled = alpha == 1 ? x : build.mul(x, build.scalar_like(alpha, x));
  return build.mul(x, build.call("sigmoid", {scaled}));
}

Expr mish(const Builder& build, const Expr& x) {
  return build.mul(x, build.call("tanh", {softplus(build, x)}));
}

Expr softsign(const Builder& build, const Expr& x) {
  return build.div(x, build.add(build.call("abs", {x}), build.scalar_like(1, x)));
}

Expr thresholded_relu(const Builder& build, const Expr& x, double threshold) {
  Expr above = build.call("greater", {x, build.scalar_like(threshold, x)});
  return build.where(above, x, build.scalar_like(0, x));
}

Expr shrink(const Builder& build, const Expr& x, double lambd, double bias) {
  auto c = [&](double v) { return build.scalar_like(v, x); };
  Expr high = build.where(build.call("greater", {x, c(lambd)}), build.sub(x, c(bias)), c(0));
  return build.where(build.call("less", {x, c(-lambd)}), build.add(x, c(bias)), high);
}

Expr prelu(const Builder& build, const Expr& x, const Expr& slope) {
  Expr negative = build.call("less", {x, build.scalar_like(0, x)});
  return build.where(negative, build.mul(x, slope), x);
}

namespace {

// x / 2 * (1 + inner)
Expr half_of(const Builder& build, const Expr& x, const Expr& inner) {
  return build.mul(build.mul(x, build.scalar_like(0.5, x)),
                   build.add(inner, build.scalar_like(1, x)));
}

}  // namespace

Expr gelu(const Builder& build, const Expr& x) {
  return half_of(build, x,
                 build.call("erf", {build.mul(x, build.scalar_like(0.7071067811865476, x))}));
}

Expr gelu_by_tanh(const Builder& build, const Expr& x) {
  // tanh(sqrt(2 / pi) * (x + 0.044715 x^3))
  auto c = [&](double v) { return build.scalar_like(v, x); };
  Expr cubic = build.mul(build.mul(build.mul(x, x), x), c(0.044715));
  return half_of(build, x,
                 build.call("tanh", {build.mul(build.add(x, cubic), c(0.7978845608028654))}));
}

Expr softmax(const Builder& build, Softmax kind, const Expr& x, int64_t axis) {
  if (kind != Softmax::Hard) {
    return build.call(kind == Softmax::Log ? "nn.log_softmax" : "nn.softmax", {x},
                      {{"axis", axis}});
  }
  int64_t depth = build.const_dim(x, axis, "the size of the axis");
  if (depth == 0) return x;  // nothing has no greatest element, and needs none
  DType dtype = Builder::dtype_of(x);
  Expr best = build.call("argmax", {x}, {{"axis", to_value(std::vector<int64_t>{axis})}});
  return build.call("one_hot", {best, build.scalar(1, dtype), build.scalar(0, dtype)},
                    {{"depth", depth},
                     {"axis", axis == Builder::rank_of(x) - 1 ? int64_t{-1} : axis},
                     {"dtype", to_value(dtype)}});
}

Expr activate(const Builder& build, const Activation& a, const Expr& x) {
  auto c = [&](double v) { return build.scalar_like(v, x); };
  switch (a.kind) {
    case ActivationKind::Affine:
      return build.add(build.mul(x, c(a.alpha)), c(a.beta));
    case ActivationKind::Elu:
      return elu(build, x, a.alpha);
    case ActivationKind::HardSigmoid:
      return hard_sigmoid(build, x, a.alpha, a.beta);
    case ActivationKind::LeakyRelu:
      return build.call("nn.leaky_relu", {x}, {{"alpha", a.alpha}});
    case ActivationKind::Relu:
      return build.call("nn.relu", {x});
    case ActivationKind::ScaledTanh:
      return build.mul(build.call("tanh", {build.mul(x, c(a.beta))}), c(a.alpha));
    case ActivationKind::Sigmoid:
      return build.call("sigmoid", {x});
    case ActivationKind::Softplus:
      return softplus(build, x);
    case ActivationKind::Softsign:
      return softsign(build, x);
    case ActivationKind::Tanh:
      return build.call("tanh", {x});
    case ActivationKind::ThresholdedRelu:
      break;
  }
  return thresholded_relu(build, x, a.alpha);
}

}  // namespace relay::frontend
