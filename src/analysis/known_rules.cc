#include "analysis/known_rules.h"

#include <algorithm>
#include <cmath>

#include "analysis/calls.h"
#include "analysis/element_indices.h"
#include "analysis/element_maps.h"
#include "ir/op.h"

namespace relay {
namespace {

using runtime::DType;

// The result whose elements are elsewhere. Floats are known all or not at all.
std::optional<KnownValue> moved(const ElementMapRule& rule, const KnownCall& c) {
  ElementMap map = rule(c);
  if (map == nullptr) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  bool complete = true;
  each_index(c.shape, [&](const ElementIndex& at) {
    ElementSource from = map(at);
    const KnownValue* value =
        from.at < 0 || from.operand >= c.operands.size() ? nullptr : c.operands[from.operand].value;
    auto place = static_cast<size_t>(std::max<int64_t>(from.at, 0));
    if (out.is_int()) {
      out.ints.push_back(value == nullptr ? dim_any() : value->ints.at(place));
    } else {
      complete &= value != nullptr;
      out.floats.push_back(value == nullptr ? 0 : value->floats.at(place));
    }
  });
  return complete ? std::optional(std::move(out)) : std::nullopt;
}

// ---- Operators that make tensors ---------------------------------------------------------------

std::optional<KnownValue> filled(const KnownCall& c, double value) {
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  auto n = static_cast<size_t>(count_of(c.shape));
  if (out.is_int()) {
    out.ints.assign(n, dim(static_cast<int64_t>(value)));
  } else {
    out.floats.assign(n, value);
  }
  return out;
}

std::optional<KnownValue> counted(const KnownCall& c) {
  auto number = [&](const char* name, int64_t otherwise) -> std::optional<int64_t> {
    AttrValue v = attr_value(c.call.attrs, name);
    auto* i = v.get_if<int64_t>();
    return v.is_none() ? std::optional(otherwise) : i != nullptr ? std::optional(*i) : std::nullopt;
  };
  auto start = number("start", 0), step = number("step", 1);
  if (c.type.dtype.is_floating() || !start || !step) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  for (int64_t i = 0; i < c.shape[0]; ++i) {
    int64_t at = 0;
    bool fits = !__builtin_mul_overflow(i, *step, &at) &&
                !__builtin_add_overflow(at, *start, &at) && holds(out.dtype, at);
    out.ints.push_back(fits ? dim(at) : dim_any());
  }
  return out;
}

// ---- Operators on elements ---------------------------------------------------------------------

// An element of `from` as `to`; false when it is not known.
bool cast_element(const KnownValue& from, size_t i, KnownValue& to) {
  if (from.is_int() && to.is_int()) {
    to.ints.push_back(converted(from.ints[i], to.dtype));
    return true;
  }
  if (from.is_int() && !as_const(from.ints[i])) return false;
  double v = from.float_at(static_cast<int64_t>(i));
  if (!to.is_int()) {
    auto r = rounded(v, to.dtype);
    if (r) to.floats.push_back(*r);
    return r.has_value();
  }
  bool fits =
      to.dtype.is_bool() || (std::fabs(v) < 0x1p62 && holds(to.dtype, static_cast<int64_t>(v)));
  to.ints.push_back(!fits                ? dim_any()
                    : to.dtype.is_bool() ? dim(static_cast<int64_t>(v != 0))
                                         : dim(static_cast<int64_t>(v)));
  return true;
}

// The elements in the call's dtype; nullopt where one has no counterpart that is known.
std::optional<KnownValue> cast_to(const KnownValue& x, const KnownCall& c) {
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(x.size()); ++i) {
    if (!cast_element(x, i, out)) return std::nullopt;
  }
  return out;
}

std::optional<KnownValue> cast_all(const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  return x == nullptr ? std::nullopt : cast_to(*x, c);
}

std::optional<KnownValue> sizes(const KnownCall& c) {
  return cast_to(known_ints(c.operands[0].type->shape, DType::Int(64)), c);
}

std::optional<KnownValue> count(const KnownCall& c) {
  Dim n = dim(1);
  for (const Dim& d : c.operands[0].type->shape) {
    n = combine(binary_elements::multiply, n, d, DType::Int(64), DType::Int(64));
  }
  return cast_to(known_scalar(n, DType::Int(64)), c);
}

std::optional<KnownValue> full_of(const KnownCall& c, const KnownOperand& fill) {
  KnownValue one{c.type.dtype, {}, {}, {}};
  if (fill.value == nullptr || !cast_element(*fill.value, 0, one)) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  auto n = static_cast<size_t>(count_of(c.shape));
  if (out.is_int()) {
    out.ints.assign(n, one.ints[0]);
  } else {
    out.floats.assign(n, one.floats[0]);
  }
  return out;
}

std::optional<KnownValue> unary(const UnaryElement& element, const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  if (x == nullptr) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  for (const Dim& d : x->ints) out.ints.push_back(element.ints(d, x->dtype));
  for (double v : x->floats) {
    if (element.floats == nullptr) return std::nullopt;
    double r = element.floats(v);
    auto kept = rounded(r, x->dtype);
    if (!kept || std::isnan(r)) return std::nullopt;
    out.floats.push_back(*kept);
  }
  return out;
}

std::optional<KnownValue> binary(const BinaryElement& element, const KnownCall& c) {
  const KnownOperand &a = c.operands[0], &b = c.operands[1];
  const BinaryElement& rule = element.on(a.type->dtype);
  if (!a.shape || !b.shape) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  if (a.type->dtype.is_floating()) {
    bool known = a.value != nullptr && b.value != nullptr && rule.floats != nullptr &&
                 rounded(0, a.type->dtype);
    if (!known) return std::nullopt;
    each_index(c.shape, [&](const ElementIndex& at) {
      double x = a.value->floats[static_cast<size_t>(broadcast_flat(at, *a.shape))];
      double y = b.value->floats[static_cast<size_t>(broadcast_flat(at, *b.shape))];
      out.floats.push_back(*rounded(rule.floats(x, y), out.dtype));
    });
    return out;
  }
  auto read = [](const KnownOperand& o, const ElementIndex& at) {
    return o.value == nullptr ? dim_any()
                              : o.value->ints[static_cast<size_t>(broadcast_flat(at, *o.shape))];
  };
  each_index(c.shape, [&](const ElementIndex& at) {
    out.ints.push_back(combine(rule, read(a, at), read(b, at), a.type->dtype, c.type.dtype));
  });
  return out;
}

std::optional<KnownValue> reduction(const BinaryElement& element, const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  if (x == nullptr || !x->is_int() || x->size() == 0 || !c.operands[0].shape) return std::nullopt;
  const std::vector<int64_t>& shape = *c.operands[0].shape;
  const BinaryElement& rule = element.on(x->dtype);
  auto axes = ints_attr(c.call, "axis");
  bool exclude = attr_as<bool>(c.call.attrs, "exclude");
  std::vector<bool> reduced(shape.size(), !axes && !exclude);
  if (axes) {
    for (int64_t a : *axes) reduced[axis_of(a, shape.size())] = true;
    if (exclude) reduced.flip();
  }
  std::vector<int64_t> left;
  for (size_t a = 0; a < shape.size(); ++a) {
    if (!reduced[a]) left.push_back(shape[a]);
  }
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  out.ints.resize(static_cast<size_t>(count_of(c.shape)));
  size_t i = 0;
  each_index(shape, [&](const ElementIndex& at) {
    ElementIndex to;
    for (size_t a = 0; a < shape.size(); ++a) {
      if (!reduced[a]) to.push_back(at[a]);
    }
    Dim& sum = out.ints[static_cast<size_t>(flat(to, left))];
    const Dim& next = x->ints[i++];
    sum = sum == nullptr ? next : combine(rule, sum, next, x->dtype, x->dtype);
  });
  return out;
}

Dim unchanged(const Dim& d, DType) { return d; }
Dim negated(const Dim& d, DType dtype) {
  return combine(binary_elements::subtract, dim(0), d, dtype, dtype);
}

template <class... A>
known_rules::Rule rule(bool reads, A&&... elements) {
  return std::make_shared<const KnownRule>(KnownRule{std::forward<A>(elements)..., reads});
}

}  // namespace

