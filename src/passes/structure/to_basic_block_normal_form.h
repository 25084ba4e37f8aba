// ToBasicBlockNormalForm: names what several blocks share, so that no block computes for another.
//
// before                                   after
//   %0 = exp(%x);                            let %x1 = exp(%x);
//   if (%c) { add(%0, 1f) }                  if (%c) { add(%x1, 1f) }
//   else { sqrt(%0) }                        else { sqrt(%x1) }
//
// A block is the body of a function, a branch of an If or the right side of a clause; Lets do not
// end it. An expression that is used in another block than its own is bound at the head of the
// innermost scope common to its uses. Where such an expression has effects, what has effects before
// it in that scope is bound too, so that they keep their order. Legal always. Loses nothing but a
// view across the Let for patterns. Inside a block sharing stays as it is.
#pragma once

#include "analysis/purity.h"
#include "passes/pass.h"

namespace relay {

extern const Pass kToBasicBlockNormalForm;

// The conversion of one function of the module that `purity` knows.
Function to_basic_block_normal_form(const Function& f, const Purity& purity);

}  // namespace relay
