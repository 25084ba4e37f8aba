// Diagnostic codes E08xx: operators: their attributes, and rows from outside.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode op_bad_attribute{"E0801", "operator attribute out of range"};
inline constexpr DiagnosticCode op_bad_name{"E0802", "bad name of an operator"};
inline constexpr DiagnosticCode op_name_taken{"E0803", "operator registered already"};
inline constexpr DiagnosticCode op_incomplete{"E0804", "operator with empty columns"};
inline constexpr DiagnosticCode op_attribute_list{"E0805", "bad list of attributes"};
inline constexpr DiagnosticCode op_quantization{"E0806", "quantisation out of range"};

}  // namespace relay::codes
