// A dynamically typed plain value: how attributes travel to and from text, JSON and Python.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace relay {

class Value;
using ValueList = std::vector<Value>;

// None, a bool, an integer, a float, a string, or a list of values. dtypes travel as strings.
class Value : public std::variant<std::monostate, bool, int64_t, double, std::string, ValueList> {
 public:
  using variant::variant;
  bool is_none() const { return index() == 0; }
  template <class T>
  const T* get_if() const {
    return std::get_if<T>(this);
  }
};

// The value in Relay's attribute syntax: `[1, 2]`, `"NCHW"`, `True`, `1e-05f`, `None`.
std::string to_string(const Value& value);

}  // namespace relay
