// The machine that code is generated for, as plain data. Passes, schedule rules and code generation read this one object
// and ask for what it says, never for which machine it is.
//
// `parse_target` of codegen/targets.h makes one of a user's words; a default one is a small processor without a name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace relay {

// What schedules assume of a device whose work items form groups (tir/thread_nests.h). The defaults suit any OpenCL device.
struct WorkItemLimits {
  int64_t units = 16;               // multiprocessors, each of which runs groups of its own
  int64_t item_registers = 32;      // of 32 bits, of an item in a group of the most items
  int64_t shared_bytes = 16 << 10;  // of a group
  int64_t group_items = 256;        // at most
  bool exchanges = false;     // 32 neighbouring items exchange registers (tir/lane_reduction.h)
  bool copies_later = false;  // items go on while what they copy to shared memory arrives
};
// Of NVIDIA GPUs of a compute capability, 75 to 90: two groups of 256 items share the 65,536 registers of a multiprocessor. The
// multiprocessors are those of the common GPU of the capability, or of the next smaller one that is known.
WorkItemLimits nvidia_items(int capability);

// What a kind of target restricts its kernels to.
struct TargetLimits {
  // Of a kernel's own buffers on the stack of its thread; further ones come from the runtime's scratch memory. Threads of
  // the pool may have stacks as small as 256 KB.
  int64_t stack_bytes = 32 << 10;
  // Of kinds with schedule rules for work items.
  WorkItemLimits items;
};

// A line of the caches of every processor that there is code for.
inline constexpr int64_t kCacheLineBytes = 64;

struct Target {
  std::string name;          // as written, "native"
  std::string kind = "cpu";  // its row of target_kinds() (target/target_kind.h)
  std::string arch;          // its row of architectures(), "x86_64"
  std::string triple;        // "x86_64-unknown-linux-gnu"
  std::string cpu;           // the code generator's name of the processor, "znver4"
  std::string features;  // the instruction set beyond the architecture's least, "+avx2,+fma,..."

  // Follow from the features.
  int64_t vector_bits = 128;
  int64_t num_vector_registers = 16;
  bool has_fma = false;           // a multiplication and an addition are one instruction
  bool converts_float16 = false;  // whole vectors between float16 and float32
  bool rounds_bfloat16 = false;   // whole vectors of float32 to bfloat16 by one instruction
  bool has_blocked_kernels =
      true;  // rules have kernels for blocked layouts; false: a model's layouts stay
  // Columns of 32 bits that packed weights hold together. 0: those of two vectors. Targets with one number share packed
  // weights.
  int64_t panel_columns = 0;

  // Runs compute with denormal numbers; false: they are zero, which is faster. No instruction is used that flushes
  // them whatever the mode is.
  bool keeps_denormals = false;

  int64_t l1_bytes = 32 << 10;   // data, per core
  int64_t l2_bytes = 512 << 10;  // per core
  int64_t l3_bytes = 8 << 20;    // shared
  int num_cores = 1;             // threads that kernels are split over

  // The kind's (target/target_kind.h), or the architecture's where these are fewer.
  TargetLimits limits;
  int index_bits = 64;    // of an integer that counts elements
  int pointer_bits = 64;  // of an address

  // Elements of so many bits in one vector.
  int64_t lanes(int64_t bits) const { return vector_bits / bits; }
  // Whether the feature text has it, by the code generator's name ("avx512vl").
  bool has_feature(std::string_view feature) const;

  // One line for people: "native: znver4, 512-bit vectors, 2 cores".
  std::string describe() const;
  // Instruction sets that generated code may use, as the artifact's loader checks them.
  std::vector<std::string> required_features() const;
};

// What a program is compiled for: the host runs its control, and a kernel runs on the host or on a device.
struct ProgramTarget {
  Target host;
  std::vector<Target> devices;
};

}  // namespace relay
