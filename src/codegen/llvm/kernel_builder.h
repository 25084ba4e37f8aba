// One PrimFunc to LLVM IR.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/target.h"
#include "tir/stmt.h"

namespace relay::codegen {

// Adds the kernel (see runtime/core/kernel_abi.h) under the function's name to the module. The
// function has loops only (tir/lower_loops.h). Statements and expressions of a kernel are as deep
// as its schedule and its fused operators, both bounded, so they are walked by recursion.
void build_kernel(llvm::Module& module, const tir::PrimFunc& func, const Target& target);

}  // namespace relay::codegen
