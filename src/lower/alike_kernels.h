// Kernels that differ only in the constant positions from which they read their inputs are one.
//
//   y[i, j] = x[i, j + 7]      ->      y[i, j] = x[i, j + min(d0, 990)],  d0 = 7
//
// The parts of a split, and the steps of a loop that was unrolled, are many such kernels: each would be scheduled and compiled by
// itself. The limit is the last position that is inside the input, so that bounds are proved as for constants; it costs nothing,
// since it is outside every loop.
// Applies to kernels of constant shapes that do not reduce, and to indices that are a constant, or an iteration and a positive
// constant: reads at position 0 and reads under a condition stay as they are.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "lower/compose.h"

namespace relay {

struct AlikeKernel {
  ComposedKernel kernel;
  std::vector<int64_t> positions;  // what the kernel's sizes are in the one that it is made of
};

// The kernel with its positions as sizes, whose names `name` gives from 0 on; nullopt where it has none.
std::optional<AlikeKernel> with_positions_as_sizes(const ComposedKernel& kernel,
                                                   const std::function<TypeVar(size_t)>& name);

}  // namespace relay
