// Runs a function on what is known of its arguments and writes down what is left.
//
// An abstract machine over A-normal form (values, environments and a stack of frames of its own, so
// that the depth of a program costs no C stack). What needs data that only a run has is emitted
// into the current block, in the order in which it would be evaluated; everything else is done.
//
// Soundness at what is not known:
//   - a branch that only a run can choose is evaluated in a block of its own, on a copy of what is
//     known of references (an undo log); afterwards what any branch may have written is unknown;
//   - the body of a function that stays in the program knows nothing of the references around it,
//     since the time of its evaluation is unknown;
//   - a call that stays may write every reference that has an atom, unless purity.h says otherwise.
// A reference that is only used where its content is known never gets an atom: neither it nor its
// writes are in the residual program.
//
// Sources: Thiemann and Dussart, "Partial evaluation for higher-order languages with state" (1996)
// for references; Roesch et al., "Relay: a high-level compiler for deep learning" (2019), 4.3.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/purity.h"
#include "passes/partial/fold.h"
#include "passes/partial/unroll.h"

namespace relay::partial {

// Where one is reached, no more calls are inlined: what has begun is finished, what is left is
// emitted as it is.
struct Limits {
  // Bindings of a residual function: so many for nothing, and up to four times as many when each
  // saves something else.
  int64_t max_bindings = 0;
  // Steps taken to make it.
  int64_t max_steps = 0;
};

// What evaluating one module's functions has in common.
struct EvaluationContext {
  Module mod;  // in A-normal form
  LazyPurity& purity;
  const Folding& folding;
  Limits limits;
};

// What an evaluation did not do, and why.
struct Stop {
  std::string why;
  Span where;
};

// The function (of `program.mod`) with what is known of it done; null when there is nothing to do.
// `stops` is told where the limits ended it.
Function evaluate(const EvaluationContext& program, Unroller& unroller, const Function& f,
                  std::vector<Stop>& stops);

}  // namespace relay::partial
