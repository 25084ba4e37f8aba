// Products of the matrices of a batch in sizes that kernels have whole tiles of: zeros behind symbolic sums and columns, and odd sums.
//
// before
//   %0 = transpose(%keys, axes=[0, 2, 1]);  // [b, 64, s]
//   %1 = nn.softmax(nn.batch_matmul(%queries, %0), axis=2);
//   nn.batch_matmul(%1, %values)
// after, in panels of 32 columns
//   %0 = nn.pad(%keys, 0, pad_width=[[0, 0], [0, ceildiv(s, 32) * 32 - s], [0, 0]]);
//   %1 = nn.batch_matmul(%queries, %0, transpose_b=True);
//   %2 = nn.softmax(strided_slice(%1, begin=[0], end=[s], axes=[2]), axis=2);
//   %3 = nn.pad(%2, 0, pad_width=[[0, 0], [0, 0], [0, ceildiv(s, 32) * 32 - s]]);
//   nn.batch_matmul(%3, nn.pad(%values, 0, pad_width=[[0, 0], [0, ceildiv(s, 32) * 32 - s], [0, 0]]))
#pragma once

#include <vector>

#include "ir/contraction.h"
#include "target/target.h"

namespace relay {

// A call `by_pairs_of_batch` with its operands so padded, whose result may have columns behind those of the call. Matrices that
// were transposed are read as they were: the kernel transposes each panel.
Expr in_whole_tiles(const CallNode& c, const Contraction& product, const Target& target);

// Of the result with such operands, the columns of the call.
Expr without_padding(const Expr& product, const CallNode& c);

}  // namespace relay
