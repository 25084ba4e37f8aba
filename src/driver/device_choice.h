// Which kernels of a program go to a device by themselves (passes/placement/choose_devices.h).
#pragma once

#include "passes/pass.h"
#include "target/target.h"

namespace relay {

// The kernels that the target's backend has code for go to the device.
DeviceChoice choice_of(runtime::Device device, const Target& target);

}  // namespace relay
