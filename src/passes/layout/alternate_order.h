// AlternateOrder: kernels that read one large weight after another read it forwards and backwards
// in turn.
//
// before                                  after
//   let %h1 = (fn (..) { dense })(%h0, const[W]);   the same
//   let %h2 = (fn (..) { dense })(%h1, const[W]);   ... fn (.., Backward=1) ...
//   let %h3 = (fn (..) { dense })(%h2, const[W]);   the same
//
// A weight that is larger than L2 streams through it from L3 at every step of
// a recurrent network. What a kernel read last is still there: the next one, beginning with it,
// finds as much as the cache holds.
// Legal always: kernels run their outer loop in any order.
// Gains as much as L2 is faster than L3, which is little on some processors.
// Loses the compile time of a second kernel, so weights that even all caches together hold little
// of are left alone.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kAlternateOrder;

}  // namespace relay
