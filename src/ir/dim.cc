// Arithmetic on dimensions.
//
// Sums, differences and products are kept as polynomials: a sorted list of (coefficient, sorted
// factors) terms, where a factor is a named dimension or an indivisible expression (a quotient, a
// maximum). So `2*n + n` and `3*n` are the same dimension, structurally.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codes/types.h"
#include "ir/type.h"
#include "ir/whole_parts.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

[[noreturn]] void overflow(const char* what) {
  throw UserError(Diagnostic(codes::type_overflow, {},
                             std::string("a dimension overflows 64 bits in a ") + what)
                      .help("check the model for absurd sizes"));
}

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) overflow("sum");
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) overflow("product");
  return r;
}

// Floor division; the divisor is positive.
int64_t floor_div_int(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b < 0 ? q - 1 : q;
}

// A named dimension or an indivisible expression, with its text once it is asked for: an expression may be long, and is
// compared with many.
struct Factor {
  Dim dim;
  mutable std::string known_text = {};

  const std::string& text() const {
    if (known_text.empty()) known_text = to_string(dim);
    return known_text;
  }
};

struct Term {
  int64_t coefficient;
  std::vector<Factor> factors;  // sorted by `before`
};

// A total order on factors that does not depend on addresses where names differ.
bool before(const Factor& a, const Factor& b) {
  if (a.dim == b.dim) return false;
  if (int order = a.text().compare(b.text()); order != 0) return order < 0;
  return !dim_equal(a.dim, b.dim) && a.dim.get() < b.dim.get();
}

bool same_factors(const std::vector<Factor>& a, const std::vector<Factor>& b) {
  return std::ranges::equal(a, b, dim_equal, &Factor::dim, &Factor::dim);
}

Dim make_op(DimOpKind op, Dim a, Dim b) {
  return make<DimOpNode>([&](DimOpNode& n) {
    n.op = op;
    n.a = std::move(a);
    n.b = std::move(b);
  });
}

void add_term(std::vector<Term>& terms, Term term) {
  for (Term& t : terms) {
    if (same_factors(t.factors, term.factors)) {
      t.coefficient = checked_add(t.coefficient, term.coefficient);
      return;
    }
  }
  terms.push_back(std::move(term));
}

// The terms of a dimension. Sums and products are left-nested chains built by `from_terms`.
std::vector<Term> terms_of(const Dim& d) {
  std::vector<Term> out;
  std::vector<Dim> sums{d};
  while (!sums.empty()) {
    Dim at = std::move(sums.back());
    sums.pop_back();
    if (auto* op = as<DimOpNode>(at); op != nullptr && op->op == DimOpKind::Add) {
      sums.push_back(op->b);
      sums.push_back(op->a);
      continue;
    }
    Term term{1, {}};
    std::vector<Dim> products{at};
    while (!products.empty()) {
      Dim p = std::move(products.back());
      products.pop_back();
      if (auto* op = as<DimOpNode>(p); op != nullptr && op->op == DimOpKind::Mul) {
        products.push_back(op->b);
        products.push_back(op->a);
      } else if (auto value = as_const(p)) {
        term.coefficient = checked_mul(term.coefficient, *value);
      } else {
        term.factors.push_back({p});
      }
    }
    std::sort(term.factors.begin(), term.factors.end(), before);
    add_term(out, std::move(term));
  }
  return out;
}

Dim from_terms(std::vector<Term> terms) {
  std::erase_if(terms, [](const Term& t) { return t.coefficient == 0; });
  // The constant term goes last; the others are sorted by their text.
  auto text = [](const Term& t) {
    std::string s;
    for (const Factor& f : t.factors) s += f.text() + "*";
    return s;
  };
  std::stable_sort(terms.begin(), terms.end(), [&](const Term& x, const Term& y) {
    if (x.factors.empty() != y.factors.empty()) return y.factors.empty();
    return text(x) < text(y);
  });
  Dim sum;
  for (const Term& t : terms) {
    Dim product;
    for (const Factor& f : t.factors) {
      product = product ? make_op(DimOpKind::Mul, product, f.dim) : f.dim;
    }
    if (!product) {
      product = dim(t.coefficient);
    } else if (t.coefficient != 1) {
      product = make_op(DimOpKind::Mul, dim(t.coefficient), product);
    }
    sum = sum ? make_op(DimOpKind::Add, sum, product) : product;
  }
  return sum ? sum : dim(0);
}

