// Loops without the conditions that hold in most of their iterations.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A serial loop is cut where the conditions of Selects and Ifs in its body become provably true:
// what comes before, the steady part, what comes after. Simplify then drops the conditions of the
// steady part, and at the border often those that are false.
//
//   before:  for i in range(10):
//              out[i] = select(i >= 1 and i < 9, a[i - 1], 0f)
//   after:   for i_head in range(1):
//              out[i_head] = select(i_head >= 1 and i_head < 9, a[i_head - 1], 0f)
//            for i = 1 .. 9:
//              out[i] = select(i >= 1 and i < 9, a[i - 1], 0f)
//            for i_tail = 9 .. 10:
//              out[i_tail] = select(i_tail >= 1 and i_tail < 9, a[i_tail - 1], 0f)
//
// A loop whose extent only a run knows is cut where `i * step + x < n` ends to hold for every x of the loops inside:
//
//   before:  for i in range((n + 15) // 16):        after:  for i in range(n // 16):
//              for k in vectorized(16):                       for k in vectorized(16):
//                if i * 16 + k < n: ...                         if i * 16 + k < n: ...
//                                                           for i_tail = n // 16 .. (n + 15) // 16: ...
//
// under an If on n > 0 where the number of first iterations is below 0 for a loop that does not run.
//
// What the loops inside do not change and sizes that a run gives decide, is asked once for all of them:
//
//   before:  for r in range(3):                     after:  for r in range(3):
//              for k in range(8):                             if i + r < n:
//                s[k] += select(i + r < n, a[..], 0f)            for k in range(8): s[k] += a[..]
//                                                             else:
//                                                               for k in range(8): s[k] += 0f
//
// Conditions are conjunctions of comparisons that are affine in the loop's variable; other
// variables count with all their values. Always legal: iterations run in the same order. It loses
// where the code outgrows the instruction cache, and therefore does nothing when the steady part
// has less than half of the iterations or when copies would exceed a fixed number of stores for
// the function. Parallel loops stay whole: each part would be a fork and a join of its own.
PrimFunc partition_loops(const PrimFunc& f);

}  // namespace relay::tir
