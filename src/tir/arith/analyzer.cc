#include "tir/arith/analyzer.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "node/walk.h"
#include "tir/arith/rules.h"
#include "tir/scalar.h"

namespace relay::tir {
namespace {

// More terms than this are not collected: a sum of that many parts is no index.
constexpr size_t kMaxTerms = 48;
constexpr size_t kMaxFacts = 256;

// constant + sum of coefficient * atom; atoms are interned, in the order of their first appearance.
struct Linear {
  std::vector<std::pair<const PrimExprNode*, int64_t>> terms;
  int64_t constant = 0;
};

// a + k*b; empty when it overflows or grows too large.
std::optional<Linear> add_scaled(const Linear& a, const Linear& b, int64_t k,
                                 const std::unordered_map<const Node*, size_t>& order) {
  Linear out;
  int64_t scaled;
  if (__builtin_mul_overflow(b.constant, k, &scaled) ||
      __builtin_add_overflow(a.constant, scaled, &out.constant)) {
    return std::nullopt;
  }
  out.terms.reserve(a.terms.size() + b.terms.size());
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    bool take_x =
        y == b.terms.end() || (x != a.terms.end() && order.at(x->first) <= order.at(y->first));
    bool take_y = x == a.terms.end() || (y != b.terms.end() && (!take_x || x->first == y->first));
    const PrimExprNode* atom = take_x ? x->first : y->first;
    int64_t coefficient = take_x ? x->second : 0;
    if (take_y) {
      if (__builtin_mul_overflow(y->second, k, &scaled) ||
          __builtin_add_overflow(coefficient, scaled, &coefficient)) {
        return std::nullopt;
      }
      ++y;
    }
    if (take_x) ++x;
    if (coefficient != 0) out.terms.emplace_back(atom, coefficient);
  }
  if (out.terms.size() > kMaxTerms) return std::nullopt;
  return out;
}

const BinaryNode* as_binary(const Node* n, BinaryOp op) {
  auto* b = as<BinaryNode>(n);
  return b != nullptr && b->op == op ? b : nullptr;
}

}  // namespace

struct Analyzer::Impl {
  // sum(terms) <= max, terms without a constant.
  struct Fact {
    Linear sum;
    int64_t max;
  };

  // What an expression became. A sum is built only where something other than a sum uses it: a
  // chain of additions is one linear form, not one expression for each of its parts.
  struct Simplified {
    PrimExpr original;  // keeps the key alive
    PrimExpr expr;      // null while only `sum` is known
    Linear sum;
  };

  std::unordered_map<const Node*, Bounds> ranges;
  std::vector<Fact> facts;
  std::unordered_map<const Node*, Simplified> simplified;
  std::unordered_multimap<uint64_t, PrimExpr> interned;
  std::unordered_map<const Node*, size_t> order;
  std::unordered_map<const Node*, Linear> linear_forms;
  std::unordered_map<const Node*, Bounds> known_bounds;

  void forget() {
    simplified.clear();
    known_bounds.clear();
  }

  // ---- One node per expression -----------------------------------------------------------------

  static bool same_child(const NodeRef& a, const NodeRef& b) {
    if (a == b) return true;
    auto* x = as<IntImmNode>(a);
    auto* y = as<IntImmNode>(b);
    return x && y && x->value == y->value && x->dtype == y->dtype;
  }

  static uint64_t shallow_hash(const Node& n) {
    uint64_t h = static_cast<uint64_t>(n.kind());
    for (const Field& f : n.info().fields) {
      const void* at = f.in(n);
      if (f.role == Role::attribute) {
        h = hash_combine(h, f.ops->hash(at));
      } else if (f.role != Role::ignored) {
        for (size_t i = 0, count = f.ops->count(at); i < count; ++i) {
          const NodeRef& c = f.ops->get_child(at, i);
          auto* imm = as<IntImmNode>(c);
          h = hash_combine(
              h, imm ? static_cast<uint64_t>(imm->value) : reinterpret_cast<uintptr_t>(c.get()));
        }
      }
    }
    return h;
  }

