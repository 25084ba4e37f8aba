#include "analysis/known_rules.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/calls.h"
#include "ir/op.h"

namespace relay {
namespace {

using runtime::DType;
using Index = std::vector<int64_t>;

int64_t count_of(const std::vector<int64_t>& shape) {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

int64_t flat(const Index& at, const std::vector<int64_t>& shape) {
  int64_t out = 0;
  for (size_t a = 0; a < shape.size(); ++a) out = out * shape[a] + at[a];
  return out;
}

// Calls `visit` with the index of every element, in row-major order.
template <class Visit>
void each_index(const std::vector<int64_t>& shape, Visit visit) {
  Index at(shape.size(), 0);
  for (int64_t i = count_of(shape); i > 0; --i) {
    visit(at);
    for (size_t a = shape.size(); a-- > 0;) {
      if (++at[a] < shape[a]) break;
      at[a] = 0;
    }
  }
}

// The index into a tensor that is broadcast to the result's index.
int64_t broadcast_flat(const Index& at, const std::vector<int64_t>& shape) {
  int64_t out = 0;
  size_t lead = at.size() - shape.size();
  for (size_t a = 0; a < shape.size(); ++a) {
    out = out * shape[a] + (shape[a] == 1 ? 0 : at[lead + a]);
  }
  return out;
}

// ---- Operators that move elements --------------------------------------------------------------

// Where an element of the result is: in which operand, and where there; nowhere known when at < 0.
struct Source {
  size_t operand = 0;
  int64_t at = -1;
};

// The result whose elements are elsewhere; `find` is asked in row-major order. Floats are known all
// or not at all.
template <class Find>
std::optional<KnownValue> moved(const KnownCall& c, Find find) {
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  bool complete = true;
  each_index(c.shape, [&](const Index& at) {
    Source from = find(at);
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

std::optional<KnownValue> same_order(const KnownCall& c) {
  int64_t i = 0;
  return moved(c, [&](const Index&) { return Source{0, i++}; });
}

std::optional<KnownValue> broadcast_to(const KnownCall& c) {
  if (!c.operands[0].shape) return std::nullopt;
  return moved(c, [&](const Index& at) {
    return Source{0, broadcast_flat(at, *c.operands[0].shape)};
  });
}

std::optional<KnownValue> transpose(const KnownCall& c) {
  if (!c.operands[0].shape) return std::nullopt;
  size_t rank = c.shape.size();
  auto axes = ints_attr(c.call, "axes");
  return moved(c, [&](const Index& at) {
    Index from(rank);
    for (size_t d = 0; d < rank; ++d) {
      from[axes && !axes->empty() ? axis_of((*axes)[d], rank) : rank - 1 - d] = at[d];
    }
    return Source{0, flat(from, *c.operands[0].shape)};
  });
}

std::optional<KnownValue> take(const KnownCall& c) {
  const KnownOperand &data = c.operands[0], &indices = c.operands[1];
  if (!data.shape || !indices.shape || data.value == nullptr || indices.value == nullptr) {
    return std::nullopt;
  }
  const std::vector<int64_t>& shape = *data.shape;
  std::string mode = text_attr(c.call, "mode");
  AttrValue along = attr_value(c.call.attrs, "axis");
  auto* given = along.get_if<int64_t>();
  size_t axis = given == nullptr ? 0 : axis_of(*given, shape.size());
  size_t width = indices.shape->size();
  int64_t n = given == nullptr ? count_of(shape) : shape[axis];
  if (n == 0) return std::nullopt;
  return moved(c, [&](const Index& at) {
    auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
    auto behind = first + static_cast<std::ptrdiff_t>(width);
    auto which = as_const(
        indices.value->ints[static_cast<size_t>(flat(Index(first, behind), *indices.shape))]);
    if (!which) return Source{};
    int64_t i = *which;
    if (mode == "wrap") {
      i = i % n < 0 ? i % n + n : i % n;
    } else {
      if (mode != "clip" && i < 0) i += n;
      i = std::clamp<int64_t>(i, 0, n - 1);
    }
    if (given == nullptr) return Source{0, i};
    Index from(at.begin(), first);
    from.push_back(i);
    from.insert(from.end(), behind, at.end());
    return Source{0, flat(from, shape)};
  });
}

std::optional<KnownValue> concatenate(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  for (const KnownOperand& o : c.operands) {
    if (!o.shape) return std::nullopt;
  }
  return moved(c, [&](const Index& at) {
    Index from = at;
    size_t part = 0;
    while (from[axis] >= (*c.operands[part].shape)[axis]) {
      from[axis] -= (*c.operands[part++].shape)[axis];
    }
    return Source{part, flat(from, *c.operands[part].shape)};
  });
}

std::optional<KnownValue> stack(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  std::vector<int64_t> inner = c.shape;
  inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(axis));
  return moved(c, [&](const Index& at) {
    Index from = at;
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis));
    return Source{static_cast<size_t>(at[axis]), flat(from, inner)};
  });
}

std::optional<KnownValue> split(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& whole = c.operands[0].shape;
  if (!whole) return std::nullopt;
  size_t axis = axis_of(int_attr(c.call, "axis"), whole->size());
  int64_t begin = 0;
  for (int64_t i = 0; i < c.part; ++i) {
    auto* part = as<TensorTypeNode>(as<TupleTypeNode>(c.call.type)->fields[static_cast<size_t>(i)]);
    auto size = as_const(part->shape[axis]);
    if (!size) return std::nullopt;
    begin += *size;
  }
  return moved(c, [&](const Index& at) {
    Index from = at;
    from[axis] += begin;
    return Source{0, flat(from, *whole)};
  });
}

std::optional<KnownValue> strided_slice(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& whole = c.operands[0].shape;
  auto list = [&](const char* name) { return ints_attr(c.call, name); };
  auto begin = list("begin"), strides = list("strides"), axes = list("axes");
  bool by_size = text_attr(c.call, "slice_mode") == "size";
  // A list that is given holds numbers only where it is read as one.
  for (auto [name, read] : {std::pair{"begin", &begin}, {"strides", &strides}, {"axes", &axes}}) {
    if (!*read && !attr_value(c.call.attrs, name).is_none()) return std::nullopt;
  }
  if (!whole) return std::nullopt;
  std::vector<int64_t> first(whole->size(), 0), step(whole->size(), 1);
  if (by_size || (strides && strides->empty())) strides.reset();
  auto end = attr_value(c.call.attrs, "end");
  auto* ends = end.get_if<ValueList>();
  size_t n = std::max(begin ? begin->size() : 0, ends != nullptr ? ends->size() : 0);
  for (size_t k = 0; k < n; ++k) {
    size_t axis = axis_of(axes ? (*axes)[k] : static_cast<int64_t>(k), whole->size());
    int64_t size = (*whole)[axis];
    if (strides) {
      step[axis] = k < strides->size() ? (*strides)[k] : strides->size() == 1 ? (*strides)[0] : 1;
    }
    bool forward = step[axis] > 0;
    int64_t at = begin && k < begin->size() ? (*begin)[k] : forward ? 0 : -1;
    if (at < 0) at += size;
    first[axis] =
        forward ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
  }
  return moved(c, [&](const Index& at) {
    Index from(at.size());
    for (size_t a = 0; a < at.size(); ++a) from[a] = first[a] + at[a] * step[a];
    return Source{0, flat(from, *whole)};
  });
}

std::optional<KnownValue> tile(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& shape = c.operands[0].shape;
  if (!shape) return std::nullopt;
  return moved(c, [&](const Index& at) {
    Index from(shape->size());
    size_t lead = at.size() - shape->size();
    for (size_t a = 0; a < shape->size(); ++a) from[a] = at[lead + a] % (*shape)[a];
    return Source{0, flat(from, *shape)};
  });
}

std::optional<KnownValue> repeat(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& shape = c.operands[0].shape;
  if (!shape) return std::nullopt;
  int64_t times = int_attr(c.call, "repeats");
  AttrValue along = attr_value(c.call.attrs, "axis");
  auto* given = along.get_if<int64_t>();
  return moved(c, [&](const Index& at) {
    if (given == nullptr) return Source{0, at[0] / times};
    Index from = at;
    from[axis_of(*given, shape->size())] /= times;
    return Source{0, flat(from, *shape)};
  });
}

std::optional<KnownValue> reverse(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  return moved(c, [&](const Index& at) {
    Index from = at;
    from[axis] = c.shape[axis] - 1 - at[axis];
    return Source{0, flat(from, c.shape)};
  });
}

std::optional<KnownValue> where(const KnownCall& c) {
  for (const KnownOperand& o : c.operands) {
    if (!o.shape) return std::nullopt;
  }
  // A float is a condition, too; what is known of it is not an integer.
  const KnownValue* condition = c.operands[0].value;
  if (condition != nullptr && !condition->is_int()) condition = nullptr;
  auto source = [&](size_t operand, const Index& at) {
    return Source{operand, broadcast_flat(at, *c.operands[operand].shape)};
  };
  return moved(c, [&](const Index& at) {
    auto place = static_cast<size_t>(source(0, at).at);
    auto holds = condition == nullptr ? std::optional<int64_t>() : as_const(condition->ints[place]);
    if (holds) return source(*holds != 0 ? 1 : 2, at);
    // Either way the same.
    const KnownValue *a = c.operands[1].value, *b = c.operands[2].value;
    Source first = source(1, at), second = source(2, at);
    bool same =
        a != nullptr && b != nullptr && a->is_int() &&
        dim_equal(a->ints[static_cast<size_t>(first.at)], b->ints[static_cast<size_t>(second.at)]);
    return same ? first : Source{};
  });
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
std::optional<KnownValue> zeros(const KnownCall& c) { return filled(c, 0); }
std::optional<KnownValue> ones(const KnownCall& c) { return filled(c, 1); }

std::optional<KnownValue> shape_of(const KnownCall& c) {
  KnownValue out = known_ints(c.operands[0].type->shape, c.type.dtype);
  for (Dim& d : out.ints) d = converted(d, out.dtype);
  return out;
}

std::optional<KnownValue> ndarray_size(const KnownCall& c) {
  Dim n = dim(1);
  for (const Dim& d : c.operands[0].type->shape) {
    n = combine(*binary_element("multiply", DType::Int(64)), n, d, DType::Int(64), DType::Int(64));
  }
  return known_scalar(converted(n, c.type.dtype), c.type.dtype);
}

std::optional<KnownValue> arange(const KnownCall& c) {
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

std::optional<KnownValue> cast(const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  if (x == nullptr) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(x->size()); ++i) {
    if (!cast_element(*x, i, out)) return std::nullopt;
  }
  return out;
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
std::optional<KnownValue> full(const KnownCall& c) { return full_of(c, c.operands[0]); }
std::optional<KnownValue> full_like(const KnownCall& c) { return full_of(c, c.operands[1]); }

const std::string& op_name(const KnownCall& c) { return as<OpNode>(c.call.op)->name; }

std::optional<KnownValue> unary(const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  if (x == nullptr) return std::nullopt;
  const std::string& op = op_name(c);
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  if (x->is_int()) {
    const BinaryElement& minus = *binary_element("subtract", x->dtype);
    for (const Dim& d : x->ints) {
      auto value = as_const(d);
      auto negated = [&] { return combine(minus, dim(0), d, x->dtype, x->dtype); };
      if (op == "logical_not") {
        out.ints.push_back(value ? dim(static_cast<int64_t>(*value == 0)) : dim_any());
      } else if (op == "negative") {
        out.ints.push_back(negated());
      } else if (op == "abs") {
        auto least = is_any(d) ? std::nullopt : least_value(d);
        out.ints.push_back(least && *least >= 0 ? d : value ? negated() : dim_any());
      } else {
        out.ints.push_back(d);  // floor, ceil, round, trunc
      }
    }
    return out;
  }
  for (double v : x->floats) {
    double r = op == "negative" ? -v
               : op == "abs"    ? std::fabs(v)
               : op == "floor"  ? std::floor(v)
               : op == "ceil"   ? std::ceil(v)
               : op == "trunc"  ? std::trunc(v)
               : op == "sqrt"   ? std::sqrt(v)
                                : std::numeric_limits<double>::quiet_NaN();
    auto kept = rounded(r, x->dtype);
    if (!kept || std::isnan(r)) return std::nullopt;
    out.floats.push_back(*kept);
  }
  return out;
}

std::optional<KnownValue> binary(const KnownCall& c) {
  const KnownOperand &a = c.operands[0], &b = c.operands[1];
  const BinaryElement& rule = *binary_element(op_name(c), a.type->dtype);
  if (!a.shape || !b.shape) return std::nullopt;
  KnownValue out{c.type.dtype, c.shape, {}, {}};
  if (a.type->dtype.is_floating()) {
    bool known = a.value != nullptr && b.value != nullptr && rule.floats != nullptr &&
                 rounded(0, a.type->dtype);
    if (!known) return std::nullopt;
    each_index(c.shape, [&](const Index& at) {
      double x = a.value->floats[static_cast<size_t>(broadcast_flat(at, *a.shape))];
      double y = b.value->floats[static_cast<size_t>(broadcast_flat(at, *b.shape))];
      out.floats.push_back(*rounded(rule.floats(x, y), out.dtype));
    });
    return out;
  }
  auto element = [](const KnownOperand& o, const Index& at) {
    return o.value == nullptr ? dim_any()
                              : o.value->ints[static_cast<size_t>(broadcast_flat(at, *o.shape))];
  };
  each_index(c.shape, [&](const Index& at) {
    out.ints.push_back(combine(rule, element(a, at), element(b, at), a.type->dtype, c.type.dtype));
  });
  return out;
}

std::optional<KnownValue> reduction(const KnownCall& c) {
  const KnownValue* x = c.operands[0].value;
  const std::string& name = op_name(c);
  if (x == nullptr || !x->is_int() || x->size() == 0 || !c.operands[0].shape) return std::nullopt;
  const std::vector<int64_t>& shape = *c.operands[0].shape;
  const BinaryElement& rule = *binary_element(name == "sum"    ? "add"
                                              : name == "prod" ? "multiply"
                                              : name == "max"  ? "maximum"
                                                               : "minimum",
                                              x->dtype);
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
  each_index(shape, [&](const Index& at) {
    Index to;
    for (size_t a = 0; a < shape.size(); ++a) {
      if (!reduced[a]) to.push_back(at[a]);
    }
    Dim& sum = out.ints[static_cast<size_t>(flat(to, left))];
    const Dim& element = x->ints[i++];
    sum = sum == nullptr ? element : combine(rule, sum, element, x->dtype, x->dtype);
  });
  return out;
}

// ---- The table ---------------------------------------------------------------------------------

struct Row {
  std::string_view op;
  KnownRule rule;
};

constexpr Row kRows[] = {
    {"shape_of", {shape_of, false}},
    {"ndarray_size", {ndarray_size, false}},
    {"zeros", {zeros, false}},
    {"ones", {ones, false}},
    {"zeros_like", {zeros, false}},
    {"ones_like", {ones, false}},
    {"arange", {arange, false}},
    {"full", {full}},
    {"full_like", {full_like}},
    {"copy", {same_order}},
    {"broadcast_to", {broadcast_to}},
    {"broadcast_to_like", {broadcast_to}},
    {"transpose", {transpose}},
    {"take", {take}},
    {"concatenate", {concatenate}},
    {"stack", {stack}},
    {"split", {split}},
    {"strided_slice", {strided_slice}},
    {"tile", {tile}},
    {"repeat", {repeat}},
    {"reverse", {reverse}},
    {"where", {where}},
    {"cast", {cast}},
    {"logical_not", {unary}},
    {"negative", {unary}},
    {"abs", {unary}},
    {"floor", {unary}},
    {"ceil", {unary}},
    {"trunc", {unary}},
    {"sqrt", {unary}},
    {"sum", {reduction}},
    {"prod", {reduction}},
    {"max", {reduction}},
    {"min", {reduction}},
};
constexpr KnownRule kReshape{same_order};
constexpr KnownRule kBinary{binary};

}  // namespace

const KnownRule* known_rule(const CallNode& call) {
  auto* op = as<OpNode>(call.op);
  if (op == nullptr) return nullptr;
  if (op->row->reshape_only) return &kReshape;
  auto found = std::ranges::find(kRows, std::string_view(op->name), &Row::op);
  if (found != std::end(kRows)) return &found->rule;
  auto* first = call.args.empty() ? nullptr : as<TensorTypeNode>(call.args[0]->type);
  return first != nullptr && binary_element(op->name, first->dtype) != nullptr ? &kBinary : nullptr;
}

}  // namespace relay
