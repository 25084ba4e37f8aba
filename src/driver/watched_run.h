// Runs that are watched call by call: operators on the evaluator, kernels of compiled code, behind one interface.
//
//   std::unique_ptr<WatchedProgram> program = watch_evaluator(mod, {});
//   struct Print : CallWatcher {
//     void after(const WatchedCall& c) override { std::puts(c.operation.c_str()); }
//   } print;
//   program->run("main", arguments, print);
//
// `relay diff`, `relay debug` and `--find-nan` are watchers.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "eval/evaluator.h"
#include "ir/module.h"
#include "runtime/core/tensor.h"
#include "runtime/core/value.h"

namespace relay {

// A call of an operator or of a kernel. Tensors may be the run's own memory: a watcher that keeps one copies it.
struct WatchedCall {
  int64_t index = 0;      // among the calls of the run, from 0
  std::string operation;  // "nn.dense", or the kernel's name
  // The place of the model or the source that gives the result: "conv1 (Conv)", "net.relay:3:12"; empty: none.
  std::string node;
  std::string origin;  // of all operators of a kernel, in order
  uint32_t line = 0;   // of the source; 0: not text
  size_t depth = 1;    // open frames of functions
  std::string function;
  // Of an operator; null where it is called as a value.
  const CallNode* call = nullptr;
  // Of a kernel.
  Function primitive = nullptr;
  // The tensors of the operands, in order. Null in compiled code: a tensor of strings, or of a size that is not known;
  // before a kernel of several launches, also what only later ones read.
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;  // none before the call
};

// A function of the program has been entered, in its `depth`th frame. On the evaluator only.
struct WatchedFrame {
  std::string function;  // empty: it has no name
  std::string place;     // of the call; empty for the first
  size_t depth = 1;
  const FunctionNode* node = nullptr;
  std::span<const runtime::Value> arguments;
};

// An exception ends the run, and is thrown by it.
class CallWatcher {
 public:
  virtual ~CallWatcher() = default;
  virtual void before(const WatchedCall&) {}
  virtual void after(const WatchedCall&) {}
  virtual void entered(const WatchedFrame&) {}
};

class WatchedProgram {
 public:
  virtual ~WatchedProgram() = default;
  virtual runtime::Value run(const std::string& function, std::vector<runtime::Value> args,
                             CallWatcher& watcher) = 0;
};

// Limits of each run; 0: none.
struct WatchLimits {
  int64_t fuel = 0;
  int64_t memory_limit = 0;
  double time_limit = 0;  // of compiled code; the evaluator has those of the thread (base/budget.h)
};

// `source_name`: the file of the program, whose folder no place names.
std::unique_ptr<WatchedProgram> watch_evaluator(const Module& mod, const EvalOptions& options,
                                                const std::string& source_name = {});

// Compiles the program. Scalar steps between kernels, and kernels on devices, are not watched.
class CompiledWatch : public WatchedProgram {
 public:
  CompiledWatch(const Module& mod, CompileOptions options, const WatchLimits& limits = {});
  ~CompiledWatch() override;

  runtime::Value run(const std::string& function, std::vector<runtime::Value> args,
                     CallWatcher& watcher) override;
  const CompiledModule& compiled() const;

 private:
  class Observer;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// A place of a program: without the file's folder, and without the file where it is a node of a model.
std::string place_text(const Span& span, const std::string& source_name);

// @main with the body of a primitive function, or the call of an operator. A parameter for each tensor of the operands, in
// their order. Null for operands that hold anything but tensors and tuples of tensors.
Module module_of_primitive(const FunctionNode& primitive);
Module module_of_call(const CallNode& call, std::span<const Tensor> inputs);
}  // namespace relay
