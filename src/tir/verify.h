// What holds for every PrimFunc, checked.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Throws InternalError with the offending statement's text unless
// - every variable is bound around its uses, and not bound again inside its scope;
// - every buffer is a parameter or inside its Allocate, is accessed with as many indices as it has
//   dimensions or, flattened, with one, and inputs are not stored to;
// - dtypes and lanes of operands, indices, conditions and stored values fit together, and calls are
//   of intrinsics (tir/intrinsics.h);
// - a block has a binding for each iteration variable, and an initialisation only with a reduction;
//   its `reads` and `writes` name every buffer that its body accesses and, where the body has no
//   loops, hold every element accessed;
// - in a kernel without blocks, a matrix nest in a phase of a group is a warp's (tir/warp_nest.h).
// Takes functions at any stage, of any depth.
void verify(const PrimFunc& f);

}  // namespace relay::tir
