// CUDA as a backend: kernels become PTX, which the driver of the device compiles when a program first runs.
#pragma once

#include "codegen/backend.h"
#include "target/target_kind.h"

namespace relay::codegen {

// The kind of NVIDIA's devices, but for its schedule rules, which are of a room that this one does not include.
TargetKind cuda_kind();

}  // namespace relay::codegen
