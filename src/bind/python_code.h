// Python code that the compiler calls: passes, instruments, conditions, columns of operators.
//
//   Held f(function);                                          // in a std::function, on any thread
//   in_python(codes::pass_python, {}, "pass mylib.Fold", [&] { return cast(f.get()(mod)); });
//
// What it raises becomes a UserError that says which call it was about, with the traceback; Python sees the
// original as its cause. Ctrl-C stays Ctrl-C.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/diagnostic.h"
#include "bind/convert.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"

namespace relay::bind {

// A Python object that C++ holds; copied, and let go, on any thread. When the interpreter ends, all are let go.
class Held {
 public:
  Held() = default;
  // Needs the GIL.
  explicit Held(nb::handle object);
  // Needs the GIL; nb::value_error after `drop` or the end of the interpreter.
  nb::object get() const;
  // Lets the object go for all copies; needs the GIL.
  void drop() const;
  // Lets all objects go that C++ holds.
  static void drop_all();
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// An error of the compiler that is what Python code raised.
class PythonFailure : public UserError {
 public:
  PythonFailure(Diagnostic diagnostic, Held cause)
      : UserError(std::move(diagnostic)), cause_(std::move(cause)) {}
  const Held& cause() const { return cause_; }

 private:
  Held cause_;
};

// Throws the PythonFailure for what was raised; `what` is what called: "pass mylib.Fold". Relay's own errors keep
// their code. Needs the GIL.
[[noreturn]] void rethrow_python(nb::python_error& raised, const DiagnosticCode& code,
                                 const Span& span, const std::string& what);
// The same for what a conversion of Python's values raised.
[[noreturn]] void rethrow_python(const nb::builtin_exception& raised, const DiagnosticCode& code,
                                 const Span& span, const std::string& what);

// `f()` with the GIL; it gives nothing that belongs to Python.
template <class F>
auto in_python(const DiagnosticCode& code, const Span& span, const std::string& what, const F& f) {
  PythonLock lock;
  try {
    return f();
  } catch (nb::python_error& raised) {
    rethrow_python(raised, code, span, what);
  } catch (const WrongArgument& raised) {
    rethrow_python(nb::type_error(raised.message().c_str()), code, span, what);
  } catch (const nb::builtin_exception& raised) {
    rethrow_python(raised, code, span, what);
  }
}

// What a Python function says of expressions, as true or false. `what` is what calls: "a condition of a pattern".
std::function<bool(const Expr&)> condition_of(nb::handle function, const std::string& what);

void bind_python_code(nb::module_& m);

}  // namespace relay::bind
