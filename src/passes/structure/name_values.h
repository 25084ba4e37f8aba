// Let-binds values of graph form, each in the scope where it is computed (ir/scope.h).
//
// What the conversions to A-normal form and to basic blocks have in common: operands come first,
// effects keep their order, an expression is bound once.
#pragma once

#include <functional>

#include "ir/scope.h"

namespace relay {

struct Naming {
  // Which expressions get a name; asked about those that are not a leaf and no primitive function.
  std::function<bool(const ExprNode&)> wanted;
  // A Let that is an operand joins the chain of the scope it is in, and lends its name to its
  // value.
  bool flatten = false;
};

// The function with names for what is wanted; the same handle when that changes nothing. `scopes`
// are those of `f`. Iterative and linear.
Function name_values(const Function& f, const ScopeTree& scopes, const Naming& naming);

}  // namespace relay
