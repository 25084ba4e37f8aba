// Kernels on scalars as arithmetic on registers.
//
// The test of a loop and the counter of a recursion are operators on rank-0 tensors. A kernel call
// for each would cost more than all the rest of the program, so a kernel that reads and writes
// scalars only, by arithmetic that registers have, has a form of a few instructions. What an
// operator computes is read off its composed kernel: no operator is named here.
#pragma once

#include <optional>

#include "ir/expr.h"
#include "lower/kernel_signature.h"
#include "tir/stmt.h"

namespace relay {

// Nothing when a parameter or the result is not a scalar, when the composed kernel of the function
// computes what registers have no operation for, or when it is long enough to be called.
std::optional<ScalarForm> scalar_form(const FunctionNode& primitive, const tir::PrimFunc& kernel);

}  // namespace relay
