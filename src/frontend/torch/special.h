// Special functions, written out in elementary operators: Chebyshev series, recurrences and asymptotic series.
//
// Arguments are float32 or float64, and results have their dtype. Where a function has a pole or is not
// defined, the results are those of PyTorch: an infinity or NaN.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend::torch {

// The logarithm of |gamma(x)|.
Expr log_gamma(const Builder& build, const Expr& x);
// The n-th derivative of the logarithmic derivative of gamma, for n from 0 on.
Expr polygamma(const Builder& build, int64_t n, const Expr& x);

// Hurwitz's zeta function, the sum of (q + k)^-s over k from 0 on. The arguments are float64 and of one shape. Steps of a
// loop move every q above 9.
Expr zeta(const Builder& build, const Expr& s, const Expr& q);
// The regularised incomplete gamma functions: P(a, x), or Q(a, x) = 1 - P(a, x) if `upper`. The arguments are float64 and
// of one shape. Loops add terms until no element changes, about sqrt(72 a) of them where x is near a.
Expr incomplete_gamma(const Builder& build, const Expr& a, const Expr& x, bool upper);

// Bessel functions of order 0 or 1: J and Y; I and K, which are modified; and these times exp(-|x|) and exp(x).
Expr bessel_j(const Builder& build, int order, const Expr& x);
Expr bessel_y(const Builder& build, int order, const Expr& x);
Expr bessel_i(const Builder& build, int order, const Expr& x, bool scaled);
Expr bessel_k(const Builder& build, int order, const Expr& x, bool scaled);
// sin(x) / x
Expr spherical_bessel_j0(const Builder& build, const Expr& x);
Expr airy_ai(const Builder& build, const Expr& x);

// exp(x^2) erfc(x)
Expr scaled_erfc(const Builder& build, const Expr& x);
// The logarithm of the standard normal distribution, and the inverse of the distribution.
Expr log_normal_distribution(const Builder& build, const Expr& x);
Expr normal_quantile(const Builder& build, const Expr& p);

// log(1 + x) for an x above -1, exact near 0.
Expr log_one_plus(const Builder& build, const Expr& x);

}  // namespace relay::frontend::torch
