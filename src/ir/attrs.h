// Attribute structs: the static arguments of operators.
//
// An attribute struct is a node whose fields are plain values with defaults and a sentence each;
// it lives beside its operators in `ops`. Here is the common base, and generic access by name.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

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

// The NodeInfo of an attribute struct:
//   static const NodeInfo info = describe_attrs<SoftmaxAttrs>("relay.attrs.SoftmaxAttrs",
//       {attribute("axis", &SoftmaxAttrs::axis, "The axis that sums to one.")});
template <class T>
NodeInfo describe_attrs(std::string_view name, std::vector<Field> fields) {
  return describe<T>(name, AttrsKind::Attrs, family::attrs, std::move(fields));
}

// Builds attributes of a struct from named values; fields left out keep their defaults. Throws
// UserError E0106 that names the operator, the field, the expected type and the known fields when a
// name is unknown or a value does not fit.
Attrs make_attrs(const NodeInfo& info, const std::vector<std::pair<std::string, Value>>& values,
                 std::string_view op_name, const Span& span);

// All fields as named values, in order; with `only_changed` those that differ from the default.
std::vector<std::pair<std::string, Value>> attr_values(const Attrs& attrs,
                                                       bool only_changed = false);

// One field by name; it is a defect of Relay if there is none.
Value attr_value(const Attrs& attrs, std::string_view name);

}  // namespace relay
