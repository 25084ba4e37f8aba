// Diagnostic codes E05xx: front ends.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode frontend_unsupported{"E0501", "operator that cannot be imported"};
inline constexpr DiagnosticCode frontend_damaged{"E0502", "damaged model file"};
inline constexpr DiagnosticCode frontend_version{"E0503", "model of an unsupported version"};
inline constexpr DiagnosticCode frontend_attribute{"E0504", "unsupported attribute or input"};
inline constexpr DiagnosticCode frontend_dynamic{"E0505", "shape that depends on data"};
inline constexpr DiagnosticCode frontend_limit{"E0506", "model exceeds a limit"};
inline constexpr DiagnosticCode frontend_graph{"E0507", "ill-formed model graph"};
inline constexpr DiagnosticCode frontend_tensor{"E0508", "bad tensor in a model"};
inline constexpr DiagnosticCode frontend_external_data{"E0509", "unusable external data"};
inline constexpr DiagnosticCode frontend_input{"E0510", "wrong option for a model input"};
inline constexpr DiagnosticCode frontend_file{"E0511", "model file cannot be read"};
inline constexpr DiagnosticCode frontend_ambiguous{"E0512", "file that two front ends claim"};
inline constexpr DiagnosticCode frontend_twice{"E0513", "front end registered twice"};
inline constexpr DiagnosticCode frontend_unknown{"E0514", "no front end for a file"};
inline constexpr DiagnosticCode frontend_option{"E0515", "wrong option of a front end"};

}  // namespace relay::codes
