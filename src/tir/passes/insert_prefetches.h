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
// A loop with the hint `next` brings a part at each iteration of what the next iteration of a loop around reads. Of what is copied
// these are a number of lines, until there are none left; of `next_rows` rows as many lines as the iteration reads:
//
//   before:  for p in 0..8:                        after:  for p in 0..8:
//              for c in 0..64: cache[c] = w[p * 64 + c]       for c in 0..64: cache[c] = w[p * 64 + c]
//              for i in 0..16 {next: copied}: ...             for i in 0..16 {next: copied}:
//                                                               if i < 1: for l in 0..2: prefetch(w[(p + 1) * 64 + l * 32])
//                                                               ...
//   before:  for i in 0..16:                       after:  for i in 0..16:
//              for k in 0..512 {next: read, next_rows: 2}:    for k in 0..512 {next: read, next_rows: 2}:
//                y[0] += x[i * 1024 + k] * ..                   prefetch(x[(i + 1) * 1024 + k * 2])
//                y[1] += x[i * 1024 + 512 + k] * ..             y[0] += x[i * 1024 + k] * ..
//                                                               y[1] += x[i * 1024 + 512 + k] * ..
//
// Always legal: a prefetch behind the end of a buffer does nothing. It pays where the data come from far and an iteration
// has less to read than the processor's own prefetching follows well; elsewhere it costs the instruction. Accesses have one
// index, and unrolled loops are written out: the lines of copies are prefetched once.
PrimFunc insert_prefetches(const PrimFunc& f);

}  // namespace relay::tir
