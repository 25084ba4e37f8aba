// Schedule rules: which loops a kernel gets, computed analytically from the target's description.
#pragma once

#include <cstdint>
#include <string>

#include "tir/stmt.h"

namespace relay {

// What rules need to know of the machine.
struct TargetInfo {
  int64_t vector_bits = 128;
  int64_t num_vector_registers = 16;
  int64_t l1_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 8 << 20;
  int num_cores = 1;
  bool has_fma = false;
};

// The kernel in the loops of the rule that fits it. Its attributes say what was done: "rule" names
// the rule, "schedule" is the rule's sentence, "declined" has a line for each rule that did not
// take the kernel. At opt level 0 every block stays as it was composed.
tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const TargetInfo& target,
                              int opt_level);

}  // namespace relay
