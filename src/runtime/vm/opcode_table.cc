#include "runtime/vm/opcode_table.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/diagnostic.h"

namespace relay::runtime {

namespace {

using enum Role;
using L = ListRole;
using C = CountRole;
using S = SubRole;
using F = Flow;

// clang-format off
constexpr std::array<OpcodeRow, kOpcodeCount> kRows{{
    {Opcode::invoke_kernel, "invoke_kernel", none, kernel, none, L::operands, C::none, S::none, F::next,
     "{op} {a}({list})", "calls the kernel a on its buffers, inputs first, then on its dimensions"},
    {Opcode::copy, "copy", none, none, none, L::operands, C::none, S::device, F::next,
     "{op} {list}{sub}", "copies the second operand to the first, of the same size, on the same device"},
    {Opcode::alloc_static, "alloc_static", new_reg, type, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "a tensor of type a; reuses the tensor in dst if it has that type and no other reference"},
    {Opcode::alloc_tensor, "alloc_tensor", new_reg, dtype, none, L::int_regs, C::none, S::device, F::next,
     "{dst} = {op} {a}({list}){sub}", "a tensor of dtype a with the dimensions L; likewise"},
    {Opcode::alloc_from_shape, "alloc_from_shape", new_reg, dtype, reg, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a} {b}", "a tensor of dtype a whose shape is the integer vector b"},
    {Opcode::reshape, "reshape", new_reg, reg, none, L::int_regs, C::none, S::none, F::next,
     "{dst} = {op} {a}({list})", "a view of a with the dimensions L"},
    {Opcode::shape_of, "shape_of", new_int_reg, reg, index, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}, {b}", "dimension b of a"},
    {Opcode::rank_of, "rank_of", new_int_reg, reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "the rank of a"},
    {Opcode::shape_tensor, "shape_tensor", new_reg, reg, dtype, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a} {b}", "the shape of a as a vector of dtype b"},
    {Opcode::load_const, "load_const", new_reg, constant, none, L::none, C::none, S::none, F::next,
     "{dst} = {a}", "a constant"},
    {Opcode::load_int, "load_int", new_int_reg, wide, wide, L::none, C::none, S::none, F::next,
     "{dst} = {a}", "the number whose low word is a and whose high word is b"},
    {Opcode::load_scalar, "load_scalar", new_int_reg, scalar_dtype, none, L::operands, C::none, S::none, F::next,
     "{dst} = {op} {a} {list}", "the one element, of dtype a, of an operand that is not a register"},
    {Opcode::box, "box", new_reg, int_reg, scalar_dtype, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a} {b}", "the scalar a, of dtype b, as a value"},
    {Opcode::unbox, "unbox", new_int_reg, last_reg, scalar_dtype, L::none, C::none, S::none, F::next,
     "{dst} = {op} {b} {a}", "the one element, of dtype b, of a"},
    {Opcode::move, "move", new_reg, last_reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "the same value as a"},
    {Opcode::swap, "swap", exchanged_reg, exchanged_reg, none, L::none, C::none, S::none, F::next,
     "{op} {dst}, {a}", "exchanges two registers"},
    {Opcode::move_int, "move_int", new_int_reg, int_reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {a}", "the same number as a"},
    {Opcode::int_op, "int_op", new_int_reg, int_reg, int_reg, L::none, C::int_bits, S::int_op, F::next,
     "{dst} = {a} {sub} {b}{count}", "integer arithmetic, wrapped to int32 when count is 32; comparisons give 0 or 1"},
    {Opcode::float_op, "float_op", new_int_reg, int_reg, int_reg, L::none, C::float_bits, S::float_op, F::next,
     "{dst} = {a} {sub} {b}{count}", "arithmetic on floats of count bits; comparisons give 0 or 1"},
    {Opcode::convert, "convert", new_int_reg, int_reg, none, L::none, C::none, S::conversion, F::next,
     "{dst} = {op} {a} {sub}", "the scalar a in another dtype"},
    {Opcode::if_false, "if_false", none, last_reg, target, L::none, C::none, S::none, F::branch,
     "{op} {a} {b}", "goes to b when the one element of a is false"},
    {Opcode::if_zero, "if_zero", none, int_reg, target, L::none, C::none, S::none, F::branch,
     "{op} {a} {b}", "goes to b when a is 0"},
    {Opcode::if_not_tag, "if_not_tag", none, reg, target, L::none, C::tag, S::none, F::branch,
     "{op} {a} {count} {b}", "goes to b when the tag of the ADT value a is not count"},
    {Opcode::jump, "jump", none, none, target, L::none, C::none, S::none, F::jump,
     "{op} {b}", "goes to b"},
    {Opcode::jump_table, "jump_table", none, int_reg, none, L::targets, C::none, S::none, F::branch,
     "{op} {a} [{list}]", "goes to L[a] when 0 <= a < count"},
    {Opcode::call, "call", new_reg, function, none, L::regs, C::none, S::none, F::next,
     "{dst} = {op} {a}({list})", "the result of function a on L"},
    {Opcode::tail_call, "tail_call", none, function, none, L::regs, C::none, S::none, F::leave,
     "{op} {a}({list})", "returns the result of function a on L, which runs in this frame"},
    {Opcode::invoke_closure, "invoke_closure", new_reg, last_reg, none, L::regs, C::none, S::none, F::next,
     "{dst} = {op} {a}({list})", "the result of closure a on its captured values and L"},
    {Opcode::tail_invoke, "tail_invoke", none, last_reg, none, L::regs, C::none, S::none, F::leave,
     "{op} {a}({list})", "returns the result of closure a on its captured values and L, in this frame"},
    {Opcode::ret, "ret", none, moved_reg, none, L::none, C::none, S::none, F::leave,
     "{op} {a}", "returns a"},
    {Opcode::ret_scalar, "ret_scalar", none, int_reg, scalar_dtype, L::none, C::none, S::none, F::leave,
     "{op} {a} {b}", "returns the scalar a, of dtype b, as a value"},
    {Opcode::ret_outputs, "ret_outputs", none, none, none, L::none, C::none, S::none, F::leave,
     "{op}", "returns the output buffers"},
    {Opcode::alloc_closure, "alloc_closure", new_reg, function, none, L::regs, C::none, S::none, F::next,
     "{dst} = {op} {a}[{list}]", "a closure of function a that captures L"},
    {Opcode::alloc_adt, "alloc_adt", new_reg, tag, none, L::regs, C::none, S::none, F::next,
     "{dst} = {op} {a}({list})", "an ADT value of tag a with the fields L"},
    {Opcode::alloc_tuple, "alloc_tuple", new_reg, none, none, L::regs, C::none, S::none, F::next,
     "{dst} = {op} ({list})", "a tuple of L"},
    {Opcode::get_tag, "get_tag", new_int_reg, reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "the tag of the ADT value a"},
    {Opcode::get_field, "get_field", new_reg, last_reg, field, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}, {b}", "field b of the ADT value or tuple a"},
    {Opcode::ref_new, "ref_new", new_reg, last_reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "a reference to a"},
    {Opcode::ref_read, "ref_read", new_reg, last_reg, none, L::none, C::none, S::none, F::next,
     "{dst} = {op} {a}", "the content of the reference a"},
    {Opcode::ref_write, "ref_write", none, last_reg, last_reg, L::none, C::none, S::none, F::next,
     "{op} {a}, {b}", "the content of the reference a becomes b"},
    {Opcode::kill, "kill", none, none, none, L::killed_regs, C::none, S::none, F::next,
     "{op} {list}", "clears L, so that the values in it can be freed early"},
    {Opcode::fatal, "fatal", none, string, string, L::none, C::none, S::none, F::leave,
     "{op} {a} at {b}", "stops with the message a at the location b; dst and count are, if not 0, one more than the integer registers that the message shows"},
    {Opcode::match_fail, "match_fail", none, string, some_reg, L::none, C::none, S::none, F::leave,
     "{op} {b} at {a}", "stops at the location a: no pattern matches the value b, which may be absent; count is, if not 0, one more than the string with the constructors of its type"},
    {Opcode::write_lines, "write_lines", new_reg, last_reg, none, L::operands, C::none, S::none, F::next,
     "{dst} = {op} {a}({list})", "a with the second operand in place of as many lines, from the line on that the first says, or the nearest from which they fit; the tensor itself if it has no other reference or it was given up"},
    {Opcode::alloc_place, "alloc_place", index, dtype, none, L::int_regs, C::none, S::device, F::next,
     "place {dst} = {op} {a}({list}){sub}", "memory of the frame for a tensor of dtype a with the dimensions L; the memory of the place if it is large enough"},
    {Opcode::index_in, "index_in", new_int_reg, int_reg, int_reg, L::none, C::string, S::none, F::next,
     "{dst} = {op} {a} of {b} at {count}", "the position in an axis of b elements that the index a selects, from the end if it is negative; ends the run if it is out of bounds, with the location count in the source"},
    {Opcode::to_device, "to_device", new_int_reg, none, none, L::operands, C::none, S::device, F::next,
     "{dst} = {op} {list}{sub}", "begins to copy the second operand, on the host, to the first, on the device; dst is the event that it ends with"},
    {Opcode::to_host, "to_host", new_int_reg, none, none, L::operands, C::none, S::device, F::next,
     "{dst} = {op} {list}{sub}", "the same from the device to the host"},
    {Opcode::wait, "wait", none, int_reg, none, L::operands, C::none, S::device, F::next,
     "{op} {a} {list}{sub}", "waits for the event a of the device; L was copied, and lives until here"},
}};
// clang-format on

consteval bool in_order() {
  for (size_t n = 0; n < kRows.size(); ++n) {
    if (static_cast<size_t>(kRows[n].op) != n) return false;
  }
  return true;
}
static_assert(in_order(), "the rows stand in the order of the opcodes");

// The text of an instruction's operands.
class OperandText {
 public:
  OperandText(const Program& program, const Function& function, const Instruction& in)
      : program_(program), function_(function), in_(in), row_(opcode_row(in.op)) {}

  std::string line() const {
    std::string out;
    std::string_view text = row_.text;
    while (!text.empty()) {
      const size_t begin = text.find('{');
      out += text.substr(0, begin);
      if (begin == text.npos) break;
      const size_t end = text.find('}', begin);
      out += part(text.substr(begin + 1, end - begin - 1));
      text.remove_prefix(end + 1);
    }
    return out;
  }

 private:
  std::string part(std::string_view name) const {
    if (name == "op") return row_.name;
    if (name == "dst") return field(row_.dst, in_.dst, 0);
    if (name == "a") return field(row_.a, in_.a, kLastA);
    if (name == "b") return field(row_.b, in_.b, kLastB);
    if (name == "list") return row_.list == L::operands ? operands() : entries();
    if (name == "count") return count();
    RELAY_CHECK(name == "sub", "a placeholder of an instruction's text");
    return sub();
  }

  std::string field(Role role, int32_t value, uint8_t flag) const {
    const std::string number = std::to_string(value);
    switch (role) {
      case none:
        return "";
      case reg:
      case moved_reg:
      case exchanged_reg:
      case new_reg:
        return "r" + number;
      case some_reg:
        return value > 0 ? "r" + std::to_string(value - 1) : "-";
      case last_reg:
        return "r" + number + ((in_.sub & flag) != 0 ? "~" : "");
      case int_reg:
      case new_int_reg:
        return "i" + number;
      case type:
        return function_.types[static_cast<size_t>(value)].to_string();
      case constant:
        return "const" + number;
      case kernel:
        return name_or_index(program_.kernels, value);
      case function:
        return name_or_index(program_.functions, value);
      case string:
        return text(value);
      case dtype:
      case scalar_dtype:
        return DType::from_key(static_cast<uint32_t>(value)).to_string();
      case target:
        return "@" + number;
      case index:
      case tag:
        return number;
      case Role::field:
        return number + ((in_.sub & kLastField) != 0 ? "~" : "");
      case wide:
        return std::to_string(wide_number(in_));
    }
    return "?";
  }

  std::string text(int32_t index) const {
    bool known = index >= 0 && static_cast<size_t>(index) < program_.strings.size();
    if (!known) return "?";
    return "\"" + escape_for_terminal(program_.strings[static_cast<size_t>(index)], 200) + "\"";
  }

  template <typename T>
  static std::string name_or_index(const std::vector<T>& table, int32_t index) {
    if (index >= 0 && static_cast<size_t>(index) < table.size()) return table[index].name;
    return "#" + std::to_string(index);
  }

  std::string operands() const {
    std::string text;
    for (uint32_t n = 0; n < in_.count; ++n) {
      text += (n > 0 ? ", " : "") + operand(function_.operands[static_cast<size_t>(in_.b) + n]);
    }
    return text;
  }
  static std::string operand(const Operand& o) {
    const std::string number = std::to_string(o.index);
    switch (o.kind) {
      case Operand::kArena:
        return "arena[" + number + "+" + std::to_string(o.bytes) + "]";
      case Operand::kConstant:
        return "const" + number;
      case Operand::kRegister:
        return "r" + number;
      case Operand::kOutput:
        return "out" + number;
      case Operand::kPlace:
        return "place" + number;
      case Operand::kDim:
      case Operand::kScalar:
        return "i" + number;
    }
    return "?";
  }

  std::string entries() const {
    const char* prefix = row_.list == L::int_regs ? "i" : row_.list == L::targets ? "@" : "r";
    std::string text;
    for (uint32_t n = 0; n < in_.count; ++n) {
      int32_t entry = function_.lists[static_cast<size_t>(in_.b) + n];
      text += n > 0 ? ", " : "";
      text += prefix + (entry < 0 ? std::to_string(~entry) + "~" : std::to_string(entry));
    }
    return text;
  }

  std::string count() const {
    switch (row_.count) {
      case C::none:
        return "";
      case C::tag:
        return std::to_string(in_.count);
      case C::int_bits:
        return in_.count == 32 ? " int32" : "";
      case C::float_bits:
        return " float" + std::to_string(in_.count);
      case C::string:
        return text(static_cast<int32_t>(in_.count));
    }
    return "?";
  }

  std::string sub() const {
    switch (row_.sub) {
      case S::none:
        return "";
      case S::int_op:
        return text_of(static_cast<IntOp>(in_.sub));
      case S::float_op:
        return text_of(static_cast<FloatOp>(in_.sub));
      case S::conversion:
        return text_of(static_cast<ScalarConversion>(in_.sub));
      case S::device: {
        const size_t at = in_.sub;
        if (at == 0) return "";
        return " on " + (at <= function_.devices.size()
                             ? function_.devices[at - 1].device.to_string()
                             : "?");
      }
    }
    return "?";
  }

  const Program& program_;
  const Function& function_;
  const Instruction& in_;
  const OpcodeRow& row_;
};

}  // namespace

uint8_t OpcodeRow::flags() const {
  return static_cast<uint8_t>((a == last_reg ? kLastA : 0) | (b == last_reg ? kLastB : 0) |
                              (b == Role::field ? kLastField : 0) |
                              (op == Opcode::write_lines ? kGivenUp : 0) |
                              (op == Opcode::call || op == Opcode::invoke_closure ? kPlaced : 0));
}

std::span<const OpcodeRow> opcode_rows() { return kRows; }
const OpcodeRow& opcode_row(Opcode op) { return kRows[static_cast<size_t>(op)]; }
const char* opcode_name(Opcode op) { return opcode_row(op).name; }

std::string instruction_text(const Program& program, const Function& function,
                             const Instruction& in) {
  return OperandText(program, function, in).line();
}

std::string opcode_reference() {
  std::string out;
  for (const OpcodeRow& row : kRows) {
    out += "| `" + std::string(row.name) + "` | `";
    std::string text = row.text;
    for (size_t at; (at = text.find("{op}")) != text.npos;) text.replace(at, 4, row.name);
    auto letter = [](Role role) { return role == int_reg || role == new_int_reg ? "i" : "r"; };
    for (auto [name, role] : {std::pair("{dst}", row.dst), {"{a}", row.a}, {"{b}", row.b}}) {
      size_t at = text.find(name);
      if (at == text.npos) continue;
      std::string plain(name + 1, std::strlen(name) - 2);
      bool in_register = (role >= reg && role <= new_int_reg);
      bool moves = role == last_reg || role == Role::field;
      text.replace(at, std::strlen(name),
                   (in_register ? letter(role) + ("[" + plain + "]") : plain) + (moves ? "~" : ""));
    }
    const char* sub = row.sub == S::device ? " on sub" : "sub";
    for (auto [name, plain] : {std::pair("{list}", "L"), {"{sub}", sub}, {"{count}", "count"}}) {
      size_t at = text.find(name);
      if (at == text.npos) continue;
      bool glued = at > 0 && text[at - 1] == ']';
      text.replace(at, std::strlen(name), (glued ? " " : "") + std::string(plain));
    }
    out += text + "` | " + row.effect + " |\n";
  }
  return out;
}

}  // namespace relay::runtime
