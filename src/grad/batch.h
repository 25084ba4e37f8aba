// Batching: a function of one lane becomes one of many.
//
//   fn (%x: Tensor[(3), float32], %w: Tensor[(4, 3), float32]) { sum(nn.dense(%x, %w)) }
//
//   fn (%x: Tensor[(8, 3), float32], %w: Tensor[(4, 3), float32]) {          in_axes (0, None)
//     sum(nn.dense(%x, %w), axis=[1]) }
//
// Only what depends on the lane is batched (batch_analysis.h). Operators say themselves what they do
// with lanes: sums of products by the roles of their dimensions, others by broadcasting or by the
// column `batching` of their row. A branch on a batched condition becomes a selection where both sides
// are pure, and a function that calls itself in tail position goes on, with a mask, until its last
// lane is done. What is left runs in a loop over the lanes, and is reported. The result is an ordinary
// program: batched or differentiated again.
#pragma once

#include "grad/batch_analysis.h"

namespace relay {

struct Batched {
  Module module;  // the functions and data types that it needs, besides those of the program
  Function function;
  std::vector<LaneByLane> lane_by_lane;
};

struct BatchOptions {
  // For each parameter; left out, `in_axis` is for all of them.
  std::optional<std::vector<BatchAxes>> in_axes = {};
  BatchAxes in_axis = {};
  BatchAxes out_axes = {};
  // How many lanes there are; null: a size named by the function that is made.
  Dim lanes = nullptr;
  // Nothing is computed lane by lane.
  bool strict = false;
};

// `entry` names a function of a module in A-normal form without operators that are written in others.
// Throws UserError E1101 for an axis that does not exist, E1103 when nothing has lanes, E1104 for what
// is computed lane by lane where that is not wanted, E1105 for lanes whose results cannot be stacked,
// E1106 for what cannot be batched.
Batched batch(const Module& mod, const std::string& entry, const BatchOptions& options);

}  // namespace relay
