#include "tir/arith/analyzer_impl.h"

#include <algorithm>
#include <numeric>

#include "tir/scalar.h"

namespace relay::tir {

namespace {

constexpr size_t kMaxFacts = 256;

}  // namespace

Bounds Analyzer::Impl::atom_bounds(const PrimExprNode* n) {
  // A fact may say of one atom what depends on another, and back: until it is known, nothing is.
  auto [known, fresh] = known_bounds.emplace(n, Bounds{});
  if (!fresh) return known->second;
  Bounds out;
  if (auto* v = as<VarNode>(n)) {
    auto r = ranges.find(v);
    if (r != ranges.end()) out = r->second;
  } else if (auto* l = as<LoadNode>(n)) {
    auto at = elements.empty() || l->indices.size() != 1 ? std::nullopt : as_int(l->indices[0]);
    auto r = at ? elements.find({l->buffer.get(), *at}) : elements.end();
    if (r != elements.end()) out = r->second;
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
        // One end of it is known only if it does not wrap at the other.
        if (out.has_min() != out.has_max() && !counting.counts(relay::ref(*n))) out = {};
        break;
      default:
        break;
    }
  }
  for (const Fact& f : facts) {
    if (f.sum.terms.size() != 1 || f.sum.terms[0].first != n) continue;
    int64_t k = f.sum.terms[0].second;
    if (k > 0) out.max = std::min(out.max, floor_div_int(f.max, k));
    if (k < 0 && k != Bounds::kNoMin && f.max != Bounds::kNoMin) {
      // k * n <= max: n >= ceil(-max / -k).
      out.min = std::max(out.min, -floor_div_int(f.max, -k));
    }
  }
  known_bounds[n] = out;
  return out;
}

Bounds Analyzer::Impl::cast_bounds(const CastNode& c) {
  DType from = c.value->dtype;
  if (from.is_bool()) return {0, 1};
  if (!from.is_integer() || from.bits >= 64) return {};
  int64_t one = 1;
  return from.is_uint() ? Bounds{0, (one << from.bits) - 1}
                        : Bounds{-(one << (from.bits - 1)), (one << (from.bits - 1)) - 1};
}

Bounds Analyzer::Impl::plain_bounds(const Linear& l) {
  Bounds out = Bounds::exactly(l.constant);
  for (const auto& [atom, k] : l.terms) out = out + atom_bounds(atom) * k;
  return out;
}

int64_t Analyzer::Impl::sharper_max(const Linear& l, size_t first, int depth) {
  int64_t max = std::min({plain_bounds(l).max, rounded_bounds(l).max, floored_bounds(l).max});
  for (size_t i = first; i < facts.size() && depth > 0; ++i) {
    const Fact& f = facts[i];
    // A fact holds for its multiples: those that take one of its atoms out of the sum.
    int64_t tried = 0;
    for (const auto& [atom, k] : f.sum.terms) {
      for (const auto& [other, m] : l.terms) {
        if (atom != other || (k > 0) != (m > 0) || m == Bounds::kNoMin) continue;
        int64_t times = m % k == 0 ? m / k : 1;
        if (times == tried) continue;
        tried = times;
        auto rest = add_scaled(l, f.sum, -tried, order);
        if (!rest || rest->terms.size() >= l.terms.size() + 1) continue;
        Bounds r{Bounds::kNoMin, sharper_max(*rest, i + 1, depth - 1)};
        max = std::min(max, (r + Bounds{Bounds::kNoMin, f.max} * tried).max);
      }
    }
  }
  return max;
}

