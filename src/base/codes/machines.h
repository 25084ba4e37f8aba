// Diagnostic codes E15xx: programs for other machines than the one that compiles.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode machine_no_emulator{"E1501", "no emulator of an architecture"};
inline constexpr DiagnosticCode machine_no_runtime{"E1502", "no runtime for an architecture"};
inline constexpr DiagnosticCode machine_old_emulator{"E1503",
                                                     "instructions that the emulator lacks"};
inline constexpr DiagnosticCode machine_not_emulated{"E1504", "not available under an emulator"};
inline constexpr DiagnosticCode machine_versions{"E1505",
                                                 "versions of a target that do not go together"};
inline constexpr DiagnosticCode machine_no_generator{"E1506",
                                                     "no code generator of an architecture"};
inline constexpr DiagnosticCode machine_other_generators{
    "E1507", "code generators that are not of this version"};

}  // namespace relay::codes
