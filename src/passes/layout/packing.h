// How weights are packed for the contraction rule of a target: the only place that chooses the width of panels. Kernels
// find the width in the layout of the weight, and so in the statement of their block (tir/block_contraction.h).
#pragma once

#include "ir/contraction.h"
#include "target/target.h"

namespace relay {

struct Packing {
  int64_t panel =
      0;  // columns that stand together; 0: none, lanes read neighbouring columns as they lie
  int64_t word =
      1;  // elements of the sum that stand beside each other, where the target multiplies words
  int64_t merged =
      1;  // groups that share a panel, with zeros for what each does not read of the others
};

// The packing of the weight, the second operand of the call. Groups whose columns fill panels are packed like one
// contraction each. Narrower groups are merged until they fill one, which only constant weights can be; or each group is a
// panel, with lanes to spare in its last vector; or there is no panel.
Packing packing(const Target& target, const CallNode& c, const Contraction& contraction,
                bool constant_weight);

}  // namespace relay
