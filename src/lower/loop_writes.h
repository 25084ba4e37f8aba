// Whether a write to a part of a tensor may compute its elements from the tensor itself, one after the other.
//
//   for i: for j: b[k + 1 + i, k + 1 + j] = b[k + 1 + i, k + 1 + j] - b[k + 1 + i, k] * b[k, k + 1 + j]
//
// Each iteration reads the element that it writes, and elements that no iteration writes: column k and row k are outside of
// the part. Where it is so, the elements need no memory of their own before they are written.
//
//   for i: for j: b[1 + i, 1 + j] = b[i, 1 + j] + b[2 + i, 1 + j]
//
// reads a row that the iteration before writes. A row is written when no iteration reads it any more:
//
//   for i: for j: t[i %% 2, j] = b[i, 1 + j] + b[2 + i, 1 + j]
//          if i >= 1: for j: b[i, 1 + j] = t[(i - 1) %% 2, j]
//   ... and the last row
#pragma once

#include <functional>
#include <vector>

#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay {

// `write`: one nest of loops around a store to `buffer`, with checks and variables, whose values do not read the buffer. The
// same with equal indices where an iteration reads the element that it writes; null where an element that is written may be
// read by another iteration, or the statements are others.
tir::Stmt with_own_elements(const tir::Stmt& write, const tir::Buffer& buffer,
                            tir::Analyzer& analyzer);

// Memory of a shape; null where nothing bounds its size.
using MakeBuffer = std::function<tir::Buffer(const std::vector<tir::PrimExpr>& shape)>;

// The write with a few rows in memory of their own. Null where an iteration may read rows that are written long before, where
// the nest has no rows, or there is no such memory.
tir::Stmt with_late_rows(const tir::Stmt& write, const tir::Buffer& buffer, tir::Analyzer& analyzer,
                         const MakeBuffer& make_buffer);

// A nest whose iterations depend on none of each other: of two loops or more, on threads where it has many elements. Other
// statements stay what they are.
tir::Stmt on_threads(const tir::Stmt& nest);

}  // namespace relay
