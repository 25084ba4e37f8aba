// What passes may assume of the conditions around statements.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Whether an expression, such as a condition, has one value before a statement and at each place in
// it: nothing that it loads is stored to there.
bool holds_throughout(const PrimExpr& cond, const Stmt& body);

}  // namespace relay::tir
