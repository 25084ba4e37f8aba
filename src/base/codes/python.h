// Diagnostic codes E09xx: Python functions (relay.function), and Python code of operators (relay.register_op).
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode python_source{"E0901", "source of a Python function not found"};
inline constexpr DiagnosticCode python_unsupported{"E0902", "Python outside the subset"};
inline constexpr DiagnosticCode python_name{"E0903", "name without a value"};
inline constexpr DiagnosticCode python_mutation{"E0904", "mutation that escapes"};
inline constexpr DiagnosticCode python_value{"E0905", "values that do not fit"};
inline constexpr DiagnosticCode python_static{"E0906", "value not known when compiled"};
inline constexpr DiagnosticCode python_call{"E0907", "call that cannot be compiled"};
inline constexpr DiagnosticCode python_annotation{"E0908", "bad annotation or argument"};
inline constexpr DiagnosticCode python_limit{"E0909", "function exceeds a limit"};
inline constexpr DiagnosticCode python_recursion{"E0910", "recursion of unknown type"};
inline constexpr DiagnosticCode python_operator{"E0911", "code of an operator failed"};
inline constexpr DiagnosticCode python_operator_result{"E0912",
                                                       "code of an operator gave something else"};
inline constexpr DiagnosticCode python_argument{"E0913", "wrong argument of a function in Python"};
inline constexpr DiagnosticCode python_module{"E0914", "module of PyTorch that cannot be exported"};

}  // namespace relay::codes
