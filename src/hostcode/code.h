// Host code: the functions of a program between its kernels, as a control-flow graph of typed instructions on machine
// words. Its builder is vm/host_code.h, its printer to machine code codegen/llvm/host_code.h.
//
//   Program p = ...;               // by the builder, without counts
//   insert_counts(p.functions[0]); // hostcode/counts.h
//   verify(p);                     // hostcode/verify.h
//   to_string(p)                   // relay show --hostcode
//
//   fn fib(s0: int64) -> int64
//   b0:
//     enter
//     s1 = 2
//     s2 = s0 < s1
//     branch s2 b1 b2
//   b1:
//     return s0
//   ...
//
// A *local* is a machine word that any number of instructions assign. A scalar local has an element or a size in the
// form of the virtual machine's integer registers (a float by its bits). A word local has a value: a pointer to an object
// or an immediate (runtime/core/immediate.h), and is either *counted*, that is, it owns one reference while it holds a
// value that is read later, or *borrowed*, that is, somebody else owns the value for as long as the function runs.
//
// How native and interpreted functions call each other. A native function calls native functions only: the builder takes
// the largest set of functions that is closed under calls, where a call of a closure may reach every function of as many
// parameters of which the program makes a closure. So native code is entered from the interpreter at the root of a region
// and returns to it there; no native frame is ever below an interpreted one, and neither executor uses the C stack for
// depth. Native functions run on a stack of their own (runtime/vm/native_stack.h) with ordinary calls and returns.
// Alternatives: frames on the virtual machine's stack with explicit continuations cost a store and a load for each live
// value at each call and predict no return; leaving a native frame suspended under an interpreted one needs switches of
// stacks at every such call, and is what lifts the closure under calls when it is worth its cost.
//
// Errors. An instruction that may fail has a list of the words that it releases when it does (`cleanup`); then the
// function returns a failure, and its caller does the same. The run time keeps the reason.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/dtype.h"
#include "runtime/core/object.h"

namespace relay::hostcode {

using runtime::DType;
using LocalId = int32_t;
using BlockId = int32_t;

enum class Op : uint8_t {
  enter,
  poll,
  number,
  copy,
  move,
  int_op,
  float_op,
  convert,
  index,
  check,
  box,
  unbox,
  constant,
  tag,
  field,
  capture,
  let_go,
  cell,
  ref_new,
  ref_read,
  ref_write,
  call,
  invoke,
  retain,
  release,
  // Ends of blocks.
  jump,
  branch,
  ret,
  tail_call,
  tail_invoke,
  no_match,
};
inline constexpr int kOpCount = static_cast<int>(Op::no_match) + 1;

struct Inst {
  Op op = Op::poll;
  // An IntOp, FloatOp or ScalarConversion.
  uint8_t sub = 0;
  // Of `field`: the field is moved out when the cell has no other reference. Of `invoke`: the closure is given up.
  bool moves = false;
  // Of a new cell.
  runtime::ObjectKind kind = runtime::ObjectKind::adt;
  // A number, width in bits, tag, field, constant or function, as the row of the operation says.
  int64_t number = 0;
  // Of what is boxed or unboxed.
  DType dtype{};
  // Strings of the program: a message, and a place in the source; -1: none.
  int32_t text = -1;
  int32_t where = -1;
  LocalId result = -1;
  std::vector<LocalId> operands{};
  // Of a jump or branch: where a branch goes for a scalar that is not 0, then where else.
  std::vector<BlockId> targets{};
  // Words that are released when the instruction fails, beside the operands that it takes over.
  std::vector<LocalId> cleanup{};
};

struct Block {
  // The last one is an end, and no other is.
  std::vector<Inst> insts;
};

struct Local {
  bool is_word = false;
  bool borrowed = false;  // of a word: not counted here
};

// What a function takes and gives: the dtype of a scalar, nothing for a word.
struct Signature {
  std::vector<std::optional<DType>> params;
  std::optional<DType> result;

  friend bool operator==(const Signature&, const Signature&) = default;
};

enum class FunctionKind : uint8_t {
  body,     // what native functions call
  entry,    // what the interpreter calls: words in, a word out
  closure,  // what `invoke` calls: takes a cell, whether the cell is given up, and words
};

struct Function {
  std::string name;
  FunctionKind kind = FunctionKind::body;
  // Of the program.
  int32_t index = 0;
  Signature signature;
  // Of a closure: what it has captured, the first parameters of its body.
  int32_t captured = 0;
  // The first are the parameters.
  std::vector<Local> locals;
  std::vector<Block> blocks;

  const Local& local(LocalId id) const { return locals[static_cast<size_t>(id)]; }
  bool is_counted(LocalId id) const { return local(id).is_word && !local(id).borrowed; }
};

struct Program {
  // Of the whole program; for each its body among `functions`, -1 where it is interpreted.
  std::vector<int32_t> bodies;
  std::vector<Function> functions;
  // The entries among `functions`, in the order of the program: of those native functions that the interpreter calls.
  std::vector<int32_t> entries;

  bool empty() const { return functions.empty(); }
};

// ---- The operations: one row each, from which the verifier, the counts and the text come.

// Operands are a signature, a letter for each; one that ends in `*` has any number of the kind before it:
//   s  a scalar     w  a word that is taken over     b  a word that is read     v  a scalar, or a word that is taken over
struct OpRow {
  Op op;
  const char* name;
  const char* result;  // "", "s", "w" or "v"
  const char* operands;
  bool may_fail;
  bool ends;         // ends a block
  const char* text;  // {0}, {1}, {rest}, {list}, {n}, {op}, {dtype}
};

const OpRow& op_row(Op op);

// The letter of an operand, '\0' beyond the last.
char operand_role(const OpRow& row, size_t operand);
// Whether an operand that is a word is taken over.
bool takes_over(const Inst& inst, size_t operand);
bool may_fail(const Inst& inst);

std::string to_string(const Function& function);
std::string to_string(const Program& program);

}  // namespace relay::hostcode
