// A program's bytecode, with the kernels that it calls.
#pragma once

#include <memory>
#include <vector>

#include "ir/module.h"
#include "plan/make_plan.h"
#include "vm/emit.h"
#include "vm/host_code.h"

namespace relay {

// What the memory plan came to, for one function.
struct ArenaReport {
  std::string function;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // most bytes alive at once
  int64_t sub_buffers = 0;  // values that are parts of others in memory, so that nothing is copied
  // The working memory as a formula, of a function with values of open sizes; else empty.
  std::string formula{};
  int64_t reused = 0;  // results in the memory of an operand that nothing reads any more
};

// What became of an input that is donated to an output.
struct DonationReport {
  std::string function;
  std::string input;
  std::string output;
  bool in_place = false;
  std::string reason;  // why it is copied, where it is not in place
};

// A store of a loop that copies the tensor it writes to, since something reads it afterwards.
struct CopyReport {
  std::string function;
  std::string place;  // in the source; empty where it is not known
};

struct Bytecode {
  runtime::Program program;
  std::shared_ptr<KernelProvider> provider;  // of the kernels
  std::vector<plan::ProgramKernel>
      kernels;  // in the order of program.kernels, which has one for each launch
  std::vector<ArenaReport> arenas;  // of the functions that have one
  std::vector<DonationReport> donations;
  std::vector<CopyReport> copies;
  HostCode host;
};

Bytecode compile_to_bytecode(plan::PlanProgram plan, const NativeLimits& limits);

// Kernels, plan and bytecode of a module, with the plan verified; see make_plan. A provider without
// options leaves kernels as they are composed. All functions are interpreted.
Bytecode compile_to_bytecode(const Module& mod, std::shared_ptr<KernelProvider> provider =
                                                    std::make_shared<KernelProvider>());

}  // namespace relay
