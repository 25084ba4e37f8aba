#include "runtime/device_driver.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/cuda/queue.h"
#include "runtime/opencl/queue.h"

namespace relay::runtime {
namespace {

class Drivers {
 public:
  // Never destroyed: programs may run until the end of the process.
  static Drivers& instance() {
    static auto* const drivers = new Drivers;
    return *drivers;
  }

  void add(DeviceDriver driver) {
    std::lock_guard lock(mutex_);
    const uint16_t type = driver.type;
    drivers_.insert_or_assign(type, std::move(driver));
  }
  std::optional<DeviceDriver> find(uint16_t type) {
    std::lock_guard lock(mutex_);
    auto it = drivers_.find(type);
    return it == drivers_.end() ? std::nullopt : std::optional(it->second);
  }
  std::vector<DeviceDriver> all() {
    std::lock_guard lock(mutex_);
    std::vector<DeviceDriver> out;
    for (const auto& [type, driver] : drivers_) out.push_back(driver);
    return out;
  }

 private:
  // Relay's own, which open their libraries when a program first uses the device.
  Drivers() {
    add(cuda::cuda_driver());
    add(opencl::opencl_driver());
  }

  ForkSafeMutex mutex_;
  std::map<uint16_t, DeviceDriver> drivers_;
};

}  // namespace

void register_device_driver(DeviceDriver driver) { Drivers::instance().add(std::move(driver)); }

bool has_device_driver(Device device) {
  return device == Device::cpu() || Drivers::instance().find(device.type).has_value();
}

std::vector<DeviceDriver> device_drivers() { return Drivers::instance().all(); }

DeviceDriver driver_of(Device device) {
  auto driver = Drivers::instance().find(device.type);
  if (!driver) {
    throw RuntimeError(
        Diagnostic(codes::run_no_device, {}, "there is no driver for " + device.to_string())
            .help("load the library of the device before the program runs"));
  }
  return *driver;
}

std::shared_ptr<DeviceQueue> open_device(Device device) {
  return driver_of(device).open(device.id);
}

std::shared_ptr<void> device_memory(const std::shared_ptr<DeviceQueue>& queue, size_t bytes) {
  return {queue->allocate(std::max<size_t>(bytes, 1)),
          [queue](void* memory) { queue->release(memory); }};
}

}  // namespace relay::runtime