// x - x %% c is x // c * c, in either sign, which the bounds of x and of the remainder alone do not tell. Where the sum takes
// a remainder of that quotient, too, as of a number with several digits, its bounds are those of the next quotient.
Bounds Analyzer::Impl::rounded_bounds(const Linear& l) {
  for (const auto& [atom, k] : l.terms) {
    auto* mod = as_binary(atom, BinaryOp::FloorMod);
    auto c = mod != nullptr ? as_int(mod->b) : std::nullopt;
    if (!c || *c <= 0 || k == Bounds::kNoMin) continue;
    auto without = add_scaled(l, exact(mod->a), k, order);
    auto rest = without ? add_scaled(*without, Linear{{{atom, 1}}, 0}, -k, order) : std::nullopt;
    if (!rest || rest->terms.size() >= l.terms.size()) continue;
    const Bounds out = plain_bounds(*rest) + tir::floor_div(bounds(mod->a), *c) * *c * -k;
    int64_t of_next;
    if (__builtin_mul_overflow(*c, k, &of_next) || of_next == Bounds::kNoMin ||
        std::ranges::none_of(rest->terms, [&](const auto& term) {
          return term.second == of_next && as_binary(term.first, BinaryOp::FloorMod) != nullptr;
        })) {
      return out;
    }
    auto next = add_scaled(*rest, exact(floor_div_of(mod->a, *c)), -of_next, order);
    return next ? intersect(out, intersect(plain_bounds(*next), rounded_bounds(*next))) : out;
  }
  return {};
}

// k * (x // c), where c divides k, is (x - x %% c) * (k / c), which the bounds of the quotient alone do not tell. The
// same with y // d for x and c / d for c: a quotient of that quotient is written x // c.
Bounds Analyzer::Impl::floored_bounds(const Linear& l) {
  Bounds out;
  for (const auto& [atom, k] : l.terms) {
    auto* div = as_binary(atom, BinaryOp::FloorDiv);
    auto c = div != nullptr ? as_int(div->b) : std::nullopt;
    if (!c || *c <= 1 || k == Bounds::kNoMin) continue;
    auto without = add_scaled(l, Linear{{{atom, 1}}, 0}, -k, order);
    if (!without) continue;
    auto as_quotient_of = [&](const Linear& x, int64_t by) {
      if (by <= 1 || k % by != 0) return;
      auto rest = add_scaled(*without, x, k / by, order);
      if (!rest || rest->terms.size() >= l.terms.size()) return;
      out = intersect(out, plain_bounds(*rest) + Bounds{0, by - 1} * -(k / by));
    };
    as_quotient_of(exact(div->a), *c);
    for (const auto& term : without->terms) {
      auto* inner = as_binary(term.first, BinaryOp::FloorDiv);
      auto d = inner != nullptr && inner->a == div->a ? as_int(inner->b) : std::nullopt;
      if (d && *d > 0 && *c % *d == 0) as_quotient_of(Linear{{{term.first, 1}}, 0}, *c / *d);
    }
  }
  return out;
}

Bounds Analyzer::Impl::linear_bounds(const Linear& l) {
  Bounds out = intersect(intersect(plain_bounds(l), rounded_bounds(l)), floored_bounds(l));
  if (facts.empty() || l.terms.empty()) return out;
  out.max = std::min(out.max, sharper_max(l, 0, kMaxFactsAtOnce));
  if (auto negated = add_scaled({}, l, -1, order)) {
    int64_t m = sharper_max(*negated, 0, kMaxFactsAtOnce);
    if (m != Bounds::kNoMax && m > Bounds::kNoMin + 1) out.min = std::max(out.min, -m);
  }
  return out;
}

Bounds Analyzer::Impl::bounds(const PrimExpr& e) {
  if (e->dtype == kIndex) return linear_bounds(exact(e));
  if (auto* i = as<IntImmNode>(e)) return Bounds::exactly(i->value);
  return {};
}

Bounds Analyzer::Impl::difference(const PrimExpr& a, const PrimExpr& b) {
  auto l = add_scaled(exact(a), exact(b), -1, order);
  return l ? linear_bounds(*l) : Bounds{};
}

