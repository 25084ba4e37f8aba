// One PrimFunc to LLVM IR.
#pragma once

#include <llvm/IR/Module.h>

#include <string>

#include "target/target.h"
#include "tir/stmt.h"

namespace relay::codegen {

// The exported name of a kernel; the prefix keeps it apart from the functions of libc and libm.
std::string kernel_symbol(const tir::PrimFuncNode& func);

// Adds the kernel (see runtime/core/kernel_abi.h) under its symbol to the module. The
// function has loops only (tir/lower_loops.h). Statements and expressions of a kernel are as deep
// as its schedule and its fused operators, both bounded, so they are walked by recursion.
void build_kernel(llvm::Module& module, const tir::PrimFunc& func, const Target& target);

// Whether it has loops that the program wrote.
bool has_program_loops(const tir::PrimFuncNode& f);

}  // namespace relay::codegen
