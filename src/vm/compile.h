// Relay in A-normal form to bytecode.
//
// Every primitive function becomes a kernel; what is between kernels becomes instructions. Tensors
// of static shape that do not leave their function live in its arena at offsets fixed here, so a
// static model is a straight list of kernel calls. Views (reshape) cost nothing. Tensors that are
// put into a data value, captured, passed on or chosen by a branch are objects of their own.
#pragma once

#include <vector>

#include "ir/module.h"
#include "lower/lower_program.h"
#include "runtime/vm/bytecode.h"

namespace relay {

// A kernel that the program calls: the primitive function and its composed body.
struct ProgramKernel {
  std::string name;  // unique, a C identifier
  Function primitive;
  ComposedKernel composed;
  std::vector<KernelSite> sites;
};

// What the memory plan came to, for one function.
struct ArenaReport {
  std::string function;
  int64_t arena_bytes = 0;
  int64_t lower_bound = 0;  // most bytes alive at once
  int64_t pieces = 0;       // values that are parts of others in memory, so that nothing is copied
  int64_t reused = 0;       // results in the memory of an operand that nothing reads any more
};

struct Bytecode {
  runtime::Program program;
  std::vector<ProgramKernel> kernels;  // parallel to program.kernels
  std::vector<ArenaReport> arenas;
};

// `mod` is checked and in A-normal form, all operator calls inside primitive functions. Throws
// UserError E0401, with the place, for what the machine cannot do yet (operators as values, sizes
// that are data-dependent). Functions take and give tensors
// by the names in their attributes attr::kInputNames and attr::kOutputNames.
// `lowered` are the kernels of the same module.
Bytecode compile_to_bytecode(const Module& mod, LoweredProgram& lowered);
Bytecode compile_to_bytecode(const Module& mod);

// A tensor type as the run time knows it.
runtime::TensorSpec spec_of(const TensorTypeNode& t);
// The parts of a tuple's type; none for other types.
std::vector<runtime::TypePart> parts_of(const Type& type);
// What the i-th tensor of a function's result is called: by attr::kOutputNames, or "output" and the
// number.
std::string result_name(const FunctionNode& f, size_t i);
// What a parameter is called: by attr::kInputNames, or as it is in the program.
std::string parameter_name(const FunctionNode& f, const VarNode& param);

}  // namespace relay
