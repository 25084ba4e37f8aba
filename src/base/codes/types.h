// Diagnostic codes E02xx: types.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode type_mismatch{"E0201", "type mismatch"};
inline constexpr DiagnosticCode type_arity{"E0202", "wrong number of arguments"};
inline constexpr DiagnosticCode type_shape{"E0203", "shapes do not fit"};
inline constexpr DiagnosticCode type_dtype{"E0204", "dtype not allowed"};
inline constexpr DiagnosticCode type_rank{"E0205", "wrong rank"};
inline constexpr DiagnosticCode type_not_callable{"E0206", "not a function"};
inline constexpr DiagnosticCode type_not_tuple{"E0207", "not a tuple, or no such field"};
inline constexpr DiagnosticCode type_unsolved{"E0208", "type could not be inferred"};
inline constexpr DiagnosticCode type_infinite{"E0209", "infinite type"};
inline constexpr DiagnosticCode type_kind{"E0210", "wrong kind"};
inline constexpr DiagnosticCode type_match{"E0211",
                                           "match is not exhaustive or has a redundant clause"};
inline constexpr DiagnosticCode type_ill_formed{"E0212", "ill-formed program"};
inline constexpr DiagnosticCode type_overflow{"E0213", "dimension overflow"};

}  // namespace relay::codes