namespace unary_elements {

constexpr UnaryElement logical_not{[](const Dim& d, DType) {
  auto value = as_const(d);
  return value ? dim(static_cast<int64_t>(*value == 0)) : dim_any();
}};
constexpr UnaryElement negative{negated, [](double x) { return -x; }};
constexpr UnaryElement abs{
    [](const Dim& d, DType dtype) {
      auto least = is_any(d) ? std::nullopt : least_value(d);
      return least && *least >= 0 ? d : as_const(d) ? negated(d, dtype) : dim_any();
    },
    [](double x) { return std::fabs(x); }};
constexpr UnaryElement floor{unchanged, [](double x) { return std::floor(x); }};
constexpr UnaryElement ceil{unchanged, [](double x) { return std::ceil(x); }};
constexpr UnaryElement trunc{unchanged, [](double x) { return std::trunc(x); }};
constexpr UnaryElement sqrt{unchanged, [](double x) { return std::sqrt(x); }};

}  // namespace unary_elements

namespace known_rules {

Rule filled(double value) {
  return rule(false, [value](const KnownCall& c) { return relay::filled(c, value); });
}
Rule filled_with(size_t value) {
  return rule(true, [value](const KnownCall& c) { return full_of(c, c.operands[value]); });
}
Rule arange() { return rule(false, counted); }
Rule shape_of() { return rule(false, sizes); }
Rule num_elements() { return rule(false, count); }
Rule cast() { return rule(true, cast_all); }
Rule unary(const UnaryElement& element) {
  return rule(true, [&element](const KnownCall& c) { return relay::unary(element, c); });
}
Rule binary(const BinaryElement& element) {
  return rule(true, [&element](const KnownCall& c) { return relay::binary(element, c); });
}
Rule reduction(const BinaryElement& element) {
  return rule(true, [&element](const KnownCall& c) { return relay::reduction(element, c); });
}

}  // namespace known_rules

std::shared_ptr<const KnownRule> known_rule(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  if (op == nullptr) return nullptr;
  const OpInfo& row = *op->row;
  if (row.known) return row.known;
  ElementMapRule map = row.reshape_only ? ElementMapRule(element_maps::same_order)
                       : row.moves && row.moves->holds_for(call) ? row.moves->map
                                                                 : nullptr;
  if (map == nullptr) return nullptr;
  return std::make_shared<const KnownRule>(
      KnownRule{[map](const KnownCall& c) { return moved(map, c); }});
}

}  // namespace relay
