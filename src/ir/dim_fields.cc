#include "ir/dim_fields.h"

#include <utility>

#include "base/codes/operators.h"
#include "node/walk.h"

namespace relay {

AttrValue to_value(const Dim& size) {
  auto constant = as_const(size);
  return constant ? AttrValue(*constant) : node_value(size);
}

AttrValue to_value(const Dims& sizes) {
  ValueList out;
  for (const Dim& d : sizes) out.push_back(to_value(d));
  return AttrValue(std::move(out));
}

bool from_value(const AttrValue& value, Dim& size) {
  if (const NodeRef* node = node_in(value)) {
    if (!isa<DimNode>(*node)) return false;
    bool known = true;
    post_order(
        *node, [&](const Node& n) { known &= !isa<DimAnyNode>(&n); }, family::dim);
    size = Dim::unchecked(*node);
    return known;
  }
  int64_t number = 0;
  if (!field_detail::Convert<int64_t>::from(value, number)) return false;
  size = dim(number);
  return true;
}

bool from_value(const AttrValue& value, Dims& sizes) {
  auto* list = value.get_if<ValueList>();
  if (list == nullptr) return false;
  Dims out(list->size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!from_value((*list)[i], out[i])) return false;
  }
  sizes = std::move(out);
  return true;
}

namespace {

// The sizes in a field, in order.
size_t count_of(const Dims& field) { return field.size(); }
NodeRef& child_of(Dims& field, size_t i) { return field[i]; }

size_t count_of(const std::optional<Dims>& field) { return field ? field->size() : 0; }
NodeRef& child_of(std::optional<Dims>& field, size_t i) { return (*field)[i]; }
AttrValue to_value(const std::optional<Dims>& field) {
  return field ? relay::to_value(*field) : AttrValue();
}
bool from_value(const AttrValue& value, std::optional<Dims>& field) {
  if (value.is_none()) return field.reset(), true;
  return relay::from_value(value, field.emplace());
}

size_t count_of(const DimLists& field) {
  size_t count = 0;
  for (const Dims& list : field) count += list.size();
  return count;
}
NodeRef& child_of(DimLists& field, size_t i) {
  auto list = field.begin();
  for (; i >= list->size(); ++list) i -= list->size();
  return (*list)[i];
}
AttrValue to_value(const DimLists& field) {
  ValueList out;
  for (const Dims& list : field) out.push_back(relay::to_value(list));
  return AttrValue(std::move(out));
}
bool from_value(const AttrValue& value, DimLists& field) {
  auto* lists = value.get_if<ValueList>();
  if (lists == nullptr) return false;
  DimLists out(lists->size());
  for (size_t i = 0; i < out.size(); ++i) {
    if (!relay::from_value((*lists)[i], out[i])) return false;
  }
  field = std::move(out);
  return true;
}

template <class T>
constexpr FieldOps ops_of(const char* name) {
  return {[](const void* f) { return count_of(*static_cast<const T*>(f)); },
          [](const void* f, size_t i) -> const NodeRef& {
            return child_of(*const_cast<T*>(static_cast<const T*>(f)), i);
          },
          [](void* f, size_t i, NodeRef c) { child_of(*static_cast<T*>(f), i) = std::move(c); },
          [](const void* a, const void* b) {
            return to_value(*static_cast<const T*>(a)) == to_value(*static_cast<const T*>(b));
          },
          [](const void* f) {
            return field_detail::Convert<AttrValue>::hash(to_value(*static_cast<const T*>(f)));
          },
          [](const void* f) { return to_value(*static_cast<const T*>(f)); },
          [](void* f, const AttrValue& v) { return from_value(v, *static_cast<T*>(f)); },
          name};
}

// A field that is an AttrValue: lists hold nodes for constants, too.
ValueList* list_in(const void* field) {
  return const_cast<ValueList*>(static_cast<const AttrValue*>(field)->get_if<ValueList>());
}
size_t count_in_value(const void* field) {
  ValueList* list = list_in(field);
  return list == nullptr ? 0 : list->size();
}
const NodeRef& child_in_value(const void* field, size_t i) {
  return *node_in((*list_in(field))[i]);
}
void set_in_value(void* field, size_t i, NodeRef child) {
  (*list_in(field))[i] = node_value(std::move(child));
}
AttrValue get_value(const void* field) {
  ValueList* list = list_in(field);
  if (list == nullptr) return AttrValue();
  Dims sizes;
  for (const AttrValue& v : *list) sizes.push_back(Dim::unchecked(*node_in(v)));
  return to_value(sizes);
}
bool set_value(void* field, const AttrValue& value) {
  Dims sizes;
  if (!from_value(value, sizes)) return false;
  ValueList out;
  for (const Dim& d : sizes) out.push_back(node_value(d));
  *static_cast<AttrValue*>(field) = std::move(out);
  return true;
}
bool set_optional_value(void* field, const AttrValue& value) {
  if (!value.is_none()) return set_value(field, value);
  *static_cast<AttrValue*>(field) = AttrValue();
  return true;
}
constexpr FieldOps value_ops(bool (*set)(void*, const AttrValue&)) {
  return {count_in_value,
          child_in_value,
          set_in_value,
          [](const void* a, const void* b) { return get_value(a) == get_value(b); },
          [](const void* f) { return field_detail::Convert<AttrValue>::hash(get_value(f)); },
          get_value,
          set,
          "list of dimension"};
}

}  // namespace

