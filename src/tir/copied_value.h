// What a copy moves: an element, or 0 where a condition does not hold, as at the border of an image.
#pragma once

#include "tir/expr.h"
#include "tir/stmt.h"

namespace relay::tir {

struct CopiedValue {
  const LoadNode* from = nullptr;  // null: the value is no plain element
  PrimExpr inside;                 // null: it is never 0 for that reason
};
CopiedValue copied_value(const PrimExpr& value);

}  // namespace relay::tir
