// OpenCL as a backend: kernels are printed as OpenCL C, which the driver of the device compiles when a program first runs.
#pragma once

#include "codegen/backend.h"
#include "target/target_kind.h"

namespace relay::codegen {

// The kind of devices with OpenCL 1.2 or later, but for its schedule rules, which are of a room that this one does not include.
TargetKind opencl_kind();

}  // namespace relay::codegen
