// OmitFills: what a loop writes line by line begins as memory that nothing has filled.
//
// before                                              after
//   let %z = (fn () { full(0f, shape=[32, 8]) })();     let %a = (fn (Unwritten=1) { full(..) })();
//   @loop(0i64, %z, %z, ..)                             let %b = (fn (Unwritten=1) { full(..) })();
//                                                       @loop(0i64, %a, %b, ..)
//   def @loop(%t, %x, %y, ..) {
//     if (less(%t, 32i64)) {
//       @loop(add(%t, 1i64), update_slice(%x, .., %t), update_slice(%y, .., subtract(31i64, %t)), ..)
//     } else { (%x, %y, ..) } }
//
// Equal fills are one value, so that the first step would copy it for every tensor that it writes to: the forward pass of an
// LSTM of 32 steps, 16 x 128, that keeps seven values of a step filled 256 KB and copied six times as much.
// Legal where the loop counts from 0 by ones to the number of the tensor's lines, writes one line in each step, from the
// front or from the end, and reads the tensor nowhere else: then each line is written before the tensor leaves the loop.
// Leaves alone: loops that may end before, and tensors that are not made by one kernel in front of the loop.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kOmitFills;

}  // namespace relay
