// Functions of two numbers: powers by exponents that are known, and angles.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

// x to the power of a number as products, a root or a quotient, for 1, 2, 3 and, of floats, 0.5 and -1; null for other
// exponents, which the operator `power` takes.
Expr short_power(const Builder& build, const Expr& x, double exponent);

// C's atan2(y, x) for floats of one dtype: the angle of (x, y) from -pi to pi, for infinite numbers, zeros of both signs
// and NaN, too.
Expr atan2(const Builder& build, const Expr& y, const Expr& x);

}  // namespace relay::frontend
