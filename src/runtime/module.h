// A compiled model, ready to run.
//
//   Module module = Module::load("resnet50.so");
//   std::vector<Tensor> outputs = module.run("main", {image});
//
// A Module is a handle to something immutable: copies share it, and any number of threads may run
// it at once; each run borrows an execution context. Modules of one artifact share its code and
// constants; what happens to the file afterwards never changes a result (see ConstantFile). Inputs
// are checked against the function's parameters before anything runs: UserError E0603 names the
// input, what it should be and what it is, for all inputs together.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/artifact.h"
#include "runtime/value_leaves.h"
#include "runtime/vm/vm.h"

namespace relay::runtime {

struct LoadOptions {
  // Threads for kernels; 0: what the machine offers (cores, affinity mask, control group).
  int num_threads = 0;
  // Verify the checksum of the constants however large they are, and though they are loaded.
  bool verify_constants = false;
  // Of an artifact with several versions, the one to load, "x86-64-v3"; empty: the last that the machine runs.
  std::string version = {};
};

class Module {
 public:
  // Loads an artifact. Errors: UserError E0608 to E0611, E0613, E0623.
  static Module load(const std::string& path, const LoadOptions& options = {});
  // The same from memory.
  static Module from_bytes(std::string_view artifact, const LoadOptions& options = {});
  // From parts that were just compiled, without a copy of the constants. `elf` is a linked shared
  // object as in an artifact.
  static Module from_elf(std::string_view elf, Program program, std::string metadata,
                         ArtifactInfo info, const LoadOptions& options = {});
  // From entry points in this process, in the order of program.kernels; `keep_alive` owns them.
  static Module from_kernels(Program program, std::vector<relay_kernel> kernels,
                             std::string metadata = "{}", std::shared_ptr<void> keep_alive = {},
                             const LoadOptions& options = {},
                             Denormals denormals = Denormals::flush);

  const Program& program() const;
  const std::string& metadata() const;  // JSON text
  const ArtifactInfo& info() const;
  // Copies the artifact that the module was loaded from; the copy appears whole or not at all.
  // UserError E0614 when another one is at `from` by now, E0611 as in write_artifact_file.
  void copy_artifact(const std::string& from, const std::string& to, bool overwrite) const;
  int num_threads() const;

  // The functions that callers may run, in the program's order.
  std::vector<std::string> function_names() const;
  // Parameters and results of a function; UserError E0612 when there is none of that name.
  const Function& function(std::string_view name) const;

  // Runs a function on tensors, one for each parameter; returns the tensors of its result, the
  // leaves of a tuple in order. Errors: UserError E0603 for wrong inputs, or for a function whose
  // result holds anything but tensors; RuntimeError E0604 to E0607, E0614.
  std::vector<Tensor> run(std::string_view function, std::span<const Tensor> inputs,
                          const RunOptions& options = {}) const;
  std::vector<Tensor> run(std::string_view function, std::initializer_list<Tensor> inputs,
                          const RunOptions& options = {}) const {
    return run(function, std::span(inputs.begin(), inputs.size()), options);
  }
  // Writes the results into tensors of the caller, of the results' types, which share no memory
  // with the inputs.
  void run_into(std::string_view function, std::span<const Tensor> inputs,
                std::span<const Tensor> outputs, const RunOptions& options = {}) const;
  // Runs a function on values of any kind. An input that is donated to an output is written over, and
  // is that output: UserError E1205 when it is read-only or shares memory with another input. After a
  // run that fails it may hold parts of the new value. `run_into` takes its tensor as that output.
  Value run_values(std::string_view function, std::span<const Value> inputs,
                   const RunOptions& options = {}) const;

  // Calls a function that a run of this program gave. UserError E0603 for inputs that do not fit. What
  // functions captured they share with all that reaches them: a caller that holds some runs one thing
  // at a time, in a module `apart` of those that others run.
  Value call(const Value& function, std::span<const Value> inputs,
             const RunOptions& options = {}) const;
  // The same program, whose runs share nothing that a run changes with those of this one.
  Module apart() const;

 private:
  struct Impl;
  explicit Module(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;
};

}  // namespace relay::runtime
