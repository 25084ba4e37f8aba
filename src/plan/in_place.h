// Puts results where operands are that nothing reads any more.
//
//   %b = kernel(%a)     %b takes the memory of %a when the kernel reads each element of %a just
//                       before it writes the one at the same place of %b, and %a is dead afterwards
//
// Legal between buffers of equal size, for an operand that fills memory of its own (by then perhaps
// that of another operand).
#pragma once

#include "plan/plan.h"

namespace relay::plan {

// Lifetimes are found; those of the memory that is taken go on to the end of the result's.
void reuse_operands(PlanFunction& f, const std::vector<ProgramKernel>& kernels);

}  // namespace relay::plan
