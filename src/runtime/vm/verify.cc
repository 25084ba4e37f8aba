#include "runtime/vm/verify.h"

#include <algorithm>
#include <limits>

#include "base/codes/runtime.h"
#include "runtime/vm/opcode_table.h"

namespace relay::runtime {

namespace {

constexpr int64_t kMaxArena =
    std::min<int64_t>(int64_t{1} << 46, std::numeric_limits<ptrdiff_t>::max());
constexpr int32_t kMaxRegisters = 1 << 24;

class Verifier {
 public:
  Verifier(const Program& program, const Function& function)
      : program_(program), function_(function) {}

  void run() {
    check(function_.num_registers >= 0 && function_.num_registers <= kMaxRegisters &&
              function_.num_int_registers >= 0 && function_.num_int_registers <= kMaxRegisters,
          "register count out of range");
    check(function_.num_places >= 0 && function_.num_places <= kMaxRegisters,
          "number of places out of range");
    check(function_.params.size() <= static_cast<size_t>(function_.num_registers),
          "more parameters than registers");
    check(function_.arena_bytes >= 0 && function_.arena_bytes <= kMaxArena,
          "arena size out of range");
    for (const Slot& slot : function_.params) this->slot(slot);
    for (const Slot& slot : function_.results) {
      this->slot(slot);
      check(!function_.writes_outputs || (slot.is_tensor && slot.tensor.is_static()),
            "an output buffer needs a static tensor type");
    }
    check(!function_.writes_outputs || function_.returns_tuple || function_.results.size() == 1,
          "a function without a tuple result has one output");
    check(!function_.native || (!function_.writes_outputs && function_.donations.empty()),
          "a native function with output buffers or donations");
    for (const TensorSpec& type : function_.types) {
      check(spec(type) && type.is_static(), "invalid tensor type");
    }
    check(function_.devices.size() <= std::numeric_limits<uint8_t>::max(), "too many devices");
    for (const DeviceArena& a : function_.devices) {
      check(a.bytes >= 0 && a.bytes <= kMaxArena, "arena size out of range");
      check(!a.device.is_host(), "an arena of the host among those of devices");
    }
    check(program_.constant_devices.empty() ||
              program_.constant_devices.size() == program_.constants.size(),
          "another number of constants on devices");
    donations();
    check(!function_.code.empty(), "a function without code");
    for (pc_ = 0; pc_ < function_.code.size(); ++pc_) instruction(function_.code[pc_]);
    pc_ = function_.code.size() - 1;
    const Flow flow = opcode_row(function_.code.back().op).flow;
    check(flow == Flow::jump || flow == Flow::leave, "control runs off the end");
  }

 private:
  void check(bool condition, const char* what) const {
    if (condition) return;
    throw UserError(Diagnostic(codes::bytecode_invalid, {},
                               "the bytecode of function '" + function_.name +
                                   "' is invalid at instruction " + std::to_string(pc_) + ": " +
                                   what)
                        .help("the artifact is damaged or was not written by Relay; compile the "
                              "model again"));
  }

  static bool spec(const TensorSpec& type) {
    if (!type.dtype.valid() || type.dtype.lanes != 1 || type.shape.size() > 1024) return false;
    if (!type.symbols.empty() && type.symbols.size() != type.shape.size()) return false;
    for (int64_t dim : type.shape) {
      if (dim < -1) return false;
    }
    if (!type.is_static()) return true;
    try {
      return type.byte_size() >= 0;
    } catch (const UserError&) {
      return false;
    }
  }

  void slot(const Slot& slot) const {
    check(!slot.is_tensor || spec(slot.tensor), "invalid type of a parameter or result");
    // Every field of a tuple must exist, and none after them.
    uint64_t missing = slot.parts.empty() ? 0 : 1;
    for (const TypePart& part : slot.parts) {
      check(missing > 0, "parts of a type that belong to nothing");
      --missing;
      if (part.kind == TypePart::tuple) missing += part.fields;
      check(part.kind != TypePart::tensor || spec(part.spec), "invalid type of a part");
    }
    check(missing == 0, "parts of a type are missing");
  }

