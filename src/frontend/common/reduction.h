// Reductions over axes that are known, or that a run tells.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// Max and Min of bools are any and all.
enum class Reduction { Sum, Mean, Max, Min, Prod, L1, L2, SumSquare, LogSum, LogSumExp };

// The axes are sorted, in [0, rank).
Expr reduce_axes(const Builder& build, Reduction kind, const Expr& x,
                 const std::vector<int64_t>& axes, bool keepdims);

// The axes are moved behind the others; what remains and what is reduced are an axis each. How many there are matters
// only where they are removed: then the length of the vector is known. An empty one means no axes or, with
// `empty_is_all`, all of them.
Expr reduce_at_run_time(const Builder& build, Reduction kind, const Expr& x, const Expr& axes,
                        bool keepdims, bool empty_is_all);

}  // namespace relay::frontend
