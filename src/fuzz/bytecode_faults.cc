// Faults of the memory plan and of the bytecode: what passes the verifier and means something else.
#include <algorithm>
#include <utility>

#include "fuzz/faults.h"

namespace relay::fuzz {
namespace {

using runtime::Instruction;
using runtime::Opcode;
using runtime::Operand;
using RtFunction = runtime::Function;

// Runs `edit` on every instruction; it says whether it changed something.
template <class Edit>
bool each(Bytecode& bytecode, const Edit& edit) {
  bool changed = false;
  for (RtFunction& f : bytecode.program.functions) {
    for (size_t pc = 0; pc < f.code.size(); ++pc) changed |= edit(f, f.code[pc]);
  }
  return changed;
}

// The same for the instructions of one kind.
template <class Edit>
bool each(Bytecode& bytecode, Opcode op, const Edit& edit) {
  return each(bytecode, [&](RtFunction& f, Instruction& i) { return i.op == op && edit(f, i); });
}

// Swaps the first two different entries of a call's list.
bool swap_entries(RtFunction& f, const Instruction& i) {
  for (uint32_t n = 0; n + 1 < i.count; ++n) {
    int32_t& a = f.lists[static_cast<size_t>(i.b) + n];
    int32_t& b = f.lists[static_cast<size_t>(i.b) + n + 1];
    if (a == b) continue;
    std::swap(a, b);
    return true;
  }
  return false;
}

bool swaps_kernel_inputs(Bytecode& bytecode) {
  return each(bytecode, Opcode::invoke_kernel, [&](RtFunction& f, const Instruction& i) {
    const runtime::KernelInfo& kernel = bytecode.program.kernels[static_cast<size_t>(i.a)];
    const size_t inputs = kernel.buffer_bytes.size() - kernel.num_outputs;
    for (size_t n = 0; n + 1 < inputs; ++n) {
      Operand& a = f.operands[static_cast<size_t>(i.b) + n];
      Operand& b = f.operands[static_cast<size_t>(i.b) + n + 1];
      const bool fit =
          kernel.buffer_bytes[n] >= 0 && kernel.buffer_bytes[n] == kernel.buffer_bytes[n + 1];
      if (!fit || a == b) continue;
      std::swap(a, b);
      return true;
    }
    return false;
  });
}

bool overlaps_buffers(Bytecode& bytecode) {
  bool changed = false;
  for (RtFunction& f : bytecode.program.functions) {
    for (Operand& o : f.operands) {
      if (o.kind != Operand::kArena || o.index == 0) continue;
      o.index = 0;
      changed = true;
    }
  }
  return changed;
}

bool reads_another_constant(Bytecode& bytecode) {
  const std::vector<Tensor>& constants = bytecode.program.constants;
  auto like = [&](int64_t index) -> int64_t {
    const Tensor& c = constants[static_cast<size_t>(index)];
    for (size_t i = 0; i < constants.size(); ++i) {
      const Tensor& other = constants[i];
      if (static_cast<int64_t>(i) != index && other.dtype() == c.dtype() &&
          std::ranges::equal(other.shape(), c.shape())) {
        return static_cast<int64_t>(i);
      }
    }
    return index;
  };
  bool changed = false;
  for (RtFunction& f : bytecode.program.functions) {
    for (Operand& o : f.operands) {
      if (o.kind != Operand::kConstant || like(o.index) == o.index) continue;
      o.index = like(o.index);
      changed = true;
    }
  }
  changed |= each(bytecode, Opcode::load_const, [&](RtFunction&, Instruction& i) {
    const auto other = static_cast<int32_t>(like(i.a));
    return std::exchange(i.a, other) != other;
  });
  return changed;
}

bool always_takes_the_first_branch(Bytecode& bytecode) {
  return each(bytecode, [](RtFunction& f, Instruction& i) {
    if (i.op != Opcode::if_false && i.op != Opcode::if_zero) return false;
    i.b = static_cast<int32_t>(&i - f.code.data()) + 1;
    return true;
  });
}

// A test for a constructor is one for the constructor beside it.
bool tests_another_tag(Bytecode& bytecode) {
  return each(bytecode, Opcode::if_not_tag, [](RtFunction&, Instruction& i) {
    i.count ^= 1;
    return true;
  });
}

bool swaps_scalar_operands(Bytecode& bytecode) {
  return each(bytecode, [](RtFunction&, Instruction& i) {
    if ((i.op != Opcode::int_op && i.op != Opcode::float_op) || i.a == i.b) return false;
    std::swap(i.a, i.b);
    return true;
  });
}

// A field is read as if its value were dead afterwards.
bool ends_values_too_early(Bytecode& bytecode) {
  return each(bytecode, Opcode::get_field, [](RtFunction&, Instruction& i) {
    return (std::exchange(i.sub, i.sub | runtime::kLastA) & runtime::kLastA) == 0;
  });
}

bool reads_the_first_field(Bytecode& bytecode) {
  return each(bytecode, Opcode::get_field,
              [](RtFunction&, Instruction& i) { return std::exchange(i.b, 0) != 0; });
}

bool makes_another_constructor(Bytecode& bytecode) {
  return each(bytecode, Opcode::alloc_adt, [](RtFunction&, Instruction& i) {
    i.a ^= 1;
    return true;
  });
}

bool swaps_fields(Bytecode& bytecode) { return each(bytecode, Opcode::alloc_adt, swap_entries); }
bool swaps_tuple_fields(Bytecode& bytecode) {
  return each(bytecode, Opcode::alloc_tuple, swap_entries);
}
bool swaps_captured_values(Bytecode& bytecode) {
  return each(bytecode, Opcode::alloc_closure, swap_entries);
}
bool swaps_arguments(Bytecode& bytecode) { return each(bytecode, Opcode::call, swap_entries); }
bool swaps_arguments_of_tail_calls(Bytecode& bytecode) {
  return each(bytecode, Opcode::tail_call, swap_entries);
}
bool swaps_arguments_of_closures(Bytecode& bytecode) {
  const bool calls = each(bytecode, Opcode::invoke_closure, swap_entries);
  return each(bytecode, Opcode::tail_invoke, swap_entries) || calls;
}

bool loses_writes(Bytecode& bytecode) {
  return each(bytecode, Opcode::ref_write, [](RtFunction&, Instruction& i) {
    i = Instruction{Opcode::move, 0, 0, 0, i.a, i.a, 0};
    return true;
  });
}

bool takes_the_first_dimension(Bytecode& bytecode) {
  return each(bytecode, Opcode::shape_of,
              [](RtFunction&, Instruction& i) { return std::exchange(i.b, 0) != 0; });
}

bool sizes_are_off_by_one(Bytecode& bytecode) {
  return each(bytecode, Opcode::load_int, [](RtFunction&, Instruction& i) {
    ++i.a;
    return true;
  });
}

bool returns_the_first_parameter(Bytecode& bytecode) {
  return each(bytecode, Opcode::ret, [](RtFunction& f, Instruction& i) {
    return !f.params.empty() && std::exchange(i.a, 0) != 0;
  });
}

bool calls_the_function_before(Bytecode& bytecode) {
  return each(bytecode, Opcode::call, [&](RtFunction&, Instruction& i) {
    if (i.a == 0) return false;
    const auto& functions = bytecode.program.functions;
    const size_t callee = static_cast<size_t>(i.a);
    if (functions[callee].params.size() != functions[callee - 1].params.size()) return false;
    --i.a;
    return true;
  });
}

constexpr Fault bytecode_fault(std::string_view name, std::string_view mimics,
                               bool (*bytecode)(Bytecode&)) {
  Fault out;
  out.name = name;
  out.stage = "bytecode";
  out.mimics = mimics;
  out.bytecode = bytecode;
  return out;
}

constexpr Fault kBytecodeFaults[] = {
    bytecode_fault("swaps_kernel_inputs", "A kernel's operands are in the wrong order.",
                   swaps_kernel_inputs),
    bytecode_fault("overlaps_buffers", "Two buffers that are alive at once share memory.",
                   overlaps_buffers),
    bytecode_fault("reads_another_constant", "Constants of one type are taken for equal.",
                   reads_another_constant),
    bytecode_fault("always_takes_the_first_branch", "A branch goes to the next instruction.",
                   always_takes_the_first_branch),
    bytecode_fault("tests_another_tag",
                   "A clause is entered for a constructor that is not its own.", tests_another_tag),
    bytecode_fault("swaps_scalar_operands", "Scalars are subtracted the wrong way round.",
                   swaps_scalar_operands),
    bytecode_fault("ends_values_too_early", "A use is taken for the last one.",
                   ends_values_too_early),
    bytecode_fault("reads_the_first_field", "Fields are all read at one index.",
                   reads_the_first_field),
    bytecode_fault("makes_another_constructor", "A value gets a wrong tag.",
                   makes_another_constructor),
    bytecode_fault("swaps_fields_of_values", "Fields are stored in the wrong order.", swaps_fields),
    bytecode_fault("swaps_fields_of_tuples", "Fields are stored in the wrong order.",
                   swaps_tuple_fields),
    bytecode_fault("swaps_captured_values", "A closure finds its captured values in another order.",
                   swaps_captured_values),
    bytecode_fault("swaps_arguments", "Arguments are passed in the wrong order.", swaps_arguments),
    bytecode_fault("swaps_arguments_of_tail_calls",
                   "Registers are overwritten while arguments of a tail call are moved.",
                   swaps_arguments_of_tail_calls),
    bytecode_fault("swaps_arguments_of_closures", "Arguments are passed in the wrong order.",
                   swaps_arguments_of_closures),
    bytecode_fault("loses_writes", "A reference is not written.", loses_writes),
    bytecode_fault("takes_the_first_dimension", "A size is read from the wrong axis.",
                   takes_the_first_dimension),
    bytecode_fault("sizes_are_off_by_one", "A constant in shape arithmetic is wrong.",
                   sizes_are_off_by_one),
    bytecode_fault("returns_the_first_parameter", "The result is in another register.",
                   returns_the_first_parameter),
    bytecode_fault("calls_the_function_before", "A function's index is off by one.",
                   calls_the_function_before),
};

}  // namespace

std::span<const Fault> bytecode_faults() { return kBytecodeFaults; }

}  // namespace relay::fuzz
