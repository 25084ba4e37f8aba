#include "runtime/vm/bytecode.h"

#include <algorithm>
#include <limits>

#include "base/diagnostic.h"
#include "runtime/vm/opcode_table.h"

namespace relay::runtime {

bool TensorSpec::is_static() const {
  for (int64_t dim : shape) {
    if (dim < 0) return false;
  }
  return true;
}

int64_t TensorSpec::byte_size() const {
  return checked_num_elements(dtype, shape) * static_cast<int64_t>(dtype.bytes());
}

std::string TensorSpec::to_string() const {
  std::string text = "Tensor[(";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    if (shape[i] >= 0) {
      text += std::to_string(shape[i]);
    } else {
      text += i < symbols.size() && !symbols[i].empty() ? symbols[i] : "?";
    }
  }
  if (shape.size() == 1) text += ",";
  text += "), " + dtype.to_string() + "]";
  return device == Device::cpu() ? text : text + " on " + device.to_string();
}

size_t Program::num_generated_kernels() const {
  return static_cast<size_t>(
      std::ranges::count(kernels, KernelLinkage::generated, &KernelInfo::linkage));
}

size_t Program::num_native_functions() const {
  return static_cast<size_t>(std::ranges::count(functions, true, &Function::native));
}

int Program::find_function(std::string_view name) const {
  for (size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

namespace {

std::string slots_text(const std::vector<Slot>& slots) {
  std::string text;
  for (size_t i = 0; i < slots.size(); ++i) {
    if (i > 0) text += ", ";
    text += slots[i].name + ": " + slots[i].type_string();
  }
  return text;
}

}  // namespace

std::string to_string(const Program& program, const Function& function) {
  std::string text = "fn " + function.name + "(" + slots_text(function.params) + ") -> " +
                     (function.returns_tuple ? "tuple(" : "(") + slots_text(function.results) +
                     ")  // registers " + std::to_string(function.num_registers) + ", integers " +
                     std::to_string(function.num_int_registers) + ", arena " +
                     std::to_string(function.arena_bytes);
  for (const DeviceArena& a : function.devices) {
    text += ", arena on " + a.device.to_string() + " " + std::to_string(a.bytes);
  }
  text += "\n";
  for (size_t pc = 0; pc < function.code.size(); ++pc) {
    text += "  " + std::to_string(pc) + ": " +
            instruction_text(program, function, function.code[pc]) + "\n";
  }
  return text;
}

std::string to_string(const Program& program) {
  std::string text;
  for (const Function& function : program.functions) text += to_string(program, function);
  return text;
}

int Function::device_index(Device device) const {
  if (device == Device::cpu()) return 0;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].device == device) return static_cast<int>(i) + 1;
  }
  return -1;
}

std::vector<Device> Program::devices() const {
  std::vector<Device> out;
  auto add = [&](Device d) {
    if (d != Device::cpu() && std::ranges::find(out, d) == out.end()) out.push_back(d);
  };
  for (const Function& f : functions) {
    for (const DeviceArena& a : f.devices) add(a.device);
    for (const Slot& s : f.params) add(s.tensor.device);
    for (const Slot& s : f.results) add(s.tensor.device);
  }
  for (const KernelInfo& k : kernels) add(k.device);
  for (Device d : constant_devices) add(d);
  return out;
}

int32_t FunctionBuilder::param(std::string name, TensorSpec type) {
  RELAY_CHECK(function_.num_registers == static_cast<int32_t>(function_.params.size()),
              "parameters come before other registers");
  function_.params.push_back({std::move(name), true, std::move(type), {}});
  return reg();
}

int32_t FunctionBuilder::param(std::string name, std::string type_text,
                               std::vector<TypePart> parts) {
  RELAY_CHECK(function_.num_registers == static_cast<int32_t>(function_.params.size()),
              "parameters come before other registers");
  function_.params.push_back({std::move(name), false, {}, std::move(type_text), std::move(parts)});
  return reg();
}

void FunctionBuilder::result(std::string name, TensorSpec type) {
  function_.results.push_back({std::move(name), true, std::move(type), {}});
}

void FunctionBuilder::result(std::string name, std::string type_text) {
  function_.results.push_back({std::move(name), false, {}, std::move(type_text)});
}

int64_t FunctionBuilder::arena(int64_t bytes) {
  int64_t offset = function_.arena_bytes;
  function_.arena_bytes = offset + (bytes + 63) / 64 * 64;
  return offset;
}

