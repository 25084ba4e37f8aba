// Batch: @main for a batch of inputs, of any size, along the first axis of every parameter.
//
// before                                   after
//   def @main(%x: Tensor[(3), float32]) {    def @main[lanes: Dim](%x: Tensor[(lanes, 3), float32]) {
//     sum(%x) }                                sum(%x, axis=[1]) }
//
// Legal always; another program than before. What is computed lane by lane is slower than a batch made by
// hand. Does not choose axes: that is for `add_batched`,
//
//   add_batched(mod, "f", {}, "g", ctx)      @g in the module: @f for a batch
//
// Operators that are written in others are written out first, and every intermediate value gets a
// name; afterwards names are gone again. Functions and data types that batching needs are added under
// names of their own.
#pragma once

#include <string>
#include <vector>

#include "grad/batch.h"
#include "passes/pass.h"

namespace relay {

extern const Pass kBatch;

// Throws UserError E0104 when the module has a function of that name, and what `batch` throws.
// `lane_by_lane` gets what is computed one lane after the other.
Module add_batched(const Module& mod, const std::string& of, const BatchOptions& options,
                   const std::string& name, PassContext& ctx,
                   std::vector<LaneByLane>* lane_by_lane = nullptr);

}  // namespace relay