bool any_of(const Dim& a, const Dim& b) { return is_any(a) || is_any(b); }

}  // namespace

Dim dim(int64_t value) {
  return make<DimConstNode>([&](DimConstNode& n) { n.value = value; });
}
Dim dim(TypeVar var) {
  RELAY_CHECK(var->kind == Kind::Dim);
  return make<DimVarNode>([&](DimVarNode& n) { n.var = std::move(var); });
}
Dim dim_any() {
  static const Dim any = make<DimAnyNode>();
  return any;
}

std::optional<int64_t> as_const(const Dim& d) {
  if (auto* c = as<DimConstNode>(d)) return c->value;
  return std::nullopt;
}
bool is_any(const Dim& d) { return isa<DimAnyNode>(d); }

bool dim_equal(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return false;
  if (a == b) return true;
  if (a->kind() != b->kind()) return false;
  if (auto* c = as<DimConstNode>(a)) return c->value == as<DimConstNode>(b)->value;
  return structural_equal(a, b);
}

bool dim_differs(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return false;
  auto x = as_const(a), y = as_const(b);
  if (x && y) return *x != *y;
  auto difference = as_const(a - b);
  return difference && *difference != 0;
}

bool never_one(const Dim& d) {
  if (is_any(d)) return false;
  int64_t constant = 0, step = 0;
  bool grows = true;
  for (const Term& t : terms_of(d)) {
    if (t.factors.empty()) {
      constant = t.coefficient;
      continue;
    }
    step = std::gcd(step, t.coefficient);
    grows = grows && t.coefficient > 0;
    // The remainder of what is subtracted from may be anything.
    for (const Factor& f : t.factors) grows = grows && isa<DimVarNode>(f.dim);
  }
  if (step == 0) return constant != 1;
  return (grows && constant > 1) || (step > 1 && (constant - 1) % step != 0);
}

namespace {

// The least value of an operation where names stand for sizes of 0 or more, from those of its operands; nullopt: none is known.
using Least = std::optional<int64_t>;
Least least_of(const DimOpNode& op, const Least& a, const Least& b) {
  const auto x = as_const(op.a), y = as_const(op.b);
  const bool sizes = a >= 0 && b >= 0;  // never of what is not known
  int64_t out = 0;
  switch (op.op) {
    case DimOpKind::Add:
      return a && b && !__builtin_add_overflow(*a, *b, &out) ? Least(out) : std::nullopt;
    case DimOpKind::Sub:
      return a && y && !__builtin_sub_overflow(*a, *y, &out) ? Least(out) : std::nullopt;
    case DimOpKind::Mul: {
      const bool grows = sizes || (a && y >= 0) || (b && x >= 0);
      return grows && !__builtin_mul_overflow(*a, *b, &out) ? Least(out) : std::nullopt;
    }
    case DimOpKind::FloorDiv:
      return a && y > 0 ? Least(floor_div_int(*a, *y)) : sizes ? Least(0) : std::nullopt;
    case DimOpKind::CeilDiv:
      return a && y > 0 ? Least(*a / *y + (*a % *y > 0)) : sizes ? Least(0) : std::nullopt;
    case DimOpKind::Mod:
      return 0;
    case DimOpKind::Max:
      return std::max(a, b);
    case DimOpKind::Min:
    case DimOpKind::Broadcast:
      return std::min(a, b);
  }
  return std::nullopt;
}

}  // namespace

