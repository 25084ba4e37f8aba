// Vector expressions in place of vectorised loops.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// The loop's variable becomes a ramp, and what depends on it vectors of as many lanes as the loop
// has iterations. Accesses have one index (flatten_buffers).
//
//   before:  for i in vectorized(8):        after:  out[j * 8:1:x8] = a[j * 8:1:x8] * x8(b[j])
//              out[j * 8 + i] = a[j * 8 + i] * b[j]
//
// A store under a condition such as `j * 8 + i < n`, alone or beside others that all lanes share, stores in the lanes for which
// it holds; in a reduction loop, `x = x + v` adds the sum of the lanes of v. A name for what differs between lanes names a vector.
//
// Legal for data-parallel loops and reductions, which the schedule step has checked. A loop of more
// than 64 iterations or of an extent that is not constant, one whose body has another condition or
// an inner loop that depends on the lane, one around vectors of another loop that depend on it, and
// one that stores all lanes to one place becomes a serial loop.
PrimFunc vectorize_loops(const PrimFunc& f);

}  // namespace relay::tir
