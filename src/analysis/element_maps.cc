#include "analysis/element_maps.h"

#include <algorithm>

#include "analysis/calls.h"
#include "analysis/element_indices.h"
#include "analysis/known_rules.h"

namespace relay::element_maps {
namespace {

// The attribute `axis` where it is a number.
std::optional<int64_t> optional_axis(const KnownCall& c) {
  const AttrValue axis = attr_value(c.call.attrs, "axis");
  auto* given = axis.get_if<int64_t>();
  return given == nullptr ? std::nullopt : std::optional(*given);
}

}  // namespace

ElementMap same_order(const KnownCall&) {
  return [i = int64_t{0}](const ElementIndex&) mutable { return ElementSource{0, i++}; };
}

ElementMap broadcast(const KnownCall& c) {
  if (!c.operands[0].shape) return nullptr;
  return [=, &c](const ElementIndex& at) {
    return ElementSource{0, broadcast_flat(at, *c.operands[0].shape)};
  };
}

ElementMap transpose(const KnownCall& c) {
  if (!c.operands[0].shape) return nullptr;
  size_t rank = c.shape.size();
  auto axes = ints_attr(c.call, "axes");
  return [=, &c](const ElementIndex& at) {
    ElementIndex from(rank);
    for (size_t d = 0; d < rank; ++d) {
      from[axes && !axes->empty() ? axis_of((*axes)[d], rank) : rank - 1 - d] = at[d];
    }
    return ElementSource{0, flat(from, *c.operands[0].shape)};
  };
}

ElementMap take(const KnownCall& c) {
  const KnownOperand &data = c.operands[0], &indices = c.operands[1];
  if (!data.shape || !indices.shape || data.value == nullptr || indices.value == nullptr) {
    return nullptr;
  }
  const std::vector<int64_t>& shape = *data.shape;
  std::string mode = text_attr(c.call, "mode");
  const std::optional<int64_t> given = optional_axis(c);
  size_t axis = given ? axis_of(*given, shape.size()) : 0;
  size_t width = indices.shape->size();
  int64_t n = given ? shape[axis] : count_of(shape);
  if (n == 0) return nullptr;
  return [=](const ElementIndex& at) {
    auto first = at.begin() + static_cast<std::ptrdiff_t>(axis);
    auto behind = first + static_cast<std::ptrdiff_t>(width);
    auto which = as_const(
        indices.value
            ->ints[static_cast<size_t>(flat(ElementIndex(first, behind), *indices.shape))]);
    if (!which) return ElementSource{};
    int64_t i = *which;
    if (mode == "wrap") {
      i = i % n < 0 ? i % n + n : i % n;
    } else {
      if (mode != "clip" && i < 0) i += n;
      i = std::clamp<int64_t>(i, 0, n - 1);
    }
    if (!given) return ElementSource{0, i};
    ElementIndex from(at.begin(), first);
    from.push_back(i);
    from.insert(from.end(), behind, at.end());
    return ElementSource{0, flat(from, shape)};
  };
}

ElementMap concatenate(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  for (const KnownOperand& o : c.operands) {
    if (!o.shape) return nullptr;
  }
  return [=, &c](const ElementIndex& at) {
    ElementIndex from = at;
    size_t part = 0;
    while (from[axis] >= (*c.operands[part].shape)[axis]) {
      from[axis] -= (*c.operands[part++].shape)[axis];
    }
    return ElementSource{part, flat(from, *c.operands[part].shape)};
  };
}

ElementMap stack(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  std::vector<int64_t> inner = c.shape;
  inner.erase(inner.begin() + static_cast<std::ptrdiff_t>(axis));
  return [=](const ElementIndex& at) {
    ElementIndex from = at;
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(axis));
    return ElementSource{static_cast<size_t>(at[axis]), flat(from, inner)};
  };
}

