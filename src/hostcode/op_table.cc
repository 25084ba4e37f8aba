#include <array>

#include "hostcode/code.h"
#include "runtime/core/scalar_ops.h"

namespace relay::hostcode {
namespace {

using runtime::IntOp;

// clang-format off
constexpr std::array<OpRow, kOpCount> kRows{{
    {Op::enter, "enter", "", "", true, false, "enter"},
    {Op::poll, "poll", "", "", true, false, "poll"},
    {Op::number, "number", "s", "", false, false, "{n}"},
    {Op::copy, "copy", "s", "s", false, false, "{0}"},
    {Op::move, "move", "w", "w", false, false, "move {0}"},
    {Op::int_op, "int_op", "s", "ss", false, false, "{0} {op} {1} int{n}"},
    {Op::float_op, "float_op", "s", "ss", false, false, "{0} {op} {1} float{n}"},
    {Op::convert, "convert", "s", "s", false, false, "convert {0} {op}"},
    {Op::index, "index", "s", "ss", true, false, "index {0} of {1}"},
    {Op::check, "check", "", "s", true, false, "check {0}"},
    {Op::box, "box", "w", "s", true, false, "box {0} {dtype}"},
    {Op::unbox, "unbox", "s", "b", true, false, "unbox {0} {dtype}"},
    {Op::constant, "constant", "w", "", true, false, "constant {n}"},
    {Op::tag, "tag", "s", "b", true, false, "tag {0}"},
    {Op::field, "field", "w", "b", true, false, "field {0}.{n}{moves}"},
    {Op::capture, "capture", "w", "bs", false, false, "capture {0}.{n} if {1}"},
    {Op::let_go, "let_go", "", "bs", false, false, "let go {0} if {1}"},
    {Op::cell, "cell", "w", "w*", true, false, "{kind} {n}({list})"},
    {Op::ref_new, "ref_new", "w", "w", true, false, "ref {0}"},
    {Op::ref_read, "ref_read", "w", "b", true, false, "ref_read {0}"},
    {Op::ref_write, "ref_write", "", "bw", true, false, "ref_write {0} {1}"},
    {Op::call, "call", "v", "v*", true, false, "call @{n}({list})"},
    {Op::invoke, "invoke", "w", "bw*", true, false, "invoke {0}({rest}){moves}"},
    {Op::retain, "retain", "", "b", false, false, "retain {0}"},
    {Op::release, "release", "", "w", false, false, "release {0}"},
    {Op::jump, "jump", "", "", false, true, "jump {targets}"},
    {Op::branch, "branch", "", "s", false, true, "branch {0} {targets}"},
    {Op::ret, "ret", "", "v", false, true, "return {0}"},
    {Op::tail_call, "tail_call", "", "v*", false, true, "tail call @{n}({list})"},
    {Op::tail_invoke, "tail_invoke", "", "w*", false, true, "tail invoke {0}({rest})"},
    {Op::no_match, "no_match", "", "b*", true, true, "no match {list}"},
}};
// clang-format on

consteval bool in_order() {
  for (size_t n = 0; n < kRows.size(); ++n) {
    if (static_cast<size_t>(kRows[n].op) != n) return false;
  }
  return true;
}
static_assert(in_order(), "the rows stand in the order of the operations");

}  // namespace

const OpRow& op_row(Op op) { return kRows[static_cast<size_t>(op)]; }

char operand_role(const OpRow& row, size_t operand) {
  for (const char* at = row.operands; *at != '\0'; ++at) {
    if (at[1] == '*') return *at;
    if (operand-- == 0) return *at;
  }
  return '\0';
}

bool takes_over(const Inst& inst, size_t operand) {
  if (inst.op == Op::invoke && operand == 0) return inst.moves;
  const char role = operand_role(op_row(inst.op), operand);
  return role == 'w' || role == 'v';
}

bool may_fail(const Inst& inst) {
  if (inst.op != Op::int_op) return op_row(inst.op).may_fail;
  switch (static_cast<IntOp>(inst.sub)) {
    case IntOp::floor_div:
    case IntOp::floor_mod:
    case IntOp::div:
    case IntOp::mod:
      return true;
    default:
      return false;
  }
}

}  // namespace relay::hostcode
