// Lowered kernels as the entry points of a program, without machine code.
//
//   InterpretedKernels kernels(lowered, /*poison=*/0xFF);
//   runtime::Module program = runtime::Module::from_kernels(bytecode, kernels.entries());
//   program.run_values("main", args, run);
//   kernels.undefined();        // "kernel fused_sum reads T_reduce_rf[0, 5]"
//
// The loops that code generation would get are interpreted (tir/interpret.h), for any target and
// within microseconds of a kernel's creation. The interpreter sees every access: one beyond a
// buffer is an InternalError of the run, and elements that are read before they are written, or that
// a kernel leaves unwritten, are named.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/kernel_abi.h"
#include "tir/stmt.h"

namespace relay::fuzz {

class InterpretedKernels {
 public:
  // Entry points are a resource of the process; a program has at most so many kernels.
  static constexpr size_t kMost = 64;

  // Memory that a kernel allocates is filled with `poison`. One object at a time in a thread, whose
  // entry points are called by that thread.
  InterpretedKernels(std::vector<tir::PrimFunc> lowered, uint8_t poison);
  ~InterpretedKernels();
  InterpretedKernels(const InterpretedKernels&) = delete;
  InterpretedKernels& operator=(const InterpretedKernels&) = delete;

  std::vector<relay_kernel> entries() const;
  // What the first kernel that touched undefined elements did, or "". An output that lies in the
  // memory of an input is a part of it by contract, and not asked about.
  const std::string& undefined() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace relay::fuzz
