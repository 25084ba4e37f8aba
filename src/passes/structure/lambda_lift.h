// LambdaLift: makes functions of the module of the functions inside them.
//
// before                                   after
//   def @main(%x: float32) {                 def @main(%x: float32) { @main_f(%x, 1f) }
//     let %f = fn (%y: float32) {            def @main_f(%x: float32, %y: float32) {
//       add(%x, %y) };                         add(%x, %y) }
//     %f(1f) }
//
//   def @main(%x: float32) {                 def @main(%x: float32) { @main_f(%x) }
//     fn (%y: float32) { add(%x, %y) } }     def @main_f(%x: float32, Closure=1) {
//                                              fn (%y: float32) { add(%x, %y) } }
//
// A function that is only called takes what it captures as parameters before its own, so that no
// closure is made; a recursive one calls itself as a function of the module. One that is used as a
// value becomes a function of the module that carries the attribute Closure: called with the
// captured values it gives the closure. If it is recursive it becomes both, and calls itself
// without a closure. A value that captures nothing is the function of the module itself. Type
// parameters in scope that the function mentions are captured like variables.
//
// Afterwards a function that is no kernel stands only at the top of the module or directly below a
// function with Closure. Legal always; what closures share with the outside is named first
// (to_basic_block_normal_form.h). Loses where a closure that was called at one place would have
// been inlined. Kernels and functions for other compilers stay where they are.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kLambdaLift;

}  // namespace relay
