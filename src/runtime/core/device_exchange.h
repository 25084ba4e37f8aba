// Tensors on devices in DLPack's structures: memory that several libraries in the process use.
//
//   Tensor t = from_dlpack(managed, device_exchange());        // (runtime/device_tensor.h)
//   DLManagedTensor* out = to_dlpack(t, device_exchange());
#pragma once

#include <memory>

#include "runtime/core/tensor.h"

namespace relay::runtime {

// How memory of devices is exchanged with others.
class DeviceExchange {
 public:
  // What others call a place in the memory of a device: an address, or an object and bytes from its begin.
  struct Place {
    void* data = nullptr;
    uint64_t offset = 0;
  };

  virtual ~DeviceExchange() = default;
  // The address, for the queues of the device, of memory that another library made; `owner` is kept with it. For CUDA, work
  // that anybody has submitted to the device is done then; for OpenCL the other library has waited for its own. UserError
  // E0602 for memory that the queues cannot use, RuntimeError E0620 without a driver.
  virtual std::shared_ptr<void> take(Device device, Place place, size_t bytes,
                                     std::shared_ptr<void> owner) const = 0;
  virtual Place give(const Tensor& tensor) const = 0;
  // Returns when nothing that others have submitted uses memory that was given to them.
  virtual void settle(Device device) const noexcept = 0;
  // New tensors: uninitialised, and with the contents of another one on the same device.
  virtual Tensor empty(DType dtype, Shape shape, Device device) const = 0;
  virtual Tensor copy(const Tensor& tensor) const = 0;
};

// As the functions without an exchange (tensor.h), also for tensors on devices. Those that are strided, or misaligned to their
// element, are UserError E0602 there.
Tensor from_dlpack(DLManagedTensor* managed, const DeviceExchange& devices);
Tensor from_dlpack(DLManagedTensorVersioned* managed, const DeviceExchange& devices);
DLManagedTensor* to_dlpack(const Tensor& tensor, const DeviceExchange& devices);
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, const DeviceExchange& devices);

}  // namespace relay::runtime
