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
// loops that continue or leave one around them, are part of the same kernel. So are joins, functions that several
// ends call and that do not call themselves; they are defined around the choice between these ends. One that is defined
// around the loops whose ends call it begins the kernel:
//
// before                                             after
//   let %rest = fn (%s: float64) { add(%s, 1f64) };    (fn (%p0: .., Primitive=1) {
//   let %loop = fn (%i: int64, %s: float64) {            let %once = fn () {
//     ... %rest(%s) ... %rest(..) ...                      let %rest = fn (%s: float64) { .. };
//   };                                                     let %loop = ..; let %r = %loop(0i64, 0f64); %r };
//   %loop(0i64, 0f64)                                    let %out = %once(); %out })(%x)
//
// Legal: the state and what the loop captures are tensors of numbers whose sizes are numbers or have
// names; the body is pure operators, `if`, tuples and loops. Pays where each iteration computes single
// elements, rows that it takes from tensors, element by element parts of tensors whose sizes have
// names, or, element by element or in sums to a number, blocks whose sizes it computes. An iteration
// that computes whole tensors runs the kernels that are scheduled for them, and stays a loop of the
// virtual machine; an end of the loops, which is reached once, may compute them element by element.
// Assertions are part of a kernel.
// Why a loop stays one is the attribute `interpreted` of its function.
// The kernel's function is in A-normal form; size expressions that do not change are its parameters.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kOutlineLoops;

// The attribute of a loop's function that says why it is no kernel.
inline constexpr const char* kInterpreted = "interpreted";

}  // namespace relay
