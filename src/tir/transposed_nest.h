// Nests of loops that move elements from columns to rows. A schedule marks them with LoopNest::Transposed; they
// mean what they say, and code generation moves blocks of elements by shuffles of vectors instead of one by one:
//
//   for row, column:
//     to[row * s + column] = from[row + column * t]
//
// or, where columns lie at distances of their own, as those between which a stride of a transposed convolution lies,
//
//     to[row * s + column] = from[row + f(column)]
//
// A third loop may run over a few neighbouring elements that move together, as one wider element:
//
//     to[row * s + column * n + element] = from[row * n + column * t + element]
#pragma once

#include <optional>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

struct TransposedNest {
  const StoreNode* store = nullptr;
  const LoadNode* load = nullptr;
  int64_t rows = 1, columns = 1;
  int64_t elements = 1;         // that move together
  PrimExpr to, from;            // the indices of the first elements
  PrimExpr to_step, from_step;  // the same in all of the nest
  // The index of each column's first element where they are no step apart; then `from` and `from_step` are undefined.
  std::vector<PrimExpr> from_columns = {};
};

// Whether the loop is of such a nest.
bool in_transposed_nest(const ForNode& loop);

// After lowering: indices are flat. Nullopt when the statement is no such nest, or changes what it moves.
std::optional<TransposedNest> transposed_nest(const Stmt& nest);

}  // namespace relay::tir
