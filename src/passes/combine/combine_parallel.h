// CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul: calls of one operator on
// one input become one call with their weights side by side.
//
// before                                        after
//   (nn.relu(add(nn.dense(%x, %w1), %b1)),        %0 = concatenate((%w1, %w2), axis=0);
//    nn.relu(add(nn.dense(%x, %w2), %b2)))        %1 = concatenate((%b1, %b2), axis=0);
//                                                 %2 = nn.relu(add(nn.dense(%x, %0), %1));
//                                                 (strided_slice(%2, begin=[0], end=[4], axes=[1]),
//                                                  strided_slice(%2, begin=[4], end=[7], axes=[1]))
//
// What follows in every branch alike - element by element, or with an operand that is the same for
// all or has an entry for each channel - is computed before the slices.
// Legal for calls in one scope with equal attributes whose weights agree but for the number of
// outputs, are of static shapes, and are constants or variables, so that no branch waits for
// another. Convolutions with one group.
// Pays when the weights are constants (FoldConstant then puts them side by side) and the vectors
// that all outputs together fill are at most half of those that they fill branch by branch.
// Measured with vectors of 16 lanes: three products of two columns each take 0.37 of the time
// together, of five columns 0.63; 3x3 convolutions with two to five channels 0.35 to 0.61. Where
// each branch fills its vectors by itself it loses: with packed weights one product is as good as
// three, and the slices are copies (768 columns each: 1 row +-0, 128 rows -2 %; 32 columns each,
// 128 rows: -12 %). With `min_num_branches` everything is combined, whatever it costs, that has at
// least so many.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kCombineParallelBatchMatmul;
extern const Pass kCombineParallelConv2D;
extern const Pass kCombineParallelDense;

}  // namespace relay
