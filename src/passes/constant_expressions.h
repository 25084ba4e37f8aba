// Which expressions FoldConstant will compute.
#pragma once

#include <unordered_map>

#include "ir/expr.h"

namespace relay {

// Constants, tuples of them, and pure operators on constants. Answers are kept; one instance serves
// one pass over a program.
class ConstantExpressions {
 public:
  bool contains(const Expr& e);

 private:
  std::unordered_map<const Node*, bool> known_;
};

}  // namespace relay
