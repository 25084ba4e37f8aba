// PrepackInputs: computes once for many runs what follows from prepacked inputs alone (ir/prepack.h).
//
// before                                            after
//   def @main(%x, %w, prepack=["w"]) {                def @main(%x, %prepacked) {
//     nn.contrib_dense_pack(%x,                         nn.contrib_dense_pack(%x, %prepacked)
//         layout_transform(%w, NC -> NC32n))          }
//   }                                                 def @main.prepack(%w) {
//                                                       (layout_transform(%w, NC -> NC32n),)
//                                                     }
//
// A caller runs @main.prepack when its inputs change, and gives @main the results. An input that @main
// reads as it is as well stays one of its parameters. What is only seen in another shape is not worth a
// value, and neither is what is much larger than the input: the limits are FoldConstant's.
// Legal for pure operators on tensors of static shapes. Without the attribute it changes nothing.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kPrepackInputs;

}  // namespace relay
