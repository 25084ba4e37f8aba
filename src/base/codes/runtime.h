// Diagnostic codes E06xx: runtime, artifacts and run-time inputs.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode tensor_size{"E0601", "tensor size out of range"};
inline constexpr DiagnosticCode tensor_dlpack{"E0602", "unusable DLPack tensor"};
inline constexpr DiagnosticCode run_input{"E0603", "wrong input at run time"};
inline constexpr DiagnosticCode run_out_of_memory{"E0604", "out of memory"};
inline constexpr DiagnosticCode run_kernel_failed{"E0605", "a kernel reported an error"};
inline constexpr DiagnosticCode run_out_of_fuel{"E0606", "instruction limit reached"};
inline constexpr DiagnosticCode run_failed{"E0607", "the program failed"};
inline constexpr DiagnosticCode artifact_corrupt{"E0608", "damaged artifact"};
inline constexpr DiagnosticCode artifact_version{"E0609", "artifact of another version"};
inline constexpr DiagnosticCode artifact_cpu{"E0610", "artifact for another CPU"};
inline constexpr DiagnosticCode artifact_io{"E0611",
                                            "artifact cannot be read, or file not written"};
inline constexpr DiagnosticCode run_no_function{"E0612", "no such function"};
inline constexpr DiagnosticCode bytecode_invalid{"E0613", "invalid bytecode"};
inline constexpr DiagnosticCode artifact_changed{"E0614", "artifact overwritten while in use"};
inline constexpr DiagnosticCode run_time_limit{"E0615", "a run exceeds its time limit"};
inline constexpr DiagnosticCode run_assertion{"E0616", "an assertion does not hold"};
inline constexpr DiagnosticCode run_image{"E0617", "an image cannot be decoded"};
inline constexpr DiagnosticCode run_library{"E0618", "a library that a program needs is missing"};
inline constexpr DiagnosticCode run_no_device{"E0620", "a device that a program uses is missing"};
inline constexpr DiagnosticCode run_device_code{"E0621", "a device refuses a kernel"};
inline constexpr DiagnosticCode run_device_failed{"E0622", "a device fails"};
inline constexpr DiagnosticCode artifact_no_version{"E0623", "no such version in an artifact"};

}  // namespace relay::codes
