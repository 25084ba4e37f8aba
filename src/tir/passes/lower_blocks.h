// From blocks to plain statements.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A block becomes its body, with the bindings in place of its iteration variables, under an If on
// its predicate. The initialisation of a reduction goes into loops of its own before the outermost
// loop of the reduction, under what the predicate says of the other loops. It stays with the body,
// under an If on the first iteration, where that is known to run and a condition is about both, or
// other statements stand in the loops. So a reduction over nothing gives its initial value.
//
//   before:  for i in range(4):                 after:  for i in range(4):
//              for k in range(8):                         s[i] = 0f
//                block s(i_1 = i, r: reduce = k):         for k in range(8):
//                  init: s[i_1] = 0f                        s[i] = s[i] + a[i, k]
//                  s[i_1] = s[i_1] + a[i_1, r]
//
// Legal for what schedules make: a reduction's loops run in order and start at its least values.
PrimFunc lower_blocks(const PrimFunc& f);

}  // namespace relay::tir
