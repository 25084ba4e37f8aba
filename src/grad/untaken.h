// No NaN through branches of `where` that are not taken.
//
//   where(c, x * log(x), 0)      at x = 0 the adjoint of the product is 0, and that of x 0 * log(0)
//
// before   let %c = greater(%x, 0f); let %l = log(%x); let %p = multiply(%x, %l); where(%c, %p, 0f)
// after    let %c = greater(%x, 0f); let %m = where(%c, %x, stop_gradient(%x));
//          let %l = log(%m); let %p = multiply(%m, %l); where(%c, %p, 0f)
//
// The values are what they were, and so are the derivatives where the branch is taken. Where it is
// not, neither an adjoint nor a tangent passes the new `where`, whatever it is: so it is in derivatives
// of derivatives, too. Once gradients are taken SimplifyInference and SimplifyExpr leave %x of %m.
//
// What only branches ask for is found from the adjoints' side: of each value the elements, as a mask,
// whose adjoint can be other than 0. Masks pass through operators that work element by element, that
// move, join or part elements, or add them up, and as scalars through all. Where a value is asked for
// with another mask, operands of what may make NaN of an adjoint of 0 are masked; sums, products with
// constants and moves make none, so that a `where` over these alone changes nothing.
//
// A sum of products mixes elements: its derivative is that of one whose factors are 0 where they do
// not matter to what is asked for (grad/asked_factor.h); its values stay.
//
// before   let %p = nn.dense(%x, %w); where(%c, %p, 0f)
// after    let %k = where(%rows, %x, 0f); let %l = where(%columns, %w, 0f); let %d = nn.dense(%k, %l);
//          let %p = annotation.derivative_of(nn.dense(%x, %w), %d); where(%c, %p, 0f)
//
// In each chain of Lets (A-normal form), and in a body of operators alone. Does not see into calls of
// functions (passes/gradient/derivative_pass.cc puts in place those that it can): their arguments get no adjoint
// where nothing of their result is asked for. Does not see through other branches.
#pragma once

#include "ir/expr.h"

namespace relay {

// The identical function where there is nothing to do. Iterative; linear.
Function without_untaken(const Function& f);

}  // namespace relay
