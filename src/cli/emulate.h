// Programs for other architectures, run under an emulator: `relay run MODEL --target aarch64-linux --emulate`.
//
// The emulator is QEMU's for programs of Linux (qemu-user). It runs relay-run (run/program.h), which was built for the
// architecture, on the compiled file and on the inputs, in a temporary folder.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "cli/commands.h"
#include "cli/inputs.h"
#include "runtime/core/tensor.h"
#include "runtime/vm/bytecode.h"

namespace relay::cli {

struct EmulatedRun {
  runtime::Function function;  // its signature
  std::vector<runtime::Tensor> outputs;
  std::vector<double> seconds;  // of each timed run
  int threads = 1;
  std::string version;   // of the code that ran
  std::string target;    // the description of what was compiled; empty for a compiled file
  std::string emulator;  // the program's name, "qemu-aarch64"
  Arguments arguments;
};

// A diagnostic of a run under an emulator, as text.
class EmulatedError : public Error {
 public:
  explicit EmulatedError(std::string text) : Error(std::move(text)) {}
};

// Compiles the model, unless the file is compiled, and runs the function once and then `repeat` times. Errors: UserError E1501
// to E1504; EmulatedError for what a run of this process would throw.
EmulatedRun run_emulated(const std::string& path, const CompileFlags& flags,
                         const std::string& function, const Inputs& inputs, uint64_t seed,
                         int repeat);

}  // namespace relay::cli
