// Lowered kernels as OpenCL C.
#pragma once

#include "runtime/device_source.h"
#include "tir/stmt.h"

namespace relay::codegen {

// The kernel's launches and their code. Expressions are as deep as the kernel's fused operators, and statements as its
// schedule, so both are walked by recursion. Throws UserError E0401 for what OpenCL C has no words for: vectors, and memory of
// an item whose size only the item knows.
runtime::DeviceSource opencl_source(const tir::PrimFuncNode& f);

}  // namespace relay::codegen
