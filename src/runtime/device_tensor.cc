#include "runtime/device_tensor.h"

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/device_driver.h"

namespace relay::runtime {
namespace {

// The queue of a device for copies outside of runs, of whoever makes one.
struct CopyQueue {
  explicit CopyQueue(Device d) : device(d), queue(open_device(d)) {}

  Device device;
  std::mutex mutex;  // a queue has one user at a time
  std::shared_ptr<DeviceQueue> queue;
};

// The queue lives as long as tensors that were made through it. That of a parent process is not used in its child, where
// another thread may hold its lock.
std::shared_ptr<CopyQueue> copy_queue(Device device) {
  using Key = std::tuple<uint64_t, uint16_t, uint16_t>;
  static ForkSafeMutex mutex;
  static auto* const queues = new std::map<Key, std::weak_ptr<CopyQueue>>;
  std::lock_guard lock(mutex);
  std::weak_ptr<CopyQueue>& known = (*queues)[{fork_generation(), device.type, device.id}];
  std::shared_ptr<CopyQueue> out = known.lock();
  if (out == nullptr) {
    out = std::make_shared<CopyQueue>(device);
    known = out;
  }
  return out;
}

// The queue's lock is held.
Tensor new_tensor(const std::shared_ptr<CopyQueue>& by, DType dtype, Shape shape) {
  const auto bytes =
      static_cast<size_t>(checked_num_elements(dtype, shape)) * static_cast<size_t>(dtype.bytes());
  struct Owner {
    std::shared_ptr<CopyQueue> queue;
    std::shared_ptr<void> memory;
  };
  auto owner = std::make_shared<Owner>(by, device_memory(by->queue, bytes));
  void* data = owner->memory.get();
  return Tensor::from_external(data, dtype, shape, std::move(owner), false, by->device);
}

class DriverExchange : public DeviceExchange {
 public:
  std::shared_ptr<void> take(Device device, Place place, size_t bytes,
                             std::shared_ptr<void> owner) const override {
    const DeviceDriver driver = driver_of(device);
    if (!driver.memory.take) {
      throw UserError(Diagnostic(codes::tensor_dlpack, {},
                                 "the driver of " + device.to_string() +
                                     " does not use memory of other libraries")
                          .help("copy the tensor to the CPU first"));
    }
    return driver.memory.take(device.id, place, bytes, std::move(owner));
  }

  Place give(const Tensor& tensor) const override {
    const DeviceDriver driver = driver_of(tensor.device());
    if (!driver.memory.give) {
      throw UserError(Diagnostic(codes::tensor_dlpack, {},
                                 "the driver of " + tensor.device().to_string() +
                                     " gives no memory to other libraries")
                          .help("copy the tensor to the CPU first"));
    }
    return driver.memory.give(tensor.device().id, tensor.data());
  }

  void settle(Device device) const noexcept override {
    try {
      const DeviceDriver driver = driver_of(device);
      if (driver.memory.settle) driver.memory.settle(device.id);
    } catch (const Error&) {
      // The device is gone, and with it all work.
    }
  }

  Tensor empty(DType dtype, Shape shape, Device device) const override {
    const std::shared_ptr<CopyQueue> by = copy_queue(device);
    std::lock_guard lock(by->mutex);
    return new_tensor(by, dtype, shape);
  }

  Tensor copy(const Tensor& tensor) const override {
    const std::shared_ptr<CopyQueue> by = copy_queue(tensor.device());
    std::lock_guard lock(by->mutex);
    Tensor out = new_tensor(by, tensor.dtype(), tensor.shape());
    if (out.byte_size() > 0) {
      by->queue->wait(by->queue->copy_within(out.data(), tensor.data(), out.byte_size()));
    }
    return out;
  }
};

}  // namespace

const DeviceExchange& device_exchange() {
  static const DriverExchange exchange;
  return exchange;
}

std::shared_ptr<void> ready_for_copies(Device device) { return copy_queue(device); }

Tensor to_device(const Tensor& tensor, Device device) {
  if (device.is_host()) return to_host(tensor);
  if (tensor.device() == device) return tensor;
  const Tensor here = to_host(tensor);
  if (here.dtype().is_string()) {
    throw UserError(Diagnostic(codes::tensor_dlpack, {},
                               "a tensor of strings cannot be copied to " + device.to_string())
                        .help("strings stay in the memory of the host"));
  }
  const std::shared_ptr<CopyQueue> by = copy_queue(device);
  std::lock_guard lock(by->mutex);
  Tensor out = new_tensor(by, here.dtype(), here.shape());
  if (out.byte_size() > 0) {
    by->queue->wait(by->queue->copy_to_device(out.data(), here.data(), here.byte_size()));
  }
  return out;
}

Tensor to_host(const Tensor& tensor) {
  if (tensor.device().is_host()) return tensor;
  const std::shared_ptr<CopyQueue> by = copy_queue(tensor.device());
  std::lock_guard lock(by->mutex);
  Tensor out = Tensor::empty(tensor.dtype(), tensor.shape());
  if (out.byte_size() > 0) {
    by->queue->wait(by->queue->copy_to_host(out.data(), tensor.data(), out.byte_size()));
  }
  return out;
}

}  // namespace relay::runtime
