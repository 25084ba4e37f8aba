// PartialEvaluate: does at compile time what the program's own structure decides.
//
// before                                              after (and DeadCodeElimination)
//   def @sum(%l: List[float32], %s: float32) {          def @main(%a: float32, %b: float32) {
//     match (%l) {                                        let %x = add(0f, %a);
//       Cons(%h, %t) => @sum(%t, add(%s, %h)),            let %y = add(%x, %b);
//       Nil => %s,                                        %y
//     }                                                 }
//   }
//   def @main(%a: float32, %b: float32) {
//     @sum(Cons(%a, Cons(%b, Nil)), 0f)
//   }
//
// Values that are known in part (tuples, data, functions, references, small constants) are
// evaluated, what depends on a run's arguments is written down in order: calls of known functions
// are inlined, matches of known constructors and branches on known conditions are chosen,
// references of which every use is seen are eliminated. Nothing is computed twice, and effects keep
// their order (partial/machine.h says why that is sound, partial/unroll.h that it ends).
//
// Legal always. Loses when code grows, so all of it is limited by what it costs:
//   - a residual function has `relay.PartialEvaluate.max_bindings` bindings for nothing (default
//     2,000 and four for each expression of the program), and up to four times as many as long as
//     each of them saves a call, a match, a branch, a reference or an operator;
//   - the evaluation takes `relay.PartialEvaluate.max_steps` (default 50,000 and fifty for each
//     expression of the program), and at most three times as many where it begins anew;
//   - a loop over a counter is unrolled `relay.PartialEvaluate.max_unroll` (default 256) times, and
//     not at all when that computes more than `relay.PartialEvaluate.max_unrolled_tensors` (default
//     96) tensors of rank 1 or more (partial/unroll.h).
// At a limit no more calls are inlined: what is done stays done, the rest is emitted as it is. A
// recursion that was being unrolled is left a recursion from the beginning if its unrolling has
// made code. The attribute `partial_evaluation` of the function says which calls, and why.
// A module without data types, references, closures or recursion that its entry functions reach is
// left alone: Inline and FoldConstant do what there is to do. Does not make copies of a recursive
// function for known arguments.
#pragma once

#include "passes/pass.h"

namespace relay {

// The attribute of a function that says what a limit kept from being done, and where.
inline constexpr const char* kPartialEvaluation = "partial_evaluation";

extern const Pass kPartialEvaluate;

}  // namespace relay
