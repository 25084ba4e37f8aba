// A target as the schedule rules see it.
#pragma once

#include "codegen/target.h"
#include "lower/rules/rules.h"

namespace relay {

inline TargetInfo target_info(const Target& t) {
  TargetInfo info;
  info.vector_bits = t.vector_bits;
  info.num_vector_registers = t.num_vector_registers;
  info.l1_bytes = t.l1_bytes;
  info.l2_bytes = t.l2_bytes;
  info.l3_bytes = t.l3_bytes;
  info.num_cores = t.num_cores;
  info.has_fma = t.has_fma;
  return info;
}

}  // namespace relay
