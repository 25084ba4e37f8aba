// Powers by exponents that are known.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

// x to the power of a number as products, a root or a quotient, for 1, 2, 3 and, of floats, 0.5 and -1; null for other
// exponents, which the operator `power` takes.
Expr short_power(const Builder& build, const Expr& x, double exponent);

}  // namespace relay::frontend
