// Tensors in the memory of devices, outside of runs.
//
//   Tensor there = to_device(image, Device{kDLOpenCL, 0});
//   module.run("main", {there}, options);                      // its input is not copied
//   Tensor here = to_host(there);
//   DLManagedTensor* out = to_dlpack(there, device_exchange());  // the cl_mem, or the address of CUDA
//
// A tensor keeps the memory, its queue and its context; programs may be gone by then. Work that writes it is done when somebody
// else gets it: runs and copies wait for it. All functions may be called by several threads.
#pragma once

#include "runtime/core/device_exchange.h"

namespace relay::runtime {

// Copies; between two devices by the host. A tensor that is there already is returned. UserError E0602 for strings,
// RuntimeError E0604, E0620 and E0622 as queues (runtime/device_driver.h).
Tensor to_device(const Tensor& tensor, Device device);
Tensor to_host(const Tensor& tensor);

// While it lives, copies to and from the device need no new queue. Throws as the copies.
std::shared_ptr<void> ready_for_copies(Device device);

// Whose functions ask the drivers of devices.
const DeviceExchange& device_exchange();

}  // namespace relay::runtime
