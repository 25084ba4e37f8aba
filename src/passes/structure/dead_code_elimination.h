// DeadCodeElimination: drops what is computed and never used.
//
// before                                   after
//   let %a = exp(%x);                        let %b = ref_write(%r, %x);
//   let %b = ref_write(%r, %x);              %y
//   (%y, %a).0
//
// A Let goes when its variable is not used by anything that stays, so that a chain of unused values
// and a local function that only calls itself go as a whole. A field of a known tuple, as
// an expression or by the name of a Let, is taken directly; a field of a named tuple only when it
// is a leaf, because anything else would be computed in another place. Legal when what goes may be
// left out (purity.h): it writes nothing, draws nothing, cannot fail and ends. Never loses. Does
// not drop functions of the module (RemoveUnusedFunctions) or parameters.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDeadCodeElimination;

}  // namespace relay
