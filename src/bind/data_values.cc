#include "bind/data_values.h"

#include <nanobind/stl/string.h>

#include <charconv>

#include "bind/convert.h"

namespace relay::bind {
namespace {

// The walks over values that nest without a limit, which are written once, in Python.
nb::object structure(const char* function) {
  return nb::module_::import_("relay._structure").attr(function);
}

// What an object owns, for the collector of cycles.
nb::object& held(ConstructorValue& v) { return v.fields; }
nb::object& held(RefValue& v) { return v.value; }

template <class T>
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  Py_VISIT(held(*nb::inst_ptr<T>(self)).ptr());
  return 0;
}

template <class T>
int clear(PyObject* self) {
  if (nb::inst_ready(self)) held(*nb::inst_ptr<T>(self)) = nb::none();
  return 0;
}

template <class T>
PyType_Slot kCycles[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse<T>)},
                         {Py_tp_clear, reinterpret_cast<void*>(clear<T>)},
                         {0, nullptr}};

constexpr const char* kConstructorValueDoc =
    "A value of a data type: the name of its constructor, and its fields. Lists and options of "
    "the\n"
    "prelude are Python's lists, and values or None; relay.adt has constructors as classes.";
constexpr const char* kRefValueDoc =
    "A reference: what a program is given and gives for a value of type ref(T).\n\n"
    "What a program writes is `value` when it is done; the reference that was given is the one "
    "that\n"
    "comes out again. `==` and hash are those of the reference, not of what it refers to.";

void bind_constructor_value(nb::module_& m) {
  nb::class_<ConstructorValue> made(m, "ConstructorValue", kConstructorValueDoc,
                                    nb::type_slots(kCycles<ConstructorValue>));
  made.attr("__match_args__") = nb::make_tuple("constructor", "fields");
  made.def(
          "__init__",
          [](ConstructorValue* self, const std::string& constructor, nb::iterable fields,
             const std::string& type) {
            new (self) ConstructorValue{constructor, nb::tuple(fields), type};
          },
          nb::arg("constructor"), nb::arg("fields") = nb::tuple(), nb::arg("type") = "")
      .def_ro("constructor", &ConstructorValue::constructor, "The name of the constructor.")
      .def_ro("type", &ConstructorValue::type, "The name of the data type; empty if not given.")
      .def_prop_ro(
          "fields", [](const ConstructorValue& self) { return self.fields; },
          nb::sig("def fields(self) -> tuple[object, ...]"), "The fields, in order.")
      .def(
          "__eq__",
          [](nb::handle self, nb::handle other) { return structure("equal")(self, other); },
          nb::sig("def __eq__(self, arg: object, /) -> bool"))
      .def(
          "__hash__",
          [](const ConstructorValue& self) {
            return nb::object(nb::make_tuple(self.constructor, nb::len(self.fields)))
                .attr("__hash__")();
          },
          nb::sig("def __hash__(self) -> int"))
      .def(
          "__getattr__",
          [](const ConstructorValue& self, const std::string& name) {
            // What the classes of relay.adt call fields for `match`: _0, _1, ...
            size_t i = 0;
            const char* end = name.data() + name.size();
            bool is_field = name.size() > 1 && name[0] == '_' &&
                            std::from_chars(name.data() + 1, end, i).ptr == end;
            if (!is_field || i >= nb::len(self.fields)) {
              throw nb::attribute_error(
                  ("a ConstructorValue has no attribute '" + name + "'").c_str());
            }
            return nb::object(self.fields[i]);
          },
          nb::sig("def __getattr__(self, name: str, /) -> typing.Any"))
      .def(
          "__repr__", [](nb::handle self) { return structure("text")(self); },
          nb::sig("def __repr__(self) -> str"))
      .def(
          "__deepcopy__",
          [](nb::handle self, nb::handle memo) { return structure("deep_copy")(self, memo); },
          nb::arg("memo"), nb::sig("def __deepcopy__(self, memo: object) -> ConstructorValue"))
      .def(
          "__reduce__", [](nb::handle self) { return structure("reduced")(self); },
          nb::sig("def __reduce__(self) -> tuple"));
}

void bind_ref_value(nb::module_& m) {
  nb::class_<RefValue>(m, "RefValue", kRefValueDoc, nb::type_slots(kCycles<RefValue>))
      .def(
          "__init__",
          [](RefValue* self, nb::object value) { new (self) RefValue{std::move(value)}; },
          nb::arg("value").none() = nb::none(),
          nb::sig("def __init__(self, value: object = None) -> None"))
      .def_prop_rw(
          "value", [](const RefValue& self) { return self.value; },
          [](RefValue& self, nb::object value) { self.value = std::move(value); },
          nb::for_getter(nb::sig("def value(self) -> typing.Any")),
          nb::for_setter(nb::sig("def value(self, value: object, /) -> None")),
          nb::for_setter(nb::arg().none()), "What it refers to.")
      .def(
          "__repr__", [](nb::handle self) { return structure("text")(self); },
          nb::sig("def __repr__(self) -> str"))
      .def("__getstate__", [](const RefValue& self) { return nb::make_tuple(self.value); })
      .def("__setstate__",
           [](RefValue& self, nb::tuple state) { new (&self) RefValue{nb::borrow(state[0])}; });
}

}  // namespace

void bind_data_values(nb::module_& m) {
  bind_constructor_value(m);
  bind_ref_value(m);
}

}  // namespace relay::bind
