// Checks of indices that a loop of the program makes in each iteration, made once before the loop.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// An innermost loop of the program has two versions where checks in it compare values that are affine in its variable: one
// without these checks, which runs where they hold at the first and at the last iteration, and the loop as it stands.
//
//   before:  for i in range(k):                     after:  if k <= 2^40 and k - 1 + s < n and s >= 0:
//              let p = select(i + s < 0,                      for i in range(k): out[i + s] = 0
//                             i + s + n, i + s)             else:
//              check p >= 0 and p < n                         for i in range(k): ...  # as before
//              out[min(max(p, 0), n - 1)] = 0
//
// Legal: between two iterations at which a comparison of affine values holds, it holds. A loop for which the condition is
// false runs as before, so that an error comes where it came. Sums do not wrap: the number of iterations and the steps are
// part of the condition. It loses where loops of few iterations are entered often, and does nothing for those that are known
// to be short or whose body is long.
PrimFunc hoist_checks(const PrimFunc& f);

}  // namespace relay::tir
