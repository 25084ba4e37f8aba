// Definitions of functions move to where loops and their ends call them (fusion/outline_loops.h).
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/expr.h"
#include "ir/scope.h"

namespace relay::outline {

// The uses of a function that a Let binds.
struct Uses {
  const LetNode* let = nullptr;
  bool inside = false;                 // it calls itself
  bool in_functions = false;           // some users stand in functions that are defined behind it
  std::vector<const ExprNode*> users;  // expressions behind its definition
};

// Of the functions that a function's Lets bind.
std::unordered_map<const Node*, Uses> uses_of_functions(const ScopeTree& scopes);

// let %f = fn ...; ... %f(x) ...   becomes   ... (let %f = fn ...; %f(x)) ...
//
// where %f is a loop, and this the only call that is not its own; and
//
// let %f = fn ...; g(if (c) { %f(x) } else { .. %f(y) .. })   becomes
// g(let %f = fn ...; if (c) { %f(x) } else { .. %f(y) .. })
//
// where %f does not call itself.
Function define_where_called(const Function& f);

}  // namespace relay::outline