bool never_negative(const Dim& d) {
  NodeMap<Least> least;
  post_order(
      d,
      [&](const Node& n) {
        if (auto* constant = as<DimConstNode>(&n)) {
          least[&n] = constant->value;
        } else if (auto* op = as<DimOpNode>(&n)) {
          least[&n] = least_of(*op, *least.find(op->a.get()), *least.find(op->b.get()));
        } else {
          least[&n] = isa<DimVarNode>(&n) ? Least(0) : std::nullopt;
        }
      },
      family::dim);
  return *least.find(d.get()) >= 0;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  auto x = as_const(a), y = as_const(b);
  if (x && y) return dim(checked_add(*x, *y));
  std::vector<Term> terms = terms_of(a);
  for (Term& t : terms_of(b)) add_term(terms, std::move(t));
  return from_terms(std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  return a + b * dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  auto x = as_const(a), y = as_const(b);
  if (x && y) return dim(checked_mul(*x, *y));
  std::vector<Term> terms;
  for (const Term& s : terms_of(a)) {
    for (const Term& t : terms_of(b)) {
      Term product{checked_mul(s.coefficient, t.coefficient), s.factors};
      product.factors.insert(product.factors.end(), t.factors.begin(), t.factors.end());
      std::sort(product.factors.begin(), product.factors.end(), before);
      add_term(terms, std::move(product));
    }
  }
  return from_terms(std::move(terms));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  auto x = as_const(a), y = as_const(b);
  if (y) RELAY_CHECK(*y > 0, "division of a dimension by a non-positive number");
  if (x && y) return dim(floor_div_int(*x, *y));
  if (y && *y == 1) return a;
  if (dim_equal(a, b)) return dim(1);
  if (y) {
    // c*k divides termwise when every coefficient is a multiple.
    std::vector<Term> terms = terms_of(a);
    bool divides = std::all_of(terms.begin(), terms.end(),
                               [&](const Term& t) { return t.coefficient % *y == 0; });
    if (divides) {
      for (Term& t : terms) t.coefficient /= *y;
      return from_terms(std::move(terms));
    }
  }
  return make_op(DimOpKind::FloorDiv, a, b);
}

Dim ceil_div(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  auto x = as_const(a), y = as_const(b);
  if (x && y) return dim(-floor_div_int(-*x, *y));
  Dim quotient = floor_div(a, b);
  if (auto* op = as<DimOpNode>(quotient); op == nullptr || op->op != DimOpKind::FloorDiv) {
    return quotient;
  }
  return make_op(DimOpKind::CeilDiv, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  auto x = as_const(a), y = as_const(b);
  if (y) RELAY_CHECK(*y > 0, "remainder of a dimension by a non-positive number");
  if (x && y) return dim(*x - floor_div_int(*x, *y) * *y);
  if (dim_equal(a, b) || (y && *y == 1)) return dim(0);
  return make_op(DimOpKind::Mod, a, b);
}

std::pair<Dim, int64_t> whole_parts(const Dim& d) {
  auto* product = as<DimOpNode>(d);
  if (product == nullptr || product->op != DimOpKind::Mul) return {nullptr, 1};
  for (const auto& [factor, other] :
       {std::pair{product->a, product->b}, {product->b, product->a}}) {
    auto* parts = as<DimOpNode>(other);
    const auto size = as_const(factor);
    if (size && parts != nullptr && parts->op == DimOpKind::CeilDiv && as_const(parts->b) == size) {
      return {other, *size};
    }
  }
  return {nullptr, 1};
}

namespace {

// Whether a difference is what is left of a quotient beside those parts of it that are whole, x // n - c * (x // (c * n)), or
// more; n may be 1.
bool is_remainder(const Dim& difference) {
  for (const Term& t : terms_of(difference)) {
    auto* parts = t.factors.size() == 1 ? as<DimOpNode>(t.factors[0].dim) : nullptr;
    if (parts == nullptr || parts->op != DimOpKind::FloorDiv || t.coefficient >= 0) continue;
    const auto size = as_const(parts->b);
    if (!size || *size < 1 || *size % t.coefficient != 0) continue;
    const Dim whole = dim(-t.coefficient) * t.factors[0].dim;
    const Dim quotient = floor_div(parts->a, dim(*size / -t.coefficient));
    const auto more = as_const(difference + whole - quotient);
    if (more && *more >= 0) return true;
  }
  return false;
}

// Whether `whole` is the other size, rounded up to a whole number of parts.
bool rounds_up(const Dim& whole, const Dim& size) {
  auto* parts = as<DimOpNode>(whole_parts(whole).first);
  return parts != nullptr && dim_equal(parts->a, size);
}

}  // namespace

Dim max(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  const Dim difference = a - b;
  if (auto known = as_const(difference)) return *known >= 0 ? a : b;
  if (is_remainder(difference)) return a;
  if (is_remainder(b - a)) return b;
  return before({a}, {b}) ? make_op(DimOpKind::Max, a, b) : make_op(DimOpKind::Max, b, a);
}

Dim min(const Dim& a, const Dim& b) {
  if (any_of(a, b)) return dim_any();
  const Dim difference = a - b;
  if (auto known = as_const(difference)) return *known <= 0 ? a : b;
  if (rounds_up(a, b)) return b;
  if (rounds_up(b, a)) return a;
  if (is_remainder(difference)) return b;
  if (is_remainder(b - a)) return a;
  return before({a}, {b}) ? make_op(DimOpKind::Min, a, b) : make_op(DimOpKind::Min, b, a);
}

namespace {

// Whether `part` is the smaller one of `whole` and something that is never 1: broadcast to each other
// they are equal.
bool at_most(const Dim& part, const Dim& whole) {
  auto* op = as<DimOpNode>(part);
  if (op == nullptr || op->op != DimOpKind::Min) return false;
  return (dim_equal(op->a, whole) && never_one(op->b)) ||
         (dim_equal(op->b, whole) && never_one(op->a));
}

}  // namespace

Dim broadcast(const Dim& a, const Dim& b) {
  if (as_const(a) == 1 || at_most(a, b)) return b;
  if (as_const(b) == 1 || at_most(b, a)) return a;
  if (as_const(a) || (never_one(a) && !as_const(b))) return a;
  if (never_one(b)) return b;
  if (any_of(a, b)) return dim_any();
  // A chain of its parts, sorted, each once.
  std::vector<Factor> parts;
  std::vector<Dim> open{a, b};
  while (!open.empty()) {
    Dim d = std::move(open.back());
    open.pop_back();
    auto* op = as<DimOpNode>(d);
    if (op != nullptr && op->op == DimOpKind::Broadcast) {
      open.push_back(op->a);
      open.push_back(op->b);
    } else {
      parts.push_back({std::move(d)});
    }
  }
  std::sort(parts.begin(), parts.end(), before);
  const auto repeated = std::ranges::unique(parts, dim_equal, &Factor::dim);
  parts.erase(repeated.begin(), repeated.end());
  Dim out = parts[0].dim;
  for (size_t i = 1; i < parts.size(); ++i) out = make_op(DimOpKind::Broadcast, out, parts[i].dim);
  return out;
}

Dim dim_op(DimOpKind op, const Dim& a, const Dim& b) {
  switch (op) {
    case DimOpKind::Add:
      return a + b;
    case DimOpKind::Sub:
      return a - b;
    case DimOpKind::Mul:
      return a * b;
    case DimOpKind::FloorDiv:
      return floor_div(a, b);
    case DimOpKind::CeilDiv:
      return ceil_div(a, b);
    case DimOpKind::Mod:
      return mod(a, b);
    case DimOpKind::Max:
      return max(a, b);
    case DimOpKind::Min:
      return min(a, b);
    case DimOpKind::Broadcast:
      return broadcast(a, b);
  }
  return nullptr;
}

}  // namespace relay
