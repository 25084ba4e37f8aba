// Which expressions are computed before a program runs: by FoldConstant, or once for all runs.
#pragma once

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

// Constants, prepacked inputs of the function (ir/prepack.h), tuples of these, and pure operators on
// them. Answers are kept; one instance serves one pass over a function.
class ConstantExpressions {
 public:
  explicit ConstantExpressions(const Function& f);
  bool contains(const Expr& e);
  // Whether it contains `e`, and every constant that `e` is made of holds finite numbers only. A
  // sum that is computed in another way than it is written, with factors that add up to zero, is
  // the same for these; an infinity would become NaN where it does not belong. Nothing is known of
  // the numbers of a prepacked input.
  bool contains_finite(const Expr& e);

 private:
  NodeMap<bool> known_;
};

}  // namespace relay
