// Whether a kernel may end the run that it is part of.
#pragma once

#include "ir/expr.h"

namespace relay {

// Whether the kernel that computes an operator's call, or the one for the sizes of its result, fails on
// some arguments: found in its statements. What the column `may_end_run` says of Relay's own operators.
// The operator has a compute rule; sizes of the arguments may be known or not.
bool kernel_may_end_run(const CallNode& call);

}  // namespace relay
