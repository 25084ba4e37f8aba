// Where types have functions in them.
#pragma once

#include <string>
#include <unordered_set>

#include "ir/module.h"

namespace relay {

// A function type occurs in the type, type arguments included.
bool mentions_function(const Type& t);

// The data types with values that hold functions whatever their type arguments are: a function type
// occurs in a constructor, or another such data type does.
class FunctionalData {
 public:
  explicit FunctionalData(const Module& mod);
  bool contains(const std::string& type_name) const { return names_.contains(type_name); }
  // One of them occurs in the type.
  bool mentioned_in(const Type& t) const;

 private:
  std::unordered_set<std::string> names_;
};

}  // namespace relay
