// Diagnostic codes E11xx: batching.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode batch_axis{"E1101", "axis of a batch that does not exist"};
inline constexpr DiagnosticCode batch_sizes{"E1102", "numbers of lanes that differ"};
inline constexpr DiagnosticCode batch_nothing{"E1103", "nothing is batched"};
inline constexpr DiagnosticCode batch_lane_by_lane{"E1104", "batch that is computed lane by lane"};
inline constexpr DiagnosticCode batch_ragged{"E1105", "results of lanes that cannot be stacked"};
inline constexpr DiagnosticCode batch_function{"E1106", "function that cannot be batched"};
inline constexpr DiagnosticCode batch_node_by_node{"E1107",
                                                   "recursion that is computed node by node"};

}  // namespace relay::codes
