// Values that are other values under another shape.
#pragma once

#include "ir/expr.h"

namespace relay {

// What the operators that only rename a shape (OpInfo::reshape_only) were applied to: the same
// elements in the same order. The expression itself when it is not a call of one.
const ExprNode* behind_views(const ExprNode* e);

}  // namespace relay
