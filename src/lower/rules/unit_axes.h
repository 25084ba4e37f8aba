// Leaves out axes of size 1.
//
// before                                              after
//   for a in 1, b in 14169, c in 37, d in 1:            for b in 14169, c in 37:
//     y[a, b, c, d] = x[c, a, b, d]                       y[b, c] = x[c, b]
//
// Rules look at neighbouring axes and at the last one: an axis of size 1 between two that could be one, or behind the axis
// that lanes lie along, hides them. The buffers are the same memory.
#pragma once

#include "tir/stmt.h"

namespace relay {

// The kernel without the iterations of reductions over windows of one element, and their loops; a convolution with such
// windows is a product of matrices over all pixels. The kernel itself where it has none.
tir::PrimFunc without_unit_windows(const tir::PrimFunc& f);

// The kernel without data-parallel iterations of size 1 and the dimensions that they index; a block and a buffer of nothing
// else keep one. Only where some block iterates last over an axis of size 1, or elements move from one axis to another;
// contractions state their axes themselves, and parts of an attention or of minimal filtering keep theirs.
tir::PrimFunc without_unit_axes(const tir::PrimFunc& f);

}  // namespace relay
