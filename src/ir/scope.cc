#include "ir/scope.h"

#include <algorithm>

#include "base/ancestors.h"
#include "node/walk.h"

namespace relay {

int ScopeTree::opened(const ExprNode& opener, const Node* operand) const {
  const int* first = first_opened.find(&opener);
  if (first == nullptr) return -1;
  for (auto i = static_cast<size_t>(*first); i < scopes.size() && scopes[i].opener == &opener;
       ++i) {
    if (scopes[i].root == operand) return static_cast<int>(i);
  }
  return -1;
}

namespace {

TreeStep step(const ScopeTree& tree, int i) {
  const ScopeTree::Scope& s = tree.scopes[static_cast<size_t>(i)];
  return {s.parent, s.depth, s.jump};
}

}  // namespace

int ScopeTree::common(int a, int b) const {
  return common_ancestor(a, b, [&](int i) { return step(*this, i); });
}

bool is_leaf(const Node& n) {
  switch (n.kind()) {
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

namespace {

// A scope inside `parent`.
int open_scope(ScopeTree& tree, int parent, const ExprNode& opener, const Expr& root) {
  const ScopeTree::Scope outer = tree.scopes[static_cast<size_t>(parent)];
  const TreeStep mine = step_below(parent, [&](int i) { return step(tree, i); });
  auto* f = as<FunctionNode>(&opener);
  bool primitive = outer.primitive || (f != nullptr && f->is_primitive());
  int self = static_cast<int>(tree.scopes.size());
  int block = isa<LetNode>(&opener) ? outer.block : self;
  int function = f == nullptr ? outer.function : self;
  tree.scopes.push_back(
      {parent, mine.depth, mine.jump, &opener, root.get(), primitive, block, function});
  return self;
}

}  // namespace

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

ScopeTree analyze_scopes(const FunctionNode& f) {
  ScopeTree tree;
  // Operands before users.
  post_order(
      ref(f),
      [&](const Node& n) {
        if (isa<ExprNode>(&n) && &n != &f) tree.order.push_back(static_cast<const ExprNode*>(&n));
      },
      family::program);
  tree.scopes.push_back({-1, 0, 0, &f, f.body.get(), f.is_primitive(), 0, 0});
  tree.scope_of.reserve(tree.order.size());
  tree.scope_of[f.body.get()] = 0;
  // Users before operands: when an expression is reached all its uses have been seen.
  for (auto it = tree.order.rbegin(); it != tree.order.rend(); ++it) {
    const ExprNode* e = *it;
    const int* found = tree.scope_of.find(e);
    if (found == nullptr) continue;
    int scope = *found;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      int use = scope;
      if (opens) {
        use = open_scope(tree, scope, *e, operand);
        auto [first, is_first] = tree.first_opened.emplace(e);
        if (is_first) first = use;
      }
      if (is_leaf(*operand)) return;
      auto [at, fresh] = tree.scope_of.emplace(operand.get());
      at = fresh ? use : tree.common(at, use);
    });
  }
  return tree;
}

}  // namespace relay