FunctionBuilder::Label FunctionBuilder::label() {
  labels_.push_back(-1);
  return {static_cast<int32_t>(labels_.size()) - 1};
}

void FunctionBuilder::bind(Label label) {
  RELAY_CHECK(labels_[label.id] < 0, "label bound twice");
  labels_[label.id] = static_cast<int32_t>(function_.code.size());
}

Instruction& FunctionBuilder::emit(Opcode op, int32_t dst, int32_t a, int32_t b) {
  const OpcodeRow& row = opcode_row(op);
  RELAY_CHECK((row.dst != Role::none || dst == 0) && (row.a != Role::none || a == 0) &&
                  (row.b != Role::none || row.list != ListRole::none || b == 0),
              row.name);
  Instruction in;
  in.op = op;
  in.dst = dst;
  in.a = a;
  in.b = b;
  function_.code.push_back(in);
  return function_.code.back();
}

void FunctionBuilder::emit_list(Opcode op, int32_t dst, int32_t a,
                                std::span<const int32_t> entries) {
  Instruction& in = emit(op, dst, a, static_cast<int32_t>(function_.lists.size()));
  in.count = static_cast<uint32_t>(entries.size());
  function_.lists.insert(function_.lists.end(), entries.begin(), entries.end());
}

void FunctionBuilder::place(int32_t place_string) {
  if (place_string < 0) return;
  function_.code.back().sub |= kPlaced;
  function_.lists.push_back(place_string);
}

void FunctionBuilder::invoke_kernel(int32_t kernel, std::span<const Operand> operands) {
  Instruction& in =
      emit(Opcode::invoke_kernel, 0, kernel, static_cast<int32_t>(function_.operands.size()));
  in.count = static_cast<uint32_t>(operands.size());
  function_.operands.insert(function_.operands.end(), operands.begin(), operands.end());
}

uint8_t FunctionBuilder::device(Device device, int64_t arena_bytes) {
  if (device == Device::cpu()) return 0;
  int index = function_.device_index(device);
  if (index < 0) {
    function_.devices.push_back({device, 0});
    index = static_cast<int>(function_.devices.size());
  }
  RELAY_CHECK(index <= std::numeric_limits<uint8_t>::max(), "too many devices");
  int64_t& bytes = function_.devices[static_cast<size_t>(index) - 1].bytes;
  bytes = std::max(bytes, arena_bytes);
  return static_cast<uint8_t>(index);
}

void FunctionBuilder::copy(Operand target, Operand source, uint8_t device) {
  Instruction& in = emit(Opcode::copy, 0, 0, static_cast<int32_t>(function_.operands.size()));
  in.count = 2;
  in.sub = device;
  function_.operands.push_back(target);
  function_.operands.push_back(source);
}

void FunctionBuilder::transfer(int32_t int_event, Operand target, Operand source, uint8_t device,
                               bool to_host) {
  Instruction& in = emit(to_host ? Opcode::to_host : Opcode::to_device, int_event, 0,
                         static_cast<int32_t>(function_.operands.size()));
  in.count = 2;
  in.sub = device;
  function_.operands.push_back(target);
  function_.operands.push_back(source);
}

void FunctionBuilder::wait(int32_t int_event, std::span<const Operand> on_host, uint8_t device) {
  Instruction& in =
      emit(Opcode::wait, 0, int_event, static_cast<int32_t>(function_.operands.size()));
  in.count = static_cast<uint32_t>(on_host.size());
  in.sub = device;
  function_.operands.insert(function_.operands.end(), on_host.begin(), on_host.end());
}

void FunctionBuilder::alloc_static(int32_t dst, TensorSpec type) {
  int32_t index = static_cast<int32_t>(function_.types.size());
  function_.types.push_back(std::move(type));
  emit(Opcode::alloc_static, dst, index);
}

