// What schedule rules share. A rule takes a kernel whose cheap producers are inlined already and
// gives a sentence about what it did; an empty sentence means that the rule does not fit, and then
// the schedule is thrown away.
#pragma once

#include <string>

#include "lower/rules/rules.h"
#include "tir/schedule/schedule.h"

namespace relay {

// A rule for whole kernels: a file of its own, and a line in rule_list.def.
struct ScheduleRule {
  const char* name;
  const char* takes;  // which kernels, for the sentence about one that it declines
  std::string (*schedule)(tir::Schedule& s, const Target& target);
};
#define RELAY_SCHEDULE_RULE(name) extern const ScheduleRule k##name##Rule;
#include "lower/rules/rule_list.def"
#undef RELAY_SCHEDULE_RULE

// One-core work (multiply-adds or elements) below which a second thread costs more than it saves:
// about 5 us.
inline constexpr double kMinParallelWork = 20000;

bool reduces(const tir::Block& b);

// Loops of one block: data-parallel ones outside, reductions inside; lanes over the last
// data-parallel loop, which then stands innermost; threads over the outermost.
std::string schedule_block(tir::Schedule& s, const tir::BlockRV& block, const Target& target);

}  // namespace relay
