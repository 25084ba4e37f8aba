// Schedule rules: which loops a kernel gets, computed analytically from the target's description.
#pragma once

#include <span>

#include "target/target_kind.h"
#include "tir/stmt.h"

namespace relay {

// The rules for processors, in the order of asking (lower/rules/rule_list.def).
std::span<const ScheduleRule* const> processor_rules();

// The rules for devices whose work items have memory in common (lower/rules/work_items.cc).
std::span<const ScheduleRule* const> work_item_rules();

// The kernel in the loops of the first rule of the target's kind that takes it. Its report (tir/schedule_report.h) says what was
// done: the rule, the rule's sentence, and why other rules did not take the kernel. At opt level 0 every block stays as it was
// composed.
tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level);

// The same by the first of these rules that takes the kernel. Throws UserError E0410, with the reason of each, where none does.
tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level,
                              std::span<const ScheduleRule* const> rules);

}  // namespace relay
