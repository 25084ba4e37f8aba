// Inputs for running a compiled function: from files, or invented from the signature.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "driver/model.h"
#include "runtime/module.h"

namespace relay::cli {

// Checks what --input says of shapes and dtypes against the parameters of a compiled file. UserError E0510 for a name
// that does not exist, and for a rank, size or dtype that the parameter does not have.
void check_shapes(const runtime::Function& function, const ModelOptions& given);

// One tensor for each parameter: the .npy file given for its name, else random values (floats
// normal with deviation one, integers in [0, 100) or [0, 2) for bool) from `seed`, the same on
// every machine, of the shape in `shapes` where the parameter leaves sizes open. Throws UserError E0702 for a name that is no parameter and for parameters that no
// value can be invented for (`?` dimensions, data types).
std::vector<runtime::Tensor> make_inputs(
    const runtime::Function& function,
    const std::vector<std::pair<std::string, std::string>>& files, const ModelOptions& shapes,
    uint64_t seed);

// A short hash of dtype, shape and bytes, 16 hexadecimal digits.
std::string digest(const runtime::Tensor& tensor);

// "min -1.2, max 3.4, mean 0.1" of a numeric tensor, with the count of NaNs if there are any.
std::string summary(const runtime::Tensor& tensor);

}  // namespace relay::cli
