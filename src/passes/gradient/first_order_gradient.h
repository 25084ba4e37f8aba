// FirstOrderGradient: functions of plain dataflow become their gradients, plain dataflow again.
//
// before                                   after
//   def @main(%x: float32) {                 def @main(%x: float32) {
//     exp(%x) }                                %0 = exp(%x);
//                                              (%0, (multiply(ones(...), %0),)) }
//
// A function gives its value and a tuple with the gradient of each parameter: of the sum of all
// floats of the value. Values of the forward computation are shared; what nothing depends on costs
// nothing. A parameter without floats has the empty tuple. Legal for functions that are calls of
// operators, tuples and their fields, with or without names: others are refused (E1007) and want the
// mode higher_order of `relay.transform.gradient`. Does not touch kernels.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFirstOrderGradient;

}  // namespace relay
