// Mathematical functions inline, on scalars and vectors of float32, and some of float64.
#pragma once

#include <llvm/IR/IRBuilder.h>

#include <optional>
#include <string_view>
#include <vector>

#include "target/target.h"

namespace relay::codegen {

// The function applied lane by lane, or null when there is no inline form (the caller then calls
// libm for each lane). Inline forms, with the greatest error measured over sampled inputs in units
// in the last place: exp 1.2, log 1, tanh 6 (5.2 with fused multiply-adds; never beyond 1),
// sigmoid 3, erf 2, sin 1.5, cos 1.5, tan 3, cosh 2, sinh 3, asinh 3, acosh 3, atanh 3.
// In float64: exp 1, log 1, tanh 2, sigmoid 2.
// The approximation fast_exp is within 4e-6 of its size; fast_tanh and fast_erf are tanh and erf.
// NaN gives NaN; infinities give the limits; results that would be denormal may be flushed to zero.
// A lane's result does not depend on the number of lanes.
llvm::Value* emit_math(llvm::IRBuilder<>& b, const Target& target, std::string_view name,
                       const std::vector<llvm::Value*>& args);

// Of float64 arguments.
llvm::Value* emit_double_math(llvm::IRBuilder<>& b, std::string_view name,
                              const std::vector<llvm::Value*>& args);

// The size of the argument up to which the inline form holds; nullopt when it holds for all.
std::optional<double> inline_limit(std::string_view name);

}  // namespace relay::codegen
