// Which expressions FoldConstant will compute.
#pragma once

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

// Constants, tuples of them, and pure operators on constants. Answers are kept; one instance serves
// one pass over a program.
class ConstantExpressions {
 public:
  bool contains(const Expr& e);
  // Whether it contains `e`, and every constant that `e` is made of holds finite numbers only. A
  // sum that is computed in another way than it is written, with factors that add up to zero, is
  // the same for these; an infinity would become NaN where it does not belong.
  bool contains_finite(const Expr& e);

 private:
  NodeMap<bool> known_;
};

}  // namespace relay
