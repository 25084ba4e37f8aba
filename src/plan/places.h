// Places for values whose size only a run tells.
//
//   %a = kernel(%x)   (n, 768)      place 0 = (n, 768), place 1 = (n, 3072)
//   %b = kernel(%a)   (n, 3072)     %c is in place 0: nothing reads %a any more, and it is as large
//   %c = kernel(%b)   (n, 768)      working memory: 15360*n bytes
//
// A value shares the place of others that are not alive with it where its size is known to be at most
// that of the place, as terms. So the working memory of a function is known before its sizes are: a
// sum over its places, which a run with these sizes takes to the byte when every step is run.
//
// Legal in functions that only callers of the program call, outside of loops: there is one frame, and
// its sizes do not change. Values that leave a function, or whose size a step reads, are objects.
#pragma once

#include <string>

#include "ir/type_params.h"
#include "plan/plan.h"

namespace relay::plan {

// Gives values places that others are in at other times. Each value with an open size is in a place
// of its own before.
void share_places(PlanFunction& f, const std::vector<ProgramKernel>& kernels);

// Whether a tensor of the one type takes at most the bytes of the other, whatever the sizes are.
bool is_at_most(const TensorTypeNode& a, const TensorTypeNode& b);

// The bytes of the function's working memory: arena and places. "64 + 15360*n + align64(4*m)", where
// align64 rounds up to a multiple of 64.
std::string working_memory(const PlanFunction& f);
// Its value for sizes of all variables.
int64_t working_memory(const PlanFunction& f, const TypeParams& sizes);

}  // namespace relay::plan
