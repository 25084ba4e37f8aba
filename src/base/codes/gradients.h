// Diagnostic codes E10xx: gradients.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode grad_integers{"E1001", "gradient of a function without floats"};
inline constexpr DiagnosticCode grad_operator{"E1002", "operator without a gradient"};
inline constexpr DiagnosticCode grad_attributes{"E1003", "no gradient for these attributes"};
inline constexpr DiagnosticCode grad_random{"E1004",
                                            "gradient through random numbers without a key"};
inline constexpr DiagnosticCode grad_captured_write{"E1005",
                                                    "write to a captured reference in a gradient"};
inline constexpr DiagnosticCode grad_custom{"E1006", "custom gradient of the wrong type"};
inline constexpr DiagnosticCode grad_function{"E1007", "expression that cannot be differentiated"};

}  // namespace relay::codes
