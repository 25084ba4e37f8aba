// relay.RelayError and its kinds: the C++ errors with their text, code and diagnostics.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <optional>
#include <stdexcept>
#include <variant>

#include "base/diagnostic.h"
#include "bind/convert.h"
#include "bind/python_code.h"
#include "bind/wrong_argument.h"

namespace relay::bind {
namespace {

// Borrowed from the module, which lives as long as the interpreter.
PyObject* user_error = nullptr;
PyObject* run_error = nullptr;
PyObject* internal_error_class = nullptr;
PyObject* argument_error = nullptr;

void raise(PyObject* type, const Error& error) {
  nb::object raised = nb::borrow(type)(error.what());
  nb::list diagnostics;
  for (const Diagnostic& d : error.diagnostics()) diagnostics.append(nb::cast(d));
  nb::object code = nb::none();
  if (!error.diagnostics().empty()) {
    code = nb::cast(std::string(error.diagnostics().front().code));
  }
  raised.attr("diagnostics") = diagnostics;
  raised.attr("code") = code;
  if (auto* failure = dynamic_cast<const PythonFailure*>(&error)) {
    PyException_SetCause(raised.ptr(), failure->cause().get().release().ptr());
  }
  PyErr_SetObject(type, raised.ptr());
}

PyObject* make_class(nb::module_& m, const char* name, const char* doc, nb::object bases) {
  std::string full = std::string("relay.") + name;
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.ptr(), nullptr);
  if (made == nullptr) throw nb::python_error();
  nb::object type = nb::steal(made);
  type.attr("code") = nb::none();
  type.attr("diagnostics") = nb::tuple();
  m.attr(name) = type;
  return made;
}

// Python's own IndexError and RuntimeError would be the caller's.
std::string defect(const std::exception& e) {
  return "internal error: " + std::string(e.what()) + " (a defect of Relay)";
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::note:
      return "note";
  }
  return "error";
}

}  // namespace

void bind_errors(nb::module_& m) {
  nb::class_<Diagnostic>(m, "Diagnostic", "One thing that is wrong, with its place.")
      .def_prop_ro("severity", [](const Diagnostic& d) { return severity_name(d.severity); })
      .def_prop_ro("code", [](const Diagnostic& d) { return std::string(d.code); })
      .def_prop_ro("message", [](const Diagnostic& d) { return d.message; })
      .def_prop_ro("expected", [](const Diagnostic& d) { return d.expected_text; })
      .def_prop_ro("found", [](const Diagnostic& d) { return d.found_text; })
      .def_prop_ro("help", [](const Diagnostic& d) { return d.help_text; })
      .def_prop_ro(
          "place", [](const Diagnostic& d) { return d.span.describe(); },
          "\"file:line:column\" or the model's node.")
      .def_prop_ro("notes",
                   [](const Diagnostic& d) {
                     std::vector<std::pair<std::string, std::string>> out;
                     for (const auto& [span, text] : d.notes) {
                       out.emplace_back(span.describe(), text);
                     }
                     return out;
                   })
      .def("__str__", [](const Diagnostic& d) { return d.render(); })
      .def("__repr__", [](const Diagnostic& d) {
        return "<relay.Diagnostic " + std::string(d.code) + ": " + d.message + ">";
      });

  PyObject* base = make_class(m, "RelayError",
                              "Any failure that Relay reports; `code` is the first diagnostic's, "
                              "\"E0203\", and `diagnostics` are all of them.",
                              nb::borrow(PyExc_Exception));
  nb::object root = nb::borrow(base);
  user_error = make_class(m, "UserError", "The program, model, option, artifact or input is wrong.",
                          nb::make_tuple(root, nb::borrow(PyExc_ValueError)));
  run_error = make_class(m, "RunError", "A run failed on its data or for want of memory.",
                         nb::make_tuple(root, nb::borrow(PyExc_RuntimeError)));
  internal_error_class = make_class(m, "InternalError", "A defect of Relay.", root);
  argument_error = make_class(
      m, "ArgumentError", "A function of the package is called with what it does not take (E0913).",
      nb::make_tuple(nb::borrow(user_error), nb::borrow(PyExc_TypeError)));
  m.def(
      "wrong_argument", [](const std::string& message) { throw WrongArgument(message); },
      nb::arg("message"), "Raises the ArgumentError of that message.");

  nb::register_exception_translator([](const std::exception_ptr& p, void*) {
    try {
      std::rethrow_exception(p);
    } catch (const WrongArgument& e) {
      raise(argument_error, e);
    } catch (const UserError& e) {
      raise(user_error, e);
    } catch (const RuntimeError& e) {
      raise(run_error, e);
    } catch (const InternalError& e) {
      raise(internal_error_class, e);
    } catch (const std::logic_error& e) {
      raise(internal_error_class, InternalError(defect(e)));
    } catch (const std::bad_optional_access& e) {
      raise(internal_error_class, InternalError(defect(e)));
    } catch (const std::bad_variant_access& e) {
      raise(internal_error_class, InternalError(defect(e)));
    } catch (const std::bad_function_call& e) {
      raise(internal_error_class, InternalError(defect(e)));
    }
  });
}

}  // namespace relay::bind
