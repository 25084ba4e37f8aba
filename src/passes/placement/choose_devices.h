// ChooseDevices: kernels of a program that says nothing of devices are computed on one.
//
// before                                          after (the context's device is "opencl:0")
//   fn (%p, Primitive=1) { exp(%p) }(%x)            fn (%p, Primitive=1, device="opencl:0") { exp(%p) }(%x)
//
// A kernel stays on the host where it must (strings, effects, results of sizes that only a run tells), where it is a loop of
// the program, and where the device's backend does not support it. The last two get device="cpu" in a program of which a part
// is on a device; PlaceKernels finds the others itself. The pass places neither kernels that compute only scalars, or
// integers that are few (sizes, indices and conditions, which the host reads), nor kernels that read nothing of the device and
// have no more than kLeastElements in operands and results, because a copy there and back costs more than the kernel.
// PlaceKernels computes both where their operands and the kernels that read them are, and makes the copies. A program that
// was placed by hand stays what it is.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kChooseDevices;

// A copy to a device and back takes as long as a host needs for some thousands of elements.
inline constexpr int64_t kLeastElements = 4096;

// Why the pass leaves a kernel on the host that reads nothing of the device; empty where it does not.
std::string stays_because(const DeviceChoice& choice, const FunctionNode& primitive);

}  // namespace relay
