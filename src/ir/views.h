// Values that are other values under another shape.
#pragma once

#include "ir/expr.h"
#include "ir/op.h"

namespace relay {

// What the operators that only rename a shape (OpInfo::reshape_only) were applied to: the same
// elements in the same order. The expression itself when it is not a call of one.
const ExprNode* behind_views(const ExprNode* e);

// Whether a call of the operator is nothing but another shape of its one argument, so that passes may join
// several or leave one out: not where it is there to keep kernels apart.
bool only_reshapes(const OpInfo& row);

}  // namespace relay
