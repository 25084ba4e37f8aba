// Which results are written straight into the buffers that the caller has allocated for them.
#pragma once

#include <unordered_map>

#include "analysis/placement.h"
#include "plan/joins.h"

namespace relay::plan {

// Whether the function writes its results into outputs: they are static tensors, or one tuple of
// such, made by this function's own kernels. A function that ends in a call or a branch returns that
// value, and so does one whose tuple has tuples inside: outputs are a flat list. A scalar is returned
// as a value, which takes no memory.
bool writes_outputs(const FunctionNode& f);

// Whether its caller can allocate its results.
bool results_on_host(const FunctionNode& f, const Placement& where);

// The variables of kernels' results that are a function's results, each with the number of its
// output. The function writes outputs.
std::unordered_map<const Node*, int32_t> claim_outputs(const FunctionNode& f, const VarSet& escapes,
                                                       const Joins& joins);

bool is_static_tensor(const Type& t);

}  // namespace relay::plan
