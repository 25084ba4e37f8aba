// What schedule rules share. A rule takes a kernel whose cheap producers are inlined already. It returns what it did, or
// declines; then the schedule is thrown away.
#pragma once

#include <string>

#include "lower/rules/decision.h"
#include "lower/rules/rules.h"
#include "tir/schedule/schedule.h"

namespace relay {

// A rule for whole kernels: a file of its own, and a line in rule_list.def.
struct ScheduleRule {
  const char* name;
  const char* takes;                // which kernels, for the sentence about one that it declines
  const NodeInfo& (*parameters)();  // the fields of its parameters, with a sentence each
  Outcome (*build)(tir::Schedule& s, Node& parameters, Decider& decide);
  double arithmetic = 1;  // operations that its kernels execute for each that the operators define
};

// A rule of a function over the struct of its parameters: `Outcome build(Schedule&, Parameters&, Decider&)`.
template <class Parameters, Outcome (*Build)(tir::Schedule&, Parameters&, Decider&)>
constexpr ScheduleRule schedule_rule(const char* name, const char* takes, double arithmetic = 1) {
  return {name, takes, &Parameters::static_info,
          [](tir::Schedule& s, Node& parameters, Decider& decide) {
            return Build(s, static_cast<Parameters&>(parameters), decide);
          },
          arithmetic};
}

#define RELAY_SCHEDULE_RULE(name) extern const ScheduleRule k##name##Rule;
#include "lower/rules/rule_list.def"
#undef RELAY_SCHEDULE_RULE

// One-core work (multiply-adds or elements) below which a second thread costs more than it saves:
// about 5 us.
inline constexpr double kMinParallelWork = 20000;

// Whether threads share so much work.
inline bool pays_threads(const Target& target, double work, double least = kMinParallelWork) {
  return target.num_cores > 1 && work >= least;
}

// How long an axis is taken to be that only a run knows.
inline constexpr int64_t kTypicalExtent = 64;
inline int64_t typical_extent(int64_t extent) { return extent < 0 ? kTypicalExtent : extent; }

bool reduces(const tir::Block& b);

// What is decided about one block by itself.
struct BlockPlan {
  int64_t transposed = 0;  // rows and columns of a block that is transposed; 0: none is
  int64_t lanes = 1;
  int64_t vectors = 1;  // of sums of open columns that are kept in registers at once
  int64_t first = 0;    // iterations at the start and the end that are peeled
  int64_t last = 0;
  int64_t rows = 1;  // that lanes across them are computed for at once
  bool prefetch = false;
  bool threads = false;

  static constexpr auto members() {
    return std::tuple{member("transposed", &BlockPlan::transposed),
                      member("lanes", &BlockPlan::lanes),
                      member("vectors", &BlockPlan::vectors),
                      member("first", &BlockPlan::first),
                      member("last", &BlockPlan::last),
                      member("rows", &BlockPlan::rows),
                      member("prefetch", &BlockPlan::prefetch),
                      member("threads", &BlockPlan::threads)};
  }
  friend bool operator==(const BlockPlan&, const BlockPlan&) = default;
};
using BlockPlans = PlanList<BlockPlan>;

// Loops of one block: data-parallel ones outside, reductions inside; lanes over the last
// data-parallel loop, which then stands innermost; threads over the outermost. The text may be empty: nothing was to be done.
tir::StepResult<std::string> schedule_block(tir::Schedule& s, const tir::BlockRV& block,
                                            BlockPlans& plans, Decider& decide);

}  // namespace relay
