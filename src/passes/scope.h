// Scopes of graph form: where each shared expression is computed.
//
// A scope is a function body, a branch of If, the right side of a clause, or a Let's body. An
// expression belongs to the innermost scope that encloses all its uses (their nearest common
// ancestor).
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/expr.h"

namespace relay {

// The scopes of one function, as a tree: scope 0 is the function's body.
struct ScopeTree {
  struct Scope {
    int parent;
    int depth;
    // The expression whose evaluation opens the scope, and the root expression inside it.
    const ExprNode* opener;
    const ExprNode* root;
  };
  std::vector<Scope> scopes;
  // Every expression below the function (patterns' and let variables included with their binder's
  // scope), by node.
  std::unordered_map<const Node*, int> scope_of;
  // Expressions in an order where operands come before their users.
  std::vector<const ExprNode*> order;

  int common(int a, int b) const;
};

// Iterative and linear but for the ancestor walks.
ScopeTree analyze_scopes(const FunctionNode& f);

}  // namespace relay
