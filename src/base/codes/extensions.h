// Diagnostic codes E13xx: what comes from outside of Relay: rules of layouts, plug-ins.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode layout_rule{"E1301", "layout rule that does not fit its operator"};

}  // namespace relay::codes
