// Axes of which a kernel moves parts.
#pragma once

#include "tir/stmt.h"

namespace relay {

// A kernel that only moves elements and reads quotient and remainder of an axis, as a shuffle of channels does behind a change
// of layout, gets an axis for each:
//   for j in 64, l in 3136: y[j, l] = x[l, j % 4 * 16 + j // 4]
// becomes
//   for j0 in 16, j1 in 4, l in 3136: y[j0 * 4 + j1, l] = x[l, j1 * 16 + j0]
// so that neighbours along j0 are neighbours in memory. Only where one of the two reads neighbours and the last axis does not:
// such elements can be transposed in blocks. An axis whose quotient is divided again, as in space_to_depth, is split again.
//
// So does a kernel of element-wise functions with an axis of parts, as that of a tensor that is tiled:
//   for i in 300, j in 770: y[i, j] = x[i % 100, j % 70]
// becomes
//   for i in 300, j0 in 11, j1 in 70: y[i, j0 * 70 + j1] = x[i % 100, j1]
// so that lanes are neighbours. Only where a part, with the axes behind it, fills a vector and is a row of neighbours of all that
// is read.
tir::PrimFunc split_axes(const tir::PrimFunc& f);

}  // namespace relay
