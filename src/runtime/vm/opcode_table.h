// The instructions: one row each. The builder's encoding, the text, the verifier, the analysis of
// last uses and docs/bytecode.md come from it.
//
//   const OpcodeRow& row = opcode_row(Opcode::call);
//   row.name            // "call"
//   row.dst, row.a      // Role::new_reg, Role::function
//   row.list            // ListRole::regs: lists[b..b+count)
//
// A new instruction is a row, a case of the interpreter's loop, and a function of the builder. Rules
// that join several operands (a call's arguments and its callee's parameters, the operands and
// buffers of a kernel) are in the verifier.
#pragma once

#include <span>
#include <string>

#include "runtime/vm/bytecode.h"

namespace relay::runtime {

// What the field dst, a or b of an instruction is.
enum class Role : uint8_t {
  none,  // not used
  // Object registers. last_reg is moved out of under kLastA, or kLastB for the field b; moved_reg
  // always is; what exchanged_reg holds afterwards is kept.
  reg,
  last_reg,
  moved_reg,
  exchanged_reg,
  new_reg,
  some_reg,  // one more than a register; 0: none
  // Integer registers.
  int_reg,
  new_int_reg,
  // Indices of tables.
  type,
  constant,
  kernel,
  function,
  string,  // -1: none
  // Plain numbers. A wide one is the two fields a and b together.
  dtype,
  scalar_dtype,
  target,  // an instruction of the function
  index,   // not negative
  field,   // the same, moved out under kLastField
  tag,
  wide,
};

// What the entries [b, b + count) are; without a list, b has its own role.
enum class ListRole : uint8_t {
  none,
  operands,  // of Function::operands, the others of Function::lists
  regs,      // read, or moved out of when the entry is ~r
  killed_regs,
  int_regs,  // dimensions
  targets,
};

// What `count` is when it is not the length of a list, and what `sub` is when it holds no flags.
// A string is one of the program's, -1: none.
enum class CountRole : uint8_t { none, tag, int_bits, float_bits, string };
// A device is 0 for the host, or a position of Function::devices, from 1 on.
enum class SubRole : uint8_t { none, int_op, float_op, conversion, device };

// Where control goes.
enum class Flow : uint8_t { next, branch, jump, leave };

struct OpcodeRow {
  Opcode op;
  const char* name;
  Role dst, a, b;
  ListRole list;
  CountRole count;
  SubRole sub;
  Flow flow;
  // The instruction as text: {dst}, {a}, {b}, {list}, {count}, {sub} stand for the operands.
  const char* text;
  // For people: r is an object register, i an integer register, L the list.
  const char* effect;

  // The flags that `sub` may hold.
  uint8_t flags() const;
};

std::span<const OpcodeRow> opcode_rows();
const OpcodeRow& opcode_row(Opcode op);

// The number of two wide fields.
constexpr int64_t wide_number(const Instruction& in) {
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(in.a)) |
                              static_cast<uint64_t>(static_cast<uint32_t>(in.b)) << 32);
}

// An instruction of a verified function, with the program's names.
std::string instruction_text(const Program& program, const Function& function,
                             const Instruction& in);

// The table as the text of docs/bytecode.md.
std::string opcode_reference();

}  // namespace relay::runtime
