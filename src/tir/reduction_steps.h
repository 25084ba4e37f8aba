// What a reduction does before its first element and at each one.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

struct ReductionSteps {
  Stmt init, step;
};

// `to` is the element, a Load, that holds the result; `value` the one beside it that holds the least or greatest value
// so far, for the combiners of pairs.
ReductionSteps reduction_steps(const ReduceNode& r, const PrimExpr& to, const PrimExpr& value = {});

}  // namespace relay::tir
