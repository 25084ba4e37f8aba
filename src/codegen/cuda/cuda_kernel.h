// One lowered kernel as functions of a CUDA device, in LLVM IR.
#pragma once

#include <llvm/IR/Module.h>

#include "codegen/device/device_kernel.h"
#include "target/target.h"
#include "tir/stmt.h"

namespace relay::codegen {

// Adds a function for each launch to the module, and returns the launches, without code. A launch without
// groups is right for any number of items. Throws UserError E0401 for what a device cannot do.
runtime::DeviceSource build_cuda_kernel(llvm::Module& module, const tir::PrimFunc& f,
                                        const Target& target);

}  // namespace relay::codegen
