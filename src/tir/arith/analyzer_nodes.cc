#include "tir/arith/analyzer_impl.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/arith/rules.h"
#include "tir/scalar.h"

namespace relay::tir {

PrimExpr Analyzer::Impl::simplify_node(const PrimExpr& e) {
  switch (e->kind()) {
    case ExprKind::Binary: {
      auto* b = as<BinaryNode>(e);
      return simplify_binary(b->op, b->a, b->b);
    }
    case ExprKind::Not:
      return simplify_folded(logical_not(as<NotNode>(e)->a));
    case ExprKind::Select: {
      auto* s = as<SelectNode>(e);
      return by_rules(select(s->cond, s->true_value, s->false_value));
    }
    case ExprKind::Cast: {
      auto* c = as<CastNode>(e);
      return by_rules(cast(c->dtype, c->value));
    }
    case ExprKind::Call: {
      auto* c = as<CallNode>(e);
      if (c->name == "likely" && as_int(c->args[0])) return intern(c->args[0]);
      return intern(e);
    }
    case ExprKind::Ramp: {
      auto* r = as<RampNode>(e);
      return intern(ramp(r->base, r->stride, r->dtype.lanes));
    }
    case ExprKind::Load: {
      auto* l = as<LoadNode>(e);
      if (l->predicate && as_int(l->predicate) == 1) return intern(load(l->buffer, l->indices));
      return intern(e);
    }
    default:
      return intern(e);
  }
}

PrimExpr Analyzer::Impl::simplify_folded(const PrimExpr& e) {
  if (auto* b = as<BinaryNode>(e)) return simplify_binary(b->op, b->a, b->b);
  return intern(e);
}

PrimExpr Analyzer::Impl::by_rules(const PrimExpr& e) {
  PrimExpr at = intern(e);
  for (int round = 0; round < 4; ++round) {
    PrimExpr next = apply_rules(at);
    if (!next) break;
    at = intern(next);
  }
  return at;
}

PrimExpr Analyzer::Impl::simplify_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  if (!a->dtype.is_scalar()) {
    if (PrimExpr v = simplify_vector(op, a, b)) return v;
    return make_binary(op, a, b);
  }
  if (a->dtype == kIndex) {
    if (PrimExpr v = simplify_index(op, a, b)) return v;
  }
  return by_rules(binary(op, a, b));
}

PrimExpr Analyzer::Impl::simplify_index(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  auto c = as_int(b);
  switch (op) {
    case BinaryOp::Add:
      return sum(a, b, 1);
    case BinaryOp::Sub:
      return sum(a, b, -1);
    case BinaryOp::Mul:
      if (c) return sum(intern(index(0)), a, *c);
      if (auto k = as_int(a)) return sum(intern(index(0)), b, *k);
      return product(a, b);
    case BinaryOp::Div:
    case BinaryOp::FloorDiv:
      if (op == BinaryOp::Div && !(bounds(a).min >= 0 && bounds(b).min >= 1)) return nullptr;
      if (c && *c > 0) return floor_div_of(a, *c);
      if (PrimExpr v = c ? nullptr : symbolic_div_mod(true, a, b)) return v;
      return c && *c == 0 ? nullptr : make_binary(BinaryOp::FloorDiv, a, b);
    case BinaryOp::Mod:
    case BinaryOp::FloorMod:
      if (op == BinaryOp::Mod && !(bounds(a).min >= 0 && bounds(b).min >= 1)) return nullptr;
      if (c && *c > 0) return floor_mod_of(a, *c);
      if (PrimExpr v = c ? nullptr : symbolic_div_mod(false, a, b)) return v;
      return c && *c == 0 ? nullptr : make_binary(BinaryOp::FloorMod, a, b);
    case BinaryOp::Min:
    case BinaryOp::Max: {
      Bounds d = difference(a, b);
      if (d.max <= 0) return op == BinaryOp::Min ? a : b;
      if (d.min >= 0) return op == BinaryOp::Min ? b : a;
      return nullptr;
    }
    case BinaryOp::Eq:
    case BinaryOp::Ne:
    case BinaryOp::Lt:
    case BinaryOp::Le:
    case BinaryOp::Gt:
    case BinaryOp::Ge:
      return compare(op, a, b);
    default:
      return nullptr;
  }
}

