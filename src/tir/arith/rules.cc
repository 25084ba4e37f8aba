#include "tir/arith/rules.h"

#include <array>
#include <unordered_map>

#include "node/walk.h"
#include "tir/access.h"

namespace relay::tir {
namespace {

std::vector<Rule> make_rules() {
  const auto& [x, y, z, p, q, c, d] = rule_vars();
  auto not_ = [](PrimExpr a) { return logical_not(a); };
  auto and_ = [](PrimExpr a, PrimExpr b) { return logical_and(a, b); };
  auto or_ = [](PrimExpr a, PrimExpr b) { return logical_or(a, b); };
  return {
      // Minimum and maximum.
      {min(min(x, y), y), min(x, y)},
      {min(min(x, y), x), min(x, y)},
      {max(max(x, y), y), max(x, y)},
      {max(max(x, y), x), max(x, y)},
      {min(max(x, y), y), y},
      {min(max(x, y), x), x},
      {max(min(x, y), y), y},
      {max(min(x, y), x), x},
      {min(min(x, c), d), min(x, min(c, d))},
      {max(max(x, c), d), max(x, max(c, d))},
      {max(min(x, c), d), d, [](int64_t a, int64_t b) { return a <= b; }},
      {min(max(x, c), d), d, [](int64_t a, int64_t b) { return a >= b; }},
      // Comparisons with a minimum or maximum.
      {lt(min(x, y), z), or_(lt(x, z), lt(y, z))},
      {lt(z, max(x, y)), or_(lt(z, x), lt(z, y))},
      {ge(min(x, y), z), and_(ge(x, z), ge(y, z))},
      // Logic.
      {and_(p, not_(p)), boolean(false)},
      {or_(p, not_(p)), boolean(true)},
      {and_(and_(p, q), q), and_(p, q)},
      {and_(and_(p, q), p), and_(p, q)},
      {or_(or_(p, q), q), or_(p, q)},
      {or_(or_(p, q), p), or_(p, q)},
      {and_(ge(x, c), ge(x, d)), ge(x, max(c, d))},
      {and_(lt(x, c), lt(x, d)), lt(x, min(c, d))},
      {and_(ge(x, c), lt(x, d)), boolean(false), [](int64_t a, int64_t b) { return a >= b; }},
      {or_(ge(x, c), lt(x, d)), boolean(true), [](int64_t a, int64_t b) { return a <= b; }},
      // Select.
      {select(not_(p), x, y), select(p, y, x)},
      {select(p, select(p, x, y), z), select(p, x, z)},
      {select(p, x, select(p, y, z)), select(p, x, z)},
      {select(p, select(q, x, y), y), select(and_(p, q), x, y)},
      {select(lt(x, y), x, y), min(x, y)},
      {select(lt(x, y), y, x), max(x, y)},
  };
}

// Matches a pattern of a few levels; recursion is bounded by the pattern.
class Match {
 public:
  bool match(const PrimExpr& pattern, const PrimExpr& e) {
    if (!(pattern->dtype == e->dtype)) return false;
    if (isa<VarNode>(pattern)) return bind(*as<VarNode>(pattern), e);
    if (pattern->kind() != e->kind()) return false;
    switch (pattern->kind()) {
      case ExprKind::Binary: {
        auto* a = as<BinaryNode>(pattern);
        auto* b = as<BinaryNode>(e);
        return a->op == b->op && match(a->a, b->a) && match(a->b, b->b);
      }
      case ExprKind::Not:
        return match(as<NotNode>(pattern)->a, as<NotNode>(e)->a);
      case ExprKind::Select: {
        auto* a = as<SelectNode>(pattern);
        auto* b = as<SelectNode>(e);
        return match(a->cond, b->cond) && match(a->true_value, b->true_value) &&
               match(a->false_value, b->false_value);
      }
      default:
        return as_int(pattern) && as_int(pattern) == as_int(e);
    }
  }

  bool holds(const Rule& rule) const {
    if (rule.condition == nullptr) return true;
    const RuleVars& v = rule_vars();
    return rule.condition(as_int(find(*v.c)).value_or(0), as_int(find(*v.d)).value_or(0));
  }

  // The result with what the variables matched, built again so that constants fold.
  PrimExpr result(const PrimExpr& e) const {
    if (auto* v = as<VarNode>(e)) return find(*v);
    if (auto* b = as<BinaryNode>(e)) return binary(b->op, result(b->a), result(b->b));
    if (auto* n = as<NotNode>(e)) return logical_not(result(n->a));
    if (auto* s = as<SelectNode>(e)) {
      return select(result(s->cond), result(s->true_value), result(s->false_value));
    }
    return e;
  }

 private:
  bool bind(const VarNode& v, const PrimExpr& e) {
    const RuleVars& vars = rule_vars();
    if ((&v == vars.c.get() || &v == vars.d.get()) && !as_int(e)) return false;
    // What p keeps from being read would be read for `p and q`.
    if (&v == vars.q.get() && has_loads(e)) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (bound_[i].first == &v) {
        return bound_[i].second == e || (as_int(e) && as_int(e) == as_int(bound_[i].second));
      }
    }
    bound_[count_++] = {&v, e};
    return true;
  }
  PrimExpr find(const VarNode& v) const {
    for (size_t i = 0; i < count_; ++i) {
      if (bound_[i].first == &v) return bound_[i].second;
    }
    return nullptr;
  }
  std::array<std::pair<const VarNode*, PrimExpr>, 7> bound_;
  size_t count_ = 0;
};

}  // namespace

const RuleVars& rule_vars() {
  static const RuleVars vars{
      var("x"), var("y"), var("z"), var("p", DType::Bool()), var("q", DType::Bool()),
      var("c"), var("d")};
  return vars;
}

std::span<const Rule> rules() {
  static const std::vector<Rule> table = make_rules();
  return table;
}

PrimExpr apply_rules(const PrimExpr& e) {
  int kind = e->kind();
  if (kind != ExprKind::Binary && kind != ExprKind::Select && kind != ExprKind::Not) return nullptr;
  auto* b = as<BinaryNode>(e);
  for (const Rule& rule : rules()) {
    if (rule.pattern->kind() != kind) continue;
    if (b != nullptr && as<BinaryNode>(rule.pattern)->op != b->op) continue;
    Match m;
    if (m.match(rule.pattern, e) && m.holds(rule)) return m.result(rule.result);
  }
  return nullptr;
}

}  // namespace relay::tir
