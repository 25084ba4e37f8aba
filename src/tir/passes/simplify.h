// Index arithmetic and conditions in their simplest form.
#pragma once

#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay::tir {

// Each expression is simplified by what is known of the loops, conditions and dimensions around it
// (arith/analyzer.h). Loops of one iteration, loops of none or around nothing, decided conditions
// and checks that always hold vanish.
//
//   before:  for i in range(8):                        after:  for i in range(8):
//              for j in range(1):                                out[i] = a[i]
//                if i + j < 8: out[i + j] = a[(i * 4 + j) // 4]
//
// Always legal.
PrimFunc simplify(const PrimFunc& f);
// The same for a statement, given what is known of its variables.
Stmt simplify(const Stmt& s, Analyzer& analyzer);

}  // namespace relay::tir
