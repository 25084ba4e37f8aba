// Inputs for running a compiled function: from files, or invented from the signature.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "runtime/module.h"

namespace relay::cli {

// One tensor for each parameter: the .npy file given for its name, else random values (floats
// normal with deviation one, integers in [0, 100) or [0, 2) for bool) from `seed`, the same on
// every machine. Throws UserError E0702 for a name that is no parameter and for parameters that no
// value can be invented for (`?` dimensions, data types).
std::vector<runtime::Tensor> make_inputs(
    const runtime::Function& function,
    const std::vector<std::pair<std::string, std::string>>& files, uint64_t seed);

// A short hash of dtype, shape and bytes, 16 hexadecimal digits.
std::string digest(const runtime::Tensor& tensor);

// "min -1.2, max 3.4, mean 0.1" of a numeric tensor, with the count of NaNs if there are any.
std::string summary(const runtime::Tensor& tensor);

}  // namespace relay::cli
