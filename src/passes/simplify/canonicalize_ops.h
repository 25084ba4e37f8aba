// CanonicalizeOps: operators that are written in others become these.
//
// before                                                after
//   qnn.dequantize(%q, 0.5f, 3)                         cast(cast(%q, int32) - 3, float32) * 0.5f
//
// Legal always: it is what the operator means (OpInfo::definition). Throws UserError E0806 for known
// scales and zero points that are out of range.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kCanonicalizeOps;

}  // namespace relay
