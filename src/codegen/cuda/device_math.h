// Mathematical functions for devices, which have no C library: functions of the module that kernels call.
#pragma once

#include <llvm/IR/Module.h>

#include <string_view>

#include "target/target.h"

namespace relay::codegen {

// The function of that many float32 or float64, made where the module has none; null where there is no form of it. These are
// what has no inline form (codegen/llvm/vector_math.h), and what inline forms leave to a library. Those of float32 but fmod are
// computed in float64. Greatest errors in float64 in units in the last place, over sampled arguments: asin, atan, atan2, log2,
// log10 and erf 2, sin, cos and acos 3, tan, sinh, cosh, asinh, acosh and atanh 4, pow 8; fmod is exact, and takes denormal
// divisors for zero.
llvm::Function* device_function(llvm::Module& module, const Target& target, std::string_view name,
                                llvm::Type* number, size_t count);

}  // namespace relay::codegen
