// Scopes of graph form: where each shared expression is computed.
//
// A scope is a function body, a branch of If, the right side of a clause, or a Let's body. An
// expression belongs to the innermost scope that encloses all its uses (their nearest common
// ancestor).
#pragma once

#include <functional>
#include <vector>

#include "ir/expr.h"
#include "node/node_map.h"

namespace relay {

// Nothing is evaluated for it: variables, constants, globals, operators and constructors are available everywhere, and
// belong to no scope.
bool is_leaf(const Node& n);

// The scopes of one function, as a tree: scope 0 is the function's body.
struct ScopeTree {
  struct Scope {
    int parent;
    int depth;
    // An ancestor further up, such that any ancestor is a logarithm of jumps away.
    int jump;
    // The expression whose evaluation opens the scope, and the root expression inside it.
    const ExprNode* opener;
    const ExprNode* root;
    bool primitive;  // inside a fused kernel
    // The outermost scope of the block this is part of (Lets do not end one), and of the function.
    int block;
    int function;
  };
  std::vector<Scope> scopes;
  // The scope of every expression below the function that is not a leaf.
  NodeMap<int> scope_of;
  // The first of the scopes that an expression opens; the others follow it.
  NodeMap<int> first_opened;
  // Expressions in an order where operands come before their users.
  std::vector<const ExprNode*> order;

  // The scope that an expression opens for one of its operands, negative when it opens none.
  int opened(const ExprNode& opener, const Node* operand) const;
  // The innermost scope that encloses both.
  int common(int a, int b) const;
};

// The operands of an expression; for those that are evaluated in a scope of their own, a branch
// say, `opens_scope` is true.
void for_each_operand(const ExprNode& e,
                      const std::function<void(const Expr& operand, bool opens_scope)>& visit);

// Iterative; linear but for a logarithm for each further use of a shared expression.
ScopeTree analyze_scopes(const FunctionNode& f);

}  // namespace relay
