// Bytecode: what the virtual machine runs, as plain data.
//
// A program is functions, constants, kernels and strings. A function has two register files, fixed
// in size: object registers, which hold tensors, ADT values, tuples, closures and references (or
// null), and integer registers for shape computation, control and scalars. Parameter i arrives in
// object register i. There is no operand stack, and calls do not use the C stack.
//
// A scalar is an element in an integer register: the value of an integer or bool, the bits of a
// float32 or float64. Arithmetic on it costs no kernel call and no tensor. As an argument, result,
// field or captured value it is in an object register, mostly without an object behind it
// (core/immediate.h); where a tensor is read from such a register, one is made there.
//
// A register that is not read again is moved out of, not copied: an entry ~r of a list of object
// registers stands for r and empties it, and so do the flags kLastA (for r[a]) and kLastB (for
// r[b]) in `sub`. So a value is freed at its last use.
//
// A static region is a row of `invoke_kernel` whose operands are places known ahead: an offset of
// the frame's arena, a constant, a parameter's register, an output buffer. Nothing is allocated or
// counted between such kernels.
//
//   FunctionBuilder f("main");
//   f.param("x", TensorSpec{DType::Float(32), {1, 16}});
//   f.result("y", TensorSpec{DType::Float(32), {1, 4}});
//   int64_t hidden = f.arena(64 * 4);
//   f.invoke_kernel(k0, {Operand::reg(0), Operand::constant(0), Operand::arena(hidden, 256)});
//   f.invoke_kernel(k1, {Operand::arena(hidden, 256), Operand::output(0)});
//   f.ret_outputs();
//   program.functions.push_back(std::move(f).finish());
//
// The instructions, with their operands and what they do, are the rows of vm/opcode_table.h; for
// readers they are in docs/bytecode.md.
//
// Memory of a device is read and written by the device's kernels, by `copy` between two places there, and
// by `to_device` and `to_host`, which copy while the run goes on; `wait` waits until they are done. A device runs what it
// is given in order.
//
// Loading verifies all indices, jumps, arities and arena ranges (vm/verify.h); the interpreter
// checks what depends on values: null registers, object kinds, sizes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/scalar_ops.h"
#include "runtime/core/tensor.h"

namespace relay::runtime {

enum class Opcode : uint8_t {
  invoke_kernel,
  copy,
  alloc_static,
  alloc_tensor,
  alloc_from_shape,
  reshape,
  shape_of,
  rank_of,
  shape_tensor,
  load_const,
  load_int,
  load_scalar,
  box,
  unbox,
  move,
  swap,
  move_int,
  int_op,
  float_op,
  convert,
  if_false,
  if_zero,
  if_not_tag,
  jump,
  jump_table,
  call,
  tail_call,
  invoke_closure,
  tail_invoke,
  ret,
  ret_scalar,
  ret_outputs,
  alloc_closure,
  alloc_adt,
  alloc_tuple,
  get_tag,
  get_field,
  ref_new,
  ref_read,
  ref_write,
  kill,
  fatal,
  match_fail,
  write_lines,
  alloc_place,
  index_in,
  to_device,
  to_host,
  wait,
};
inline constexpr int kOpcodeCount = static_cast<int>(Opcode::wait) + 1;

// "invoke_kernel", ...
const char* opcode_name(Opcode op);

// Flags in `sub` of the instructions whose operands may be moved out of.
inline constexpr uint8_t kLastA = 1;
inline constexpr uint8_t kLastB = 2;
// Of get_field, where r[a] is read again but not this field: it is moved out when no other reference has
// the value.
inline constexpr uint8_t kLastField = 4;
// Of write_lines: r[a] is a parameter that was given up, and is written to though others have it.
inline constexpr uint8_t kGivenUp = 8;
// Of a call that does not leave the frame: behind the arguments, the list has the string with its place in the source.
inline constexpr uint8_t kPlaced = 16;

struct Instruction {
  Opcode op = Opcode::ret_outputs;
  uint8_t sub = 0;
  uint16_t unused = 0;
  uint32_t count = 0;
  int32_t dst = 0;
  int32_t a = 0;
  int32_t b = 0;

  friend bool operator==(const Instruction&, const Instruction&) = default;
};
static_assert(sizeof(Instruction) == 20);

// A place that a kernel reads or writes, or the value of a symbolic dimension.
struct Operand {
  enum Kind : uint8_t { kArena, kConstant, kRegister, kOutput, kDim, kScalar, kPlace };
  Kind kind = kArena;
  // Arena offset in bytes, or the index of a constant, object register,
  // output, integer register (of a dimension, or of a scalar that is read), or place of the frame.
  int64_t index = 0;
  // Size of an arena range; unused otherwise.
  int64_t bytes = 0;

