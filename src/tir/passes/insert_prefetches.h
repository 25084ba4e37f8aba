// What a loop reads next is on its way before it is needed.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A loop with the hint `prefetch` = N brings into the cache, at every iteration, the lines N bytes behind those that its
// vectors read, where the next iteration reads the next lines:
//
//   before:  for k in 0..n {prefetch: 2048}        after:  for k in 0..n {prefetch: 2048}
//              y[0:1:x16] = y[..] + w[k * 16:1:x16]           prefetch(w[k * 16 + 512])
//                                                             y[0:1:x16] = y[..] + w[k * 16:1:x16]
//
// Always legal: a prefetch behind the end of a buffer does nothing. It pays where the data come from far and an iteration
// has less to read than the processor's own prefetching follows well; elsewhere it costs the instruction. Accesses have one
// index, and unrolled loops are written out: the lines of copies are prefetched once.
PrimFunc insert_prefetches(const PrimFunc& f);

}  // namespace relay::tir
