#include "analysis/known_value.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "base/diagnostic.h"
#include "node/walk.h"

namespace relay {

using runtime::DType;
using runtime::Tensor;

bool KnownValue::is_complete() const { return std::ranges::none_of(ints, is_any); }

bool KnownValue::is_constant() const {
  return std::ranges::all_of(ints, [](const Dim& d) { return as_const(d).has_value(); });
}

int64_t KnownValue::int_at(int64_t i) const {
  auto at = static_cast<size_t>(i);
  return is_int() ? *as_const(ints[at]) : static_cast<int64_t>(floats[at]);
}

double KnownValue::float_at(int64_t i) const {
  auto at = static_cast<size_t>(i);
  return is_int() ? static_cast<double>(*as_const(ints[at])) : floats[at];
}

std::optional<KnownValue> known_from(const Tensor& t) {
  if (!t || t.num_elements() > kMaxKnownElements || t.dtype() == DType::UInt(64) ||
      t.dtype().is_only_moved()) {
    return std::nullopt;
  }
  KnownValue k{t.dtype(), {t.shape().begin(), t.shape().end()}, {}, {}};
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (k.is_int()) {
      k.ints.push_back(dim(t.get_as_int(i)));
    } else {
      k.floats.push_back(t.get_as_double(i));
    }
  }
  return k;
}

Tensor tensor_from(const KnownValue& k) {
  Tensor t = Tensor::empty(k.dtype, k.shape);
  for (int64_t i = 0; i < k.size(); ++i) {
    if (k.is_int()) {
      t.set_from_int(i, k.int_at(i));
    } else {
      t.set_from_double(i, k.float_at(i));
    }
  }
  return t;
}

KnownValue known_ints(std::vector<Dim> values, DType dtype) {
  auto n = static_cast<int64_t>(values.size());
  return KnownValue{dtype, {n}, std::move(values), {}};
}
KnownValue known_ints(const std::vector<int64_t>& values, DType dtype) {
  std::vector<Dim> dims;
  for (int64_t v : values) dims.push_back(dim(v));
  return known_ints(std::move(dims), dtype);
}
KnownValue known_scalar(Dim value, DType dtype) {
  return KnownValue{dtype, {}, {std::move(value)}, {}};
}

// ---- Arithmetic on elements --------------------------------------------------------------------

std::optional<int64_t> least_value(const Dim& d) {
  std::unordered_map<const Node*, std::optional<int64_t>> least;
  post_order(
      d,
      [&](const Node& n) {
        std::optional<int64_t>& out = least[&n];
        if (auto* c = as<DimConstNode>(&n)) out = c->value;
        if (isa<DimVarNode>(&n)) out = 0;
        auto* op = as<DimOpNode>(&n);
        if (op == nullptr) return;
        std::optional<int64_t> a = least[op->a.get()], b = least[op->b.get()];
        int64_t r = 0;
        switch (op->op) {
          case DimOpKind::Add:
            if (a && b && !__builtin_add_overflow(*a, *b, &r)) out = r;
            return;
          case DimOpKind::Mul:
            if (a && b && *a >= 0 && *b >= 0 && !__builtin_mul_overflow(*a, *b, &r)) out = r;
            return;
          case DimOpKind::FloorDiv:
          case DimOpKind::CeilDiv:
            // Of what may be negative, such as `(n - 1) // 4`, the quotient by a number.
            if (auto divisor = as_const(op->b); a && divisor && *divisor > 0) {
              bool up = op->op == DimOpKind::CeilDiv;
              out = as_const(up ? ceil_div(dim(*a), op->b) : floor_div(dim(*a), op->b));
              return;
            }
            [[fallthrough]];
          case DimOpKind::Broadcast:
            if (a && b && *a >= 0 && *b >= 0) out = 0;
            return;
          case DimOpKind::Mod:
            out = 0;
            return;
          case DimOpKind::Max:
            out = a && b ? std::max(*a, *b) : a ? a : b;
            return;
          case DimOpKind::Min:
            if (a && b) out = std::min(*a, *b);
            return;
          case DimOpKind::Sub:
            return;
        }
      },
      family::dim);
  return least[d.get()];
}

