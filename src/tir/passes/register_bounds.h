// Bounds of the integers that a program's loops keep in registers.
//
//   r[0] = 3
//   while ...:
//     let v = r[0] %% 97        // 0 <= v <= 96
//     r[0] = v                  // 0 <= r[0] <= 96
//
// What a register holds is one of the values that are stored to it anywhere in the function, in any order. The bounds of
// these follow from those of other registers, which are sharpened a few times from no bounds at all, so that they hold
// after each time. Integers wrap: bounds with one end only are not kept.
#pragma once

#include "tir/arith/analyzer.h"

namespace relay::tir {

// Tells the analyzer the bounds of the int64 registers of a function and of the variables that it defines once.
void bind_registers(Analyzer& analyzer, const PrimFunc& f);

}  // namespace relay::tir
