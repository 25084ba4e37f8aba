// What the run time asks of a device other than the host: memory, and a queue of work.
//
//   register_device_driver({kDLExtDev, [](uint16_t id) { return std::make_shared<MyQueue>(id); }});
//   std::shared_ptr<DeviceQueue> queue = open_device(Device{kDLExtDev, 0});
//   queue->launch(...);                              // returns at once
//   queue->wait(queue->copy_to_host(to, from, 64));  // both are done
//
// A queue does what it is given in order, and may begin late (`submit`). An execution context has one for each device that its program uses, and is
// its only user. Memory of one queue may be read by others of the same device once the work that writes it is done.
// Tensors that lie there between runs, and memory of other libraries, are the subject of device_tensor.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/device.h"
#include "runtime/core/device_exchange.h"
#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

struct KernelInfo;

// A kernel that has failed on the device.
struct DeviceFailure {
  const KernelInfo* kernel = nullptr;
  int32_t code = 0;  // RELAY_KERNEL_*
};

class DeviceQueue {
 public:
  virtual ~DeviceQueue() = default;

  // Memory of the device, aligned to 64 bytes, uninitialised. RuntimeError E0604 when there is none.
  virtual void* allocate(size_t bytes) = 0;
  // Frees it once all that is in the queue is done.
  virtual void release(void* memory) noexcept = 0;

  // Each puts work into the queue and returns its event, which is greater than those before it. The host's memory
  // stays what it is until the event.
  virtual uint64_t copy_to_device(void* to, const void* from, size_t bytes) = 0;
  virtual uint64_t copy_to_host(void* to, const void* from, size_t bytes) = 0;
  virtual uint64_t copy_within(void* to, const void* from, size_t bytes) = 0;
  // `buffers` are the device's, and are read before the call returns, like `dims`. `entry` is the kernel's entry in the artifact.
  virtual uint64_t launch(const KernelInfo& kernel, relay_kernel entry,
                          std::span<void* const> buffers, std::span<const int64_t> dims) = 0;

  // The device works on what it was given: a queue may put launches and copies within the device off until this call, a copy
  // from or to the host, or a wait.
  virtual void submit() {}
  // Returns when the work of the event, and all before it, is done; the first kernel that has failed since the last call.
  virtual std::optional<DeviceFailure> wait(uint64_t event) = 0;
  // The event of the last work; 0 before any.
  virtual uint64_t last() const = 0;
};

// Memory of devices that several libraries in the process use; see DeviceExchange (runtime/core/device_exchange.h).
struct MemoryExchange {
  std::function<std::shared_ptr<void>(uint16_t id, DeviceExchange::Place place, size_t bytes,
                                      std::shared_ptr<void> owner)>
      take = {};
  std::function<DeviceExchange::Place(uint16_t id, void* address)> give = {};
  // Null where the driver itself keeps memory until work that uses it is done.
  std::function<void(uint16_t id)> settle = {};
};

struct DeviceDriver {
  uint16_t type = 0;  // a DLDeviceType
  // A queue of the device with this number. RuntimeError E0620 when there is none.
  std::function<std::shared_ptr<DeviceQueue>(uint16_t id)> open;
  // A line for each device of this machine, by number; none for a driver that does not tell. RuntimeError E0620 where its
  // library is missing.
  std::function<std::vector<std::string>()> describe = {};
  // Of a driver whose memory is its own alone, empty.
  MemoryExchange memory = {};
};

// Makes a kind of device known for the rest of the process. For one type the last registration holds.
void register_device_driver(DeviceDriver driver);

// Whether a program that uses the device can run: it is the host, or has a driver.
bool has_device_driver(Device device);

// Throws RuntimeError E0620 when there is no driver, or no such device.
std::shared_ptr<DeviceQueue> open_device(Device device);
// Throws as `open_device`.
DeviceDriver driver_of(Device device);

// The drivers that are known, by type.
std::vector<DeviceDriver> device_drivers();

// Memory of the device that is freed with the last reference; at least one byte.
std::shared_ptr<void> device_memory(const std::shared_ptr<DeviceQueue>& queue, size_t bytes);

}  // namespace relay::runtime
