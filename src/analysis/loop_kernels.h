// Kernels that are loops of the program (passes/fusion/outline_loops.h), and the sizes of their state.
//
//   fn (%p0: Tensor[(s,), int64]) {
//     let %loop = fn (%i: int64, %y: Tensor[(?,), int64]) { ... };  # %y: Tensor[(s,), int64], where each
//     let %out = %loop(0i64, %p0);                                  # iteration hands on a tensor of that size
//     %out
//   }
#pragma once

#include "ir/expr.h"

namespace relay {

// Whether a primitive function is a loop.
bool is_loop_kernel(const FunctionNode& primitive);

// Whether an operator's rule is statements that begin with a copy of its first operand and then write over parts. In a
// kernel of a loop they write in place where nothing reads the operand afterwards.
bool writes_over(const Expr& call);

// Whether a call of an operator gives a row, or another tensor, whose sizes numbers of the program decide: a kernel of a loop
// computes these with checks and arithmetic.
bool makes_open_row(const Expr& call);

// Whether a call gives a part of its first operand, which is no longer along any axis.
bool is_part(const Expr& call);

// Whether a call ends the run where a condition does not hold, and does nothing else.
bool is_assertion(const Expr& call);

// Whether what a loop carries, or gives, or a branch gives, has a size that is open. An operator's result may have one.
bool has_open_state(const Function& f);

// A function whose parameters have known or named sizes, with the sizes of all state inside in terms of these; null where one
// stays open or differs from iteration to iteration.
Function with_state_sizes(const Function& f);

}  // namespace relay
