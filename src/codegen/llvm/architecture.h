// What code generation with LLVM has of its own for one instruction set. One file for each, named like LLVM's target in
// small letters (x86.cc); CMake finds it, puts it on the list, and links LLVM's part for it into the compiler or into
// the library of code generators.
#pragma once

#include <llvm/IR/CallingConv.h>
#include <llvm/IR/IRBuilder.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/dtype.h"
#include "target/target.h"

namespace relay::codegen {

using runtime::DType;

enum class CodeKind;  // llvm_machine.h

// The instructions of a matrix unit (target/dot_products.h) on its registers by number.
struct LlvmMatrixUnit {
  // The shapes of registers, 16 at most: rows, and bytes in a row; 0 where one is not used.
  struct Shapes {
    std::array<uint8_t, 16> rows{};
    std::array<uint16_t, 16> row_bytes{};
    bool operator==(const Shapes&) const = default;
  };
  // From here on registers have these shapes.
  void (*configure)(llvm::IRBuilder<>& b, const Shapes& shapes);
  // The unit is not used any more.
  void (*release)(llvm::IRBuilder<>& b);
  void (*zero)(llvm::IRBuilder<>& b, unsigned reg);
  // Rows are `step` bytes apart. What is streamed is not kept in the cache next to the unit.
  void (*load)(llvm::IRBuilder<>& b, unsigned reg, llvm::Value* memory, llvm::Value* step,
               bool streamed);
  void (*store)(llvm::IRBuilder<>& b, unsigned reg, llvm::Value* memory, llvm::Value* step);
  // sum += x * y of these dtypes; false when the target has no such instruction.
  bool (*multiply)(llvm::IRBuilder<>& b, const Target& target, DType x_dtype, DType y_dtype,
                   unsigned sum, unsigned x, unsigned y);
};

// How functions between kernels are called.
struct LlvmHostCalls {
  const char* stack_pointer;  // its name, for code that compares it with the limit of a stack
  // Of functions that call in tail position without taking stack.
  llvm::CallingConv::ID repeating = llvm::CallingConv::Tail;
  // Of a function that leaves registers as they are, where LLVM has that.
  llvm::CallingConv::ID questions = llvm::CallingConv::PreserveMost;
  // Words that functions and closures take at most, with the context and two of a closure.
  size_t most_words = std::numeric_limits<size_t>::max();
};

struct LlvmArchitecture {
  std::string_view name;  // its row of target/architectures.h
  // Makes LLVM's target, printer and parser known; nothing where they are in the library of machine.h.
  void (*initialize)();
  // The features of a processor by name, "+avx2,..."; nullopt when LLVM does not know it.
  std::optional<std::string> (*features_of)(std::string_view cpu);
  // x * 2^n, lane by lane, of floats with integral n, by the instruction for it; null when the target has none for such
  // vectors. May be null altogether.
  llvm::Value* (*scale)(llvm::IRBuilder<>& b, const Target& target, llvm::Value* x, llvm::Value* n);
  // Whether elements of 32 and 64 bits at places of their own are read under a mask by one
  // instruction on every processor with vectors of 256 bits and more.
  bool gathers;
  // Where the C library's mathematics may lie; the first that is there is named in what is linked.
  std::span<const char* const> libm;
  // acc plus the products of the four bytes of a, unsigned, by those of b, signed, in each lane of int32, by the instruction
  // for it; null when the target has none for such vectors. Null altogether: it has none at all.
  llvm::Value* (*byte_dot)(llvm::IRBuilder<>& b, const Target& target, llvm::Value* acc,
                           llvm::Value* a, llvm::Value* bytes) = nullptr;
  // acc plus the products of the two bfloat16 of x by those of y in each lane of float32, by the instruction for it; null
  // when the target has none for such vectors. Words are int32. Null altogether: it has none at all.
  llvm::Value* (*bfloat16_dot)(llvm::IRBuilder<>& b, const Target& target, llvm::Value* acc,
                               llvm::Value* x, llvm::Value* y) = nullptr;
  // Null: it has none.
  const LlvmMatrixUnit* matrix = nullptr;
  // Whether the instruction of `gathers` is also faster than one element after the other where there is no mask, as LLVM's
  // model of the processor says. Null: it is not.
  bool (*gathers_fast)(const Target& target) = nullptr;
  // The low 32 bits of a * b / 2^31, halves up, in each lane of int32, where the architecture multiplies every second
  // lane to 64 bits; null for an odd number of lanes. Null altogether: lanes are widened.
  llvm::Value* (*fixed_point_product)(llvm::IRBuilder<>& b, llvm::Value* x,
                                      llvm::Value* y) = nullptr;
  // acc + x * y in each lane of int32, of x and y that 16 bits hold, by an instruction that is faster than a product of
  // 32 bits; null when the target has none for such vectors. Null altogether: it has none at all.
  llvm::Value* (*add_short_product)(llvm::IRBuilder<>& b, const Target& target, llvm::Value* acc,
                                    llvm::Value* x, llvm::Value* y) = nullptr;
  // Whether vectors of integers are divided by an instruction.
  bool divides_integers = false;
  // The unit of vector registers of any length, whose least number LLVM learns from an attribute of a function: bits. 0: the
  // features say it.
  unsigned unit_bits = 0;
  // Null: no host code is generated.
  const LlvmHostCalls* host_calls = nullptr;
  // Puts instructions of the architecture into a kernel that was just built, where LLVM selects slower ones. Null:
  // nowhere.
  void (*select)(llvm::Module& module, const Target& target) = nullptr;
  // Options of LLVM's command line under which code for the target is written, "NAME=VALUE NAME=VALUE"; "": none. Null: for
  // none. Code of the library of machine.h has none.
  std::string (*emitter_options)(const Target& target, CodeKind kind) = nullptr;
};

// Null when there is none of that name.
const LlvmArchitecture* find_llvm_architecture(std::string_view name);

// Makes every architecture whose code generator is in this program known to LLVM, once.
void initialize_llvm();

// The module's constant of that name, made or set to the value.
llvm::GlobalVariable* define_constant(llvm::Module& module, llvm::StringRef name,
                                      llvm::Constant* value);

}  // namespace relay::codegen
