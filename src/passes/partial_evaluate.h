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
// are gone into, matches of known constructors and branches on known conditions are chosen,
// references of which every use is seen are no more. Nothing is computed twice, and effects keep
// their order (partial/machine.h says why that is sound, partial/unroll.h that it ends).
//
// Legal always. Loses when code grows: a function's residual code is limited to
// `relay.PartialEvaluate.max_bindings` (default 20,000 and four times the program), the evaluation
// to `relay.PartialEvaluate.max_steps` (default 1,000,000 and a hundred times the program), a loop
// over a counter to `relay.PartialEvaluate.max_unroll` (default 256) iterations. A recursion that
// exceeds a limit stays a recursion, and a function that still does stays as it was.
// A module without data types, references, closures or recursion that its entry functions reach is
// left alone: Inline and FoldConstant do what there is to do. Does not make copies of a recursive
// function for known arguments.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kPartialEvaluate;

}  // namespace relay
