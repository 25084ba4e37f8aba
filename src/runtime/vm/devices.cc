// What a run does on devices.
#include <algorithm>

#include "base/budget.h"
#include "base/codes/runtime.h"
#include "runtime/profiler.h"
#include "runtime/value_leaves.h"
#include "runtime/vm/interpreter.h"

namespace relay::runtime {

DeviceState& Interpreter::device_state(Device device) {
  for (const auto& state : c_.devices_) {
    if (state->device == device) return *state;
  }
  return *c_.devices_.emplace_back(std::make_unique<DeviceState>(device));
}

void Interpreter::push_device_arenas(const Function& function, Slot* at) {
  for (const DeviceArena& arena : function.devices) {
    ArenaStack& stack = device_state(arena.device).arena;
    if (limited()) charge(arena.bytes);
    auto* frame = new (at) DeviceFrame;
    frame->mark = stack.mark();
    frame->arena = stack.push(static_cast<size_t>(arena.bytes));
    at += kDeviceSlots;
  }
}

void Interpreter::pop_device_arenas(const Function& function, Slot* at) {
  for (const DeviceArena& arena : function.devices) {
    auto* frame = reinterpret_cast<DeviceFrame*>(at);
    // Null where the frame was left before it had one.
    if (frame->arena != nullptr) device_state(arena.device).arena.pop(frame->mark);
    at += kDeviceSlots;
  }
}

Object* Interpreter::new_device_tensor(DType dtype, Shape shape, Device device) {
  if (limited()) charge(checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes()));
  return make_tensor(device_state(device), dtype, shape).take();
}

Object* Interpreter::load_constant(size_t index) {
  const Device device = program_.constant_device(index);
  if (device == Device::cpu()) return Tensor(program_.constants[index]).take();
  return constant_on(device, index).take();
}

Tensor Interpreter::constant_on(Device device, size_t index) {
  return c_.device_constants_->get(program_, index, device_state(device),
                                   [this, device](uint64_t event) { wait(device, event); });
}

Interpreter::Place Interpreter::resolve_on(const Operand& o, const Window& w, int device) {
  if (device == 0) return resolve(o, w);
  const Device where = w.function->devices[static_cast<size_t>(device) - 1].device;
  switch (o.kind) {
    case Operand::kArena: {
      auto* frame =
          reinterpret_cast<DeviceFrame*>(w.d + static_cast<ptrdiff_t>(device - 1) * kDeviceSlots);
      return {frame->arena + o.index, static_cast<size_t>(o.bytes)};
    }
    case Operand::kConstant: {
      const Tensor there = constant_on(where, static_cast<size_t>(o.index));
      return {there.data(), there.byte_size()};
    }
    case Operand::kRegister: {
      const Tensor::Rep* rep = tensor(w.r[o.index]);
      if (rep->device != where) misuse("a tensor is not on the device of the kernel");
      return {rep->data, tensor_bytes(rep)};
    }
    default:
      return resolve(o, w);
  }
}

void Interpreter::launch(const Instruction& in, const Window& w) {
  const KernelInfo& kernel = program_.kernels[static_cast<size_t>(in.a)];
  const Operand* operands = w.function->operands.data() + in.b;
  const int device = w.function->device_index(kernel.device);
  const size_t buffers = kernel.buffer_bytes.size();
  c_.buffers_.resize(std::max(c_.buffers_.size(), buffers));
  for (size_t n = 0; n < buffers; ++n) {
    const Place place = resolve_on(operands[n], w, device);
    if (static_cast<int64_t>(place.bytes) < kernel.buffer_bytes[n]) {
      misuse("a buffer is smaller than the kernel needs");
    }
    c_.buffers_[n] = place.data;
  }
  c_.dims_.resize(std::max(c_.dims_.size(), size_t{kernel.num_dims}));
  for (size_t n = 0; n < kernel.num_dims; ++n) {
    c_.dims_[n] = w.i[operands[buffers + n].index].integer;
  }
  const auto dims = std::span<const int64_t>(c_.dims_).first(kernel.num_dims);
  DeviceQueue& queue = *device_state(kernel.device).queue;
  // A profile has the time of the kernel alone: what was given before is done, and the run waits for it.
  if (options_.profiler != nullptr) wait(kernel.device, queue.last());
  const int64_t begin = options_.profiler != nullptr ? Profiler::now_ns() : 0;
  queue.launch(kernel, kernels_[static_cast<size_t>(in.a)],
               std::span<void* const>(c_.buffers_).first(buffers), dims);
  if (options_.profiler != nullptr) {
    wait(kernel.device, queue.last());
    options_.profiler->record(in.a, begin, Profiler::now_ns(), dims);
  }
  if (budgeted_) check_budget();
}

