// The discrete Fourier transform of any length, as products with small matrices of waves.
#pragma once

#include "ops/expressions.h"

namespace relay::ops {

// Complex numbers; without imaginary parts they are real.
struct ComplexExpr {
  Expr re, im;
};

// The transform of the rows of matrices (rows, n): sum over t of x[t] exp(-2 pi i k t / n), or with + and divided by n where
// it is the inverse. 16-bit floats are transformed in float32.
//
// A length that is a product n1 n2 is n1 transforms of n2 and n2 of n1 with a rotation between them (Cooley and Tukey, 1965),
// down to lengths at which a product with the matrix is faster; a large prime is a convolution of a length that is a power
// of two (Bluestein, 1970). So the work for an element grows by the sum of the factors, and no constant has more than
// about n elements.
ComplexExpr fourier(const ComplexExpr& rows, int64_t n, bool inverse);

}  // namespace relay::ops
