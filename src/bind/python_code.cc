#include "bind/python_code.h"
#include "base/codes/passes.h"
#include "bind/wrong_argument.h"

#include <nanobind/stl/string.h>

#include <unordered_set>
#include <vector>

namespace relay::bind {

// Read and written with the GIL only.
struct Held::State {
  PyObject* object;

  explicit State(nb::handle h) : object(h.inc_ref().ptr()) { all().insert(this); }
  ~State() {
    if (Py_IsInitialized() == 0) return;
    PythonLock lock;
    all().erase(this);
    drop();
  }
  void drop() { Py_CLEAR(object); }

  static std::unordered_set<State*>& all() {
    static auto* states = new std::unordered_set<State*>;
    return *states;
  }
};

Held::Held(nb::handle object) : state_(std::make_shared<State>(object)) {}

nb::object Held::get() const {
  if (state_ == nullptr || state_->object == nullptr)
    throw WrongArgument("this Python code is no longer registered");
  return nb::borrow(state_->object);
}

void Held::drop() const {
  if (state_ != nullptr) state_->drop();
}

void Held::drop_all() {
  // What lets an object go may let others go.
  std::unordered_set<State*>& all = State::all();
  for (State* s : std::vector<State*>(all.begin(), all.end())) {
    if (all.contains(s)) s->drop();
  }
}

void rethrow_python(nb::python_error& raised, const DiagnosticCode& code, const Span& span,
                    const std::string& what) {
  if (!raised.matches(PyExc_Exception)) throw raised;
  nb::object value = nb::borrow(raised.value());
  auto text_of = [](const nb::object& o) {
    std::string text = nb::cast<std::string>(nb::str(o));
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  };
  nb::object traceback = nb::module_::import_("traceback");
  nb::list diagnostics;
  if (nb::hasattr(value, "diagnostics")) diagnostics = nb::list(value.attr("diagnostics"));
  Diagnostic problem(code, span, "");
  if (nb::len(diagnostics) > 0 && nb::isinstance<Diagnostic>(diagnostics[0])) {
    problem = nb::cast<const Diagnostic&>(diagnostics[0]);
    if (!problem.span) problem.span = span;
    // A wrong argument within the code is the code's failure.
    if (problem.code == codes::python_argument.id) problem.code = code.id;
    // What calls itself is said once.
    if (problem.message.starts_with(what + ": ")) throw PythonFailure(problem, Held(value));
    problem.message = what + ": " + problem.message;
  } else {
    nb::object only = traceback.attr("format_exception_only")(raised.type(), value);
    problem.message = what + ": " + text_of(nb::str("").attr("join")(only));
  }
  nb::object frames = raised.traceback();
  std::string calls;
  if (frames.is_valid())
    calls = text_of(nb::str("").attr("join")(traceback.attr("format_tb")(frames)));
  if (!calls.empty()) problem.note({}, "raised in Python\n" + calls);
  throw PythonFailure(std::move(problem), Held(value));
}

void rethrow_python(const nb::builtin_exception& raised, const DiagnosticCode& code,
                    const Span& span, const std::string& what) {
  throw UserError(Diagnostic(code, span, what + ": " + raised.what()));
}

std::function<bool(const Expr&)> condition_of(nb::handle function, const std::string& what) {
  Held held(function);
  return [held, what](const Expr& e) {
    return in_python(codes::pass_python, e->span, what, [&] {
      nb::object result = held.get()(wrap(e));
      const int truth = PyObject_IsTrue(result.ptr());
      if (truth < 0) throw nb::python_error();
      return truth != 0;
    });
  };
}

void bind_python_code(nb::module_&) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&Held::drop_all));
}

}  // namespace relay::bind
