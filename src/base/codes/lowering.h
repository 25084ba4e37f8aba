// Diagnostic codes E04xx: lowering and code generation.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode lower_unsupported{"E0401", "not supported by the compiler"};
inline constexpr DiagnosticCode schedule_illegal{"E0402", "illegal schedule step"};
inline constexpr DiagnosticCode codegen_target{"E0403", "unknown target or feature"};
inline constexpr DiagnosticCode codegen_failed{"E0404", "code generation failed"};
inline constexpr DiagnosticCode target_two_kinds{"E0406", "words of two kinds of target"};
inline constexpr DiagnosticCode target_kind_registration{"E0407",
                                                         "a kind of target cannot be registered"};
inline constexpr DiagnosticCode index_width{"E0408",
                                            "a tensor needs wider indices than the target has"};
inline constexpr DiagnosticCode device_conflict{"E0409", "a value on two devices"};
inline constexpr DiagnosticCode no_schedule_rule{"E0410", "no schedule rule takes the kernel"};

}  // namespace relay::codes
