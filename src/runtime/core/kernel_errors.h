// What an error of a kernel (core/kernel_abi.h) is for users.
#pragma once

#include <cstdint>

#include "base/diagnostic.h"

namespace relay::runtime {

// "an integer is divided by zero"; any number is allowed.
const char* kernel_error_text(int64_t error);
// E0604, E0605, E0617 or E0618.
const DiagnosticCode& kernel_error_code(int64_t error);
// What to do about it; empty where there is nothing to say.
const char* kernel_error_help(int64_t error);

}  // namespace relay::runtime