namespace {

using Number = std::optional<int64_t>;

bool at_least(const Dim& d, int64_t bound) {
  auto least = least_value(d);
  return least && *least >= bound;
}
bool divides(int64_t a, int64_t b) {
  return b != 0 && !(a == std::numeric_limits<int64_t>::min() && b == -1);
}
Number truth(bool v) { return static_cast<int64_t>(v); }
Dim truth_dim(bool v) { return dim(static_cast<int64_t>(v)); }

Number sum(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_add_overflow(a, b, &r) ? Number() : r;
}
Number difference(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_sub_overflow(a, b, &r) ? Number() : r;
}
Number product(int64_t a, int64_t b) {
  int64_t r = 0;
  return __builtin_mul_overflow(a, b, &r) ? Number() : r;
}
Number toward_zero(int64_t a, int64_t b) { return divides(a, b) ? Number(a / b) : Number(); }
Number rest_toward_zero(int64_t a, int64_t b) { return divides(a, b) ? Number(a % b) : Number(); }
Number floored(int64_t a, int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  return a / b - static_cast<int64_t>(a % b != 0 && (a < 0) != (b < 0));
}
Number rest_of_floor(int64_t a, int64_t b) {
  if (!divides(a, b)) return std::nullopt;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

bool positive(const Dim& d) {
  auto c = as_const(d);
  return c && *c > 0;
}
Dim floored(const Dim& a, const Dim& b) { return positive(b) ? floor_div(a, b) : dim_any(); }
Dim rest_of_floor(const Dim& a, const Dim& b) { return positive(b) ? mod(a, b) : dim_any(); }
// Towards zero: the floor from above zero, the ceiling from below.
Dim toward_zero(const Dim& a, const Dim& b) {
  if (!positive(b)) return dim_any();
  if (at_least(a, 0)) return floor_div(a, b);
  return max(floor_div(a, b), dim(0)) + min(ceil_div(a, b), dim(0));
}
Dim rest_toward_zero(const Dim& a, const Dim& b) {
  if (!positive(b)) return dim_any();
  return at_least(a, 0) ? mod(a, b) : a - toward_zero(a, b) * b;
}
Dim is_less(const Dim& a, const Dim& b) {
  if (at_least(b - a, 1)) return dim(1);
  return at_least(a - b, 0) ? dim(0) : dim_any();
}
Dim negated(const Dim& truth) {
  auto c = as_const(truth);
  return c ? dim(1 - *c) : dim_any();
}
Dim same(const Dim& a, const Dim& b) {
  if (dim_equal(a, b)) return dim(1);
  bool never = dim_differs(a, b) || at_least(a - b, 1) || at_least(b - a, 1);
  return never ? dim(0) : dim_any();
}

}  // namespace

namespace binary_elements {

using Truth = std::optional<bool>;

constexpr BinaryElement logical_and{[](int64_t a, int64_t b) { return truth(a != 0 && b != 0); },
                                    nullptr, nullptr, Truth(false)};
constexpr BinaryElement logical_or{[](int64_t a, int64_t b) { return truth(a != 0 || b != 0); },
                                   nullptr, nullptr, Truth(true)};
constexpr BinaryElement logical_xor{
    [](int64_t a, int64_t b) { return truth((a != 0) != (b != 0)); }};
constexpr BinaryElement add{sum, [](const Dim& a, const Dim& b) { return a + b; },
                            [](double a, double b) { return a + b; }, std::nullopt, &logical_or};
constexpr BinaryElement subtract{difference, [](const Dim& a, const Dim& b) { return a - b; },
                                 [](double a, double b) { return a - b; }};
constexpr BinaryElement multiply{product, [](const Dim& a, const Dim& b) { return a * b; },
                                 [](double a, double b) { return a * b; }, std::nullopt,
                                 &logical_and};
constexpr BinaryElement maximum{[](int64_t a, int64_t b) -> Number { return std::max(a, b); }, max,
                                [](double a, double b) { return std::max(a, b); }};
constexpr BinaryElement minimum{[](int64_t a, int64_t b) -> Number { return std::min(a, b); }, min,
                                [](double a, double b) { return std::min(a, b); }};
constexpr BinaryElement divide{toward_zero, toward_zero, [](double a, double b) { return a / b; }};
constexpr BinaryElement quotient{toward_zero, toward_zero};
constexpr BinaryElement floor_quotient{floored, floored};
constexpr BinaryElement remainder{rest_toward_zero, rest_toward_zero};
constexpr BinaryElement floor_remainder{rest_of_floor, rest_of_floor};
constexpr BinaryElement equal{[](int64_t a, int64_t b) { return truth(a == b); }, same};
constexpr BinaryElement not_equal{[](int64_t a, int64_t b) { return truth(a != b); },
                                  [](const Dim& a, const Dim& b) { return negated(same(a, b)); }};
constexpr BinaryElement less{[](int64_t a, int64_t b) { return truth(a < b); }, is_less};
constexpr BinaryElement less_equal{
    [](int64_t a, int64_t b) { return truth(a <= b); },
    [](const Dim& a, const Dim& b) { return negated(is_less(b, a)); }};
constexpr BinaryElement greater{[](int64_t a, int64_t b) { return truth(a > b); },
                                [](const Dim& a, const Dim& b) { return is_less(b, a); }};
constexpr BinaryElement greater_equal{
    [](int64_t a, int64_t b) { return truth(a >= b); },
    [](const Dim& a, const Dim& b) { return negated(is_less(a, b)); }};

}  // namespace binary_elements

namespace {

constexpr size_t kMaxTermNodes = 48;

bool reasonable(const Dim& d) {
  size_t nodes = 0;
  post_order(
      d, [&](const Node&) { ++nodes; }, family::dim);
  return nodes <= kMaxTermNodes;
}

}  // namespace

bool holds(DType dtype, int64_t value) {
  if (dtype.is_bool()) return value == 0 || value == 1;
  if (dtype.is_uint()) return value >= 0 && (dtype.bits == 64 || value >> dtype.bits == 0);
  if (dtype.bits == 64) return true;
  int64_t half = int64_t{1} << (dtype.bits - 1);
  return value >= -half && value < half;
}

Dim converted(const Dim& value, DType to) {
  auto c = as_const(value);
  if (to.is_bool()) {
    if (c) return truth_dim(*c != 0);
    return is_any(value) || !at_least(value, 1) ? dim_any() : dim(1);
  }
  if (c) return holds(to, *c) ? value : dim_any();
  // A size is taken to fit the type that a program computes it in.
  return to.is_int() && to.bits >= 32 ? value : dim_any();
}

Dim combine(const BinaryElement& rule, const Dim& a, const Dim& b, DType from, DType to) {
  if (is_any(a) || is_any(b)) {
    // One operand may decide.
    auto decides = [&](const Dim& d) {
      auto c = as_const(d);
      return c && rule.decides == (*c != 0);
    };
    return decides(a) || decides(b) ? truth_dim(*rule.decides) : dim_any();
  }
  auto x = as_const(a), y = as_const(b);
  if (x && y) {
    auto r = rule.numbers(*x, *y);
    return r && holds(to, *r) ? dim(*r) : dim_any();
  }
  if (rule.terms == nullptr || !from.is_int() || from.bits < 32) return dim_any();
  try {
    Dim r = rule.terms(a, b);
    return is_any(r) || reasonable(r) ? r : dim_any();
  } catch (const UserError&) {
    return dim_any();  // a coefficient overflows
  }
}

std::optional<double> rounded(double value, DType dtype) {
  if (dtype.is_float(64)) return value;
  if (dtype.is_float(32)) return static_cast<double>(static_cast<float>(value));
  return std::nullopt;
}

}  // namespace relay