  template <typename T>
  static bool within(int64_t index, const std::vector<T>& table) {
    return index >= 0 && index < static_cast<int64_t>(table.size());
  }
  void reg(int32_t r) const {
    check(r >= 0 && r < function_.num_registers, "register out of range");
  }
  void int_reg(int32_t r) const {
    check(r >= 0 && r < function_.num_int_registers, "integer register out of range");
  }
  void target(int32_t t) const { check(within(t, function_.code), "jump out of range"); }
  void dtype(int32_t key) const {
    DType t = DType::from_key(static_cast<uint32_t>(key));
    check(t.valid() && t.lanes == 1, "invalid dtype");
  }
  void scalar_dtype(int32_t key) const {
    check(is_scalar_dtype(DType::from_key(static_cast<uint32_t>(key))), "not a scalar's dtype");
  }

  // The fields of an instruction, by their roles in its row.
  void field(Role role, int32_t value) const {
    switch (role) {
      case Role::none:
      case Role::tag:
      case Role::wide:
        return;
      case Role::reg:
      case Role::last_reg:
      case Role::moved_reg:
      case Role::exchanged_reg:
      case Role::new_reg:
        return reg(value);
      case Role::some_reg:
        return check(value >= 0 && value <= function_.num_registers, "register out of range");
      case Role::int_reg:
      case Role::new_int_reg:
        return int_reg(value);
      case Role::type:
        return check(within(value, function_.types), "type out of range");
      case Role::constant:
        return check(within(value, program_.constants), "constant out of range");
      case Role::kernel:
        return check(within(value, program_.kernels), "kernel out of range");
      case Role::function:
        return check(within(value, program_.functions), "function out of range");
      case Role::string:
        return check(value == -1 || within(value, program_.strings), "string out of range");
      case Role::dtype:
        return dtype(value);
      case Role::scalar_dtype:
        return scalar_dtype(value);
      case Role::target:
        return target(value);
      case Role::index:
      case Role::field:
        return check(value >= 0, "index out of range");
    }
  }

  void list(ListRole role, const Instruction& in) const {
    if (role == ListRole::none) return;
    const bool operands = role == ListRole::operands;
    const size_t size = operands ? function_.operands.size() : function_.lists.size();
    check(in.b >= 0 && static_cast<uint64_t>(in.b) + in.count <= size, "list out of range");
    if (operands) return;
    check(role != ListRole::int_regs || in.count <= 1024, "rank out of range");
    for (uint32_t n = 0; n < in.count; ++n) {
      const int32_t entry = function_.lists[static_cast<size_t>(in.b) + n];
      if (role == ListRole::targets) {
        target(entry);
      } else if (role == ListRole::int_regs) {
        int_reg(entry);
      } else {
        reg(entry < 0 ? ~entry : entry);
      }
    }
  }

  void count_and_sub(const OpcodeRow& row, const Instruction& in) const {
    const bool bits = row.count == CountRole::int_bits || row.count == CountRole::float_bits;
    check(!bits || in.count == 32 || in.count == 64, "unknown width");
    if (row.count == CountRole::string) field(Role::string, static_cast<int32_t>(in.count));
    switch (row.sub) {
      case SubRole::none:
        return check((in.sub & ~row.flags()) == 0, "unknown flag");
      case SubRole::int_op:
        return check(in.sub < kIntOpCount, "unknown integer operation");
      case SubRole::float_op:
        return check(in.sub < kFloatOpCount, "unknown float operation");
      case SubRole::conversion:
        return check(in.sub < kScalarConversionCount, "unknown conversion");
      case SubRole::device:
        return check(in.sub <= function_.devices.size(), "device out of range");
    }
  }

  void donations() const {
    std::vector<bool> params(function_.params.size()), outputs(function_.results.size());
    for (const Donation& d : function_.donations) {
      check(within(d.param, function_.params) && within(d.output, function_.results),
            "donation out of range");
      const Slot &from = function_.params[d.param], &to = function_.results[d.output];
      check(from.is_tensor && to.is_tensor && from.tensor.dtype == to.tensor.dtype &&
                from.tensor.shape == to.tensor.shape && !from.tensor.dtype.is_string(),
            "a donation to a result of another type");
      check(!params[d.param] && !outputs[d.output], "something is donated twice");
      params[d.param] = outputs[d.output] = true;
    }
  }

  // A function that writes over its parameters is for callers who give them up.
  void from_inside(const Function& f) const {
    for (const Donation& d : f.donations) {
      check(!d.in_place, "the program calls a function that writes over its parameters");
    }
  }

