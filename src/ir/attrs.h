// Attribute structs: the static arguments of operators.
//
// An attribute struct is a node whose fields are plain values with defaults and a sentence each;
// it lives beside its operators in `ops`. What is a size is a dimension (ir/dim_fields.h), named in
// the list of fields by `child`, all else by `attribute`. Here is the common base, the same described by data for
// operators that are made at run time, and generic access by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/dim_fields.h"
#include "ir/fields.h"

namespace relay {

namespace AttrsKind {
enum : int { Attrs = 0x300 };
}

struct AttrsNode : Node {
  static bool classof(const Node& n) { return n.info().family == family::attrs; }

 protected:
  using Node::Node;
};
using Attrs = Ref<AttrsNode>;

// `T::rebuilt`, if there is one, is called on attributes some of whose sizes are now known.
template <class T>
NodeInfo describe_attrs(std::string_view name, std::vector<Field> fields) {
  NodeInfo info = describe<T>(name, AttrsKind::Attrs, family::attrs, std::move(fields));
  info.rebuilt = [](Node& now, const Node& before) {
    check_known_sizes(now, before);
    if constexpr (requires(T & a, const T& b) { T::rebuilt(a, b); }) {
      T::rebuilt(static_cast<T&>(now), static_cast<const T&>(before));
    }
  };
  return info;
}

// What an attribute struct says about itself: its name in text, and its fields.
struct AttrsList {
  std::string_view name;
  std::vector<Field> fields;
};

// The base of an attribute struct, which is written beside the operator:
//
//   struct SoftmaxAttrs : AttrsOf<SoftmaxAttrs> {
//     int64_t axis = -1;
//     static AttrsList describe() {
//       return {"relay.attrs.SoftmaxAttrs",
//               {attribute("axis", &Self::axis, "The axis that sums to one.")}};
//     }
//   };
//
// `Base` is what several such structs have in common; its constructor takes the NodeInfo and what
// the struct gives.
template <class T, class Base = AttrsNode>
struct AttrsOf : Base {
  using Self = T;
  static const NodeInfo& static_info() {
    static const NodeInfo info = [] {
      AttrsList list = T::describe();
      return describe_attrs<T>(list.name, std::move(list.fields));
    }();
    return info;
  }

 protected:
  AttrsOf() : Base(static_info()) {}
  AttrsOf(const AttrsOf&) = default;
  template <class First, class... Rest>
  requires(!std::is_base_of_v<Node, std::remove_cvref_t<First>>) explicit AttrsOf(First&& first,
                                                                                  Rest&&... rest)
      : Base(static_info(), std::forward<First>(first), std::forward<Rest>(rest)...) {}
};

// ---- Attributes made at run time ---------------------------------------------------------------

// An attribute as data, for operators from outside.
struct AttrSpec {
  std::string name;
  std::string type;  // bool, int, float, string, dtype, list of int/float/string/dimension, value
  AttrValue value;   // the default; None: the attribute may be None
  std::string doc;
};

// Describes attributes by data. Nodes of the kind print, parse, compare, hash and are checked as
// those of a struct are; `attr_as` reads them. They keep the description alive. Throws UserError
// E0805 for a type that is not known, a default of another type, and a name that is not an identifier
// or is there twice.
std::shared_ptr<const NodeInfo> describe_attrs(std::string name, std::vector<AttrSpec> fields);

// ---- Access by name ----------------------------------------------------------------------------

// Builds attributes of a struct from named values; fields left out keep their defaults. Throws
// UserError E0106 that names the operator, the field, the expected type and the known fields when a
// name is unknown or a value does not fit.
Attrs make_attrs(const NodeInfo& info, const std::vector<std::pair<std::string, AttrValue>>& values,
                 std::string_view op_name, const Span& span);

// All fields as named values, in order; with `only_changed` those that differ from the default.
std::vector<std::pair<std::string, AttrValue>> attr_values(const Attrs& attrs,
                                                           bool only_changed = false);

// Whether there is a size with a name among the attributes.
bool has_symbolic_sizes(const Attrs& attrs);

// One field by name; it is a defect of Relay if there is none.
AttrValue attr_value(const Attrs& attrs, std::string_view name);

// The same, as a C++ type that the field's values convert to.
template <class T>
T attr_as(const Attrs& attrs, std::string_view name) {
  T out{};
  RELAY_CHECK(field_detail::Convert<T>::from(attr_value(attrs, name), out), std::string(name));
  return out;
}

}  // namespace relay
