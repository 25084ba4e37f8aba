// ShareKernels: kernels that differ only in the place where they read or write, or in numbers that
// they compute with, become one, which is told these.
//
// before                                          after
//   let %a = (fn (%p: Tensor[(50, 8)]) {            let %a = (fn (%p: Tensor[(50, 8)], %i: int64) {
//     tanh(take(%p, 0i64, axis=0)) })(%x);            tanh(take(%p, %i, axis=0)) })(%x, 0i64);
//   let %b = (fn (%p: Tensor[(50, 8)]) {            let %b = (the same)(%x, 1i64);
//     tanh(take(%p, 1i64, axis=0)) })(%x);
//   ...                                             ...
//
// Such kernels are the steps of a loop over a counter that was written out, as loops are before
// they are differentiated, and branches that scale a value by numbers of their own. What is the same in all of them stays a
// constant.
// Legal always: a place or a number is a scalar, and a kernel reads an argument as it reads a constant.
// Pays in time to compile: the gradient of an LSTM of 50 steps has 31 kernels instead of 129
// (measured), and a sum of 500 functions of multiples of a value 41 instead of 121. A few kernels
// stay as they are: one that knows its place can be a little faster.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kShareKernels;

}  // namespace relay
