// What callers call the inputs and outputs of a function.
#pragma once

#include <string>
#include <vector>

#include "ir/expr.h"

namespace relay {

// The i-th tensor of a function's result: by attr::kOutputNames, or "output" and the number.
std::string result_name(const FunctionNode& f, size_t i);
// A parameter: by attr::kInputNames, or as it is in the program.
std::string parameter_name(const FunctionNode& f, const VarNode& param);
// Of all parameters, and of all tensors of the result, which must have a type.
std::vector<std::string> parameter_names(const FunctionNode& f);
std::vector<std::string> result_names(const FunctionNode& f);

}  // namespace relay
