// OutlineLoops: a loop of numbers becomes one kernel.
//
// before                                             after
//   let %loop = fn (%i: int64, %acc: float64) {        (fn (%p0: Tensor[(n,), float64], Primitive=1) {
//     if (less(%i, 100i64)) {                            let %loop = fn (%i: int64, %acc: float64) {
//       %loop(add(%i, 1i64),                               let %c = less(%i, 100i64);
//             add(%acc, take(%x, %i, axis=0)))             let %r = if (%c) { ... %loop(..) } else { %acc };
//     } else { %acc }                                      %r };
//   };                                                   let %out = %loop(0i64, 0f64);
//   %loop(0i64, 0f64)                                    %out })(%x)
//
// A function that calls itself in tail position only, and is called once, is a loop: of its parameters
// a kernel makes registers and memory that is written in place (lower/compose_loop.h). Loops inside, and
// loops that continue or leave one around them, are part of the same kernel.
//
// Legal: the state and what the loop captures are tensors of numbers whose sizes are numbers or have
// names; the body is pure operators, `if`, tuples and loops. Pays where each iteration computes single
// elements, rows that it takes from tensors, or, element by element, blocks whose sizes it computes. An
// iteration that computes whole tensors runs the kernels that are scheduled for them, and stays a loop
// of the virtual machine. Assertions are part of a kernel.
// Why a loop stays one is the attribute `interpreted` of its function.
// The kernel's function is in A-normal form; size expressions that do not change are its parameters.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kOutlineLoops;

// The attribute of a loop's function that says why it is no kernel.
inline constexpr const char* kInterpreted = "interpreted";

}  // namespace relay
