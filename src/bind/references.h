// The references of one call: each RefValue that is given is a reference of the program's, the same
// wherever it is given, and has what was written into it when the call is over.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "bind/convert.h"

namespace relay::bind {

struct Reference {
  nb::object object;  // a RefValue
  runtime::Value cell;
  runtime::Value given;  // its content before the call; null for one that the program made
  Type type;             // ref(T), or null when it is not known
};

// Needs the GIL.
class References {
 public:
  // Null when the call has not met it.
  Reference* of_object(nb::handle ref);
  Reference* of_cell(const runtime::Object* cell);
  // The reference stays where it is.
  Reference& add(nb::object object, runtime::Value cell, Type type);

  // Gives the objects what the program wrote; references within that are met on the way.
  void write_back(const Module& mod);

 private:
  // Nothing is allocated for a call without references.
  std::vector<std::unique_ptr<Reference>> all_;
  std::unordered_map<PyObject*, Reference*> by_object_;
  std::unordered_map<const runtime::Object*, Reference*> by_cell_;
};

}  // namespace relay::bind
