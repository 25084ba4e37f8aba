// HoistLayouts: rearranges, and widens, what stays the same in all iterations of a loop once, before the loop.
//
// before                                          after
//   let %loop = fn (%t, %h, %w) {                   let %loop = fn (%t, %h, %w, %moved) {
//     if (less(%t, 8i64)) {                           if (less(%t, 8i64)) {
//       %loop(add(%t, 1i64),                            %loop(add(%t, 1i64),
//             nn.contrib_dense_pack(%h,                       nn.contrib_dense_pack(%h, %moved),
//                 layout_transform(%w, NC -> NC32n)),
//             %w)                                             %w, %moved)
//     } else { %h }                                   } else { %h }
//   };                                              };
//   %loop(0i64, %x, %weight)                        %loop(0i64, %x, %weight,
//                                                         layout_transform(%weight, NC -> NC32n))
//
// Legal for pure operators that cannot end a run, on invariant parameters (analysis/loop_invariants.h) and constants.
// Takes operators that move elements (FusionClass::Injective), and casts of 16-bit floats to float32, whose results have known
// sizes, are not small and not much larger than their operands: other arithmetic may be cheaper where it is used. Views stay.
// Loses where the loop has no iteration that needs the value. A loop that no longer reads the parameter still has it.
#pragma once

#include <cstdint>

#include "passes/pass.h"

namespace relay {

// Whether the pass takes a value of so many bytes out of a loop, made of `from` bytes by an operator that it takes: one that
// is not small and not much larger than its operands.
bool is_hoisted(int64_t bytes, int64_t from);

extern const Pass kHoistLayouts;

}  // namespace relay
