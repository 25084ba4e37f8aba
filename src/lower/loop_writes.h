// Whether a write to a part of a tensor may compute its elements from the tensor itself, one after the other.
//
//   for i: for j: b[k + 1 + i, k + 1 + j] = b[k + 1 + i, k + 1 + j] - b[k + 1 + i, k] * b[k, k + 1 + j]
//
// Each iteration reads the element that it writes, and elements that no iteration writes: column k and row k are outside of
// the part. Where it is so, the elements need no memory of their own before they are written.
#pragma once

#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay {

// `write`: one nest of loops around a store to `buffer`, with checks and variables, whose values do not read the buffer. The
// same with equal indices where an iteration reads the element that it writes; null where an element that is written may be
// read by another iteration, or the statements are others.
tir::Stmt with_own_elements(const tir::Stmt& write, const tir::Buffer& buffer,
                            tir::Analyzer& analyzer);

}  // namespace relay
