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

 private:
  NodeMap<bool> known_;
};

}  // namespace relay
