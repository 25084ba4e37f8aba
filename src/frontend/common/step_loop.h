// A loop over steps, as a function that calls itself.
//
//   let %loop = fn (%t, %state..., %stacked..., %invariant...) {
//     if (%t < %count) { %loop(%t + 1, next states..., update_slice(%stacked, line, %t)..., ...) }
//     else { (%state..., %stacked...) }
//   };
//   %loop(0, initial states..., zeros..., invariants...)
//
// The code does not grow with the number of steps, which a run may decide. What a step adds to a
// stacked result is written into it in place. What steps read but do not change is computed once,
// before the loop; constants stay where they are used, so that passes see them.
#pragma once

#include <functional>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

struct StepLoop {
  // How many steps there are at most, an int64; null: as many as `go` says.
  Expr count;
  // A vector of as many elements, where results are stacked; what it holds does not matter.
  Expr lines;
  std::vector<Expr> initial;
  // The stacked results that are filled from the end; as many as there are results.
  std::vector<bool> backward;
  // Whether to begin at all, a bool; null: steps do not say whether to go on.
  Expr go;
};

struct Step {
  std::vector<Expr> states;   // the next ones, of the types that they have
  std::vector<Expr> results;  // each a line of a stacked result
  Expr go = nullptr;          // whether to go on, a bool, where the loop asks
};

struct StepResults {
  std::vector<Expr> states;
  std::vector<Expr> stacked;  // along a new first axis
};

// The number of elements of a vector, an int64.
Expr length_of(const Builder& build, const Expr& vector);
// A vector of zeros as long as an axis of a tensor.
Expr zeros_along(const Builder& build, Expr e, int64_t axis);

// `step` is called for all steps together: with the number of the step (an int64), whether to go on
// (null if unused), and the states; again when a state turns out to change its size from step to
// step, which is then `?`. Results are as long as there were steps. E0505 when a state would change its
// rank or dtype.
StepResults run_steps(const Builder& build, const StepLoop& loop,
                      const std::function<Step(const Expr& t, const Expr& go,
                                               const std::vector<Expr>& states)>& step);

}  // namespace relay::frontend
