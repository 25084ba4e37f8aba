// The reference evaluator: what a program means.
//
//   Evaluator eval(module);
//   runtime::Value y = eval.call("main", {x});
//
// Walks checked programs of any form, with every kind of expression, optimised or not. Operators
// are computed by interpreting their compute rules at the shapes that are there, so nothing but the
// rules and this file decides what comes out; compilers are compared with it. It is slow by design:
// tens of millions of tensor elements a second, unless it is given something that makes code of kernels.
//
// Sharing means what passes/structure/to_a_normal_form.h says: an expression that occurs several times is
// computed once, in the nearest scope common to its uses; operands come before users, and effects
// keep that order. Calls do not use the C stack and tail calls use no memory, so recursion may be
// as deep as memory allows. A value is let go after its last use. References that refer to
// themselves are the one thing that is never freed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "eval/eval_kernel.h"
#include "ir/module.h"
#include "runtime/core/denormals.h"
#include "runtime/core/value.h"

namespace relay {

class EvalObserver;

struct EvalOptions {
  // Expressions that a call may compute; 0: no limit. RuntimeError E0606.
  int64_t fuel = 0;
  // Bytes that a call may hold at once in values and frames; its arguments, the program's constants
  // and what a kernel needs while it runs are not counted. 0: no limit but that of the stack of
  // calls, which is 512 MiB. RuntimeError E0604.
  int64_t memory_limit = 0;
  // Floats are computed as float64 and rounded where a kernel stores them.
  bool wide_floats = false;
  // As in a program compiled for a target that flushes them or keeps them. Not where floats are wide.
  runtime::Denormals denormals = runtime::Denormals::flush;
  // Runs kernels in place of the interpreter. Not where floats are wide.
  EvalKernelCompiler compile_kernel = nullptr;
};

// Not for several threads at once. A closure among the results is a value of this evaluator: it may
// be an argument of a later call, and `apply` calls it.
//
// Errors, all with the place in the source and the calls that led there: RuntimeError E0604, E0605
// (a kernel found an index out of range, say), E0606, E0607 (no clause of a match fits), E02xx
// (shapes that do not fit at run time); UserError E0603 for arguments that do not fit the
// function's type, E0612 for a function that does not exist. The limits of the thread
// (base/budget.h) hold as well.
class Evaluator {
 public:
  explicit Evaluator(Module mod, EvalOptions options = {});
  ~Evaluator();
  Evaluator(Evaluator&&) noexcept;
  Evaluator& operator=(Evaluator&&) noexcept;

  // Other limits than those of the options, for further calls.
  void set_limits(int64_t fuel, int64_t memory_limit);
  // What sees the operators and functions of further calls (eval/eval_observer.h), and outlives them; null: nothing.
  void observe(EvalObserver* observer);
  // Calls a function of the module.
  runtime::Value call(std::string_view global, std::vector<runtime::Value> args);
  // The value of a closed expression, which may name the module's functions.
  runtime::Value evaluate(const Expr& expr);
  // Calls a closure that this evaluator made.
  runtime::Value apply(const runtime::Value& closure, std::vector<runtime::Value> args);

  // What a closure is called: its function's name, the Let's name, or empty.
  std::string closure_name(int32_t tag) const;
  // Expressions computed by the last call.
  int64_t steps() const;

 private:
  class Machine;
  std::unique_ptr<Machine> machine_;
};

}  // namespace relay