const FieldOps FieldTraits<Dims>::ops = ops_of<Dims>("list of dimension");
const FieldOps FieldTraits<std::optional<Dims>>::ops =
    ops_of<std::optional<Dims>>("list of dimension");
const FieldOps FieldTraits<DimLists>::ops = ops_of<DimLists>("list of lists of dimension");
const FieldOps kDimsValue = value_ops(set_value);
const FieldOps kOptionalDimsValue = value_ops(set_optional_value);

const FieldOps FieldTraits<DimOrNumber>::ops = {
    [](const void* f) -> size_t {
      return node_in(static_cast<const DimOrNumber*>(f)->value) == nullptr ? 0 : 1;
    },
    [](const void* f, size_t) -> const NodeRef& {
      return *node_in(static_cast<const DimOrNumber*>(f)->value);
    },
    [](void* f, size_t, NodeRef c) {
      static_cast<DimOrNumber*>(f)->value = to_value(Dim::unchecked(std::move(c)));
    },
    [](const void* a, const void* b) {
      return static_cast<const DimOrNumber*>(a)->value == static_cast<const DimOrNumber*>(b)->value;
    },
    [](const void* f) {
      return field_detail::Convert<AttrValue>::hash(static_cast<const DimOrNumber*>(f)->value);
    },
    [](const void* f) { return static_cast<const DimOrNumber*>(f)->value; },
    [](void* f, const AttrValue& v) {
      Dim size;
      bool number = v.is_none() || v.get_if<double>() != nullptr;
      if (!number && !from_value(v, size)) return false;
      static_cast<DimOrNumber*>(f)->value = number ? v : to_value(size);
      return true;
    },
    "number or dimension"};

void check_known_sizes(Node& now, const Node& before) {
  for (const Field& f : now.info().fields) {
    if (f.ops->get_child == nullptr) continue;
    const void *was = f.in(before), *is = f.in(std::as_const(now));
    size_t count = f.ops->count(was);
    for (size_t i = 0; i < count; ++i) {
      Dim named = Dim::unchecked(f.ops->get_child(was, i));
      if (as_const(named)) continue;
      // A number that stands by itself is no sub-node.
      auto size = i < f.ops->count(is) ? as_const(Dim::unchecked(f.ops->get_child(is, i)))
                                       : std::optional<int64_t>();
      if (i >= f.ops->count(is)) {
        AttrValue number = f.ops->get(is);
        if (auto* n = number.get_if<int64_t>()) size = *n;
      }
      if (size.value_or(0) >= 0) continue;
      throw UserError(Diagnostic(codes::op_bad_attribute, {},
                                 "the size " + to_string(named) + " in '" + std::string(f.name) +
                                     "' is below zero")
                          .expected("0 or more")
                          .found(std::to_string(*size)));
    }
  }
}

}  // namespace relay
