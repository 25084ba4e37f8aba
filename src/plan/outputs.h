// Which results are written straight into the buffers that the caller has allocated for them.
#pragma once

#include <unordered_map>
#include <vector>

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

// By the variable of a kernel's result: the output that each of its tensors is, kNoOutput for one that is none. A tensor has
// one entry, a tuple as many as fields.
using Claims = std::unordered_map<const Node*, std::vector<int32_t>>;
inline constexpr int32_t kNoOutput = -1;

// The variables of kernels' results that are a function's results, wholly or by a field. The function writes outputs. What
// is returned twice is written into its first output.
Claims claim_outputs(const FunctionNode& f, const VarSet& escapes, const Joins& joins);

bool is_static_tensor(const Type& t);

}  // namespace relay::plan
