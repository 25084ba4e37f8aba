// One run of a program. The context's vectors are the machine's memory; this holds what is fixed
// for the run. The class is spread over files by what they are about:
//   vm.cc               the context; frames, limits, errors
//   invoke_kernel.cc    places of memory, and calls of kernels
//   devices.cc          the same on devices
//   native.cc           calls of native functions, and the helpers that these ask for
//   instructions.cc     instructions that are more than a few moves, and calls
//   execute.cc          the loop over the instructions. What it calls is in other files, so that
//                       none of it is inlined and the loop's state stays in machine registers.
#pragma once

#include <atomic>
#include <string>

#include "runtime/core/immediate.h"
#include "runtime/vm/vm.h"

namespace relay::runtime {

// Throws RuntimeError.
[[noreturn]] void fail_run(const DiagnosticCode& code, std::string message, std::string help = {});

// Messages of failures that native functions have, too.
inline constexpr const char* kSizeDivisionByZero = "a shape computation divides by zero";
inline constexpr const char* kDivisionByZero = "an integer is divided by zero";
inline constexpr const char* kNoMatch = "no pattern matches the value";

inline DType key_dtype(int32_t key) { return DType::from_key(static_cast<uint32_t>(key)); }

class Interpreter {
 public:
  Interpreter(ExecutionContext& context, const Program& program,
              std::span<const relay_kernel> kernels, std::span<const relay_native_function> natives,
              const RunOptions& options);
  ~Interpreter();

  Value run(size_t function, std::span<const Value> args, std::span<const Tensor> outputs);
  // Whether an argument has a tensor on another device than the function takes it.
  bool is_elsewhere(size_t function, std::span<const Value> args) const;
  // The arguments with their tensors where the function takes them; those that are elsewhere are copied.
  std::vector<Value> placed(size_t function, std::span<const Value> args);
  // The function's result with its tensors in the memory of the host.
  Value on_host(size_t function, Value result);
  // The error with the calls that led to it: those of native functions, and the open frames.
  RuntimeError with_callers(const RuntimeError& error);
  // Until all that the run has put into the queues of devices is done. RuntimeError when a kernel has failed there.
  void finish_devices();
  // Whether there may be tensors whose strings belong to others (core/strings.h).
  bool made_strings() const { return made_strings_; }

  // Takes the iterations of a kernel's loop from the fuel; RuntimeError E0606. On any thread.
  void charge_jumps(int64_t jumps);

 private:
  using Slot = ExecutionContext::Slot;
  using Frame = ExecutionContext::Frame;
  static_assert(sizeof(Frame) % sizeof(Slot) == 0 && alignof(Frame) <= alignof(Slot));
  static constexpr size_t kFrameSlots = sizeof(Frame) / sizeof(Slot);

  // What the instructions work on: the innermost frame. The slots move when the stack grows, so it
  // is renewed at each call and return.
  struct Window {
    const Function* function = nullptr;
    Slot* r = nullptr;  // object registers
    Slot* i = nullptr;  // integer registers
    Slot* p = nullptr;  // places: of each its address, and its bytes
    Slot* d = nullptr;  // a DeviceFrame for each of the function's devices
    char* arena = nullptr;
  };
  // Memory of a frame on a device.
  struct DeviceFrame {
    char* arena = nullptr;
    ArenaStack::Mark mark;  // the device's arena before this frame
  };
  static constexpr size_t kDeviceSlots = sizeof(DeviceFrame) / sizeof(Slot);
  static_assert(sizeof(DeviceFrame) % sizeof(Slot) == 0);
  // A piece of memory that a kernel reads or writes.
  struct Place {
    void* data;
    size_t bytes;
  };

  // ---- Frames (vm.cc)

  Frame& frame() { return *reinterpret_cast<Frame*>(c_.slots_.data() + c_.frame_); }
  static size_t object_slots(const Function& function) {
    return static_cast<size_t>(function.num_registers) +
           (function.writes_outputs ? function.results.size() : 0);
  }
  Window window() {
    Frame& f = frame();
    Slot* r = c_.slots_.data() + c_.frame_ + kFrameSlots;
    Slot* i = r + object_slots(*f.function);
    Slot* p = i + f.function->num_int_registers;
    return {f.function, r, i, p, p + ptrdiff_t{2} * f.function->num_places, f.arena};
  }
  // Opens a frame with null registers.
  void push_frame(const Function& function, const Instruction* call);
  void pop_frame();
  void grow(size_t slots);
  char* push_arena(const Function& function);
  // The buffers that a function writes its results to: those given, and new ones for null handles.
  void make_outputs(const Function& function, std::span<const Tensor> outputs = {});
  // What the frame of a function with output buffers returns.
  Object* collect_outputs();

