// Schedule rules: which loops a kernel gets, computed analytically from the target's description.
#pragma once

#include <cstdint>
#include <string>

#include "target/target.h"
#include "tir/stmt.h"

namespace relay {

// The kernel in the loops of the rule that fits it. Its report (tir/schedule_report.h) says what was done: the rule, the
// rule's sentence, and why other rules did not take the kernel. At opt level 0 every block stays as it was composed.
tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level);

}  // namespace relay