ElementMap split(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& whole = c.operands[0].shape;
  if (!whole) return nullptr;
  size_t axis = axis_of(int_attr(c.call, "axis"), whole->size());
  int64_t begin = 0;
  for (int64_t i = 0; i < c.part; ++i) {
    auto* part = as<TensorTypeNode>(as<TupleTypeNode>(c.call.type)->fields[static_cast<size_t>(i)]);
    auto size = as_const(part->shape[axis]);
    if (!size) return nullptr;
    begin += *size;
  }
  return [=](const ElementIndex& at) {
    ElementIndex from = at;
    from[axis] += begin;
    return ElementSource{0, flat(from, *whole)};
  };
}

ElementMap strided_slice(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& whole = c.operands[0].shape;
  auto list = [&](const char* name) { return ints_attr(c.call, name); };
  auto begin = list("begin"), strides = list("strides"), axes = list("axes");
  bool by_size = text_attr(c.call, "slice_mode") == "size";
  // A list that is given holds numbers only where it is read as one.
  for (auto [name, read] : {std::pair{"begin", &begin}, {"strides", &strides}, {"axes", &axes}}) {
    if (!*read && !attr_value(c.call.attrs, name).is_none()) return nullptr;
  }
  if (!whole) return nullptr;
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
  return [=](const ElementIndex& at) {
    ElementIndex from(at.size());
    for (size_t a = 0; a < at.size(); ++a) from[a] = first[a] + at[a] * step[a];
    return ElementSource{0, flat(from, *whole)};
  };
}

ElementMap tile(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& shape = c.operands[0].shape;
  if (!shape) return nullptr;
  return [=](const ElementIndex& at) {
    ElementIndex from(shape->size());
    size_t lead = at.size() - shape->size();
    for (size_t a = 0; a < shape->size(); ++a) from[a] = at[lead + a] % (*shape)[a];
    return ElementSource{0, flat(from, *shape)};
  };
}

ElementMap repeat(const KnownCall& c) {
  const std::optional<std::vector<int64_t>>& shape = c.operands[0].shape;
  if (!shape) return nullptr;
  int64_t times = int_attr(c.call, "repeats");
  const std::optional<int64_t> axis = optional_axis(c);
  return [=](const ElementIndex& at) {
    if (!axis) return ElementSource{0, at[0] / times};
    ElementIndex from = at;
    from[axis_of(*axis, shape->size())] /= times;
    return ElementSource{0, flat(from, *shape)};
  };
}

ElementMap reverse(const KnownCall& c) {
  size_t axis = axis_of(int_attr(c.call, "axis"), c.shape.size());
  return [=, &c](const ElementIndex& at) {
    ElementIndex from = at;
    from[axis] = c.shape[axis] - 1 - at[axis];
    return ElementSource{0, flat(from, c.shape)};
  };
}

ElementMap where(const KnownCall& c) {
  for (const KnownOperand& o : c.operands) {
    if (!o.shape) return nullptr;
  }
  // A float is a condition, too; what is known of it is not an integer.
  const KnownValue* condition = c.operands[0].value;
  if (condition != nullptr && !condition->is_int()) condition = nullptr;
  auto source = [&c](size_t operand, const ElementIndex& at) {
    return ElementSource{operand, broadcast_flat(at, *c.operands[operand].shape)};
  };
  return [=, &c](const ElementIndex& at) {
    auto place = static_cast<size_t>(source(0, at).at);
    auto holds = condition == nullptr ? std::optional<int64_t>() : as_const(condition->ints[place]);
    if (holds) return source(*holds != 0 ? 1 : 2, at);
    // Either way the same.
    const KnownValue *a = c.operands[1].value, *b = c.operands[2].value;
    ElementSource first = source(1, at), second = source(2, at);
    bool same =
        a != nullptr && b != nullptr && a->is_int() &&
        dim_equal(a->ints[static_cast<size_t>(first.at)], b->ints[static_cast<size_t>(second.at)]);
    return same ? first : ElementSource{};
  };
}

}  // namespace relay::element_maps
