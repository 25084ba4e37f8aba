// DefuseOps: takes fused kernels apart again.
//
// before                                        after
//   (fn (%p0, %p1, Primitive=1) {                 nn.relu(nn.dense(%x, %w))
//     nn.relu(nn.dense(%p0, %p1)) })(%x, %w)
//
// The inverse of FuseOps: for passes that come after fusion and want to see operators. Legal
// always. Loses the fusion. Does not take apart kernels that are functions of the module or belong
// to another compiler.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDefuseOps;

}  // namespace relay
