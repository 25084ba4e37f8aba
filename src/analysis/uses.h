// How often expressions are used.
#pragma once

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

// Counts, for everything below an expression, how often it stands as a part of another. The right side of a clause is a
// part of its match. Iterative; linear. The expression outlives the counts.
class UseCounts {
 public:
  explicit UseCounts(const Expr& root);

  int of(const Expr& e) const {
    const int* count = counts_.find(e.get());
    return count == nullptr ? 0 : *count;
  }

 private:
  NodeMap<int> counts_;
};

}  // namespace relay
