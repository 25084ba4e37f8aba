// PlaceKernels: each primitive function says which device runs it.
//
// before                                                            after
//   fn (%p, Primitive=1) { exp(%p) }(device_copy(%x, ..."cuda:0"))    fn (%p, Primitive=1, device="cuda:0") { exp(%p) }(...)
//
// (the copies are primitive functions by then, and stay without a device.) The devices follow from the copies
// (analysis/placement.h). A kernel that a pass has made of operators on several devices, such as a loop, is on one of
// them, and gets copies of what is on others. Kernels that differ in their device only are two kernels. What is left of
// on_device is removed.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kPlaceKernels;

}  // namespace relay
