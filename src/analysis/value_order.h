// The order in which the values of a function are computed.
//
//   add(%0, %0) with %0 = exp(%x)          %0, then the sum
//   if (%c) { %0 } else { %x }             %0 in the branch, where its only use is
//
// Each expression once, in the scope that is common to its uses (ir/scope.h), operands before users,
// effects in their order. The evaluator runs values in this order, and A-normal form, from which plans
// are made, writes it down.
#pragma once

#include <list>
#include <vector>

#include "ir/scope.h"

namespace relay {

struct ValueOrder {
  // For each scope the expressions that are computed in it. Leaves belong to no scope, unless one is
  // all of the function's body.
  std::vector<std::list<const ExprNode*>> of_scope;
};

// `flatten`: what a Let's body computes stands behind the Let in the list of the scope around it, and
// the list of the body's own scope is empty. Iterative and linear.
ValueOrder order_values(const ScopeTree& scopes, bool flatten);

}  // namespace relay