  // The callee's arity is known for a direct call.
  void callee(const Instruction& in) const {
    check(program_.functions[in.a].params.size() == in.count, "wrong number of arguments");
    from_inside(program_.functions[in.a]);
  }

  void call_place(const Instruction& in) const {
    if ((in.sub & kPlaced) == 0) return;
    const size_t at = static_cast<size_t>(in.b) + in.count;
    check(at < function_.lists.size(), "list out of range");
    field(Role::string, function_.lists[at]);
  }

  // Checks an operand on the device of that position and returns its number of bytes, -1 if they are known only at run
  // time.
  int64_t operand(const Operand& o, int device = 0) const {
    const bool on_host = device == 0;
    const Device where =
        on_host ? Device::cpu() : function_.devices[static_cast<size_t>(device) - 1].device;
    const bool host_only =
        o.kind == Operand::kOutput || o.kind == Operand::kScalar || o.kind == Operand::kDim;
    check(on_host || !host_only, "a device reads or writes what only the host has");
    const int64_t arena_bytes =
        on_host ? function_.arena_bytes : function_.devices[static_cast<size_t>(device) - 1].bytes;
    switch (o.kind) {
      case Operand::kArena:
        check(o.index >= 0 && o.bytes >= 0 && o.bytes <= arena_bytes &&
                  o.index <= arena_bytes - o.bytes,
              "arena range out of bounds");
        return o.bytes;
      case Operand::kConstant:
        check(within(o.index, program_.constants), "constant out of range");
        check(program_.constant_device(static_cast<size_t>(o.index)) == where,
              "a constant is on another device");
        return static_cast<int64_t>(program_.constants[o.index].byte_size());
      case Operand::kRegister:
        check(o.index >= 0 && o.index < function_.num_registers, "register out of range");
        return -1;
      case Operand::kOutput:
        check(function_.writes_outputs && within(o.index, function_.results),
              "output out of range");
        return function_.results[o.index].tensor.byte_size();
      case Operand::kPlace:
        check(o.index >= 0 && o.index < function_.num_places, "place out of range");
        return -1;
      case Operand::kDim:
      case Operand::kScalar:
        check(o.index >= 0 && o.index < function_.num_int_registers,
              "integer register out of range");
        return o.kind == Operand::kScalar ? int64_t{sizeof(int64_t)} : -1;
    }
    check(false, "unknown operand kind");
    return -1;
  }

  void kernel_call(const Instruction& in) const {
    const KernelInfo& kernel = program_.kernels[in.a];
    size_t buffers = kernel.buffer_bytes.size();
    const int device = function_.device_index(kernel.device);
    check(device >= 0, "the function has no memory on the device of the kernel");
    check(kernel.num_outputs <= buffers, "kernel with more outputs than buffers");
    check(in.count == buffers + kernel.num_dims, "wrong number of kernel operands");
    for (uint32_t n = 0; n < in.count; ++n) {
      const Operand& o = function_.operands[static_cast<size_t>(in.b) + n];
      int64_t bytes = operand(o, n < buffers ? device : 0);
      check((o.kind == Operand::kDim) == (n >= buffers), "buffers come first, then dimensions");
      if (n >= buffers) continue;
      check(bytes < 0 || bytes >= kernel.buffer_bytes[n], "buffer smaller than the kernel needs");
      bool writes = n >= buffers - kernel.num_outputs;
      check(!writes || o.kind != Operand::kConstant, "a kernel writes a constant");
      check(!writes || o.kind != Operand::kScalar || kernel.buffer_bytes[n] >= 0,
            "a kernel writes something of unknown size to a scalar");
    }
  }

  void copy(const Instruction& in) const {
    check(in.count == 2, "wrong number of operands");
    const Operand& to = function_.operands[in.b];
    const Operand& from = function_.operands[static_cast<size_t>(in.b) + 1];
    check(to.kind != Operand::kConstant && to.kind != Operand::kDim &&
              to.kind != Operand::kScalar && to.kind != Operand::kPlace &&
              from.kind != Operand::kDim,
          "wrong operand kind");
    int64_t to_bytes = operand(to, in.sub);
    int64_t from_bytes = operand(from, in.sub);
    if (from.kind == Operand::kScalar) {
      return check(to_bytes <= from_bytes, "a scalar is copied to something larger");
    }
    check(to_bytes < 0 || from_bytes < 0 || to_bytes == from_bytes, "copy of unequal sizes");
  }

