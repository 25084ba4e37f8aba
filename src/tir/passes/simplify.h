// Index arithmetic and conditions in their simplest form.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Each expression is simplified by what is known of the loops, conditions and dimensions around it
// (arith/analyzer.h). Loops of one iteration, loops of none or around nothing, and decided
// conditions vanish.
//
//   before:  for i in range(8):                        after:  for i in range(8):
//              for j in range(1):                                out[i] = a[i]
//                if i + j < 8: out[i + j] = a[(i * 4 + j) // 4]
//
// Always legal.
PrimFunc simplify(const PrimFunc& f);

}  // namespace relay::tir
