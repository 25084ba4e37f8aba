#include "analysis/constant_expressions.h"

#include "analysis/purity.h"
#include "node/walk.h"

namespace relay {

bool ConstantExpressions::contains(const Expr& e) {
  if (const bool* known = known_.find(e.get())) return *known;
  post_order_if(
      e, [&](const Node& n) { return !known_.contains(&n); },
      [&](const Node& n) {
        bool constant = isa<ConstantNode>(&n);
        if (auto* c = as<CallNode>(&n)) {
          constant = is_pure_op_call(*c);
          for (const Expr& a : c->args) constant = constant && known_[a.get()];
        }
        if (auto* t = as<TupleNode>(&n)) {
          constant = true;
          for (const Expr& f : t->fields) constant = constant && known_[f.get()];
        }
        known_[&n] = constant;
      },
      family::expr);
  return known_[e.get()];
}

}  // namespace relay
