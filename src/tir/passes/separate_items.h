// Registers of a group become registers of each of its items.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A register buffer that several phases of a group access (tir/thread_nests.h) gets an axis for each axis along which the group
// has several items, in front, and then holds what one item accesses along its own axes.
//
//   before:  allocate acc: float32[64] in register
//            for t in thread_bound(16, threadIdx.x):
//              for c in range(4):
//                acc[t * 4 + c] = 0f
//   after:   allocate acc: float32[16, 4] in register
//            for t in thread_bound(16, threadIdx.x):
//              for c in range(4):
//                acc[t, c] = 0f
//
// Along each axis, an item's elements are one run, or runs that lie equally far apart between which those of other items are,
// and all accesses depend on the items in the same way. UserError E0401 where they do not: an item would need registers of another.
PrimFunc separate_items(const PrimFunc& f);

}  // namespace relay::tir