namespace {

// The greatest power of two that divides it: what wraps stays a multiple of it.
int64_t power_of_two_in(int64_t v) { return v & -v; }

}  // namespace

Analyzer::Modular Analyzer::Impl::modular(const PrimExpr& e) {
  const Linear& l = linear(e);
  Modular out = modular(l);
  if (out.modulus == 0 || fits(l)) return out;
  out.modulus = power_of_two_in(out.modulus);
  out.remainder = floor_mod_int(l.constant, out.modulus);
  return out;
}

Analyzer::Modular Analyzer::Impl::modular(const Linear& l) {
  Modular out{0, l.constant};
  for (const auto& [atom, k] : l.terms) {
    int64_t factor = k;
    if (auto* b = as_binary(atom, BinaryOp::Mul)) {
      const Modular of_factor = modular(b->a);
      int64_t g = std::gcd(of_factor.modulus, of_factor.remainder);
      if (!fits(*b)) g = power_of_two_in(g);
      if (g > 1) (void)__builtin_mul_overflow(k, g, &factor);
    }
    out.modulus = std::gcd(out.modulus, factor);
  }
  if (out.modulus > 0) out.remainder = floor_mod_int(out.remainder, out.modulus);
  return out;
}

void Analyzer::Impl::add_fact(Linear sum, int64_t max) {
  if (facts.size() >= kMaxFacts || sum.terms.empty()) return;
  if (__builtin_sub_overflow(max, sum.constant, &max)) return;
  sum.constant = 0;
  facts.push_back(Fact{std::move(sum), max});
}

namespace {

// b op a, said as a op b.
BinaryOp mirrored(BinaryOp op) {
  switch (op) {
    case BinaryOp::Lt:
      return BinaryOp::Gt;
    case BinaryOp::Le:
      return BinaryOp::Ge;
    case BinaryOp::Gt:
      return BinaryOp::Lt;
    case BinaryOp::Ge:
      return BinaryOp::Le;
    default:
      return op;
  }
}

}  // namespace

// What a comparison with x // c says of x itself: x // c < e where x < c * e, and only there.
void Analyzer::Impl::add_comparison_of_quotient(BinaryOp op, const PrimExpr& quotient,
                                                const PrimExpr& e) {
  auto* q = as_binary(quotient.get(), BinaryOp::FloorDiv);
  auto c = q == nullptr ? std::nullopt : as_int(q->b);
  if (!c || *c <= 0) return;
  auto bound = add_scaled({}, exact(e), *c, order);
  if (!bound) return;
  auto above = add_scaled(exact(q->a), *bound, -1, order);
  auto below = add_scaled(*bound, exact(q->a), -1, order);
  if (!above || !below) return;
  if (op == BinaryOp::Lt) add_fact(*above, -1);
  if (op == BinaryOp::Le || op == BinaryOp::Eq) add_fact(*above, *c - 1);
  if (op == BinaryOp::Gt) add_fact(*below, -*c);
  if (op == BinaryOp::Ge || op == BinaryOp::Eq) add_fact(*below, 0);
}

void Analyzer::Impl::add_comparison(const BinaryNode& b) {
  if (!(b.a->dtype == kIndex)) return;
  auto ab = add_scaled(exact(b.a), exact(b.b), -1, order);
  auto ba = add_scaled(exact(b.b), exact(b.a), -1, order);
  if (!ab || !ba) return;
  if (b.op == BinaryOp::Lt) add_fact(*ab, -1);
  if (b.op == BinaryOp::Le || b.op == BinaryOp::Eq) add_fact(*ab, 0);
  if (b.op == BinaryOp::Gt) add_fact(*ba, -1);
  if (b.op == BinaryOp::Ge || b.op == BinaryOp::Eq) add_fact(*ba, 0);
  add_comparison_of_quotient(b.op, b.a, b.b);
  add_comparison_of_quotient(mirrored(b.op), b.b, b.a);
}

}  // namespace relay::tir
