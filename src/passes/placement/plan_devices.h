// PlanDevices: copies where values are used on another device than they are on.
//
// before                                                      after
//   let %a = on_device(exp(%x), virtual_device="cuda:0");       let %a = exp(device_copy(%x, "cpu", "cuda:0"));
//   add(%a, %y)                                                 add(device_copy(%a, "cuda:0", "cpu"), %y)
//
// Where the values are, analysis/placement.h tells. An annotated value is computed on its device, with
// what it is computed from up to the next annotation, copy, parameter or value that the host computes; all else is on the
// host. So are parameters and results of entry functions, but for those that their attributes name (ir/interface_devices.h)
// and for results that are calls of on_device with constrain_result=True, which become attributes. A value is copied to a device once. Constants are not
// copied while the program runs. A program without annotations and copies stays what it is: PlaceKernels moves its
// parameters and results. Between two devices a copy goes by the
// host. Behind this pass no on_device is left but around what is computed from constants alone.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kPlanDevices;

}  // namespace relay
