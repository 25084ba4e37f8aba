// Faults of the code between kernels: what its verifier has passed, and what then means something else.
#include <algorithm>
#include <utility>

#include "fuzz/faults.h"

namespace relay::fuzz {
namespace {

using hostcode::Inst;
using hostcode::Op;
using HcFunction = hostcode::Function;

// Runs `edit` on every instruction of an operation; it says whether it changed something.
template <class Edit>
bool each_host(Bytecode& bytecode, Op op, const Edit& edit) {
  bool changed = false;
  for (HcFunction& f : bytecode.host.program.functions) {
    for (hostcode::Block& b : f.blocks) {
      for (Inst& i : b.insts) changed |= i.op == op && edit(f, i);
    }
  }
  return changed;
}

// Swaps the first two operands, from `first` on, that are of one kind.
bool swap_operands(const HcFunction& f, Inst& i, size_t first) {
  for (size_t n = first; n + 1 < i.operands.size(); ++n) {
    auto &a = i.operands[n], &b = i.operands[n + 1];
    if (a == b || f.local(a).is_word != f.local(b).is_word) continue;
    std::swap(a, b);
    return true;
  }
  return false;
}

bool swaps_numbers(Bytecode& bytecode) {
  auto swap = [](HcFunction& f, Inst& i) { return swap_operands(f, i, 0); };
  const bool ints = each_host(bytecode, Op::int_op, swap);
  return each_host(bytecode, Op::float_op, swap) || ints;
}

bool swaps_native_arguments(Bytecode& bytecode) {
  auto swap = [](HcFunction& f, Inst& i) { return swap_operands(f, i, 0); };
  const bool calls = each_host(bytecode, Op::call, swap);
  return each_host(bytecode, Op::tail_call, swap) || calls;
}

bool swaps_branches(Bytecode& bytecode) {
  return each_host(bytecode, Op::branch, [](HcFunction&, Inst& i) {
    std::swap(i.targets[0], i.targets[1]);
    return i.targets[0] != i.targets[1];
  });
}

bool swaps_native_fields(Bytecode& bytecode) {
  return each_host(bytecode, Op::cell,
                   [](HcFunction& f, Inst& i) { return swap_operands(f, i, 0); });
}

bool loses_native_writes(Bytecode& bytecode) {
  return each_host(bytecode, Op::ref_write, [](HcFunction&, Inst& i) {
    i = Inst{.op = Op::release, .operands = {i.operands[1]}};
    return true;
  });
}

bool keeps_what_is_dead(Bytecode& bytecode) {
  bool changed = false;
  for (HcFunction& f : bytecode.host.program.functions) {
    for (hostcode::Block& b : f.blocks) {
      changed |= std::erase_if(b.insts, [](const Inst& i) { return i.op == Op::release; }) > 0;
    }
  }
  return changed;
}

constexpr Fault hostcode_fault(std::string_view name, std::string_view mimics,
                               bool (*spoil)(Bytecode&)) {
  Fault out;
  out.name = name;
  out.stage = "hostcode";
  out.mimics = mimics;
  out.bytecode = spoil;
  return out;
}

constexpr Fault kHostcodeFaults[] = {
    hostcode_fault("native_code_swaps_numbers", "The operands of a subtraction are swapped.",
                   swaps_numbers),
    hostcode_fault("native_code_swaps_arguments", "Arguments are passed in the wrong order.",
                   swaps_native_arguments),
    hostcode_fault("native_code_swaps_branches", "A branch goes to the wrong target.",
                   swaps_branches),
    hostcode_fault("native_code_swaps_fields", "Fields are stored in the wrong order.",
                   swaps_native_fields),
    hostcode_fault("native_code_loses_writes", "A reference is not written.", loses_native_writes),
    hostcode_fault("native_code_keeps_what_is_dead", "A reference is not released.",
                   keeps_what_is_dead),
};

}  // namespace

std::span<const Fault> hostcode_faults() { return kHostcodeFaults; }

}  // namespace relay::fuzz
