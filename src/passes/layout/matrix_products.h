// Which contractions a target's matrix unit does, where passes decide about operands and layouts for it.
#pragma once

#include "ir/contraction.h"
#include "target/dot_products.h"

namespace relay {

// Whether kernels of the target sum products of such factors by its matrix unit once the call's weights, the second operand,
// are packed for it: sizes but those of rows are constants, those of rows in windows at least 0, and the sum is one of rows by columns
// of which its last part fills the unit.
// `times`: as if the sum's last part was so many times as long.
bool by_matrix_unit(const CallNode& c, const Contraction& product, MatrixFactors factors,
                    const Target& target, int64_t times = 1);

// The same for instructions of vectors that multiply two bfloat16 in each lane. Sizes of images may be symbolic.
bool by_bfloat16_dot(const CallNode& c, const Contraction& product, const Target& target);

// The same for matrices of a batch, both of bfloat16, whose kernels write the second one's panels as pairs, for vectors or for the
// unit. Any size may be symbolic.
bool by_pairs_of_batch(const CallNode& c, const Contraction& product, const Target& target);

// How long the sum of such a call is in its kernel, with zeros behind so many products.
int64_t whole_sum(const CallNode& c, const Contraction& product, const Target& target,
                  int64_t terms);

// Whether the second operand is the matrix of each product of a batch, selected by index from several, as the weights of the
// expert of a group of rows. The kernel reads them where they are.
bool selects_matrices(const CallNode& c, const Contraction& product);

// Rows of the first operand, which share the weights; open ones count as one.
int64_t rows_of(const Contraction& product);

}  // namespace relay
