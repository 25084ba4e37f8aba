// Schedule rules: which loops a kernel gets, computed analytically from the target's description.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "target/target_kind.h"
#include "tir/stmt.h"

namespace relay {

// The rules for processors (lower/rules/rule_list.def), the most special first.
std::span<const ScheduleRule* const> processor_rules();

// The kernel in the loops of the first rule of the target's kind that fits it. Its attributes say what was done: "rule" names
// the rule, "schedule" is the rule's sentence, "declined" has a line for each rule that did not
// take the kernel. At opt level 0 every block stays as it was composed.
tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level);

}  // namespace relay
