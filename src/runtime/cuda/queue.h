// CUDA as a device that programs run on (runtime/device_driver.h). A queue is a stream of its own.
#pragma once

#include "runtime/device_driver.h"

namespace relay::runtime::cuda {

DeviceDriver cuda_driver();

}  // namespace relay::runtime::cuda
