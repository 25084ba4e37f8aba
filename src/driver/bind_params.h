// Parameters of @main that become constants.
#pragma once

#include <map>
#include <string>

#include "ir/module.h"
#include "runtime/core/tensor.h"

namespace relay {

// The module, typed, with these values for parameters of @main by name. A weight "fc.weight" is the parameter of that
// name, or else fc_weight, as front ends call its parameter. UserError E0702 for a name without a parameter and for two
// of one, E0508 for a value of another type than its parameter's.
Module bind_params(const Module& mod, const std::map<std::string, runtime::Tensor>& params);

}  // namespace relay
