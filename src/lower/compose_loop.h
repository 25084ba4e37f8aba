// Composes a loop of the program into one kernel.
//
// before (a primitive function in A-normal form)     after
//   let %loop = fn (%i: int64, %y: Tensor[(n,)]) {     y = copy of p0
//     let %c = less(%i, %m);                           i = 0; running = 1
//     let %r = if (%c) {                               while running:
//       let %v = take(%p1, %i);                          if i < m:
//       let %z = update_slice(%y, %v, (%i,));              v = p1[i]
//       let %j = add(%i, 1i64);                            y[i] = v
//       let %t = %loop(%j, %z); %t                         i = i + 1
//     } else { %y };                                     else:
//     %r };                                                running = 0
//   let %out = %loop(0i64, %p0); %out
//
// The state of a loop is scalars in registers and tensors in memory that is written in place; what an
// iteration computes comes from the operators' compute rules, element by element where it is read.
// A join, which ends of a block call, has its parameters in registers and memory, too, and a register that says whether it was
// called; its body stands behind the block's items.
// A write is in place where nothing reads the tensor behind it, else it goes to a copy. To make that
// rare, writes come as late in an iteration as what depends on them allows.
#pragma once

#include "lower/compose.h"

namespace relay {

// A scalar constant as an immediate.
tir::PrimExpr immediate(const ConstantNode& c);

// The kernel of a loop. Its body is loops, conditions and stores, in the order in which they run: it
// is not scheduled.
ComposedKernel compose_loop(const FunctionNode& primitive, const std::string& name,
                            KernelOf what = KernelOf::result);

}  // namespace relay
