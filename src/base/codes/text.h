// Diagnostic codes E01xx: text.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode text_unexpected_token{"E0101", "unexpected token"};
inline constexpr DiagnosticCode text_bad_literal{"E0102", "bad literal"};
inline constexpr DiagnosticCode text_unbound_name{"E0103", "unbound name"};
inline constexpr DiagnosticCode text_duplicate_name{"E0104", "duplicate definition"};
inline constexpr DiagnosticCode text_unknown_operator{"E0105", "unknown operator"};
inline constexpr DiagnosticCode text_bad_attribute{"E0106", "bad attribute"};
inline constexpr DiagnosticCode text_bad_version{"E0107", "missing or unsupported version header"};
inline constexpr DiagnosticCode text_bad_metadata{"E0108", "bad metadata section"};

}  // namespace relay::codes
