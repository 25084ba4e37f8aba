// Inputs that callers give up, around a run.
#pragma once

#include <span>

#include "runtime/core/value.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {

// Whether some byte belongs to both tensors.
bool overlap(const Tensor& a, const Tensor& b);

// The donation of the parameter or result of that number; null when there is none.
const Donation* donation_of_param(const Function& f, size_t param);
const Donation* donation_of_result(const Function& f, size_t output);

// Throws UserError E1205 for donated inputs that cannot be written to, or whose memory is another
// input's too. The inputs fit the function's parameters.
void check_donated(const Function& f, std::span<const Value> inputs);

// The result of a run with the donated inputs in place of the results that they are donated to: what
// is not there already is copied. A result that is in the memory of such an input by chance gets
// memory of its own before.
Value in_donated_memory(const Function& f, std::span<const Value> inputs, Value result);

}  // namespace relay::runtime
