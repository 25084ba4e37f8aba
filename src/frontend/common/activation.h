// Activation functions, softmax among them, in forms that do not overflow.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

// log(1 + exp(x))
Expr softplus(const Builder& build, const Expr& x);
// max(x, 0) + alpha * (exp(min(x, 0) / beta) - 1); Celu where both are the same.
Expr elu(const Builder& build, const Expr& x, double alpha, double beta = 1);
// alpha * x + beta, clamped between 0 and 1.
Expr hard_sigmoid(const Builder& build, const Expr& x, double alpha, double beta);
// x * hard_sigmoid(x, 1/6, 1/2)
Expr hard_swish(const Builder& build, const Expr& x);
// x * sigmoid(alpha * x)
Expr swish(const Builder& build, const Expr& x, double alpha = 1);
// x * tanh(softplus(x))
Expr mish(const Builder& build, const Expr& x);
// x / (|x| + 1)
Expr softsign(const Builder& build, const Expr& x);
// x above the threshold, and 0 up to it.
Expr thresholded_relu(const Builder& build, const Expr& x, double threshold);
// x moved by `bias` towards 0 where it is further than `lambd` away, and 0 elsewhere.
Expr shrink(const Builder& build, const Expr& x, double lambd, double bias);
// x, and slope * x below 0; the slope broadcasts against x.
Expr prelu(const Builder& build, const Expr& x, const Expr& slope);
// x * (1 + erf(x / sqrt(2))) / 2, and its approximation by tanh.
Expr gelu(const Builder& build, const Expr& x);
Expr gelu_by_tanh(const Builder& build, const Expr& x);

enum class Softmax { Plain, Log, Hard };
// Along an axis in [0, rank). Of a hard one the greatest element is 1, the first of several, and the others are 0; E0505
// for one along an open size.
Expr softmax(const Builder& build, Softmax kind, const Expr& x, int64_t axis);

// A function that an operator applies to its result, or within: what `alpha` and `beta` mean stands beside it.
enum class ActivationKind {
  Affine,       // alpha * x + beta
  Elu,          // alpha
  HardSigmoid,  // alpha, beta
  LeakyRelu,    // alpha * x below 0
  Relu,
  ScaledTanh,  // alpha * tanh(beta * x)
  Sigmoid,
  Softplus,
  Softsign,
  Tanh,
  ThresholdedRelu,  // alpha is the threshold
};
struct Activation {
  ActivationKind kind;
  double alpha = 0, beta = 0;
};
Expr activate(const Builder& build, const Activation& activation, const Expr& x);

}  // namespace relay::frontend
