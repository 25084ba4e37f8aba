// Arguments from outside, checked against a function's type.
#pragma once

#include <span>
#include <string>

#include "ir/expr.h"
#include "runtime/core/value.h"

namespace relay {

// Throws UserError E0603, one diagnostic for each argument that does not fit its parameter: number,
// kinds, dtypes, ranks, sizes, and named dimensions alike wherever they occur. Fields of data
// types, and parameters without a type, are taken as they are.
void check_arguments(const FunctionNode& f, const std::string& name,
                     std::span<const runtime::Value> args);

}  // namespace relay
