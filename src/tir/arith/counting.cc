#include "tir/arith/counting.h"

#include "node/walk.h"

namespace relay::tir {

void Counting::add(const Stmt& body) {
  post_order_if(
      body,
      [&](const Node& n) {
        if (auto* l = as<LetStmtNode>(&n)) define(l->var, l->value);
        if (auto* f = as<ForNode>(&n)) define(f->var, f->min);
        return true;
      },
      [](const Node&) {}, family::tir_stmt);
}

bool Counting::define(const Var& var, const PrimExpr& value) {
  if (counts(value)) return true;
  if (numbers_.emplace(var.get(), var).second && known_.contains(var.get())) known_.clear();
  return false;
}

bool Counting::counts(const PrimExpr& e) {
  auto it = known_.find(e.get());
  if (it != known_.end()) return it->second.counts;
  if (isa<VarNode>(e)) return !numbers_.contains(e.get());
  if (isa<LoadNode>(e)) return false;
  post_order_if(
      e, [&](const Node& n) { return !known_.contains(&n); },
      [&](const Node& n) {
        auto& part = static_cast<const PrimExprNode&>(n);
        known_.emplace(&n, Known{relay::ref(part), of_parts(part)});
      },
      family::tir_expr);
  return known(e);
}

bool Counting::of_parts(const PrimExprNode& e) const {
  switch (e.kind()) {
    case ExprKind::IntImm:
      return true;
    case ExprKind::Var:
      return !numbers_.contains(&e);
    case ExprKind::Binary: {
      auto& b = static_cast<const BinaryNode&>(e);
      return b.op != BinaryOp::Shl && known(b.a) && known(b.b);
    }
    case ExprKind::Select: {
      auto& s = static_cast<const SelectNode&>(e);
      return known(s.true_value) && known(s.false_value);
    }
    case ExprKind::Cast: {
      auto& c = static_cast<const CastNode&>(e);
      return c.value->dtype.is_bool() || (c.value->dtype.is_integer() && known(c.value));
    }
    case ExprKind::Ramp: {
      auto& r = static_cast<const RampNode&>(e);
      return known(r.base) && known(r.stride);
    }
    case ExprKind::Broadcast:
      return known(static_cast<const BroadcastNode&>(e).value);
    default:
      return false;
  }
}

}  // namespace relay::tir
