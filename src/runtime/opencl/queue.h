// OpenCL as a device that programs run on (runtime/device_driver.h).
//
// An address of the device is a place in a range of addresses that the process reserves and cannot touch: OpenCL names
// memory by objects, while plans add offsets to addresses. For other libraries the memory is its cl_mem, which is of Relay's
// context of the device: clGetMemObjectInfo tells it.
#pragma once

#include "runtime/device_driver.h"

namespace relay::runtime::opencl {

DeviceDriver opencl_driver();

}  // namespace relay::runtime::opencl
