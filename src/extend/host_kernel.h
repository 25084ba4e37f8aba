// Operators from outside whose kernels are functions that the process registers (runtime/external_kernels.h).
#pragma once

#include <string>

#include "ir/op.h"

namespace relay::extend {

// Programs that are compiled from now on call the host function of that name for each call of the operator whose arguments are
// different values of the program. Behind the buffers of the arguments and results it gets the dimensions of all of them, in
// the same order. The operator is fused with no other (FusionClass::Opaque).
void compute_by_host_function(const Op& op, const std::string& function);

}  // namespace relay::extend
