#include "bind/unlocked.h"

#include <cxxabi.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <unistd.h>

#include <atomic>

#include "base/fork.h"
#include "base/thread_locals.h"

namespace relay::bind {
namespace {

// In a process that ends, Python ends a thread that asks for its lock: by unwinding its stack, which must not pass
// through frames that throw nothing. Such a thread sleeps here instead.
template <class F>
void take_lock(const F& take) {
  try {
    take();
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

// The interpreter ends: work of other threads than the main one ends too, and they stay where they are.
std::atomic<bool> ending{false};
// Threads between the two halves of Unlocked, of the process that counts. A child of fork has none of them.
std::atomic<int> working{0};
std::atomic<uint64_t> counted_by{0};

void begin_work() {
  if (counted_by.exchange(fork_generation()) != fork_generation()) working = 0;
  ++working;
}

int working_threads() { return counted_by == fork_generation() ? working.load() : 0; }

bool is_main_thread() { return gettid() == getpid(); }

// Whether Ctrl-C was pressed, which only the main thread can tell.
bool interrupted() {
  if (!is_main_thread()) return ending.load(std::memory_order_relaxed);
  PythonLock lock;
  return PyErr_CheckSignals() != 0;
}

// Called when the interpreter ends. What daemon threads are doing ends before the tables that they read are destroyed;
// a kernel that runs for seconds is not waited for.
void end_daemons() {
  ending = true;
  // What threads hold that never wake up is no leak, nor are functions in PyTorch's caches, which end with the process.
  auto threads = nb::module_::import_("threading").attr("active_count")();
  const bool in_caches =
      nb::cast<nb::dict>(nb::module_::import_("sys").attr("modules")).contains("torch");
  if (nb::cast<int>(threads) > 1 || in_caches) nb::set_leak_warnings(false);
  nb::gil_scoped_release release;
  for (int ms = 0; ms < 2000 && working_threads() > 0; ++ms) usleep(1000);
}

PyObject* get_limits = nullptr;

}  // namespace

Unlocked::Unlocked() : state_(PyEval_SaveThread()) { begin_work(); }

void Unlocked::lock() {
  if (state_ == nullptr) return;
  --working;
  while (ending.load() && !is_main_thread()) pause();
  take_lock([&] { PyEval_RestoreThread(std::exchange(state_, nullptr)); });
}

PythonLock::PythonLock() {
  take_lock([&] { state_ = PyGILState_Ensure(); });
}

void rethrow_unless_interrupted() {
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  throw;
}

PythonLimits PythonLimits::current() {
  require_thread_locals();
  PythonLimits out;
  nb::object found = nb::steal(PyObject_CallNoArgs(get_limits));
  if (!found.is_valid()) throw nb::python_error();
  if (found.is_none()) return out;
  auto [seconds, memory, fuel] = nb::cast<std::tuple<double, int64_t, int64_t>>(found);
  return {seconds, memory, fuel};
}

BudgetLimits PythonLimits::of_compilation() const {
  BudgetLimits out = BudgetLimits::defaults();
  if (seconds > 0) out.seconds = seconds;
  if (memory_bytes > 0) out.memory_bytes = memory_bytes;
  out.cancelled = interrupted;
  return out;
}

BudgetLimits PythonLimits::of_run() const {
  BudgetLimits out;
  out.seconds = seconds;
  out.cancelled = interrupted;
  out.kind = BudgetKind::run;
  return out;
}

void bind_limits(nb::module_& m) {
  nb::object variable = nb::module_::import_("contextvars")
                            .attr("ContextVar")("relay.limits", nb::arg("default") = nb::none());
  nb::object get = variable.attr("get");
  m.attr("limits_variable") = variable;
  m.attr("_get_limits") = get;
  get_limits = get.ptr();  // borrowed from the module, which lives as long as the interpreter
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_daemons));
  m.def("parse_seconds", [](const std::string& text) { return parse_seconds(text, "time"); });
  m.def("parse_bytes", [](const std::string& text) { return parse_bytes(text, "memory"); });
}

}  // namespace relay::bind