void FunctionBuilder::alloc_tensor(int32_t dst, DType dtype, std::span<const int32_t> dims,
                                   uint8_t device) {
  emit_list(Opcode::alloc_tensor, dst, static_cast<int32_t>(dtype.key()), dims);
  function_.code.back().sub = device;
}
void FunctionBuilder::alloc_place(int32_t place, DType dtype, std::span<const int32_t> dims,
                                  uint8_t device) {
  emit_list(Opcode::alloc_place, place, static_cast<int32_t>(dtype.key()), dims);
  function_.code.back().sub = device;
}
void FunctionBuilder::alloc_from_shape(int32_t dst, DType dtype, int32_t shape) {
  emit(Opcode::alloc_from_shape, dst, static_cast<int32_t>(dtype.key()), shape);
}
void FunctionBuilder::reshape(int32_t dst, int32_t src, std::span<const int32_t> dims) {
  emit_list(Opcode::reshape, dst, src, dims);
}
void FunctionBuilder::shape_of(int32_t int_dst, int32_t src, int32_t axis) {
  emit(Opcode::shape_of, int_dst, src, axis);
}
void FunctionBuilder::rank_of(int32_t int_dst, int32_t src) { emit(Opcode::rank_of, int_dst, src); }
void FunctionBuilder::shape_tensor(int32_t dst, int32_t src, DType dtype) {
  emit(Opcode::shape_tensor, dst, src, static_cast<int32_t>(dtype.key()));
}
void FunctionBuilder::load_const(int32_t dst, int32_t constant) {
  emit(Opcode::load_const, dst, constant);
}
void FunctionBuilder::load_int(int32_t int_dst, int64_t value) {
  uint64_t bits = static_cast<uint64_t>(value);
  emit(Opcode::load_int, int_dst, static_cast<int32_t>(bits), static_cast<int32_t>(bits >> 32));
}
void FunctionBuilder::write_lines(int32_t dst, int32_t src, int32_t int_start, Operand lines,
                                  bool given_up) {
  Instruction& in =
      emit(Opcode::write_lines, dst, src, static_cast<int32_t>(function_.operands.size()));
  in.count = 2;
  if (given_up) in.sub = kGivenUp;
  function_.operands.push_back(Operand::scalar(int_start));
  function_.operands.push_back(lines);
}

