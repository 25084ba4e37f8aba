// One operator call for all lanes of a batch.
#pragma once

#include "ir/op.h"

namespace relay {

// The call in all lanes, which are along the first axis of each tensor of the result: by the
// operator's own rule, by broadcasting, or by the roles of what it sums over. Null where there is none
// of these.
Expr batched_call(const BatchingContext& ctx);

}  // namespace relay
