// Copies of a loop's body in place of the loop.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A loop marked unrolled becomes one copy of its body for each iteration; one with the hint
// `unroll` = n becomes a loop over groups of n copies, and copies for what is left;
// its other hints stay.
//
//   before:  for i in unrolled(2):
//              out[j * 2 + i] = a[i]
//   after:   out[j * 2 + 0] = a[0]
//            out[j * 2 + 1] = a[1]
//
// Always legal. Loops of more than 1024 iterations, of an extent that is not constant, or whose copies
// would make a block that compiles for seconds stay loops: the schedule's wish is then not worth the
// code. Afterwards only serial and parallel loops
// and those bound to a GPU's threads are left.
PrimFunc unroll_loops(const PrimFunc& f);

}  // namespace relay::tir
