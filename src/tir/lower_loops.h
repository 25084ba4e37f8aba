// From blocks to the loops that code generation takes.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Blocks become plain statements (a reduction's initialisation before its outermost loop), buffers
// one-dimensional, vectorised loops vector expressions, unrolled loops copies; index arithmetic is
// simplified. The result computes the same. Loops nest as deep as the schedule made them, so
// statements are walked by recursion.
PrimFunc lower_loops(const PrimFunc& f);

}  // namespace relay::tir
