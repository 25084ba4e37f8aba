#include "tir/arith/analyzer_impl.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "tir/scalar.h"

namespace relay::tir {

namespace {

// More terms than this are not collected: a sum of that many parts is not an index.
constexpr size_t kMaxTerms = 48;

// All int64 that an atom can be, whatever it is computed from.
Bounds range_of(const PrimExprNode* atom) {
  auto* quotient = as_binary(atom, BinaryOp::FloorDiv);
  const auto by = quotient == nullptr ? std::nullopt : as_int(quotient->b);
  if (!by || *by <= 0) return {};
  return {floor_div_int(Bounds::kNoMin, *by), floor_div_int(Bounds::kNoMax, *by)};
}

}  // namespace

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

const Linear& Analyzer::Impl::linear(const PrimExpr& given) {
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

const Linear& Analyzer::Impl::exact(const PrimExpr& given) {
  PrimExpr e = intern(given);
  const Linear& sum = linear(e);
  // Until it is known, it is not so: a fact may ask for it again.
  auto [known, fresh] = known_fits.emplace(e.get(), false);
  const bool exact = fresh ? fits(sum) : known->second;
  if (fresh) known_fits[e.get()] = exact;
  if (exact) return sum;
  return opaque_forms.try_emplace(e.get(), Linear{{{e.get(), 1}}, 0}).first->second;
}

bool Analyzer::Impl::fits(const Linear& l) {
  if (l.terms.empty() || (l.terms.size() == 1 && l.terms[0].second == 1 && l.constant == 0))
    return true;
  auto counts = [&](const std::pair<const PrimExprNode*, int64_t>& term) {
    return term.second >= -kMostFactor && term.second <= kMostFactor &&
           counting.counts(relay::ref(*term.first));
  };
  const bool small = l.constant >= -kMostCount && l.constant <= kMostCount;
  if (small && std::ranges::all_of(l.terms, counts)) return true;
  __extension__ typedef __int128 Wide;
  Wide low = l.constant, high = l.constant;
  for (const auto& term : l.terms) {
    const auto& [atom, k] = term;
    const Bounds known = atom_bounds(atom), b = intersect(known, range_of(atom));
    const bool count = counts(term);
    const bool has_low = k > 0 ? known.has_min() : known.has_max(),
               has_high = k > 0 ? known.has_max() : known.has_min();
    low += count && !has_low ? -kMostCount : Wide{k} * (k > 0 ? b.min : b.max);
    high += count && !has_high ? kMostCount : Wide{k} * (k > 0 ? b.max : b.min);
  }
  const bool below = high <= std::numeric_limits<int64_t>::max(),
             above = low >= std::numeric_limits<int64_t>::min();
  if (below && above) return true;
  // Of a number less its multiple of a constant both ends are known, even if none of the number is.
  const Bounds rest = intersect(rounded_bounds(l), floored_bounds(l));
  if (rest.has_min() && rest.has_max()) return true;
  if (facts.empty()) return false;
  if (!below && sharper_max(l, 0, kMaxFactsAtOnce) == Bounds::kNoMax) return false;
  if (above) return true;
  auto negated = add_scaled({}, l, -1, order);
  return negated && sharper_max(*negated, 0, kMaxFactsAtOnce) != Bounds::kNoMax;
}

bool Analyzer::Impl::fits(const BinaryNode& product) {
  if (counting.counts(relay::ref(product))) return true;
  // Those of the factors: a fact about the product is one about what it wrapped to.
  const Bounds b = bounds(product.a) * bounds(product.b);
  return b.has_min() && b.has_max();
}

PrimExpr Analyzer::Impl::from_linear(const Linear& l) {
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

Linear Analyzer::Impl::join_div_mod(Linear l) {
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
      auto reduced = add_scaled(*joined, exact(quotient), -wanted, order);
      if (!reduced || reduced->terms.size() >= joined->terms.size()) continue;
      auto result = add_scaled(*reduced, exact(mod->a), k, order);
      if (!result) continue;
      l = std::move(*result);
      changed = true;
      break;
    }
    if (!changed) break;
  }
  return l;
}

PrimExpr Analyzer::Impl::sum(const PrimExpr& a, const PrimExpr& b, int64_t k) {
  auto l = add_scaled(linear(a), linear(b), k, order);
  if (!l) return nullptr;
  return from_linear(join_div_mod(std::move(*l)));
}

Analyzer::Impl::Split Analyzer::Impl::split(const Linear& l, int64_t c) {
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

int64_t Analyzer::Impl::gcd_of_terms(const Linear& l, int64_t c) {
  int64_t g = c;
  for (const auto& term : l.terms) g = std::gcd(g, term.second);
  return g;
}

Linear Analyzer::Impl::divided(const Linear& l, int64_t g) {
  Linear out;
  for (const auto& [atom, k] : l.terms) out.terms.emplace_back(atom, k / g);
  out.constant = floor_div_int(l.constant, g);
  return out;
}

PrimExpr Analyzer::Impl::floor_div_of(const PrimExpr& a, int64_t c) {
  if (c == 1) return a;
  Split s = split(exact(a), c);
  if (!fits(s.rest)) return make_binary(BinaryOp::FloorDiv, a, index(c));
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

PrimExpr Analyzer::Impl::floor_mod_of(const PrimExpr& a, int64_t c) {
  if (c == 1) return intern(index(0));
  // What wraps keeps its remainder by a power of two.
  const bool wraps = (c & (c - 1)) == 0;
  Linear rest = split(wraps ? linear(a) : exact(a), c).rest;
  if (!wraps && !fits(rest)) return make_binary(BinaryOp::FloorMod, a, index(c));
  // What lies between two multiples of c is itself, less the lower one.
  auto between_multiples = [&]() -> PrimExpr {
    Bounds r = linear_bounds(rest);
    if (!r.has_min() || !r.has_max() || floor_div_int(r.min, c) != floor_div_int(r.max, c)) {
      return nullptr;
    }
    Linear out = rest;
    out.constant -= floor_div_int(r.min, c) * c;
    return from_linear(out);
  };
  // Before remainders in it, which bound it, are dropped.
  if (PrimExpr v = between_multiples()) return v;
  // k*(x %% m) with c dividing k*m is k*x modulo c.
  for (size_t i = 0; i < rest.terms.size(); ++i) {
    auto [atom, k] = rest.terms[i];
    auto* inner = as_binary(atom, BinaryOp::FloorMod);
    auto m = inner ? as_int(inner->b) : std::nullopt;
    int64_t product;
    if (!m || __builtin_mul_overflow(*m, k, &product) || product % c != 0) continue;
    auto replaced = add_scaled(rest, linear(relay::ref(*atom)), -k, order);
    if (replaced) replaced = add_scaled(*replaced, exact(inner->a), k, order);
    if (!replaced) continue;
    Linear next = split(*replaced, c).rest;
    if (!wraps && !fits(next)) continue;
    rest = std::move(next);
    i = static_cast<size_t>(-1);
  }
  if (PrimExpr v = between_multiples()) return v;
  if (int64_t g = gcd_of_terms(rest, c); g > 1) {
    PrimExpr inner = floor_mod_of(from_linear(divided(rest, g)), c / g);
    return sum(intern(index(rest.constant % g)), inner, g);
  }
  return make_binary(BinaryOp::FloorMod, from_linear(rest), index(c));
}

PrimExpr Analyzer::Impl::symbolic_div_mod(bool want_div, const PrimExpr& a, const PrimExpr& d) {
  const Linear divisor = exact(d);
  if (divisor.terms.empty()) return nullptr;
  const auto [lead, lead_k] = divisor.terms[0];
  Linear quotient;
  Linear rest = exact(a);
  // Takes k*x*d out of the rest; not where that leaves more than it takes.
  auto take = [&](const PrimExpr& x, int64_t k, const Linear& times_d, size_t fewer) {
    for (const auto& term : times_d.terms) {
      auto* factors = as_binary(term.first, BinaryOp::Mul);
      if (factors != nullptr && !fits(*factors)) return false;
    }
    auto left = add_scaled(rest, times_d, -k, order);
    auto sum = add_scaled(quotient, linear(x), k, order);
    if (!left || !sum || left->terms.size() + fewer > rest.terms.size()) return false;
    rest = std::move(*left);
    quotient = std::move(*sum);
    return true;
  };
  auto other_factor = [](const BinaryNode* product, const Node* factor) -> PrimExpr {
    if (product == nullptr) return nullptr;
    return product->b.get() == factor   ? product->a
           : product->a.get() == factor ? product->b
                                        : nullptr;
  };
  for (const auto& [atom, k] : Linear(rest).terms) {
    auto* product = as_binary(atom, BinaryOp::Mul);
    if (PrimExpr x = other_factor(product, d.get())) take(x, k, linear(relay::ref(*atom)), 1);
  }
  // A product with a sum stands as products with its parts.
  for (const auto& [atom, k] : Linear(rest).terms) {
    if (k % lead_k != 0) continue;
    PrimExpr x =
        atom == lead ? intern(index(1)) : other_factor(as_binary(atom, BinaryOp::Mul), lead);
    if (!x) continue;
    PrimExpr times_d = atom == lead ? d : product(x, d);
    if (times_d) take(x, k / lead_k, linear(times_d), divisor.terms.size());
  }
  if (linear_bounds(rest).min < 0) return nullptr;
  auto below = add_scaled(rest, divisor, -1, order);
  if (!below || linear_bounds(*below).max >= 0) return nullptr;
  return from_linear(want_div ? quotient : rest);
}

}  // namespace relay::tir
