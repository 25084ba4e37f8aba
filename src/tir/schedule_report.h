// What was decided about a kernel, for people and tools.
#pragma once

#include <string>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

// Nothing is computed or chosen by a report, and kernels that differ in it alone are equal.
struct ScheduleReportNode : Node {
  static constexpr int kKind = OtherKind::ScheduleReport;
  std::string rule;        // the name of the rule that took the kernel
  double arithmetic = 1;   // of the rule: operations executed for each that the operators define
  std::string parameters;  // of the rule, as it reads them: "lanes=8, threads=True"
  std::string sentence;    // what it did
  std::vector<std::string> declined;  // "rule: reason" of those that were asked before
  std::string version;                // the sizes of one version of several: "n = 128"
  std::vector<std::string> copies;    // of a loop of the program: the places of stores that copy
  ScheduleReportNode() : Node(static_info()) {}
  static const NodeInfo& static_info();
};

// What the function's report says; an empty one where it has none.
const ScheduleReportNode& report_of(const PrimFuncNode& f);

// The function with a report changed by `change`.
template <class Change>
PrimFunc with_report(const PrimFunc& f, Change&& change) {
  return modified(*f, [&](PrimFuncNode& n) {
    n.report = modified(report_of(*f), std::forward<Change>(change));
  });
}

}  // namespace relay::tir
