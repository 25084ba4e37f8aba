// Diagnostic codes of kernels as others ask for them: E04xx while a program is compiled, E06xx when it is
// loaded.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode kernel_variant{"E0405", "no such variant of a kernel"};
inline constexpr DiagnosticCode kernel_missing{"E0619", "a kernel outside the program is missing"};

}  // namespace relay::codes
