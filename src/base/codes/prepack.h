// Diagnostic codes E14xx: inputs that are prepacked.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode prepack_unknown{"E1401",
                                                "prepacking of an input that is not there"};
inline constexpr DiagnosticCode prepack_type{"E1402", "an input that cannot be prepacked"};
inline constexpr DiagnosticCode prepack_called{"E1403",
                                               "prepacking of a function that others call"};

}  // namespace relay::codes