void Interpreter::copy_within(const Instruction& in, const Window& w) {
  const Operand* operands = w.function->operands.data() + in.b;
  const Place to = resolve_on(operands[0], w, in.sub), from = resolve_on(operands[1], w, in.sub);
  const size_t bytes = copied_bytes(operands, to, from);
  const Device device = w.function->devices[size_t{in.sub} - 1].device;
  if (bytes > 0) device_state(device).queue->copy_within(to.data, from.data, bytes);
}

uint64_t Interpreter::transfer(const Instruction& in, const Window& w) {
  const Operand* operands = w.function->operands.data() + in.b;
  const bool to_host = in.op == Opcode::to_host;
  const Place to = resolve_on(operands[0], w, to_host ? 0 : in.sub),
              from = resolve_on(operands[1], w, to_host ? in.sub : 0);
  const size_t bytes = copied_bytes(operands, to, from);
  DeviceQueue& queue = *device_state(w.function->devices[size_t{in.sub} - 1].device).queue;
  if (options_.profiler != nullptr) options_.profiler->record_copy(to_host, bytes);
  return to_host ? queue.copy_to_host(to.data, from.data, bytes)
                 : queue.copy_to_device(to.data, from.data, bytes);
}

void Interpreter::wait(Device device, uint64_t event) {
  DeviceQueue& queue = *device_state(device).queue;
  // Bytecode that is damaged may name an event that never comes.
  if (auto failed = queue.wait(std::min(event, queue.last()))) {
    kernel_failed(*failed->kernel, failed->code);
  }
  if (budgeted_) check_budget_after_work();
}

Tensor Interpreter::moved(const Tensor& tensor, Device to) {
  const Device from = tensor.device();
  if (from == to || (from.is_host() && to.is_host())) return tensor;
  if (!from.is_host() && !to.is_host()) return moved(moved(tensor, Device::cpu()), to);
  const bool to_host = to.is_host();
  if (limited()) charge(static_cast<int64_t>(tensor.byte_size()));
  DeviceState& state = device_state(to_host ? from : to);
  Tensor out = to_host ? Tensor::empty(tensor.dtype(), tensor.shape())
                       : make_tensor(state, tensor.dtype(), tensor.shape());
  const size_t bytes = tensor.byte_size();
  if (bytes == 0) return out;
  if (options_.profiler != nullptr) options_.profiler->record_copy(to_host, bytes);
  wait(state.device, to_host ? state.queue->copy_to_host(out.data(), tensor.data(), bytes)
                             : state.queue->copy_to_device(out.data(), tensor.data(), bytes));
  return out;
}

Value Interpreter::moved(const Value& value, Device to) {
  std::vector<Tensor> leaves;
  if (!flatten_tensors(value, leaves)) return value;
  bool same = true;
  for (Tensor& t : leaves) {
    Tensor there = moved(t, to);
    same = same && there.same_as(t);
    t = std::move(there);
  }
  return same ? value : with_leaves(value, leaves);
}

bool Interpreter::is_elsewhere(size_t function, std::span<const Value> args) const {
  const std::vector<runtime::Slot>& params = program_.functions[function].params;
  for (size_t n = 0; n < std::min(args.size(), params.size()); ++n) {
    const Device wanted = params[n].tensor.device;
    auto is_there = [&](Device d) { return d == wanted || (d.is_host() && wanted.is_host()); };
    if (args[n].is_tensor()) {
      const Object* object = args[n].object();
      // Scalars in the machine's form are of the host.
      const Device have =
          is_object(object) ? static_cast<const Tensor::Rep*>(object)->device : Device::cpu();
      if (!is_there(have)) return true;
      continue;
    }
    std::vector<Tensor> leaves;
    if (!args[n].is_tuple() || !flatten_tensors(args[n], leaves)) continue;
    if (!std::ranges::all_of(leaves, [&](const Tensor& t) { return is_there(t.device()); }))
      return true;
  }
  return false;
}

std::vector<Value> Interpreter::placed(size_t function, std::span<const Value> args) {
  std::vector<Value> out(args.begin(), args.end());
  const std::vector<runtime::Slot>& params = program_.functions[function].params;
  for (size_t n = 0; n < std::min(out.size(), params.size()); ++n) {
    out[n] = moved(out[n], params[n].tensor.device);
  }
  return out;
}

Value Interpreter::on_host(size_t function, Value result) {
  const bool is_there =
      std::ranges::all_of(program_.functions[function].results,
                          [](const runtime::Slot& s) { return s.tensor.device.is_host(); });
  return is_there ? result : moved(result, Device::cpu());
}

void Interpreter::submit_devices() {
  for (const auto& state : c_.devices_) state->queue->submit();
}

void Interpreter::finish_devices() {
  for (const auto& state : c_.devices_) wait(state->device, state->queue->last());
}

void Interpreter::drain_devices() noexcept {
  for (const auto& state : c_.devices_) {
    try {
      state->queue->wait(state->queue->last());
    } catch (const Error&) {
      // The run has an error already, of which this one follows: the device is gone.
    }
  }
}

}  // namespace relay::runtime
