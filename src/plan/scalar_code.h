// Kernels on scalars as steps: what the signature's scalar form says, written into a plan.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "lower/kernel_signature.h"
#include "plan/step_writer.h"

namespace relay::plan {

// The bits of a constant of a scalar's dtype, as an integer register holds them.
int64_t scalar_bits(const Tensor& constant);

// Writes the steps of the form for parameters in the values `inputs`; returns the result's.
// `string` gives the number of a string of the program.
ValueId write_scalar_form(const ScalarForm& form, StepWriter& to, std::span<const ValueId> inputs,
                          const std::function<int32_t(const std::string&)>& string);

}  // namespace relay::plan
