#include "lower/rules/rules.h"

#include <utility>

#include "base/codes/lowering.h"
#include "lower/rules/choose.h"
#include "node/walk.h"
#include "tir/schedule_report.h"
#include "tir/while.h"

namespace relay {
namespace {

using tir::BlockRV;
using tir::Schedule;

constexpr const ScheduleRule* kProcessorRules[] = {
#define RELAY_SCHEDULE_RULE(name) &k##name##Rule,
#include "lower/rules/rule_list.def"
#undef RELAY_SCHEDULE_RULE
};

// Some loop of it runs no time at all: its extent is the constant 0.
bool computes_nothing(const Schedule& s) {
  for (const BlockRV& rv : s.get_blocks()) {
    for (const tir::IterVar& iter : s.block(rv)->iters) {
      if (tir::as_int(iter->extent) == 0) return true;
    }
  }
  return false;
}

// Whether it is a loop of the program, whose statements stay in their order.
bool is_in_order(const tir::PrimFunc& f) {
  bool found = false;
  post_order(
      f->body, [&](const Node& n) { found |= isa<tir::WhileNode>(&n); }, family::tir_stmt);
  return found;
}

// The outer loop runs from its end when the composed kernel says so.
tir::PrimFunc ordered(const tir::PrimFunc& f) {
  if (f->order == tir::LoopOrder::Forward) return f;
  Schedule s(f);
  std::vector<BlockRV> blocks = s.get_blocks();
  for (const tir::LoopRV& loop : s.get_loops(blocks.back())) {
    if (s.extent(loop) == 1) continue;
    s.run_backward(loop).value();
    break;
  }
  return s.func();
}

[[noreturn]] void refuse(const tir::PrimFunc& f, const Target& target,
                         const std::vector<std::string>& declined) {
  std::string reasons;
  for (const std::string& d : declined) reasons += (reasons.empty() ? "" : "; ") + d;
  throw UserError(Diagnostic(codes::no_schedule_rule, {},
                             "no schedule rule takes kernel " + f->name + " for " + target.name)
                      .expected("a kernel that one of the rules takes")
                      .found(declined.empty() ? "a target without rules" : reasons)
                      .help("end the rules of the target's kind with one that takes every kernel, "
                            "as \"loops\" does for processors"));
}

}  // namespace

std::span<const ScheduleRule* const> processor_rules() { return kProcessorRules; }

tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level) {
  if (opt_level == 0) return composed;
  return schedule_kernel(composed, target, opt_level, kind_of(target).rules());
}

tir::PrimFunc schedule_kernel(const tir::PrimFunc& composed, const Target& target, int opt_level,
                              std::span<const ScheduleRule* const> rules) {
  if (opt_level == 0) return composed;
  if (is_in_order(composed)) {
    return tir::with_report(composed, [](tir::ScheduleReportNode& r) {
      r.sentence = "a loop of the program, in its order";
    });
  }
  // The rules may divide by the extents.
  if (computes_nothing(Schedule(composed))) {
    return tir::with_report(
        composed, [](tir::ScheduleReportNode& r) { r.sentence = "as composed: an extent is 0"; });
  }
  const Schedule s(prepared(composed));
  std::vector<std::string> declined;
  for (const ScheduleRule* rule : rules) {
    Choice choice = choose(*rule, s, target);
    if (auto* reason = std::get_if<Declined>(&choice)) {
      declined.push_back(std::string(rule->name) + ": " + reason->reason);
      continue;
    }
    auto& decision = std::get<Decision>(choice);
    return tir::with_report(ordered(decision.scheduled), [&](tir::ScheduleReportNode& r) {
      r.rule = rule->name;
      r.arithmetic = rule->arithmetic;
      r.parameters = parameters_text(decision.parameters);
      r.sentence = std::move(decision.report);
      r.declined = std::move(declined);
    });
  }
  refuse(composed, target, declined);
}

}  // namespace relay
