// FuseOps: groups operator calls into primitive functions, one kernel each.
//
// before                                  after
//   %0 = nn.dense(%x, %w);                  fn (%x, %w, %b) {
//   %1 = nn.bias_add(%0, %b);                 let-free call of
//   nn.relu(%1)                               fn (%p0, %p1, %p2, Primitive=1) {
//                                               nn.relu(nn.bias_add(nn.dense(%p0, %p1), %p2)) } }
//
// Legal: only pure operators with a fusion class below Opaque are joined, only within one scope,
// and only a set of calls through which no value leaves but the last one's (each fused call other
// than the group's root is used inside the group only; post-dominators in the sense of "Relay: A
// High-Level Compiler for Deep Learning", section 4.4). Scalars become immediates of the kernel.
// A reduction takes what is element-wise before and after it. Reductions of the same rows (the last
// axes made one long) and the element-wise operators between them are one kernel, which works row
// after row; a softmax or normalisation takes what is element-wise before it, too, and a softmax what makes its rows longer.
// An operator that is a kernel of its own, and begins with its first operand, takes that where it has no operands itself: zeros
// to which a scatter adds are not written, read and written again.
// Does not: compute a value twice to fuse it into two consumers; fuse into the inputs of another
// heavy operator; cross a tuple.
// Every operator call ends in exactly one primitive function; why a group ends where it does is in
// its attribute `fusion_reason`.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFuseOps;

}  // namespace relay
