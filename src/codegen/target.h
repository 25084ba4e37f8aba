// Targets: what code is generated for, as plain data that schedule rules and code generation read.
//
//   Target::parse("native")                       this machine
//   Target::parse("x86-64-v3 -num-threads=1")     a level of the x86-64 psABI
//   Target::parse("llvm -mcpu=znver4")            any CPU that LLVM knows
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace relay {

struct Target {
  std::string name;      // as written, "native"
  std::string triple;    // "x86_64-unknown-linux-gnu"
  std::string cpu;       // LLVM's name of the CPU
  std::string features;  // LLVM's feature text, "+avx2,+fma,..."
  int64_t vector_bits = 128;
  int64_t num_vector_registers = 16;
  bool has_fma = false;
  bool has_f16c = false;
  int64_t l1_bytes = 32 << 10;  // data, per core
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;  // shared
  int num_cores = 1;           // threads that kernels are split over

  // Throws UserError E0403, with near names, for an unknown target or option.
  static Target parse(std::string_view text);
  // The machine this runs on: its features, caches, and the cores that the process may use.
  static Target native();

  // One line for people: "native: znver4, 512-bit vectors, 2 cores".
  std::string describe() const;
  // Instruction sets that generated code may use, as the artifact's loader checks them.
  std::vector<std::string> required_features() const;
};

}  // namespace relay