void FunctionBuilder::load_scalar(int32_t int_dst, DType dtype, Operand source) {
  if (source.kind == Operand::kRegister) {
    emit(Opcode::unbox, int_dst, static_cast<int32_t>(source.index),
         static_cast<int32_t>(dtype.key()));
    return;
  }
  emit(Opcode::load_scalar, int_dst, static_cast<int32_t>(dtype.key()),
       static_cast<int32_t>(function_.operands.size()))
      .count = 1;
  function_.operands.push_back(source);
}
void FunctionBuilder::box(int32_t dst, int32_t int_src, DType dtype) {
  emit(Opcode::box, dst, int_src, static_cast<int32_t>(dtype.key()));
}
void FunctionBuilder::move(int32_t dst, int32_t src) { emit(Opcode::move, dst, src); }
void FunctionBuilder::swap(int32_t a, int32_t b) { emit(Opcode::swap, a, b); }
void FunctionBuilder::move_int(int32_t int_dst, int32_t int_src) {
  emit(Opcode::move_int, int_dst, int_src);
}
void FunctionBuilder::int_op(IntOp op, int32_t int_dst, int32_t a, int32_t b, int bits) {
  Instruction& in = emit(Opcode::int_op, int_dst, a, b);
  in.sub = static_cast<uint8_t>(op);
  in.count = static_cast<uint32_t>(bits);
}
void FunctionBuilder::float_op(FloatOp op, int32_t int_dst, int32_t a, int32_t b, int bits) {
  Instruction& in = emit(Opcode::float_op, int_dst, a, b);
  in.sub = static_cast<uint8_t>(op);
  in.count = static_cast<uint32_t>(bits);
}
void FunctionBuilder::convert(ScalarConversion conversion, int32_t int_dst, int32_t int_src) {
  emit(Opcode::convert, int_dst, int_src).sub = static_cast<uint8_t>(conversion);
}
void FunctionBuilder::index_in(int32_t int_dst, int32_t index, int32_t size, int32_t place_string) {
  emit(Opcode::index_in, int_dst, index, size).count = static_cast<uint32_t>(place_string);
}
void FunctionBuilder::if_false(int32_t reg, Label target) {
  label_uses_.push_back(function_.code.size());
  emit(Opcode::if_false, 0, reg, target.id);
}
void FunctionBuilder::if_zero(int32_t int_reg, Label target) {
  label_uses_.push_back(function_.code.size());
  emit(Opcode::if_zero, 0, int_reg, target.id);
}
void FunctionBuilder::if_not_tag(int32_t reg, int32_t tag, Label target) {
  label_uses_.push_back(function_.code.size());
  emit(Opcode::if_not_tag, 0, reg, target.id).count = static_cast<uint32_t>(tag);
}
void FunctionBuilder::jump(Label target) {
  label_uses_.push_back(function_.code.size());
  emit(Opcode::jump, 0, 0, target.id);
}
void FunctionBuilder::jump_table(int32_t int_reg, std::span<const Label> targets) {
  Instruction& in =
      emit(Opcode::jump_table, 0, int_reg, static_cast<int32_t>(function_.lists.size()));
  in.count = static_cast<uint32_t>(targets.size());
  for (Label target : targets) {
    label_list_uses_.push_back(function_.lists.size());
    function_.lists.push_back(target.id);
  }
}
void FunctionBuilder::call(int32_t dst, int32_t function, std::span<const int32_t> args,
                           int32_t place_string) {
  emit_list(Opcode::call, dst, function, args);
  place(place_string);
}
void FunctionBuilder::tail_call(int32_t function, std::span<const int32_t> args) {
  emit_list(Opcode::tail_call, 0, function, args);
}
void FunctionBuilder::invoke_closure(int32_t dst, int32_t closure, std::span<const int32_t> args,
                                     int32_t place_string) {
  emit_list(Opcode::invoke_closure, dst, closure, args);
  place(place_string);
}
void FunctionBuilder::tail_invoke(int32_t closure, std::span<const int32_t> args) {
  emit_list(Opcode::tail_invoke, 0, closure, args);
}
void FunctionBuilder::ret(int32_t reg) { emit(Opcode::ret, 0, reg); }
void FunctionBuilder::ret_scalar(int32_t int_reg, DType dtype) {
  emit(Opcode::ret_scalar, 0, int_reg, static_cast<int32_t>(dtype.key()));
}
void FunctionBuilder::ret_outputs() {
  function_.writes_outputs = true;
  emit(Opcode::ret_outputs);
}
void FunctionBuilder::alloc_closure(int32_t dst, int32_t function,
                                    std::span<const int32_t> captured) {
  emit_list(Opcode::alloc_closure, dst, function, captured);
}
void FunctionBuilder::alloc_adt(int32_t dst, int32_t tag, std::span<const int32_t> fields) {
  emit_list(Opcode::alloc_adt, dst, tag, fields);
}
void FunctionBuilder::alloc_tuple(int32_t dst, std::span<const int32_t> fields) {
  emit_list(Opcode::alloc_tuple, dst, 0, fields);
}
void FunctionBuilder::get_tag(int32_t int_dst, int32_t src) { emit(Opcode::get_tag, int_dst, src); }
void FunctionBuilder::get_field(int32_t dst, int32_t src, int32_t index) {
  emit(Opcode::get_field, dst, src, index);
}
void FunctionBuilder::ref_new(int32_t dst, int32_t value) { emit(Opcode::ref_new, dst, value); }
void FunctionBuilder::ref_read(int32_t dst, int32_t ref) { emit(Opcode::ref_read, dst, ref); }
void FunctionBuilder::ref_write(int32_t ref, int32_t value) {
  emit(Opcode::ref_write, 0, ref, value);
}
void FunctionBuilder::kill(std::span<const int32_t> regs) { emit_list(Opcode::kill, 0, 0, regs); }
void FunctionBuilder::fatal(int32_t message_string, int32_t place_string,
                            std::span<const int32_t> int_regs) {
  Instruction& in = emit(Opcode::fatal, 0, message_string, place_string);
  if (!int_regs.empty()) in.dst = int_regs[0] + 1;
  if (int_regs.size() > 1) in.count = static_cast<uint32_t>(int_regs[1]) + 1;
}
void FunctionBuilder::match_fail(int32_t place_string, int32_t constructors_string, int32_t reg) {
  Instruction& in = emit(Opcode::match_fail, 0, place_string, reg + 1);
  in.count = static_cast<uint32_t>(constructors_string + 1);
}

Function FunctionBuilder::finish() && {
  auto resolve = [this](int32_t id) {
    RELAY_CHECK(labels_[id] >= 0, "label not bound");
    return labels_[id];
  };
  for (size_t use : label_uses_) function_.code[use].b = resolve(function_.code[use].b);
  for (size_t use : label_list_uses_) function_.lists[use] = resolve(function_.lists[use]);
  return std::move(function_);
}

}  // namespace relay::runtime