  void transfer(const Instruction& in) const {
    check(in.count == 2 && in.sub > 0, "a transfer without a device");
    const Operand& to = function_.operands[in.b];
    const Operand& from = function_.operands[static_cast<size_t>(in.b) + 1];
    const bool to_host = in.op == Opcode::to_host;
    check(to.kind != Operand::kConstant && to.kind != Operand::kDim &&
              to.kind != Operand::kScalar && from.kind != Operand::kDim,
          "wrong operand kind");
    const int64_t to_bytes = operand(to, to_host ? 0 : in.sub);
    const int64_t from_bytes = operand(from, to_host ? in.sub : 0);
    if (from.kind == Operand::kScalar) {
      return check(to_bytes <= from_bytes, "a scalar is copied to something larger");
    }
    check(to_bytes < 0 || from_bytes < 0 || to_bytes == from_bytes, "copy of unequal sizes");
  }

  void wait(const Instruction& in) const {
    check(in.sub > 0, "a wait without a device");
    for (uint32_t n = 0; n < in.count; ++n) {
      operand(function_.operands[static_cast<size_t>(in.b) + n]);
    }
  }

  void load_scalar(const Instruction& in) const {
    DType t = DType::from_key(static_cast<uint32_t>(in.a));
    check(in.count == 1, "wrong number of operands");
    const Operand& from = function_.operands[in.b];
    check(from.kind == Operand::kArena || from.kind == Operand::kConstant ||
              from.kind == Operand::kOutput,
          "wrong operand kind");
    int64_t bytes = operand(from);
    check(bytes == static_cast<int64_t>(t.bytes()), "a scalar is expected");
  }

  void write_lines(const Instruction& in) const {
    check(in.count == 2, "wrong number of operands");
    const Operand& start = function_.operands[in.b];
    const Operand& lines = function_.operands[static_cast<size_t>(in.b) + 1];
    check(start.kind == Operand::kScalar && lines.kind != Operand::kDim &&
              lines.kind != Operand::kScalar && lines.kind != Operand::kPlace,
          "wrong operand kind");
    operand(start);
    operand(lines);
  }

  // The conditions on each operand by itself, then those on several.
  void instruction(const Instruction& in) const {
    check(static_cast<int>(in.op) < kOpcodeCount, "unknown opcode");
    const OpcodeRow& row = opcode_row(in.op);
    field(row.dst, in.dst);
    field(row.a, in.a);
    field(row.b, in.b);
    list(row.list, in);
    count_and_sub(row, in);
    switch (in.op) {
      case Opcode::invoke_kernel:
        return kernel_call(in);
      case Opcode::copy:
        return copy(in);
      case Opcode::load_scalar:
        return load_scalar(in);
      case Opcode::alloc_place:
        return check(in.dst < function_.num_places, "place out of range");
      case Opcode::to_device:
      case Opcode::to_host:
        return transfer(in);
      case Opcode::wait:
        return wait(in);
      case Opcode::write_lines:
        return write_lines(in);
      case Opcode::call:
        call_place(in);
        return callee(in);
      case Opcode::invoke_closure:
        return call_place(in);
      case Opcode::fatal:
        return check(in.dst >= 0 && in.dst <= function_.num_int_registers &&
                         in.count <= static_cast<uint32_t>(function_.num_int_registers),
                     "integer register out of range");
      case Opcode::match_fail:
        return check(in.count <= program_.strings.size(), "string out of range");
      case Opcode::tail_call:
        check(!function_.writes_outputs, "tail call in a function with output buffers");
        return callee(in);
      case Opcode::tail_invoke:
        return check(!function_.writes_outputs, "tail call in a function with output buffers");
      case Opcode::ret:
      case Opcode::ret_scalar:
        return check(!function_.writes_outputs, "ret in a function with output buffers");
      case Opcode::ret_outputs:
        return check(function_.writes_outputs, "ret_outputs without output buffers");
      case Opcode::alloc_closure:
        from_inside(program_.functions[in.a]);
        return check(in.count <= program_.functions[in.a].params.size(),
                     "too many captured values");
      default:
        return;
    }
  }

  const Program& program_;
  const Function& function_;
  size_t pc_ = 0;
};

}  // namespace

void verify_program(const Program& program) {
  for (const Function& function : program.functions) Verifier(program, function).run();
}

}  // namespace relay::runtime