  static Operand arena(int64_t offset, int64_t bytes) { return {kArena, offset, bytes}; }
  static Operand constant(int64_t index) { return {kConstant, index, 0}; }
  static Operand reg(int64_t index) { return {kRegister, index, 0}; }
  static Operand output(int64_t index) { return {kOutput, index, 0}; }
  static Operand dim(int64_t int_register) { return {kDim, int_register, 0}; }
  static Operand place(int64_t index) { return {kPlace, index, 0}; }
  static Operand scalar(int64_t int_register) { return {kScalar, int_register, 0}; }

  friend bool operator==(const Operand&, const Operand&) = default;
};

// The type of a tensor; a dimension of -1 is known only at run time, and then its entry in
// `symbols` may name it ("" or an empty list: no name).
struct TensorSpec {
  DType dtype;
  std::vector<int64_t> shape;
  std::vector<std::string> symbols;
  Device device{};

  bool is_static() const;
  // Bytes of a static type; UserError E0601 when they overflow.
  int64_t byte_size() const;
  // "Tensor[(n, 768), float32]"; a device other than the CPU is named behind it.
  std::string to_string() const;

  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

// A part of a tuple's type. The parts of a type stand in preorder: a tuple before its fields.
struct TypePart {
  enum Kind : uint8_t { tuple, tensor, other };  // other: data, closures and references
  Kind kind = other;
  uint32_t fields = 0;  // of a tuple
  TensorSpec spec{};    // of a tensor

  friend bool operator==(const TypePart&, const TypePart&) = default;
};

// Memory of a frame on a device; a function's instructions name it by its position, from 1 on. 0 is the host.
struct DeviceArena {
  Device device;
  int64_t bytes = 0;

  friend bool operator==(const DeviceArena&, const DeviceArena&) = default;
};

// A parameter whose memory a result takes: a caller gives the tensor up, and finds the result in it.
// In place: the function writes over the parameter's tensor and gives that. Otherwise the result is
// copied there when the run is over.
struct Donation {
  int32_t param = 0;
  int32_t output = 0;
  bool in_place = false;

  friend bool operator==(const Donation&, const Donation&) = default;
};

// A parameter or result: its name and type. A type other than a tensor's is kept as text; that of a
// tuple parameter has parts, by which values from outside are checked.
struct Slot {
  std::string name;
  bool is_tensor = true;
  // Of another type it says the device alone, on which the tensors in the value are.
  TensorSpec tensor;
  std::string type_text;
  std::vector<TypePart> parts{};

  std::string type_string() const { return is_tensor ? tensor.to_string() : type_text; }
  friend bool operator==(const Slot&, const Slot&) = default;
};

struct Function {
  std::string name;
  std::vector<Slot> params;
  // The tensors of the result, a tuple's leaves in order; one non-tensor slot when the result
  // holds anything else.
  std::vector<Slot> results;
  // The result is a tuple (of any number of tensors) and not a single tensor.
  bool returns_tuple = false;
  // Every result is a static tensor written into an output buffer, and the function ends in
  // ret_outputs; otherwise it ends in ret.
  bool writes_outputs = false;
  // Not offered to callers of the module: a lifted closure or a local function.
  bool internal = false;
  // The interpreter can enter it as machine code (runtime/core/native_abi.h).
  bool native = false;
  int64_t arena_bytes = 0;
  std::vector<DeviceArena> devices;
  int32_t num_registers = 0;
  int32_t num_int_registers = 0;
  // Pieces of the frame's memory of a size that alloc_place says.
  int32_t num_places = 0;
  std::vector<Instruction> code;
  std::vector<int32_t> lists;
  std::vector<Operand> operands;
  std::vector<TensorSpec> types;
  // Parameters and results at most once each.
  std::vector<Donation> donations;

  // The position of a device in `devices`; 0 for the host, and -1 for one that is not there.
  int device_index(Device device) const;

