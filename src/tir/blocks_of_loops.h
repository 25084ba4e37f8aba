// Loops around blocks, of a kernel that statements write: what a schedule can rewrite.
//
// A tensor function written in loops (`imperative` of tir/compute.h) is one block without iterations, and all its loops
// are inside. Its outer loops come out of the block where their iterations are independent:
//
//   before:  block row_sums():                        after:  for i in range(n):
//              for i in range(n):                               block row_sums(i_1 = i):
//                sums[i] = 0                                      reads x[i_1, 0:m]
//                for k in range(m):                               writes sums[i_1]
//                  sums[i] = sums[i] + x[i, k]                    sums[i_1] = 0
//                                                                 for k in range(m): ...
//
// Legal for a loop that stands directly in the block or in a loop that came out, when
// - its bounds are made of constants and of the function's sizes;
// - each of its iterations has its own elements of every buffer that the block writes: along one dimension, every index at
//   which the loop's body stores to the buffer or reads it is a constant multiple of the loop's variable (the same one for all,
//   not 0) plus terms that differ from one another by less than that constant. So nothing that an iteration writes is
//   read or written by another.
// Memory that the body allocates belongs to the iteration. The first loop for which this does not hold stays in the block, with
// all that is in it: reductions into the written element, scans along a row. What came out starts at 0 and runs over data-parallel
// iterations; a loop that was parallel stays so.
//
// It computes the same, in the same order. When checks of several iterations fail, steps on these loops may change which of
// them is reported.
#pragma once

#include <functional>

#include "base/source.h"
#include "tir/stmt.h"

namespace relay::tir {

// Where a statement comes from; empty where that is not known.
using PlaceOf = std::function<Span(const StmtNode&)>;

// The function with such loops around each block that has loops inside and no iterations. UserError E0402 when none comes out of such a
// block: it names the loop, and the access or statement that stands in the way, at its place.
PrimFunc blocks_of_loops(const PrimFunc& f, const PlaceOf& place_of = {});

}  // namespace relay::tir
