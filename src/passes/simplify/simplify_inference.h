// SimplifyInference: replaces operators that only training needs by what they are in inference.
//
// before                                              after
//   nn.batch_norm(%x, %g, %b, %m, %v).0                 %s = %g / sqrt(%v + eps);
//                                                       %x * expand(%s) + expand(%b - %m * %s)
//   nn.dropout(%x).0                                    %x
//   stop_gradient(%x)                                   %x
//   annotation.derivative_of(%x, %y)                    %x
//
// Legal always: gradients are taken before, and programs are compiled for inference; the moving statistics that batch_norm returns
// are its arguments. With constant statistics FoldConstant leaves one multiply and one add, which
// FoldScaleAxis moves into the weights. Does not touch layer, instance and group norm: these
// depend on the data and have kernels of their own.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kSimplifyInference;

}  // namespace relay
