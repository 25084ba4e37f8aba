// ToANormalForm: names every intermediate value.
//
// before                                   after
//   %0 = exp(%x);                            let %x1 = exp(%x);
//   add(%0, %0)                              let %x2 = add(%x1, %x1);
//                                            %x2
//
// A shared expression is bound once, in the nearest scope common to its uses, in an order where
// operands come first and effects keep their order. Variables, constants, globals, operators,
// constructors and primitive functions are not bound. Legal always. Afterwards sharing carries no
// meaning: every operand is a leaf.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kToANormalForm;

// The conversion of one function.
Function to_a_normal_form(const Function& f);

}  // namespace relay
