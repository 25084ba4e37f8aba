// Branches, loops and scans of a model, of which the parts are functions from values to values.
//
// Loops and scans become functions that call themselves (step_loop.h). Where a step needs its number
// while the model is imported, or a value changes its shape from step to step, the steps are written
// one after the other, if their number is known.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// A part of a model: imports it with these values for its inputs, and gives those of its outputs. It is called again
// whenever more is known of the inputs, each time for new expressions.
using Subgraph = std::function<Values(const Values& inputs)>;

// One known truth value.
std::optional<bool> constant_truth(const ValuePtr& v);
// A condition as the scalar that If takes.
Expr scalar_condition(const Builder& build, const ValuePtr& v);

// The values of the part that a condition chooses. Of a known condition only that part is imported, also where its
// results have one rank or another; both parts have as many outputs.
Values choose(const Builder& build, const ValuePtr& condition, const std::function<Values()>& yes,
              const std::function<Values()>& no);

// A loop that ends after a number of steps, when a condition says so, or at the first of both.
struct ModelLoop {
  ValuePtr count;  // how many steps at most; null: no bound
  ValuePtr go;     // whether to begin; null: yes
  Values carried;
  size_t num_stacked = 0;  // results that hold a line of each step
  // (number of the step, whether to go on, carried values) to (whether to go on, carried values, a line of each result).
  Subgraph body;
};
// The carried values after the last step, and the results. E0505 for a carried value that changes its rank or dtype, and
// for results of a loop without a count.
Values loop(const Builder& build, const ModelLoop& loop);

// A loop over the lines of tensors.
struct ModelScan {
  // (states, a line of each of `xs`) to (states, a line of each result).
  Subgraph body;
  std::vector<Expr> xs;
  std::vector<int64_t> in_axes;     // of each of `xs`, in [0, rank)
  std::vector<int64_t> in_reverse;  // not 0: from the last line to the first
  // Of each result: the axis along which its lines are stacked, which may be negative, and whether from the end.
  std::vector<int64_t> out_axes, out_reverse;
  Values states;
};
Values scan(const Builder& build, const ModelScan& scan);

}  // namespace relay::frontend
