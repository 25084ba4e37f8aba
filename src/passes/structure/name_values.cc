#include "passes/structure/name_values.h"

#include "analysis/primitives.h"
#include "analysis/uses.h"
#include "analysis/value_order.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay {
namespace {

class Namer {
 public:
  Namer(const Function& f, const ScopeTree& scopes, const Naming& naming)
      : f_(f),
        scopes_(scopes),
        naming_(naming),
        uses_(f),
        order_(order_values(scopes, naming.flatten)),
        last_(scopes.scopes.size()) {}

  Function run() {
    for (const ExprNode* e : scopes_.order) {
      if (auto* l = as<LetNode>(e); l != nullptr && isa<FunctionNode>(l->value)) {
        named_functions_.insert(l->value.get());
      }
    }
    for (const ExprNode* e : scopes_.order) {
      if (const int* scope = scopes_.scope_of.find(e)) convert(*e, *scope);
    }
    Expr body = finish(0, f_->body);
    if (body == f_->body) return f_;
    std::vector<NodeRef> children = children_of(*f_.get());
    for (NodeRef& c : children) {
      if (c == f_->body) c = body;
    }
    return cast<FunctionNode>(with_children(f_, children));
  }

 private:
  struct Binding {
    Var var;
    Expr value;
    const LetNode* origin = nullptr;  // the Let it was, if it was one
  };

  static bool stays_inline(const ExprNode& e) { return as_primitive(&e) != nullptr; }

  // What stands for an expression as an operand.
  Expr atom(const Expr& e) const {
    const Expr* found = atoms_.find(e.get());
    return found == nullptr ? e : *found;
  }

  // The Let chain of a scope around the atom of its root.
  Expr finish(int scope, const Expr& root) {
    Expr body = atom(root);
    const auto& values = order_.of_scope[static_cast<size_t>(scope)];
    for (auto it = values.rbegin(); it != values.rend(); ++it) {
      const Binding* b = bindings_.find(*it);
      if (b == nullptr) continue;
      if (b->origin != nullptr && b->origin->value == b->value && b->origin->body == body) {
        body = ref(*b->origin);
      } else {
        body = let(b->var, b->value, body, b->value->span);
      }
    }
    return body;
  }

  void convert(const ExprNode& e, int scope) {
    if (is_leaf(e) || stays_inline(e)) return;
    if (scopes_.scopes[static_cast<size_t>(scope)].primitive) return;
    const ExprNode*& last = last_[static_cast<size_t>(scope)];
    if (auto* l = as<LetNode>(&e); l != nullptr && naming_.flatten) {
      Expr value = atom(l->value);
      Binding* before = last == nullptr ? nullptr : bindings_.find(last);
      if (before != nullptr && before->var == value && uses_.of(l->value) == 1) {
        // The value was named a moment ago; it takes the Let's name instead.
        before->var = l->var;
        before->origin = l;
      } else {
        bindings_[&e] = {l->var, value, l};
        last = &e;
      }
      const ExprNode* in_body = last_[static_cast<size_t>(scopes_.opened(*l, l->body.get()))];
      if (in_body != nullptr) last = in_body;
      atoms_[&e] = atom(l->body);
      return;
    }
    std::vector<NodeRef> children = children_of(e);
    for (NodeRef& c : children) {
      if (auto* clause_node = as<ClauseNode>(c)) {
        int s = scopes_.opened(e, clause_node->rhs.get());
        Expr rhs = finish(s, clause_node->rhs);
        if (!(rhs == clause_node->rhs)) c = clause(clause_node->lhs, rhs);
        continue;
      }
      if (!isa<ExprNode>(c)) continue;
      int opened = scopes_.opened(e, c.get());
      c = opened >= 0 ? finish(opened, Expr::unchecked(c)) : atom(Expr::unchecked(c));
    }
    Expr value = cast<ExprNode>(with_children(NodeRef(&e), children));
    // A function that a Let names may refer to itself by that name, so it stays where the name is.
    if (!naming_.wanted(e) || (named_functions_.contains(&e) && uses_.of(Expr(&e)) == 1)) {
      atoms_[&e] = value;
      return;
    }
    Var name = var("x" + std::to_string(next_++), value->type, e.span);
    bindings_[&e] = {name, value, nullptr};
    last = &e;
    atoms_[&e] = name;
  }

  const Function& f_;
  const ScopeTree& scopes_;
  const Naming& naming_;
  UseCounts uses_;
  ValueOrder order_;
  NodeMap<Binding> bindings_;
  std::vector<const ExprNode*> last_;  // by scope: the last expression with a binding
  // Functions that are a Let's value.
  NodeSet named_functions_;
  NodeMap<Expr> atoms_;
  int next_ = 1;
};

}  // namespace

Function name_values(const Function& f, const ScopeTree& scopes, const Naming& naming) {
  return Namer(f, scopes, naming).run();
}

}  // namespace relay
