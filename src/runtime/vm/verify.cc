#include "runtime/vm/verify.h"

#include "base/diagnostic_codes.h"

namespace relay::runtime {

namespace {

constexpr int64_t kMaxArena = int64_t{1} << 46;
constexpr int32_t kMaxRegisters = 1 << 24;

class Verifier {
 public:
  Verifier(const Program& program, const Function& function)
      : program_(program), function_(function) {}

  void run() {
    check(function_.num_registers >= 0 && function_.num_registers <= kMaxRegisters &&
              function_.num_int_registers >= 0 && function_.num_int_registers <= kMaxRegisters,
          "register count out of range");
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
    for (const TensorSpec& type : function_.types) {
      check(spec(type) && type.is_static(), "invalid tensor type");
      here(type.device);
    }
    check(!function_.code.empty(), "a function without code");
    for (pc_ = 0; pc_ < function_.code.size(); ++pc_) instruction(function_.code[pc_]);
    pc_ = function_.code.size() - 1;
    check(ends(function_.code.back().op), "control runs off the end");
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

  void here(Device device) const { check(device == Device::cpu(), "a device that is not here"); }

  void slot(const Slot& slot) const {
    check(!slot.is_tensor || spec(slot.tensor), "invalid type of a parameter or result");
    here(slot.tensor.device);
    // Every field of a tuple is there, and nothing behind them.
    uint64_t missing = slot.parts.empty() ? 0 : 1;
    for (const TypePart& part : slot.parts) {
      check(missing > 0, "parts of a type that belong to nothing");
      --missing;
      if (part.kind == TypePart::tuple) missing += part.fields;
      check(part.kind != TypePart::tensor || spec(part.spec), "invalid type of a part");
      here(part.spec.device);
    }
    check(missing == 0, "parts of a type are missing");
  }

  static bool ends(Opcode op) {
    switch (op) {
      case Opcode::jump:
      case Opcode::tail_call:
      case Opcode::tail_invoke:
      case Opcode::ret:
      case Opcode::ret_scalar:
      case Opcode::ret_outputs:
      case Opcode::fatal:
      case Opcode::match_fail:
        return true;
      default:
        return false;
    }
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
  void string(int32_t s) const {
    check(s == -1 || within(s, program_.strings), "string out of range");
  }

  template <typename F>
  void list(const Instruction& in, F&& f) const {
    check(in.b >= 0 && static_cast<uint64_t>(in.b) + in.count <= function_.lists.size(),
          "list out of range");
    for (uint32_t n = 0; n < in.count; ++n) f(function_.lists[static_cast<size_t>(in.b) + n]);
  }
  // ~r is a register that is emptied.
  void reg_list(const Instruction& in) const {
    list(in, [this](int32_t r) { reg(r < 0 ? ~r : r); });
  }
  void last_use(const Instruction& in, uint8_t flags) const {
    check((in.sub & ~flags) == 0, "unknown flag");
  }
  void int_list(const Instruction& in) const {
    check(in.count <= 1024, "rank out of range");
    list(in, [this](int32_t r) { int_reg(r); });
  }

  // The callee's arity is known for a direct call.
  void callee(const Instruction& in) const {
    check(within(in.a, program_.functions), "function out of range");
    check(program_.functions[in.a].params.size() == in.count, "wrong number of arguments");
  }

  // Checks an operand and returns the bytes behind it, -1 when they are known only at run time.
  int64_t operand(const Operand& o) const {
    switch (o.kind) {
      case Operand::kArena:
        check(o.index >= 0 && o.bytes >= 0 && o.bytes <= function_.arena_bytes &&
                  o.index <= function_.arena_bytes - o.bytes,
              "arena range out of bounds");
        return o.bytes;
      case Operand::kConstant:
        check(within(o.index, program_.constants), "constant out of range");
        return static_cast<int64_t>(program_.constants[o.index].byte_size());
      case Operand::kRegister:
        check(o.index >= 0 && o.index < function_.num_registers, "register out of range");
        return -1;
      case Operand::kOutput:
        check(function_.writes_outputs && within(o.index, function_.results),
              "output out of range");
        return function_.results[o.index].tensor.byte_size();
      case Operand::kDim:
      case Operand::kScalar:
        check(o.index >= 0 && o.index < function_.num_int_registers,
              "integer register out of range");
        return o.kind == Operand::kScalar ? int64_t{sizeof(int64_t)} : -1;
    }
    check(false, "unknown operand kind");
    return -1;
  }

  void operand_range(const Instruction& in) const {
    check(in.b >= 0 && static_cast<uint64_t>(in.b) + in.count <= function_.operands.size(),
          "operands out of range");
  }

  void kernel_call(const Instruction& in) const {
    check(within(in.a, program_.kernels), "kernel out of range");
    const KernelInfo& kernel = program_.kernels[in.a];
    size_t buffers = kernel.buffer_bytes.size();
    here(kernel.device);
    check(kernel.num_outputs <= buffers, "kernel with more outputs than buffers");
    check(in.count == buffers + kernel.num_dims, "wrong number of kernel operands");
    operand_range(in);
    for (uint32_t n = 0; n < in.count; ++n) {
      const Operand& o = function_.operands[static_cast<size_t>(in.b) + n];
      int64_t bytes = operand(o);
      check((o.kind == Operand::kDim) == (n >= buffers), "buffers come first, then dimensions");
      if (n >= buffers) continue;
      check(bytes < 0 || bytes >= kernel.buffer_bytes[n], "buffer smaller than the kernel needs");
      bool writes = n >= buffers - kernel.num_outputs;
      check(!writes || (o.kind != Operand::kConstant && o.kind != Operand::kScalar),
            "a kernel writes a constant or a scalar");
    }
  }

  void copy(const Instruction& in) const {
    check(in.count == 2, "wrong number of operands");
    operand_range(in);
    const Operand& to = function_.operands[in.b];
    const Operand& from = function_.operands[static_cast<size_t>(in.b) + 1];
    check(to.kind != Operand::kConstant && to.kind != Operand::kDim &&
              to.kind != Operand::kScalar && from.kind != Operand::kDim,
          "wrong operand kind");
    int64_t to_bytes = operand(to);
    int64_t from_bytes = operand(from);
    if (from.kind == Operand::kScalar) {
      return check(to_bytes <= from_bytes, "a scalar is copied to something larger");
    }
    check(to_bytes < 0 || from_bytes < 0 || to_bytes == from_bytes, "copy of unequal sizes");
  }

  void load_scalar(const Instruction& in) const {
    int_reg(in.dst);
    scalar_dtype(in.a);
    DType t = DType::from_key(static_cast<uint32_t>(in.a));
    check(in.count == 1, "wrong number of operands");
    operand_range(in);
    const Operand& from = function_.operands[in.b];
    check(from.kind == Operand::kArena || from.kind == Operand::kConstant ||
              from.kind == Operand::kOutput,
          "wrong operand kind");
    int64_t bytes = operand(from);
    check(bytes == static_cast<int64_t>(t.bytes()), "a scalar is expected");
  }

  void instruction(const Instruction& in) const {
    check(static_cast<int>(in.op) < kOpcodeCount, "unknown opcode");
    switch (in.op) {
      case Opcode::invoke_kernel:
        return kernel_call(in);
      case Opcode::copy:
        return copy(in);
      case Opcode::alloc_static:
        reg(in.dst);
        return check(within(in.a, function_.types), "type out of range");
      case Opcode::alloc_tensor:
        reg(in.dst);
        dtype(in.a);
        return int_list(in);
      case Opcode::alloc_from_shape:
        reg(in.dst);
        dtype(in.a);
        return reg(in.b);
      case Opcode::reshape:
        reg(in.dst);
        reg(in.a);
        return int_list(in);
      case Opcode::shape_of:
        int_reg(in.dst);
        reg(in.a);
        return check(in.b >= 0, "axis out of range");
      case Opcode::rank_of:
      case Opcode::get_tag:
        int_reg(in.dst);
        return reg(in.a);
      case Opcode::shape_tensor:
        reg(in.dst);
        reg(in.a);
        return dtype(in.b);
      case Opcode::load_const:
        reg(in.dst);
        return check(within(in.a, program_.constants), "constant out of range");
      case Opcode::load_int:
        return int_reg(in.dst);
      case Opcode::load_scalar:
        return load_scalar(in);
      case Opcode::box:
        reg(in.dst);
        int_reg(in.a);
        return scalar_dtype(in.b);
      case Opcode::unbox:
        last_use(in, kLastA);
        int_reg(in.dst);
        reg(in.a);
        return scalar_dtype(in.b);
      case Opcode::move:
      case Opcode::ref_new:
      case Opcode::ref_read:
        last_use(in, kLastA);
        reg(in.dst);
        return reg(in.a);
      case Opcode::swap:
        reg(in.dst);
        return reg(in.a);
      case Opcode::move_int:
        int_reg(in.dst);
        return int_reg(in.a);
      case Opcode::int_op:
        int_reg(in.dst);
        int_reg(in.a);
        int_reg(in.b);
        check(in.count == 32 || in.count == 64, "unknown width");
        return check(in.sub < kIntOpCount, "unknown integer operation");
      case Opcode::float_op:
        int_reg(in.dst);
        int_reg(in.a);
        int_reg(in.b);
        check(in.count == 32 || in.count == 64, "unknown width");
        return check(in.sub < kFloatOpCount, "unknown float operation");
      case Opcode::convert:
        int_reg(in.dst);
        int_reg(in.a);
        return check(in.sub < kScalarConversionCount, "unknown conversion");
      case Opcode::if_false:
        last_use(in, kLastA);
        reg(in.a);
        return target(in.b);
      case Opcode::if_not_tag:
        reg(in.a);
        return target(in.b);
      case Opcode::if_zero:
        int_reg(in.a);
        return target(in.b);
      case Opcode::jump:
        return target(in.b);
      case Opcode::jump_table:
        int_reg(in.a);
        return list(in, [this](int32_t t) { target(t); });
      case Opcode::call:
        reg(in.dst);
        callee(in);
        return reg_list(in);
      case Opcode::tail_call:
        check(!function_.writes_outputs, "tail call in a function with output buffers");
        callee(in);
        return reg_list(in);
      case Opcode::invoke_closure:
        last_use(in, kLastA);
        reg(in.dst);
        reg(in.a);
        return reg_list(in);
      case Opcode::tail_invoke:
        check(!function_.writes_outputs, "tail call in a function with output buffers");
        last_use(in, kLastA);
        reg(in.a);
        return reg_list(in);
      case Opcode::ret:
        check(!function_.writes_outputs, "ret in a function with output buffers");
        return reg(in.a);
      case Opcode::ret_scalar:
        check(!function_.writes_outputs, "ret in a function with output buffers");
        int_reg(in.a);
        return scalar_dtype(in.b);
      case Opcode::ret_outputs:
        return check(function_.writes_outputs, "ret_outputs without output buffers");
      case Opcode::alloc_closure:
        reg(in.dst);
        check(within(in.a, program_.functions), "function out of range");
        check(in.count <= program_.functions[in.a].params.size(), "too many captured values");
        return reg_list(in);
      case Opcode::alloc_adt:
      case Opcode::alloc_tuple:
        reg(in.dst);
        return reg_list(in);
      case Opcode::get_field:
        last_use(in, kLastA | kLastField);
        reg(in.dst);
        reg(in.a);
        return check(in.b >= 0, "field out of range");
      case Opcode::ref_write:
        last_use(in, kLastA | kLastB);
        reg(in.a);
        return reg(in.b);
      case Opcode::kill:
        return reg_list(in);
      case Opcode::fatal:
        string(in.a);
        return string(in.b);
      case Opcode::match_fail:
        return string(in.a);
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
