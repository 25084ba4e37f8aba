#include "ir/scope.h"

#include <algorithm>
#include <tuple>

#include "node/walk.h"

namespace relay {

int ScopeTree::common(int a, int b) const {
  while (a != b) {
    if (scopes[a].depth >= scopes[b].depth) {
      a = scopes[a].parent;
    } else {
      b = scopes[b].parent;
    }
  }
  return a;
}

namespace {

// Leaves are at hand everywhere; they belong to no scope.
bool is_leaf(const Node* n) {
  switch (n->kind()) {
    case ExprKind::Var:
    case ExprKind::Constant:
    case ExprKind::GlobalVar:
    case ExprKind::Op:
    case ExprKind::Constructor:
      return true;
    default:
      return false;
  }
}

// The children of an expression that open a scope of their own.
void for_each_operand(const ExprNode& e,
                      const std::function<void(const Expr& operand, bool opens_scope)>& visit) {
  switch (e.kind()) {
    case ExprKind::Function:
      visit(static_cast<const FunctionNode&>(e).body, true);
      return;
    case ExprKind::If: {
      auto& n = static_cast<const IfNode&>(e);
      visit(n.cond, false);
      visit(n.true_branch, true);
      visit(n.false_branch, true);
      return;
    }
    case ExprKind::Let: {
      auto& n = static_cast<const LetNode&>(e);
      visit(n.value, false);
      visit(n.body, true);
      return;
    }
    case ExprKind::Match: {
      auto& n = static_cast<const MatchNode&>(e);
      visit(n.data, false);
      for (const Clause& c : n.clauses) visit(c->rhs, true);
      return;
    }
    default:
      for_each_child(e, [&](const NodeRef& child) {
        if (isa<ExprNode>(child)) visit(Expr::unchecked(child), false);
      });
  }
}

}  // namespace

ScopeTree analyze_scopes(const FunctionNode& f) {
  ScopeTree tree;
  // Operands before users.
  post_order(
      ref(f),
      [&](const Node& n) {
        if (isa<ExprNode>(&n) && &n != &f) tree.order.push_back(static_cast<const ExprNode*>(&n));
      },
      family::expr | family::pattern);
  tree.scopes.push_back({-1, 0, &f, f.body.get()});
  tree.scope_of[f.body.get()] = 0;
  // Users before operands: when an expression is reached all its uses have been seen.
  for (auto it = tree.order.rbegin(); it != tree.order.rend(); ++it) {
    const ExprNode* e = *it;
    auto found = tree.scope_of.find(e);
    if (found == tree.scope_of.end()) continue;
    int scope = found->second;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      int use = scope;
      if (opens) {
        tree.scopes.push_back({scope, tree.scopes[scope].depth + 1, e, operand.get()});
        use = static_cast<int>(tree.scopes.size()) - 1;
        tree.opened[{e, operand.get()}] = use;
      } else if (is_leaf(operand.get())) {
        return;
      }
      auto [at, fresh] = tree.scope_of.emplace(operand.get(), use);
      if (!fresh) at->second = tree.common(at->second, use);
    });
  }
  return tree;
}

}  // namespace relay
