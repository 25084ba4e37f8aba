// A dynamically typed plain value: how attributes travel to and from text, JSON and Python.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace relay {

class NodeRef;
class AttrValue;
using ValueList = std::vector<AttrValue>;

// A node as a value: a symbolic size among numbers. Equal to any node of the same structure.
struct NodeValue {
  std::shared_ptr<const NodeRef> node;
  friend bool operator==(const NodeValue& a, const NodeValue& b);
};

// None, a bool, an integer, a float, a string, a list of values, or a node. dtypes travel as
// strings.
class AttrValue : public std::variant<std::monostate, bool, int64_t, double, std::string, ValueList,
                                      NodeValue> {
 public:
  using variant::variant;
  bool is_none() const { return index() == 0; }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(this);
  }
};

// The value in Relay's attribute syntax: `[1, 2]`, `"NCHW"`, `True`, `1e-05f`, `None`, `2 * n`.
std::string to_string(const AttrValue& value);

}  // namespace relay
