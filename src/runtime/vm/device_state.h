// What a run has on a device: a queue, an arena, and the program's constants there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/fork.h"
#include "runtime/core/tensor.h"
#include "runtime/memory.h"

namespace relay::runtime {

struct Program;

// Of an execution context.
struct DeviceState {
  explicit DeviceState(Device d) : device(d), queue(open_device(d)), arena(queue) {}

  Device device;
  std::shared_ptr<DeviceQueue> queue;
  ArenaStack arena;
};

// A new tensor in memory of the device. UserError E0601 and RuntimeError E0604 as Tensor::empty.
Tensor make_tensor(const DeviceState& state, DType dtype, Shape shape);

// The constants of a program on devices, for all that run it. Each is copied when it is first asked for.
class DeviceConstants {
 public:
  // `wait` returns when the event of the state's queue is done, and throws when the queue reports a failure: the failure may
  // be of a kernel that was launched before the copy. A copy that `wait` throws for is made again at the next call.
  Tensor get(const Program& program, size_t index, const DeviceState& state,
             const std::function<void(uint64_t event)>& wait);

 private:
  ForkSafeMutex mutex_;
  std::map<size_t, Tensor> constants_;
};

}  // namespace relay::runtime
