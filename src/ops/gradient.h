// What the gradients of operators are made of: calls of operators, as expressions.
//
// A gradient stands beside its operator's row. It is an ordinary program: it is typed, optimised,
// and differentiated again, so nothing here is special. Conventions where a function has no
// derivative:
//   - at a kink the derivative is that of the flat side, relu'(0) = 0, and abs'(0) = 0;
//   - clip passes the adjoint on at its bounds;
//   - elements that tie for a maximum or minimum share its adjoint in equal parts;
//   - steps (floor, sign, comparisons) have the derivative 0;
//   - where a derivative is infinite, or there is none since the function is not defined, an adjoint
//     of 0 stays 0: `where(x > 0, sqrt(x), 0)` has the gradient 0 at 0 and at -1, and not NaN.
#pragma once

#include <string>
#include <vector>

#include "ops/expressions.h"

namespace relay::ops {

using Adjoints = std::vector<Expr>;

// 0, 1, 2, ... as int64.
Expr iota(const Dim& size);
// The number of each element of `e` in row-major order, as int64, in the shape of `e`.
Expr numbered(const Expr& e);
// Undoes a move of elements: element `places[i]` of the result is the sum of the elements g[i]; the
// result has the shape of `like`.
Expr scattered(const Expr& g, const Expr& places, const Expr& like);
// The gradient of an operator that only moves elements of its first argument, or copies them: what
// it does to their numbers says where they came from. The others are what the operator chooses by.
Adjoints moved(const GradientContext& ctx);

// The identity matrix of the dtype of `like`.
Expr identity_matrix(const Dim& size, const Expr& like);
// g times the transposed matrix (in, out), along an axis: sum over o of matrix[i, o] * g[.., o, ..].
Expr along_axis(const Expr& g, int64_t axis, const Expr& matrix);

// The result does not change where the arguments change a little. What a list of adjoints leaves out
// at its end is null.
Adjoints no_change(const GradientContext& ctx);

// Throws UserError E1003: the operator has no gradient because of `why`.
[[noreturn]] void no_gradient(const GradientContext& ctx, const std::string& why,
                              const std::string& help = {});

}  // namespace relay::ops