  friend bool operator==(const Function&, const Function&) = default;
};

// What a kernel's entry calls.
enum class KernelLinkage : uint8_t {
  generated,  // the next of the functions that the artifact's code lists
  library,    // a function of a library beside the runtime
  host,       // a function that the process registered (runtime/external_kernels.h)
};

struct KernelInfo {
  std::string name;
  // Model nodes or source places that the kernel computes, for messages: "conv1 + relu1".
  std::string origin;
  // Bytes of each buffer, -1 where they depend on dimensions; inputs first, then outputs.
  std::vector<int64_t> buffer_bytes;
  uint32_t num_outputs = 1;
  uint32_t num_dims = 0;
  // Work of one call, for the profiler; 0 when unknown or depending on dimensions.
  int64_t flops = 0;
  int64_t bytes = 0;
  // Whether an output is part of a larger tensor: the gaps between its rows are not the kernel's.
  bool has_gaps = false;
  // Where it runs and its buffers lie.
  Device device{};
  KernelLinkage linkage = KernelLinkage::generated;
  // Of another linkage: the library's file name, and the function's name.
  std::string library{};
  std::string symbol{};

  friend bool operator==(const KernelInfo&, const KernelInfo&) = default;
};

struct Program {
  std::vector<Function> functions;
  // Their data is the host's. One with a device in `constant_devices` (empty: none has) is copied there when it is first used.
  std::vector<Tensor> constants;
  std::vector<Device> constant_devices;
  std::vector<KernelInfo> kernels;
  std::vector<std::string> strings;

  Device constant_device(size_t index) const {
    return index < constant_devices.size() ? constant_devices[index] : Device::cpu();
  }
  // Those that its functions and kernels name, other than the host.
  std::vector<Device> devices() const;

  // The function's index, -1 when there is none.
  int find_function(std::string_view name) const;
  // The kernels that the artifact's own code has.
  size_t num_generated_kernels() const;
  size_t num_native_functions() const;
};

// One instruction per line, for people and for golden tests.
std::string to_string(const Program& program, const Function& function);
std::string to_string(const Program& program);

// Serialised functions, kernels and strings (not the constants' data). The form is little-endian,
// versioned by the artifact, and equal for equal programs. Reading checks every length and raises
// UserError E0608; the result still has to be verified.
// `version`: the format of the artifact that they are in; before kDonationVersion there are no
// donations and no places, before kLinkageVersion all kernels are generated, before kNativeVersion no function is
// native, before kProgramVersion there are no devices.
inline constexpr uint32_t kDonationVersion = 7;
inline constexpr uint32_t kLinkageVersion = 11;
inline constexpr uint32_t kNativeVersion = 12;
inline constexpr uint32_t kProgramVersion = 13;
std::string write_program(const Program& program, uint32_t version = kProgramVersion);
Program read_program(std::string_view bytes, uint32_t version = kProgramVersion);

// Writes a function: registers, labels and operand lists are allocated as they are needed.
class FunctionBuilder {
 public:
  struct Label {
    int32_t id;
  };

  explicit FunctionBuilder(std::string name) { function_.name = std::move(name); }

  // Declares the next parameter and returns its register. All before any other register.
  int32_t param(std::string name, TensorSpec type);
  int32_t param(std::string name, std::string type_text, std::vector<TypePart> parts = {});
  void result(std::string name, TensorSpec type);
  void result(std::string name, std::string type_text);
  void returns_tuple() { function_.returns_tuple = true; }
  void internal() { function_.internal = true; }
  void donate(int32_t param, int32_t output, bool in_place) {
    function_.donations.push_back({param, output, in_place});
  }

  int32_t reg() { return function_.num_registers++; }
  int32_t int_reg() { return function_.num_int_registers++; }
  // Appends a fresh range to the arena and returns its offset; for planners, `arena_size` sets the
  // size of a layout computed elsewhere.
  int64_t arena(int64_t bytes);
  void arena_size(int64_t bytes) { function_.arena_bytes = bytes; }

  void num_places(int32_t count) { function_.num_places = count; }
  // What instructions call the device; 0 for the host. It has an arena of at least so many bytes.
  uint8_t device(Device device, int64_t arena_bytes = 0);
  // That the last parameter or result is on a device, if it is not a tensor.
  void param_device(Device device) { function_.params.back().tensor.device = device; }
  void result_device(Device device) { function_.results.back().tensor.device = device; }

  Label label();
  void bind(Label label);