PrimExpr Analyzer::Impl::product(const PrimExpr& a, const PrimExpr& b) {
  const PrimExpr& factor = linear(a).terms.size() == 1 && linear(a).constant == 0 ? a : b;
  const PrimExpr& other = factor == a ? b : a;
  if (linear(factor).terms.size() != 1 || linear(factor).constant != 0) return nullptr;
  auto [factor_atom, factor_k] = linear(factor).terms[0];
  Linear terms = linear(other);
  std::optional<Linear> out =
      add_scaled({}, linear(relay::ref(*factor_atom)), terms.constant, order);
  for (const auto& [atom, k] : terms.terms) {
    if (!out) return nullptr;
    PrimExpr x = relay::ref(*atom);
    PrimExpr y = relay::ref(*factor_atom);
    if (order.at(y.get()) < order.at(x.get())) std::swap(x, y);
    PrimExpr p = make_binary(BinaryOp::Mul, x, y);
    out = add_scaled(*out, linear(p), k, order);
  }
  if (out) out = add_scaled({}, *out, factor_k, order);
  if (!out) return nullptr;
  return from_linear(*out);
}

PrimExpr Analyzer::Impl::compare(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  auto diff = add_scaled(exact(a), exact(b), -1, order);
  if (!diff) return nullptr;
  Linear l = join_div_mod(std::move(*diff));
  Bounds d = linear_bounds(l);
  switch (op) {
    case BinaryOp::Eq:
    case BinaryOp::Ne: {
      bool equal = op == BinaryOp::Eq;
      if (d.min > 0 || d.max < 0) return truth(!equal);
      if (d.is_constant()) return truth(equal);
      int64_t g = gcd_of_terms(l, 0);
      if (g > 1 && l.constant % g != 0) return truth(!equal);
      break;
    }
    case BinaryOp::Lt:
      if (d.max < 0) return truth(true);
      if (d.min >= 0) return truth(false);
      break;
    case BinaryOp::Le:
      if (d.max <= 0) return truth(true);
      if (d.min > 0) return truth(false);
      break;
    case BinaryOp::Gt:
      if (d.min > 0) return truth(true);
      if (d.max <= 0) return truth(false);
      break;
    default:
      if (d.min >= 0) return truth(true);
      if (d.max < 0) return truth(false);
      break;
  }
  if (l.terms.empty() || l.constant <= Bounds::kNoMin + 1) return nullptr;
  // Bring to Lt or Ge with a positive first coefficient.
  if (op == BinaryOp::Le || op == BinaryOp::Gt) {
    l.constant -= 1;
    op = op == BinaryOp::Le ? BinaryOp::Lt : BinaryOp::Ge;
  }
  bool all_negative =
      std::all_of(l.terms.begin(), l.terms.end(), [](const auto& t) { return t.second < 0; });
  if (all_negative) {
    // -t + c < 0 is t >= c + 1; -t + c >= 0 is t < c + 1.
    auto negated = add_scaled({}, l, -1, order);
    if (!negated) return nullptr;
    l = std::move(*negated);
    if (op == BinaryOp::Lt) {
      op = BinaryOp::Ge;
      l.constant -= 1;
    } else if (op == BinaryOp::Ge) {
      op = BinaryOp::Lt;
      l.constant -= 1;
    }
  }
  if (l.constant == Bounds::kNoMin) return nullptr;
  int64_t g = gcd_of_terms(l, 0);
  if (g > 1) {
    // g*t < c is t < ceil(c / g), and the same for >=.
    int64_t c = -l.constant;
    int64_t limit = op == BinaryOp::Eq || op == BinaryOp::Ne ? c / g : -floor_div_int(-c, g);
    l = divided(l, g);
    l.constant = -limit;
  }
  // Terms that are subtracted stand on the right.
  Linear left;
  Linear right;
  right.constant = -l.constant;
  for (const auto& [atom, k] : l.terms) {
    if (k > 0) {
      left.terms.emplace_back(atom, k);
    } else {
      right.terms.emplace_back(atom, -k);
    }
  }
  if (!fits(left) || !fits(right)) return nullptr;
  return make_binary(op, from_linear(left), from_linear(right));
}

}  // namespace relay::tir
