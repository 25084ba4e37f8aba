#include "ir/scope.h"

#include <algorithm>
#include <tuple>

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

int ScopeTree::common(int a, int b) const {
  auto at = [&](int i) -> const Scope& { return scopes[static_cast<size_t>(i)]; };
  if (at(a).depth < at(b).depth) std::swap(a, b);
  while (at(a).depth > at(b).depth) {
    a = at(at(a).jump).depth >= at(b).depth ? at(a).jump : at(a).parent;
  }
  while (a != b) {
    bool far = at(a).jump != at(b).jump;
    a = far ? at(a).jump : at(a).parent;
    b = far ? at(b).jump : at(b).parent;
  }
  return a;
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

// A scope inside `parent`. Jumps are those of a skew binary list: as far as the parent's last two
// together when these are equally far, else one step (Myers, "An applicative random-access stack").
int open_scope(ScopeTree& tree, int parent, const ExprNode& opener, const Expr& root) {
  auto at = [&](int i) -> const ScopeTree::Scope& { return tree.scopes[static_cast<size_t>(i)]; };
  int jump = at(parent).jump, next = at(jump).jump;
  bool equal = at(parent).depth - at(jump).depth == at(jump).depth - at(next).depth;
  auto* f = as<FunctionNode>(&opener);
  bool primitive = at(parent).primitive || (f != nullptr && f->is_primitive());
  int self = static_cast<int>(tree.scopes.size());
  int block = isa<LetNode>(&opener) ? at(parent).block : self;
  int function = f == nullptr ? at(parent).function : self;
  tree.scopes.push_back({parent, at(parent).depth + 1, equal ? next : parent, &opener, root.get(),
                         primitive, block, function});
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
      family::expr | family::pattern);
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
