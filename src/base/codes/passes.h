// Diagnostic codes E03xx: passes, and the limits of a compilation.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode pass_unknown{"E0301", "unknown pass"};
inline constexpr DiagnosticCode pass_broke_invariant{"E0302", "a pass broke an invariant"};
inline constexpr DiagnosticCode pass_cancelled{"E0303", "compilation was cancelled"};
inline constexpr DiagnosticCode compile_time_limit{"E0304", "compilation exceeds its time limit"};
inline constexpr DiagnosticCode compile_memory_limit{"E0305",
                                                     "compilation exceeds its memory limit"};
inline constexpr DiagnosticCode pass_needed{"E0306", "a pass that cannot be skipped"};
inline constexpr DiagnosticCode pass_form{"E0311", "a pass and the form of a program do not fit"};
inline constexpr DiagnosticCode pass_registration{"E0312", "a pass cannot be added"};
inline constexpr DiagnosticCode pass_option{"E0313", "unknown or wrong option of a pass"};
inline constexpr DiagnosticCode pass_python{"E0314", "a pass or instrument in Python failed"};
inline constexpr DiagnosticCode pass_result{"E0315", "a pass gave something that is no program"};
inline constexpr DiagnosticCode pattern_refused{"E0316", "pattern that cannot be matched"};
inline constexpr DiagnosticCode pattern_endless{"E0317", "rewriting that does not end"};
inline constexpr DiagnosticCode external_codegen{
    "E0318", "an external code generator and the program do not fit"};

}  // namespace relay::codes
