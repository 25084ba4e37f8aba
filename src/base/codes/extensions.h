// Diagnostic codes E13xx: what comes from outside of Relay: rules of layouts, plug-ins.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode layout_rule{"E1301", "layout rule that does not fit its operator"};
inline constexpr DiagnosticCode plugin_file{"E1302", "plug-in cannot be loaded"};
inline constexpr DiagnosticCode plugin_version{"E1303", "plug-in of another version"};
inline constexpr DiagnosticCode plugin_failed{"E1304", "code of a plug-in failed"};
inline constexpr DiagnosticCode plugin_spec{"E1305", "plug-in adds something incomplete"};
inline constexpr DiagnosticCode tensor_text{"E1306", "tensor function that cannot be read"};

}  // namespace relay::codes