  void invoke_kernel(int32_t kernel, std::span<const Operand> operands);
  void invoke_kernel(int32_t kernel, std::initializer_list<Operand> operands) {
    invoke_kernel(kernel, std::span(operands.begin(), operands.size()));
  }
  void copy(Operand target, Operand source, uint8_t device = 0);
  // Copies between the host and the device; the register gets the event for `wait`.
  void transfer(int32_t int_event, Operand target, Operand source, uint8_t device, bool to_host);
  // Until the event; the operands are what was copied on the host, which lives until here.
  void wait(int32_t int_event, std::span<const Operand> on_host, uint8_t device);
  void alloc_static(int32_t dst, TensorSpec type);
  void alloc_tensor(int32_t dst, DType dtype, std::span<const int32_t> dims, uint8_t device = 0);
  // Memory for a tensor: what the place has already, where that is enough.
  void alloc_place(int32_t place, DType dtype, std::span<const int32_t> dims, uint8_t device = 0);
  void alloc_from_shape(int32_t dst, DType dtype, int32_t shape);
  void reshape(int32_t dst, int32_t src, std::span<const int32_t> dims);
  void shape_of(int32_t int_dst, int32_t src, int32_t axis);
  void rank_of(int32_t int_dst, int32_t src);
  void shape_tensor(int32_t dst, int32_t src, DType dtype);
  // `given_up`: src is a parameter that is donated in place.
  void write_lines(int32_t dst, int32_t src, int32_t int_start, Operand lines,
                   bool given_up = false);
  void load_const(int32_t dst, int32_t constant);
  void load_int(int32_t int_dst, int64_t value);
  // `unbox` for a register.
  void load_scalar(int32_t int_dst, DType dtype, Operand source);
  void box(int32_t dst, int32_t int_src, DType dtype);
  void move(int32_t dst, int32_t src);
  void swap(int32_t a, int32_t b);
  void move_int(int32_t int_dst, int32_t int_src);
  void int_op(IntOp op, int32_t int_dst, int32_t a, int32_t b, int bits = 64);
  void float_op(FloatOp op, int32_t int_dst, int32_t a, int32_t b, int bits);
  void convert(ScalarConversion conversion, int32_t int_dst, int32_t int_src);
  // `place_string`: where in the source the index is; -1: not known.
  void index_in(int32_t int_dst, int32_t index, int32_t size, int32_t place_string);
  void if_false(int32_t reg, Label target);
  void if_zero(int32_t int_reg, Label target);
  void if_not_tag(int32_t reg, int32_t tag, Label target);
  void jump(Label target);
  void jump_table(int32_t int_reg, std::span<const Label> targets);
  // `place_string`: where in the source the call is; -1: not known.
  void call(int32_t dst, int32_t function, std::span<const int32_t> args,
            int32_t place_string = -1);
  void tail_call(int32_t function, std::span<const int32_t> args);
  void invoke_closure(int32_t dst, int32_t closure, std::span<const int32_t> args,
                      int32_t place_string = -1);
  void tail_invoke(int32_t closure, std::span<const int32_t> args);
  void ret(int32_t reg);
  void ret_scalar(int32_t int_reg, DType dtype);
  void ret_outputs();
  void alloc_closure(int32_t dst, int32_t function, std::span<const int32_t> captured);
  void alloc_adt(int32_t dst, int32_t tag, std::span<const int32_t> fields);
  void alloc_tuple(int32_t dst, std::span<const int32_t> fields);
  void get_tag(int32_t int_dst, int32_t src);
  void get_field(int32_t dst, int32_t src, int32_t index);
  void ref_new(int32_t dst, int32_t value);
  void ref_read(int32_t dst, int32_t ref);
  void ref_write(int32_t ref, int32_t value);
  void kill(std::span<const int32_t> regs);
  // `int_regs`: up to two numbers that the message shows.
  void fatal(int32_t message_string, int32_t place_string = -1,
             std::span<const int32_t> int_regs = {});
  // `constructors_string`: those of the value in `reg` (core/data_text.h); -1: neither is known.
  void match_fail(int32_t place_string = -1, int32_t constructors_string = -1, int32_t reg = -1);

  // The finished function: every label must be bound.
  Function finish() &&;

 private:
  Instruction& emit(Opcode op, int32_t dst = 0, int32_t a = 0, int32_t b = 0);
  void emit_list(Opcode op, int32_t dst, int32_t a, std::span<const int32_t> entries);
  // The string with the place of the instruction that emit_list has just added.
  void place(int32_t place_string);

  Function function_;
  std::vector<int32_t> labels_;  // instruction index, -1 while unbound
  // Places that hold a label's id until `finish`: instructions (their b) and list entries.
  std::vector<size_t> label_uses_;
  std::vector<size_t> label_list_uses_;
};

}  // namespace relay::runtime
