// JoinKernels: small element-wise kernels of a loop that follow one another become one kernel with several results.
//
// before                                           after
//   let %a = (fn (%p) { sigmoid(%p) })(%x);          let %j = (fn (%p, %q) {
//   let %b = (fn (%p, %q) {                              %0 = sigmoid(%p);
//     multiply(%p, %q) })(%a, %c);                       %1 = multiply(%0, %q);
//   let %d = (fn (%p) { tanh(%p) })(%b);                 (%0, tanh(%1)) })(%x, %c);
//   @step(%a, %d)                                    let %a = %j.0;
//                                                    let %d = %j.1;
//                                                    @step(%a, %d)
//
// FuseOps makes a kernel for each value that several others read; where these are as small as the state of a recurrent
// cell, what lies between two kernels costs as much as they do, and what only moves elements (a line that `take` reads,
// parts that `concatenate` puts together) is work of its own. Inside one kernel moves are where they are read.
// Legal: pure operators of which each element depends on one element of each operand. A kernel is called earlier, where
// all that it reads is known, or later than it was, where nothing in between reads its value or has an effect.
// Pays in functions that call themselves, for small tensors, and for those of symbolic sizes that are not known to be large:
// larger ones have threads of their own.
// Leaves alone: views, updates in place, sums, kernels of a device or of other generators, branches and calls.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kJoinKernels;

}  // namespace relay