  static bool shallow_equal(const Node& a, const Node& b) {
    if (a.kind() != b.kind()) return false;
    for (const Field& f : a.info().fields) {
      const void* x = f.in(a);
      const void* y = f.in(b);
      if (f.role == Role::attribute) {
        if (!f.ops->equal(x, y)) return false;
      } else if (f.role != Role::ignored) {
        size_t count = f.ops->count(x);
        if (count != f.ops->count(y)) return false;
        for (size_t i = 0; i < count; ++i) {
          if (!same_child(f.ops->get_child(x, i), f.ops->get_child(y, i))) return false;
        }
      }
    }
    return true;
  }

  PrimExpr intern(const PrimExpr& e) {
    if (order.contains(e.get())) return e;
    uint64_t h = isa<VarNode>(e) ? reinterpret_cast<uintptr_t>(e.get()) : shallow_hash(*e.get());
    if (!isa<VarNode>(e)) {
      auto [from, to] = interned.equal_range(h);
      for (auto it = from; it != to; ++it) {
        if (shallow_equal(*it->second.get(), *e.get())) return it->second;
      }
    }
    interned.emplace(h, e);
    order.emplace(e.get(), order.size());
    return e;
  }

  PrimExpr make_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    return intern(binary(op, a, b));
  }

  // ---- Linear forms
  // ------------------------------------------------------------------------------

  // `e` is simplified.
  const Linear& linear(const PrimExpr& given) {
    PrimExpr e = intern(given);
    auto it = linear_forms.find(e.get());
    if (it != linear_forms.end()) return it->second;
    Linear out;
    auto* b = as<BinaryNode>(e);
    std::optional<Linear> sum;
    if (auto c = as_int(e)) {
      out.constant = *c;
    } else {
      if (b && b->op == BinaryOp::Add) sum = add_scaled(linear(b->a), linear(b->b), 1, order);
      if (b && b->op == BinaryOp::Sub) sum = add_scaled(linear(b->a), linear(b->b), -1, order);
      if (b && b->op == BinaryOp::Mul) {
        if (auto k = as_int(b->b)) sum = add_scaled({}, linear(b->a), *k, order);
      }
      if (sum) {
        out = std::move(*sum);
      } else {
        out.terms.emplace_back(e.get(), 1);
      }
    }
    return linear_forms.emplace(e.get(), std::move(out)).first->second;
  }

  PrimExpr from_linear(const Linear& l) {
    PrimExpr e;
    auto term = [&](const PrimExprNode* atom, int64_t k) {
      return make_binary(BinaryOp::Mul, relay::ref(*atom), index(k));
    };
    for (const auto& [atom, k] : l.terms) {
      if (k > 0) e = e ? make_binary(BinaryOp::Add, e, term(atom, k)) : term(atom, k);
    }
    for (const auto& [atom, k] : l.terms) {
      if (k >= 0) continue;
      if (!e) {
        e = term(atom, k);
      } else if (k == Bounds::kNoMin) {
        e = make_binary(BinaryOp::Add, e, term(atom, k));
      } else {
        e = make_binary(BinaryOp::Sub, e, term(atom, -k));
      }
    }
    if (!e) return intern(index(l.constant));
    e = make_binary(BinaryOp::Add, e, index(l.constant));
    linear_forms.try_emplace(e.get(), l);
    return e;
  }

  // Joins (x // c) * c*k + (x %% c) * k to x * k.
  Linear join_div_mod(Linear l) {
    for (size_t round = 0; round < 8; ++round) {
      bool changed = false;
      for (const auto& [atom, k] : l.terms) {
        auto* mod = as_binary(atom, BinaryOp::FloorMod);
        if (mod == nullptr) continue;
        auto c = as_int(mod->b);
        int64_t wanted;
        if (!c || *c <= 0 || __builtin_mul_overflow(*c, k, &wanted)) continue;
        // Either x // c itself stands beside it, or its quotient is a sum of several terms.
        PrimExpr quotient = floor_div_of(mod->a, *c);
        auto joined =
            add_scaled(l, linear(relay::ref(*static_cast<const PrimExprNode*>(atom))), -k, order);
        if (!joined) continue;
        auto reduced = add_scaled(*joined, linear(quotient), -wanted, order);
        if (!reduced || reduced->terms.size() >= joined->terms.size()) continue;
        auto result = add_scaled(*reduced, linear(mod->a), k, order);
        if (!result) continue;
        l = std::move(*result);
        changed = true;
        break;
      }
      if (!changed) break;
    }
    return l;
  }

  PrimExpr sum(const PrimExpr& a, const PrimExpr& b, int64_t k) {
    auto l = add_scaled(linear(a), linear(b), k, order);
    if (!l) return nullptr;
    return from_linear(join_div_mod(std::move(*l)));
  }

  // ---- Bounds
  // --------------------------------------------------------------------------------------

  Bounds atom_bounds(const PrimExprNode* n) {
    auto it = known_bounds.find(n);
    if (it != known_bounds.end()) return it->second;
    Bounds out;
    if (auto* v = as<VarNode>(n)) {
      auto r = ranges.find(v);
      if (r != ranges.end()) out = r->second;
    } else if (auto* i = as<IntImmNode>(n)) {
      out = Bounds::exactly(i->value);
    } else if (auto* c = as<CastNode>(n)) {
      out = cast_bounds(*c);
    } else if (auto* s = as<SelectNode>(n)) {
      out = hull(bounds(s->true_value), bounds(s->false_value));
    } else if (auto* b = as<BinaryNode>(n)) {
      auto c = as_int(b->b);
      switch (b->op) {
        case BinaryOp::FloorDiv:
          if (c && *c > 0) {
            out = tir::floor_div(bounds(b->a), *c);
          } else if (Bounds x = bounds(b->a), y = bounds(b->b); x.min >= 0 && y.min >= 1) {
            out = {0, x.has_max() ? floor_div_int(x.max, y.min) : Bounds::kNoMax};
          }
          break;
        case BinaryOp::FloorMod:
          if (c && *c > 0) {
            out = {0, *c - 1};
            if (Bounds x = bounds(b->a); x.min >= 0) out.max = std::min(out.max, x.max);
          } else if (Bounds y = bounds(b->b); y.min >= 1) {
            out = {0, y.has_max() ? y.max - 1 : Bounds::kNoMax};
          }
          break;
        case BinaryOp::Min: {
          Bounds x = bounds(b->a), y = bounds(b->b);
          out = {std::min(x.min, y.min), std::min(x.max, y.max)};
          break;
        }
        case BinaryOp::Max: {
          Bounds x = bounds(b->a), y = bounds(b->b);
          out = {std::max(x.min, y.min), std::max(x.max, y.max)};
          break;
        }
        case BinaryOp::Mul:
          out = bounds(b->a) * bounds(b->b);
          break;
        default:
          break;
      }
    }
    known_bounds.emplace(n, out);
    return out;
  }

  Bounds cast_bounds(const CastNode& c) {
    DType from = c.value->dtype;
    if (from.is_bool()) return {0, 1};
    if (!from.is_integer() || from.bits >= 64) return {};
    int64_t one = 1;
    return from.is_uint() ? Bounds{0, (one << from.bits) - 1}
                          : Bounds{-(one << (from.bits - 1)), (one << (from.bits - 1)) - 1};
  }

  Bounds plain_bounds(const Linear& l) {
    Bounds out = Bounds::exactly(l.constant);
    for (const auto& [atom, k] : l.terms) out = out + atom_bounds(atom) * k;
    return out;
  }

  // The facts sharpen an upper end: l = fact + rest.
  int64_t sharper_max(const Linear& l, int64_t max) {
    for (const Fact& f : facts) {
      bool shares = false;
      for (const auto& [atom, k] : f.sum.terms) {
        for (const auto& [other, m] : l.terms) shares |= atom == other && (k > 0) == (m > 0);
      }
      if (!shares) continue;
      auto rest = add_scaled(l, f.sum, -1, order);
      if (!rest || rest->terms.size() >= l.terms.size() + 1) continue;
      Bounds r = plain_bounds(*rest) + Bounds{Bounds::kNoMin, f.max};
      max = std::min(max, r.max);
    }
    return max;
  }

  Bounds linear_bounds(const Linear& l) {
    Bounds out = plain_bounds(l);
    if (facts.empty() || l.terms.empty()) return out;
    out.max = sharper_max(l, out.max);
    if (auto negated = add_scaled({}, l, -1, order)) {
      int64_t m = sharper_max(*negated, Bounds::kNoMax);
      if (m != Bounds::kNoMax && m > Bounds::kNoMin + 1) out.min = std::max(out.min, -m);
    }
    return out;
  }

  Bounds bounds(const PrimExpr& e) {
    if (e->dtype == kIndex) return linear_bounds(linear(e));
    if (auto* i = as<IntImmNode>(e)) return Bounds::exactly(i->value);
    return {};
  }

  Bounds difference(const PrimExpr& a, const PrimExpr& b) {
    auto l = add_scaled(linear(a), linear(b), -1, order);
    return l ? linear_bounds(*l) : Bounds{};
  }

  // ---- Division
  // ------------------------------------------------------------------------------------

  // l = c*quotient + rest, where rest has the terms that c does not divide and 0 <= constant < c.
  struct Split {
    Linear quotient;
    Linear rest;
  };
  static Split split(const Linear& l, int64_t c) {
    Split s;
    for (const auto& [atom, k] : l.terms) {
      if (k % c == 0) {
        s.quotient.terms.emplace_back(atom, k / c);
      } else {
        s.rest.terms.emplace_back(atom, k);
      }
    }
    s.quotient.constant = floor_div_int(l.constant, c);
    s.rest.constant = floor_mod_int(l.constant, c);
    return s;
  }

  static int64_t gcd_of_terms(const Linear& l, int64_t c) {
    int64_t g = c;
    for (const auto& term : l.terms) g = std::gcd(g, term.second);
    return g;
  }

  static Linear divided(const Linear& l, int64_t g) {
    Linear out;
    for (const auto& [atom, k] : l.terms) out.terms.emplace_back(atom, k / g);
    out.constant = floor_div_int(l.constant, g);
    return out;
  }

  PrimExpr floor_div_of(const PrimExpr& a, int64_t c) {
    if (c == 1) return a;
    Split s = split(linear(a), c);
    Bounds r = linear_bounds(s.rest);
    if (r.has_min() && r.has_max() && floor_div_int(r.min, c) == floor_div_int(r.max, c)) {
      s.quotient.constant += floor_div_int(r.min, c);
      return from_linear(join_div_mod(s.quotient));
    }
    // floor((g*x + r) / (g*d)) = floor((x + floor(r/g)) / d)
    if (int64_t g = gcd_of_terms(s.rest, c); g > 1) {
      PrimExpr inner = floor_div_of(from_linear(divided(s.rest, g)), c / g);
      return sum(from_linear(s.quotient), inner, 1);
    }
    if (s.rest.constant == 0 && s.rest.terms.size() == 1 && s.rest.terms[0].second == 1) {
      const PrimExprNode* atom = s.rest.terms[0].first;
      if (auto* inner = as_binary(atom, BinaryOp::FloorDiv)) {
        auto d = as_int(inner->b);
        int64_t product;
        if (d && *d > 0 && !__builtin_mul_overflow(*d, c, &product)) {
          return sum(from_linear(s.quotient), floor_div_of(inner->a, product), 1);
        }
      }
      if (auto* inner = as_binary(atom, BinaryOp::FloorMod)) {
        auto m = as_int(inner->b);
        if (m && *m % c == 0) {
          return sum(from_linear(s.quotient), floor_mod_of(floor_div_of(inner->a, c), *m / c), 1);
        }
      }
    }
    PrimExpr rest = make_binary(BinaryOp::FloorDiv, from_linear(s.rest), index(c));
    if (s.quotient.terms.empty() && s.quotient.constant == 0) return rest;
    return sum(from_linear(s.quotient), rest, 1);
  }

  PrimExpr floor_mod_of(const PrimExpr& a, int64_t c) {
    if (c == 1) return intern(index(0));
    Linear rest = split(linear(a), c).rest;
    // k*(x %% m) with c dividing k*m is k*x modulo c.
    for (size_t i = 0; i < rest.terms.size(); ++i) {
      auto [atom, k] = rest.terms[i];
      auto* inner = as_binary(atom, BinaryOp::FloorMod);
      auto m = inner ? as_int(inner->b) : std::nullopt;
      int64_t product;
      if (!m || __builtin_mul_overflow(*m, k, &product) || product % c != 0) continue;
      auto replaced = add_scaled(rest, linear(relay::ref(*atom)), -k, order);
      if (replaced) replaced = add_scaled(*replaced, linear(inner->a), k, order);
      if (!replaced) continue;
      rest = split(*replaced, c).rest;
      i = static_cast<size_t>(-1);
    }
    Bounds r = linear_bounds(rest);
    if (r.has_min() && r.has_max() && floor_div_int(r.min, c) == floor_div_int(r.max, c)) {
      rest.constant -= floor_div_int(r.min, c) * c;
      return from_linear(rest);
    }
    if (int64_t g = gcd_of_terms(rest, c); g > 1) {
      PrimExpr inner = floor_mod_of(from_linear(divided(rest, g)), c / g);
      return sum(intern(index(rest.constant % g)), inner, g);
    }
    return make_binary(BinaryOp::FloorMod, from_linear(rest), index(c));
  }

  // (x*d + y) // d and its remainder for a symbolic d, where 0 <= y < d.
  PrimExpr symbolic_div_mod(bool want_div, const PrimExpr& a, const PrimExpr& d) {
    if (linear(d).terms.size() != 1 || linear(d).constant != 0 || linear(d).terms[0].second != 1) {
      return nullptr;
    }
    Linear quotient;
    Linear rest;
    rest.constant = linear(a).constant;
    for (const auto& [atom, k] : Linear(linear(a)).terms) {
      auto* product = as_binary(atom, BinaryOp::Mul);
      if (atom == d.get()) {
        quotient.constant += k;
      } else if (product && product->b == d) {
        auto sum = add_scaled(quotient, linear(product->a), k, order);
        if (!sum) return nullptr;
        quotient = std::move(*sum);
      } else if (product && product->a == d) {
        auto sum = add_scaled(quotient, linear(product->b), k, order);
        if (!sum) return nullptr;
        quotient = std::move(*sum);
      } else {
        rest.terms.emplace_back(atom, k);
      }
    }
    if (linear_bounds(rest).min < 0) return nullptr;
    auto below = add_scaled(rest, linear(d), -1, order);
    if (!below || linear_bounds(*below).max >= 0) return nullptr;
    return from_linear(want_div ? quotient : rest);
  }

  // ---- Nodes
  // -----------------------------------------------------------------------------------------

  PrimExpr simplify_node(const PrimExpr& e) {
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

  // What a builder made of simplified parts: itself a comparison, perhaps.
  PrimExpr simplify_folded(const PrimExpr& e) {
    if (auto* b = as<BinaryNode>(e)) return simplify_binary(b->op, b->a, b->b);
    return intern(e);
  }

  PrimExpr by_rules(const PrimExpr& e) {
    PrimExpr at = intern(e);
    for (int round = 0; round < 4; ++round) {
      PrimExpr next = apply_rules(at);
      if (!next) break;
      at = intern(next);
    }
    return at;
  }

  PrimExpr simplify_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    if (!a->dtype.is_scalar()) {
      if (PrimExpr v = simplify_vector(op, a, b)) return v;
      return make_binary(op, a, b);
    }
    if (a->dtype == kIndex) {
      if (PrimExpr v = simplify_index(op, a, b)) return v;
    }
    return by_rules(binary(op, a, b));
  }

  PrimExpr simplify_index(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
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

  // Of two expressions that are no constants: distributed over a sum, so that strides combine.
  PrimExpr product(const PrimExpr& a, const PrimExpr& b) {
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

  PrimExpr truth(bool v) { return intern(boolean(v)); }

  // Decided by bounds, or `terms op constant` with the terms' common factor taken out.
  PrimExpr compare(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    auto diff = add_scaled(linear(a), linear(b), -1, order);
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
    if (l.terms.empty() || l.constant == Bounds::kNoMin) return nullptr;
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
    return make_binary(op, from_linear(left), from_linear(right));
  }

  // ---- Vectors
  // -----------------------------------------------------------------------------------------

  // A vector as base + lane*stride; a broadcast has stride 0.
  struct Lanes {
    PrimExpr base;
    PrimExpr stride;
  };
  std::optional<Lanes> lanes_of(const PrimExpr& e) {
    if (auto* r = as<RampNode>(e)) return Lanes{r->base, r->stride};
    if (auto* b = as<BroadcastNode>(e)) return Lanes{b->value, imm(b->value->dtype, 0)};
    return std::nullopt;
  }

  PrimExpr make_ramp(const PrimExpr& base, const PrimExpr& stride, int lanes) {
    return intern(ramp(base, stride, lanes));
  }

  PrimExpr simplify_vector(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
    int lanes = a->dtype.lanes;
    auto x = lanes_of(a);
    auto y = lanes_of(b);
    if (!x || !y) return nullptr;
    if (isa<BroadcastNode>(a) && isa<BroadcastNode>(b)) {
      return intern(broadcast(simplify_binary(op, x->base, y->base), lanes));
    }
    if (!(a->dtype.element() == kIndex)) return nullptr;
    auto combined = [&](BinaryOp o, const PrimExpr& p, const PrimExpr& q) {
      return simplify_binary(o, p, q);
    };
    auto stride = as_int(x->stride);
    auto divisor = as_int(b);
    switch (op) {
      case BinaryOp::Add:
      case BinaryOp::Sub:
        return make_ramp(combined(op, x->base, y->base), combined(op, x->stride, y->stride), lanes);
      case BinaryOp::Mul:
        if (isa<BroadcastNode>(b)) {
          return make_ramp(combined(op, x->base, y->base), combined(op, x->stride, y->base), lanes);
        }
        if (isa<BroadcastNode>(a)) {
          return make_ramp(combined(op, x->base, y->base), combined(op, x->base, y->stride), lanes);
        }
        return nullptr;
      case BinaryOp::FloorDiv:
      case BinaryOp::FloorMod: {
        if (!divisor || *divisor <= 0 || !stride || *stride < 0) return nullptr;
        if (*stride % *divisor == 0) {
          return op == BinaryOp::FloorDiv
                     ? make_ramp(floor_div_of(x->base, *divisor), index(*stride / *divisor), lanes)
                     : intern(broadcast(floor_mod_of(x->base, *divisor), lanes));
        }
        PrimExpr first = floor_mod_of(x->base, *divisor);
        int64_t span = *stride * (lanes - 1);
        Bounds r = bounds(first);
        // The greatest remainder is lower when base and divisor share a factor.
        Modular m = modular(linear(first));
        if (m.modulus > 0) {
          int64_t g = std::gcd(m.modulus, *divisor);
          r.max = std::min(r.max, *divisor - g + floor_mod_int(m.remainder, g));
        }
        if (r.max > *divisor - 1 - span) return nullptr;
        return op == BinaryOp::FloorDiv ? intern(broadcast(floor_div_of(x->base, *divisor), lanes))
                                        : make_ramp(first, x->stride, lanes);
      }
      case BinaryOp::Lt:
      case BinaryOp::Le:
      case BinaryOp::Gt:
      case BinaryOp::Ge: {
        // Both ends decide when they agree: the difference is monotone in the lane.
        PrimExpr difference = combined(BinaryOp::Sub, x->base, y->base);
        PrimExpr step = combined(BinaryOp::Sub, x->stride, y->stride);
        PrimExpr last =
            combined(BinaryOp::Add, difference, combined(BinaryOp::Mul, step, index(lanes - 1)));
        PrimExpr zero = index(0);
        auto at_first = as_int(simplify_binary(op, difference, zero));
        auto at_last = as_int(simplify_binary(op, last, zero));
        if (at_first && at_first == at_last) return intern(imm(DType::Bool(lanes), *at_first));
        return nullptr;
      }
      default:
        return nullptr;
    }
  }

  // ---- Modular sets
  // --------------------------------------------------------------------------------------

  Modular modular(const Linear& l) {
    Modular out{0, l.constant};
    for (const auto& [atom, k] : l.terms) {
      int64_t factor = k;
      if (auto* b = as_binary(atom, BinaryOp::Mul)) {
        int64_t g = std::gcd(modular(linear(b->a)).modulus, modular(linear(b->a)).remainder);
        if (g > 1) (void)__builtin_mul_overflow(k, g, &factor);
      }
      out.modulus = std::gcd(out.modulus, factor);
    }
    if (out.modulus > 0) out.remainder = floor_mod_int(out.remainder, out.modulus);
    return out;
  }

  // ---- Facts
  // -----------------------------------------------------------------------------------------------

  // sum <= max, where the sum has a constant.
  void add_fact(Linear sum, int64_t max) {
    if (facts.size() >= kMaxFacts || sum.terms.empty()) return;
    if (__builtin_sub_overflow(max, sum.constant, &max)) return;
    sum.constant = 0;
    facts.push_back(Fact{std::move(sum), max});
  }

  void add_comparison(const BinaryNode& b) {
    if (!(b.a->dtype == kIndex)) return;
    auto ab = add_scaled(linear(b.a), linear(b.b), -1, order);
    auto ba = add_scaled(linear(b.b), linear(b.a), -1, order);
    if (!ab || !ba) return;
    if (b.op == BinaryOp::Lt) add_fact(*ab, -1);
    if (b.op == BinaryOp::Le || b.op == BinaryOp::Eq) add_fact(*ab, 0);
    if (b.op == BinaryOp::Gt) add_fact(*ba, -1);
    if (b.op == BinaryOp::Ge || b.op == BinaryOp::Eq) add_fact(*ba, 0);
  }

  // ---- Whole expressions
  // --------------------------------------------------------------------------------

  PrimExpr simplify(const PrimExpr& root) {
    std::vector<std::pair<PrimExpr, bool>> stack{{root, false}};
    while (!stack.empty()) {
      auto [e, entered] = stack.back();
      if (simplified.contains(e.get())) {
        stack.pop_back();
      } else if (isa<VarNode>(e) || isa<IntImmNode>(e)) {
        stack.pop_back();
        simplified.emplace(e.get(), Simplified{e, intern(e), {}});
      } else if (!entered) {
        stack.back().second = true;
        push_children(e, stack);
      } else {
        stack.pop_back();
        Simplified result = simplify_parts(e);
        simplified.emplace(e.get(), std::move(result));
      }
    }
    return built(simplified.at(root.get()));
  }

  static void push_children(const PrimExpr& e, std::vector<std::pair<PrimExpr, bool>>& stack) {
    if (auto* b = as<BinaryNode>(e)) {
      stack.emplace_back(b->b, false);
      stack.emplace_back(b->a, false);
      return;
    }
    std::vector<NodeRef> children = children_of(*e.get());
    for (size_t i = children.size(); i-- > 0;) {
      if (children[i] && PrimExprNode::classof(*children[i].get())) {
        stack.emplace_back(PrimExpr::unchecked(std::move(children[i])), false);
      }
    }
  }

  const PrimExpr& built(Simplified& s) {
    if (!s.expr) s.expr = from_linear(join_div_mod(std::move(s.sum)));
    return s.expr;
  }
  const Linear& linear(Simplified& s) { return s.expr ? linear(s.expr) : s.sum; }

  // The children are simplified.
  Simplified simplify_parts(const PrimExpr& e) {
    if (auto* b = as<BinaryNode>(e)) {
      Simplified& x = simplified.at(b->a.get());
      Simplified& y = simplified.at(b->b.get());
      if (e->dtype == kIndex) {
        if (auto sum = linear_binary(b->op, x, y)) return {e, nullptr, std::move(*sum)};
      }
      return {e, simplify_binary(b->op, built(x), built(y)), {}};
    }
    std::vector<NodeRef> children = children_of(*e.get());
    for (NodeRef& c : children) {
      auto it = c ? simplified.find(c.get()) : simplified.end();
      if (it != simplified.end()) c = built(it->second);
    }
    return {e, simplify_node(PrimExpr::unchecked(with_children(e, children))), {}};
  }

  std::optional<Linear> linear_binary(BinaryOp op, Simplified& x, Simplified& y) {
    switch (op) {
      case BinaryOp::Add:
        return add_scaled(linear(x), linear(y), 1, order);
      case BinaryOp::Sub:
        return add_scaled(linear(x), linear(y), -1, order);
      case BinaryOp::Mul:
        if (linear(y).terms.empty()) return add_scaled({}, linear(x), linear(y).constant, order);
        if (linear(x).terms.empty()) return add_scaled({}, linear(y), linear(x).constant, order);
        return std::nullopt;
      default:
        return std::nullopt;
    }
  }
};

Analyzer::Analyzer() : impl_(std::make_unique<Impl>()) {}
Analyzer::~Analyzer() = default;

void Analyzer::bind(const Var& var, Bounds range) {
  auto [it, fresh] = impl_->ranges.insert_or_assign(var.get(), range);
  (void)it;
  impl_->intern(var);
  if (!fresh || impl_->known_bounds.contains(var.get())) impl_->forget();
}

void Analyzer::bind(const Var& var, const PrimExpr& min, const PrimExpr& extent) {
  if (!(var->dtype == kIndex)) return;
  PrimExpr low = simplify(min);
  PrimExpr end = simplify(min + extent);
  Bounds range{impl_->bounds(low).min, impl_->bounds(end).max};
  if (range.has_max()) range.max -= 1;
  bind(var, range);
  // Symbolic ends are facts: var < end (each side of a minimum), low <= var.
  Linear v = impl_->linear(var);
  auto below = [&](const PrimExpr& limit) {
    if (as_int(limit)) return;
    if (auto l = add_scaled(v, impl_->linear(limit), -1, impl_->order)) impl_->add_fact(*l, -1);
  };
  if (auto* m = as_binary(simplify(extent).get(), BinaryOp::Min)) {
    below(simplify(min + m->a));
    below(simplify(min + m->b));
  } else {
    below(end);
  }
  if (!as_int(low)) {
    if (auto l = add_scaled(impl_->linear(low), v, -1, impl_->order)) impl_->add_fact(*l, 0);
  }
}

void Analyzer::bind_dims(const PrimFunc& f) {
  for (const Var& d : f->dims) bind(d, Bounds{0, Bounds::kNoMax});
}

Analyzer::Scope Analyzer::assume(const PrimExpr& cond) {
  size_t before = impl_->facts.size();
  std::vector<PrimExpr> parts{simplify(cond)};
  while (!parts.empty()) {
    PrimExpr p = std::move(parts.back());
    parts.pop_back();
    if (auto* c = as<CallNode>(p); c && c->name == "likely") {
      parts.push_back(c->args[0]);
    } else if (auto* b = as<BinaryNode>(p)) {
      if (b->op == BinaryOp::And) {
        parts.push_back(b->a);
        parts.push_back(b->b);
      } else {
        impl_->add_comparison(*b);
      }
    }
  }
  if (impl_->facts.size() != before) impl_->forget();
  return Scope(this, before);
}

Analyzer::Scope::~Scope() {
  if (analyzer_ == nullptr) return;
  Impl& impl = *analyzer_->impl_;
  if (impl.facts.size() > facts_) {
    impl.facts.resize(facts_);
    impl.forget();
  }
}

PrimExpr Analyzer::simplify(const PrimExpr& e) {
  if (!e) return e;
  return impl_->simplify(e);
}

bool Analyzer::can_prove(const PrimExpr& cond) { return as_int(simplify(cond)) == 1; }

Bounds Analyzer::bounds(const PrimExpr& e) { return impl_->bounds(simplify(e)); }

std::optional<int64_t> Analyzer::constant_difference(const PrimExpr& a, const PrimExpr& b) {
  return as_int(simplify(a - b));
}

Analyzer::Modular Analyzer::modular(const PrimExpr& e) {
  return impl_->modular(impl_->linear(simplify(e)));
}

}  // namespace relay::tir
