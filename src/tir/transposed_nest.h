// Nests of two loops that move elements from columns to rows. A schedule marks them with LoopNest::Transposed; they
// mean what they say, and code generation moves blocks of elements by shuffles of vectors instead of one by one:
//
//   for row, column:
//     to[row * s + column] = from[row + column * t]
#pragma once

#include <optional>

#include "tir/stmt.h"

namespace relay::tir {

struct TransposedNest {
  const StoreNode* store = nullptr;
  const LoadNode* load = nullptr;
  int64_t rows = 1, columns = 1;
  PrimExpr to, from;            // the indices of the first elements
  PrimExpr to_step, from_step;  // the same in all of the nest
};

// Whether the loop is of such a nest.
bool in_transposed_nest(const ForNode& loop);

// After lowering: indices are flat. Nullopt when the statement is no such nest, or changes what it moves.
std::optional<TransposedNest> transposed_nest(const Stmt& nest);

}  // namespace relay::tir
