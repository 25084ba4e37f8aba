// ToGraphNormalForm: replaces names by sharing.
//
// before                                   after
//   let %a = exp(%x);                        %0 = exp(%x);
//   let %b = add(%a, %a);                    nn.relu(add(%0, %0))
//   nn.relu(%b)
//
// The passes that group operators (FuseOps, ConvertLayout) look along operands; a Let is a wall to
// them. Legal for values without effects (purity.h). A value that is needed in one branch only is
// then computed in that branch only. A Let stays when its value has effects or is a function, and
// when all uses are inside a function that the Let is not in: the value would be computed at every
// call. An unused Let stays as well (DeadCodeElimination).
// Never loses. The inverse of ToANormalForm, but for what stays.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kToGraphNormalForm;

}  // namespace relay
