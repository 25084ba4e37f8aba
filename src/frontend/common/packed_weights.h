// Products by weights of a few bits, packed in bytes.
#pragma once

#include "frontend/common/builder.h"

namespace relay::frontend {

// Weights of 2, 4 or 8 bits, (outputs, blocks, bytes of a block), in blocks along the inputs with a scale of its own each.
struct PackedWeights {
  Tensor packed, scales;
  // Of the blocks, as floats or packed as the weights; null for the middle of the range.
  Tensor zeros = nullptr;
  int64_t inputs = 0, outputs = 0, bits = 4, block = 0;
  int64_t accuracy_level = 0;  // of nn.contrib_dense_bits
};
// x, whose last axis is the inputs, by the weights. E0504 and E0203 for sizes that are out of range or do not fit together.
Expr packed_product(const Builder& build, const Expr& x, const PackedWeights& weights);

}  // namespace relay::frontend
