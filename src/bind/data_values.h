// Values of the language that Python has no type of its own for, as objects of Python.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

namespace relay::bind {

namespace nb = nanobind;

// A value of a data type.
struct ConstructorValue {
  std::string constructor;
  nb::object fields;  // a tuple
  std::string type;   // the name of the data type; empty if not given
};

// A reference: programs read and write `value`.
struct RefValue {
  nb::object value;
};

void bind_data_values(nb::module_& m);

}  // namespace relay::bind
