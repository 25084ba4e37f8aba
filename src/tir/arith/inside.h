// Accesses that may be outside of their buffer.
#pragma once

#include <vector>

#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay::tir {

// The condition under which indices are within the buffer; null where it is known to hold.
PrimExpr inside_condition(Analyzer& analyzer, const std::vector<PrimExpr>& indices,
                          const Buffer& buffer);

}  // namespace relay::tir
