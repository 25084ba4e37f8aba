#include "runtime/vm/device_state.h"

#include "runtime/vm/bytecode.h"

namespace relay::runtime {

Tensor make_tensor(const DeviceState& state, DType dtype, Shape shape) {
  const auto bytes =
      static_cast<size_t>(checked_num_elements(dtype, shape)) * static_cast<size_t>(dtype.bytes());
  std::shared_ptr<void> memory = device_memory(state.queue, bytes);
  void* data = memory.get();
  return Tensor::from_external(data, dtype, shape, std::move(memory), false, state.device);
}

Tensor DeviceConstants::get(const Program& program, size_t index, const DeviceState& state,
                            const std::function<void(uint64_t)>& wait) {
  std::lock_guard lock(mutex_);
  Tensor& there = constants_[index];
  if (!there) {
    const Tensor& data = program.constants[index];
    Tensor copy = make_tensor(state, data.dtype(), data.shape());
    // Others may read it as soon as it is known.
    wait(state.queue->copy_to_device(copy.data(), data.data(), data.byte_size()));
    // Results may be constants, and callers write to what is theirs.
    copy.rep()->read_only = true;
    there = std::move(copy);
  }
  return there;
}

}  // namespace relay::runtime
