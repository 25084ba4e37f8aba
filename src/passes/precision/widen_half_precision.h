// WidenHalfPrecision: contractions of 16-bit floats are computed in float32.
//
// before                                          after
//   nn.dense(%x: float16, const(float16))         cast(nn.dense(cast(%x, float32),
//                                                               cast(const, float32)), float16)
//
// Legal always: sums of 16-bit floats are taken in float32, and products of their elements are exact there. The casts of
// constants are folded, those of values go into the kernels before and behind, so that the contraction is the float32 kernel
// with all that is known of it: packed weights, fewer products, blocked layouts.
// Where the target has a matrix unit or a dot product of bfloat16 that does the contraction, operands stay what they are and
// only the sum is of float32, if the weights will be packed for it; by a matrix unit, a float16 operand becomes two of
// bfloat16, whose sum it is, beside each other along the sum, but in convolutions with few results at a place that an
// algorithm with fewer products takes in float32. With a dot product of bfloat16, convolutions become float32 for such an algorithm
// where its products save more than the transforms of a weight at each run cost.
// The matrices of a batch with open columns get zeros behind these, up to a whole number of the kernel's panels, and the result
// is cut to the columns that there were.
// A matrix of float16 that up to four rows are multiplied with, and that half of L2 does not hold, stays float16 too: such
// rows wait for it, and kernels widen it in registers.
// Loses memory: other constant weights are twice as large, and three times as two of bfloat16.
// Does not touch the operators between contractions, which round to 16 bits as they are written.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kWidenHalfPrecision;

}  // namespace relay
