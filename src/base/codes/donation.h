// Diagnostic codes E12xx: inputs that are donated to outputs.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode donation_unknown{
    "E1201", "donation of an input or output that is not there"};
inline constexpr DiagnosticCode donation_twice{"E1202", "donated twice"};
inline constexpr DiagnosticCode donation_type{"E1203", "donation to an output of another type"};
inline constexpr DiagnosticCode donation_kept{"E1204", "a donated input could be kept"};
inline constexpr DiagnosticCode donation_memory{"E1205",
                                                "memory that cannot be donated at run time"};

}  // namespace relay::codes
