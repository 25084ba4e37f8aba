// DivToMul: multiplies by the reciprocals of constant divisors.
//
// before                        after
//   divide(%x, const(8))          multiply(%x, const(0.125))
//   erf(divide(%x, const(3)))     erf(multiply(%x, const(0.333333)))
//
// Legal for float32 and float64 when every element of the divisor is a power of two, so that its
// reciprocal is exact and quotient and product are rounded from the same number; neither may be so
// large or small that a reciprocal is denormal. In front of erf, as in GELU, every other divisor of that range too: a
// relative error of its operand, here two units in the last place, is no larger in its result. With the option `inexact` for every other divisor
// of that range too: then results differ by at most two units in the last place.
// Loses nothing: a division takes several times as long as a product.
// Does not touch integers, or divisors that are found out only at run time.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDivToMul;

}  // namespace relay
