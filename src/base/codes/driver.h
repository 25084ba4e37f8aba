// Diagnostic codes E07xx: driver, options and command line.
//
// A code never changes its meaning; each is made by a test (tests/python/test_diagnostic_codes.py).
#pragma once

#include "base/diagnostic.h"

namespace relay::codes {

inline constexpr DiagnosticCode driver_file{"E0701", "file cannot be read"};
inline constexpr DiagnosticCode driver_option{"E0702", "bad option"};
inline constexpr DiagnosticCode driver_output_exists{"E0703", "output file exists"};
inline constexpr DiagnosticCode driver_usage{"E0704", "wrong usage of the command line"};
inline constexpr DiagnosticCode driver_output{"E0705", "output cannot be written"};
inline constexpr DiagnosticCode driver_calibration{"E0706", "nothing to calibrate with"};
inline constexpr DiagnosticCode driver_specialised{"E0707",
                                                   "inputs that a program was not compiled for"};

}  // namespace relay::codes
