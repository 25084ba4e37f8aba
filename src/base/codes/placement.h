// Diagnostic codes E16xx: inputs and results of functions on devices.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode placement_unknown{
    "E1601", "placement of an input or result that is not there"};
inline constexpr DiagnosticCode placement_type{"E1602",
                                               "an input or result that cannot be on a device"};

}  // namespace relay::codes
