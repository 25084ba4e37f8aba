// MergeCompilerRegions: regions of one external code generator that follow each other become one.
//
// before   end(exp(begin(end(nn.relu(begin(%x, "dnnl")), "dnnl"), "dnnl")), "dnnl")
// after    end(exp(nn.relu(begin(%x, "dnnl"))), "dnnl")
//
// Two are joined where one uses a result of the other in the same scope, unless a way from the one to the other leads through
// something else: the function of both would need its own result. The search for such a way stops after a number of regions,
// so that a pass over any program is linear; then they stay two.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kMergeCompilerRegions;

}  // namespace relay
