// Which axis of a contraction neighbouring work items take, on devices that may be processors. Their drivers make vectors of
// neighbouring items, which should read and share neighbouring elements.
#pragma once

#include "tir/schedule/schedule.h"

namespace relay {

// The parallel axis along which neighbouring items read neighbouring elements of one operand, and the same element of the
// others: 1 is the last parallel iteration of the block, 2 the one before it. 0: there is none. Of several the one that
// leaves the fewest lanes of a vector empty.
int64_t lane_axis(const tir::Block& b);

// The axis of the contraction's first operand that a reduction runs along: a number that is larger for one whose terms lie
// nearer to each other.
size_t axis_of_reduction(const tir::Block& b, const tir::Var& iter);

}  // namespace relay