  bool limited() const { return options_.memory_limit >= 0; }
  // Called before `bytes` more are taken.
  void charge(int64_t bytes) const;
  // Bytes that the run holds.
  int64_t held() const;
  // What the next kernel may allocate.
  void limit_kernel();

  // ---- Values

  // A defect of the bytecode that only a run shows: UserError E0613.
  [[noreturn]] void misuse(const char* what);

  static void set(Object*& slot, Object* object) { release_value(std::exchange(slot, object)); }
  static bool has_one_owner(const Object* object) {
    return object->refs.load(std::memory_order_acquire) == 1;
  }
  // One more owner of a value that is in a register, or only in a value that only a register has.
  // Where it has no other owner, no other thread can get at it: its count needs no locked instruction.
  static void retain_own(Object* object) {
    if (!is_object(object)) return;
    if (has_one_owner(object)) {
      object->refs.store(2, std::memory_order_relaxed);
    } else {
      object->refs.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // The object of a register, owned: moved out of it if it is not read again.
  static Object* take(Slot& slot, bool last) {
    if (last) return std::exchange(slot.object, nullptr);
    retain_own(slot.object);
    return slot.object;
  }
  // A field of a cell that is in a register, owned: moved out of it if `last` says that it may be and
  // the cell has no other reference.
  static Object* take_field(Cell* cell, uint32_t n, bool last) {
    Object* field = cell->fields[n];
    if (!has_one_owner(cell)) {
      retain_value(field);
    } else if (last) {
      cell->fields[n] = nullptr;
    } else {
      retain_own(field);
    }
    return field;
  }
  static Object* take_entry(Slot* r, int32_t entry) {
    return entry < 0 ? take(r[~entry], true) : take(r[entry], false);
  }

  // The tensor of a register. A scalar without an object becomes one there: the two are one value.
  Tensor::Rep* tensor(Slot& slot) {
    if (is_immediate(slot.object) && !is_empty_cell(slot.object)) [[unlikely]] {
      slot.object = box(immediate_bits(slot.object), immediate_dtype(slot.object));
    }
    if (!is_object(slot.object) || slot.object->kind != ObjectKind::tensor) [[unlikely]] {
      misuse("a tensor is expected");
    }
    return static_cast<Tensor::Rep*>(slot.object);
  }
  // The same, whose data the host reads.
  Tensor::Rep* host_tensor(Slot& slot) {
    Tensor::Rep* rep = tensor(slot);
    if (!rep->device.is_host()) [[unlikely]]
      misuse("the host reads a tensor of a device");
    return rep;
  }
  Cell* cell(Object* object, ObjectKind kind) {
    if (!is_object(object) || object->kind != kind) [[unlikely]] {
      misuse("a value of another kind is expected");
    }
    return static_cast<Cell*>(object);
  }
  int32_t tag(Object* object) {
    const bool is_empty = is_empty_cell(object) && kind_of(object) == ObjectKind::adt;
    return is_empty ? empty_cell_tag(object) : cell(object, ObjectKind::adt)->tag;
  }
  static size_t tensor_bytes(const Tensor::Rep* rep) {
    return static_cast<size_t>(rep->num_elements) * rep->dtype.bytes();
  }

  // ---- Kernels (invoke_kernel.cc)

  Place resolve(const Operand& o, const Window& w);
  // How much of what a copy names is the tensor.
  size_t copied_bytes(const Operand* operands, const Place& to, const Place& from);
  void invoke_kernel(const Instruction& in, const Window& w);
  // The kernel's entry, between what the profiler is told; the buffers and sizes of the call are set.
  void profiled_call(const Instruction& in, const Window& w);
  [[noreturn]] static void kernel_failed(const KernelInfo& kernel, int32_t code);
  void poison_outputs(const KernelInfo& kernel, const Operand* operands, const Window& w);
  void copy(const Instruction& in, const Window& w);
  // Whether only results are copied from an instruction to the end of the function.
  bool is_at_end(const Instruction& in, const Function& function);
  // Whether the tensor of a register can be the output as it is: it has no other owner, and this run has made the output's memory.
  static bool becomes_output(const Slot& result, const Slot& output);
  // The one element of that dtype, as an integer register has it.
  int64_t element(const Place& place, DType t);
  int64_t load_scalar(const Instruction& in, const Window& w);
  int64_t unbox(const Instruction& in, Slot* r);

  // ---- Devices (devices.cc)

  DeviceState& device_state(Device device);
  void push_device_arenas(const Function& function, Slot* at);
  void pop_device_arenas(const Function& function, Slot* at);
  Object* new_device_tensor(DType dtype, Shape shape, Device device);
  Object* load_constant(size_t index);
  Tensor constant_on(Device device, size_t index);
  // The operand as the device with this position sees it; 0: the host.
  Place resolve_on(const Operand& o, const Window& w, int device);
  void launch(const Instruction& in, const Window& w);
  void copy_within(const Instruction& in, const Window& w);
  uint64_t transfer(const Instruction& in, const Window& w);
  void wait(Device device, uint64_t event);
  // A tensor, and a value of tensors in nested tuples, copied to a device unless it is there.
  Tensor moved(const Tensor& tensor, Device to);
  Value moved(const Value& value, Device to);
  // Devices work on what they were given while the host computes.
  void submit_devices();
  // The same without an error.
  void drain_devices() noexcept;

  // ---- Instructions (instructions.cc)

  void new_tensor(Slot& slot, DType dtype, Shape shape, Device device = {});
  // The device that instructions of the function call by a number.
  static Device device_at(const Window& w, uint8_t index) {
    return index == 0 ? Device::cpu() : w.function->devices[size_t{index} - 1].device;
  }
  // The scalar as a value.
  Object* scalar_value(int64_t bits, DType dtype) {
    bool fits = is_immediate_dtype(dtype) && fits_immediate(bits, dtype);
    return fits ? make_immediate(bits, dtype) : box(bits, dtype);
  }
  // A tensor with the scalar.
  Object* box(int64_t bits, DType dtype);
  Object* new_cell(ObjectKind kind, int32_t tag, const Instruction& in, const Window& w);
  void gather_dims(const Instruction& in, const Window& w);
  void alloc_place(const Instruction& in, const Window& w);
  static char* place_memory(const Slot& slot) {
    return reinterpret_cast<char*>(static_cast<uintptr_t>(slot.integer));
  }
  Object* reshape(Tensor::Rep* rep);
  Object* write_lines(const Instruction& in, const Window& w);
  Object* shape_tensor(const Tensor::Rep* rep, DType dtype);
  Object* get_field(const Instruction& in, Slot* r);
  bool is_true(Slot& slot);
  // Opens the callee's frame and moves the arguments into it.
  void call(const Function& callee, const Instruction& in);
  void invoke_closure(const Instruction& in);
  // The same in place of the innermost frame.
  void tail_call(const Function& callee, const Instruction& in);
  void tail_invoke(const Instruction& in);
  void stage_args(const Instruction& in, Slot* r);
  // The callee's frame; what it is called with, beyond what a closure has captured, is in args_.
  Slot* replace_frame(const Function& callee);
  void unstage_args(Slot* to);
  // The function of a closure, which it is called with as many arguments as it takes.
  const Function& callee_of(const Cell& closure, const Instruction& in);
  [[noreturn]] void no_such_index(int64_t index, int64_t size, int32_t place) const;
  std::string text(int32_t index) const {
    return index >= 0 ? program_.strings[static_cast<size_t>(index)] : std::string();
  }
  // Calls and jumps until `out_of_fuel`, out of those that are left.
  void refuel();
  // Looks at the limits; goes on when none is reached.
  void out_of_fuel();
  // Ends the run; `place` is a string of the program, or -1.
  [[noreturn]] void stop(std::string message, int32_t place, std::string found = {}) const;
  [[noreturn]] void fatal(const Instruction& in, const Window& w) const;
  [[noreturn]] void no_match(int32_t place, int64_t constructors, const Object* value) const;
  [[noreturn]] void too_deep(size_t bytes) const;
  Value execute();

  // ---- Native functions (native.cc)

  struct NativeRequest;
  static const relay_native_helpers* native_helpers();
  static relay_native_result serve_native(void* context, const void* request);
  relay_native_result serve(const NativeRequest& request);
  [[noreturn]] void fail_native(int64_t kind, int64_t a, int64_t b, int64_t c);
  void more_native_stack();
  // What a failure that is being handled becomes for native code.
  relay_native_result keep_native_error();
  // Before the first native call of the run. Without address space for the stack all functions are interpreted.
  bool make_native_stack();
  bool is_native(int64_t function) {
    return !natives_.empty() && natives_[static_cast<size_t>(function)] != nullptr &&
           (native_.stack_limit != nullptr || make_native_stack());
  }
  // Whether the register has a closure of a native function.
  bool invokes_native(const Object* closure) {
    return is_object(closure) && closure->kind == ObjectKind::closure &&
           is_native(static_cast<const Cell*>(closure)->tag);
  }
  // The result, owned. The arguments are taken over.
  Object* call_native(size_t function, std::span<Object* const> args);
  // What a call and an invocation of the innermost frame do.
  Object* call_native(const Instruction& in, Slot* r);
  // The same for the staged arguments, noting the call if it fails.
  Object* call_native(const Instruction& in, size_t function, std::span<Object* const> args);
  // Notes a call that has failed, from the innermost one on.
  void note_caller(const Function& caller, int32_t place);
  // The string with the place of a call, or -1.
  static int32_t place_of(const Function& caller, const Instruction& call);
  Object* invoke_native(const Instruction& in, Slot* r);

  ExecutionContext& c_;
  const Program& program_;
  std::span<const relay_kernel> kernels_;
  std::span<const relay_native_function> natives_;  // empty: all functions are interpreted
  const RunOptions& options_;
  relay_native_context native_{};
  char* c_stack_ = nullptr;         // the C stack under native functions
  int64_t native_stack_bytes_ = 0;  // that this run took beyond what every run has
  std::exception_ptr native_error_;
  std::vector<Object*> native_args_;
  // The innermost calls of native functions that have failed, and how many there are.
  std::vector<std::string> failed_calls_;
  size_t num_failed_calls_ = 0;
  relay_kernel_context kernel_context_{};
  int32_t kernel_error_ = RELAY_KERNEL_OK;
  int64_t bytes_before_ = 0;
  const bool budgeted_;  // the thread has limits: somebody looks at the clock now and then
  // Calls and jumps beyond those of fuel_. Loops of kernels take theirs from here, on any thread.
  std::atomic<int64_t> fuel_left_;
  int64_t fuel_ = 0;
  bool made_strings_ = false;
  // The instructions that copy results last, of the function that returned last (is_at_end).
  const Instruction *end_begin_ = nullptr, *end_ = nullptr;
};

inline void Interpreter::push_frame(const Function& function, const Instruction* call) {
  size_t registers = object_slots(function) + static_cast<size_t>(function.num_int_registers) +
                     2 * static_cast<size_t>(function.num_places) +
                     kDeviceSlots * function.devices.size();
  size_t end = c_.top_ + kFrameSlots + registers;
  if (end > c_.slots_.size()) [[unlikely]]
    grow(end);
  if (limited()) [[unlikely]] {
    charge(static_cast<int64_t>((kFrameSlots + registers) * sizeof(Slot)) + function.arena_bytes);
  }
  Slot* at = c_.slots_.data() + c_.top_;
  size_t caller = c_.depth_ > 0 ? c_.frame_ : c_.top_;
  auto* f = new (at) Frame;
  f->function = &function;
  f->caller = caller;
  f->call = call;
  f->arena = nullptr;
  if (function.arena_bytes > 0 || function.num_places > 0) {
    f->mark = c_.arena_.mark();
    f->arena = push_arena(function);
  }
  at += kFrameSlots;
  for (size_t n = 0; n < registers; ++n) at[n].integer = 0;
  c_.frame_ = c_.top_;
  c_.top_ = end;
  ++c_.depth_;
  if (!function.devices.empty()) [[unlikely]]
    push_device_arenas(function, at + registers - kDeviceSlots * function.devices.size());
}

inline void Interpreter::pop_frame() {
  const Frame& f = frame();
  Slot* r = c_.slots_.data() + c_.frame_ + kFrameSlots;
  size_t objects = object_slots(*f.function);
  for (size_t n = 0; n < objects; ++n) {
    release_value(r[n].object);
  }
  if (f.arena != nullptr) c_.arena_.pop(f.mark);
  if (!f.function->devices.empty()) [[unlikely]]
    pop_device_arenas(*f.function,
                      c_.slots_.data() + c_.top_ - kDeviceSlots * f.function->devices.size());
  c_.top_ = c_.frame_;
  c_.frame_ = f.caller;
  --c_.depth_;
}

}  // namespace relay::runtime
