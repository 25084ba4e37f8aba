// Inline: puts the bodies of functions of the module where they are called.
//
// before                                   after
//   def @f(%a: float32) { exp(%a) }          def @main(%x: float32) {
//   def @main(%x: float32) {                   let %a = add(%x, 1f); exp(%a) }
//     @f(add(%x, 1f)) }
//
// A function is put in place when it carries the attribute Inline, when it is called at one place
// and is no entry (entry_functions.h), or, from level 3 on, when it is small. One that no caller can
// name afterwards goes from the module. Arguments become Lets, so that they are computed once and
// in their order; ToGraphNormalForm makes operands of them. Where a function stays, or is put in
// several places, the copies get variables of their own. Legal for functions that do not call
// themselves, in whatever number of steps. Loses when a large function is marked Inline and called
// often: the program grows. Does not inline polymorphic functions, primitive functions, those for
// another compiler, closures.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kInline;

}  // namespace relay
