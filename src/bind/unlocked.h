// Work of the compiler and of programs while other threads of Python run.
//
//   Module out = compile_unlocked([&] { return optimize(mod, options); });
//   Value y = run_unlocked([&](const runtime::RunOptions& o) { return exe.run_values(name, xs, o); });
//
// Both end early with Ctrl-C, and at the limits that `relay.limits` sets. A thread that finds Python gone when its
// work is done sleeps for ever: it must not touch Python any more, and the process ends without it.
#pragma once

#include <algorithm>
#include <utility>

#include "base/budget.h"
#include "bind/convert.h"
#include "runtime/vm/vm.h"

namespace relay::bind {

// Lets other threads of Python run until `lock`.
class Unlocked {
 public:
  Unlocked();
  // Where an error passes.
  ~Unlocked() { lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  void lock();

 private:
  PyThreadState* state_;
};

// Holds Python's lock, for a thread that may be without.
class PythonLock {
 public:
  PythonLock();
  ~PythonLock() { PyGILState_Release(state_); }
  PythonLock(const PythonLock&) = delete;
  PythonLock& operator=(const PythonLock&) = delete;

 private:
  PyGILState_STATE state_;
};

// What `relay.limits` says in this thread; zeros where nothing.
struct PythonLimits {
  double seconds = 0;
  int64_t memory_bytes = 0;
  int64_t fuel = 0;

  static PythonLimits current();
  // Those of the environment where they say nothing.
  BudgetLimits of_compilation() const;
  BudgetLimits of_run() const;
};

// A pending KeyboardInterrupt wins over the error of the work that it stopped.
[[noreturn]] void rethrow_unless_interrupted();

template <class F>
auto within(BudgetLimits limits, const F& work) {
  try {
    Unlocked unlocked;
    BudgetScope scope(std::move(limits));
    return work();
  } catch (const Error&) {
    rethrow_unless_interrupted();
  }
}

template <class F>
auto compile_unlocked(const F& work) {
  return within(PythonLimits::current().of_compilation(), work);
}

template <class F>
auto run_unlocked(const F& work) {
  PythonLimits limits = PythonLimits::current();
  runtime::RunOptions options;
  options.fuel = limits.fuel > 0 ? limits.fuel : -1;
  options.memory_limit = limits.memory_bytes > 0 ? limits.memory_bytes : -1;
  options.keeps_on_devices = true;
  return within(limits.of_run(), [&] { return work(options); });
}

// The options of a run whose arguments took so many bytes: their copies are the run's.
inline runtime::RunOptions beside(int64_t taken, runtime::RunOptions options) {
  if (options.memory_limit > 0) {
    options.memory_limit = std::max<int64_t>(options.memory_limit - taken, 1);
  }
  return options;
}

void bind_limits(nb::module_& m);
// What programs print goes to sys.stdout.
void bind_printing();

}  // namespace relay::bind
