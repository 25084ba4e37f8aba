// The items of a group wait for each other where one reads what another has written.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Puts barrier() in front of a phase (tir/thread_nests.h) that accesses memory of the group, or of the kernel, which a
// phase since the last barrier has accessed, unless both only read. The end of a loop's body is followed by its start.
//
//   before:  for k in range(8):                              after:  for k in range(8):
//              for c in thread_bound(16, threadIdx.x):                 barrier()
//                tile[c] = a[k * 16 + c]                               for c in thread_bound(16, threadIdx.x):
//              for t in thread_bound(16, threadIdx.x):                   tile[c] = a[k * 16 + c]
//                acc[t, 0] = acc[t, 0] + tile[15 - t]                  barrier()
//                                                                      for t in thread_bound(16, threadIdx.x): ...
//
// All items evaluate the bounds, conditions and bindings around phases, and wait there as for a phase. Barriers stand
// outside of loops over items and of conditions on memory, so all items of a group reach each of them. Registers need
// none. Barriers that stand there already count. Whole buffers are compared: phases that access different parts of one wait,
// too, unless these are buffers that take turns in a pipelined loop (tir/passes/pipeline_loops.h). Always legal.
PrimFunc insert_barriers(const PrimFunc& f);

}  // namespace relay::tir
