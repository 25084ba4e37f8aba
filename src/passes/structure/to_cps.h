// ToCPS: continuation-passing style, in which nothing returns and every call is a tail call.
//
// before                                   after
//   def @f(%x: float32) -> float32 {         def @f(%x: float32) -> float32 {
//     add(@g(%x), 1f) }                        @f_cps(%x, fn (%r: float32) { %r }) }
//                                            def @f_cps[R](%x: float32,
//                                                %k: fn (float32) -> R, CPS=1) -> R {
//                                              @g_cps(%x, fn (%a: float32) {
//                                                let %b = add(%a, 1f); %k(%b) }) }
//
// A function gets one more parameter, the continuation, and calls it with its result; so do the
// functions inside it, and function types follow. What comes after a call is the continuation of
// the call; what comes after a branch that calls is a local function. Operators, constructors and
// branches without calls stay as they are; effects keep their order. The function itself stays
// under its name, in terms of the other (un_cps), when its type has no function in it: others may
// call it as before.
//
// Legal always. Loses a closure for each call. Functions that handle data types with functions in
// their definitions stay as they are, since these types cannot follow, and so do those that hand
// functions to such a function.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kToCPS;

// The module with every function in continuation-passing style beside it, where it can be.
Module to_cps(const Module& mod);

// A function of direct style that calls one in continuation-passing style,
// `fn [..., R](..., fn (B) -> R) -> R`, with the identity. No other type in it may depend on R.
Function un_cps(const Expr& callee);

}  // namespace relay
