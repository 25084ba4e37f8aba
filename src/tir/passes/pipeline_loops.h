// Copies to shared memory run ahead of the iterations that use them.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// The loops of groups that a schedule marks with LoopHints::pipeline = N begin with copies to shared memory. Each copied buffer
// becomes N buffers, which take turns: an iteration uses the one of its number modulo N, and begins the copies of N - 1
// iterations later into the one that the iteration before it has used. One barrier separates two iterations.
//
//   before:  for k in range(8):  # pipeline = 2        after:  allocate tile: float32[2, 16] in shared
//              allocate tile: float32[16] in shared            for t in thread_bound(16, threadIdx.x):
//              for t in thread_bound(16, threadIdx.x):           tile[0, t] = a[t]
//                tile[t] = a[k * 16 + t]                       for k in range(8):  # pipeline = 2
//              for u in thread_bound(16, threadIdx.x):           allocate tile_next: float32[16] in register
//                acc[u, 0] = acc[u, 0] + tile[15 - u]            barrier()
//                                                                if k + 1 < 8:
//                                                                  for t in thread_bound(16, threadIdx.x):
//                                                                    tile_next[t] = a[(k + 1) * 16 + t]
//                                                                for u in thread_bound(16, threadIdx.x):
//                                                                  acc[u, 0] = acc[u, 0] + tile[k %% 2, 15 - u]
//                                                                if k + 1 < 8:
//                                                                  for t in thread_bound(16, threadIdx.x):
//                                                                    tile[(k + 1) %% 2, t] = tile_next[t]
//
// Copies whose loop over items is a nest of kind Copy need no registers: the items begin them, end_copies() makes those of
// an iteration one lot, and wait_copies(N - 2), in front of the barrier, waits for the lot of the iteration that follows.
// Other nests of kind Copy, as those of a loop of one iteration, which is none any more, become plain phases.
//
// Runs behind separate_items, whose registers the copied elements have. Legal as Schedule::pipeline checks. It loses where the
// loop has hardly more iterations than buffers, and where the memory or the registers leave fewer groups on a multiprocessor.
PrimFunc pipeline_loops(const PrimFunc& f);

}  // namespace relay::tir
