// FakeQuantizationToInteger: replaces operators on dequantised numbers by operators on the integers.
//
// before                                                after
//   %x = qnn.dequantize(%a, %sa, %za);
//   %w = qnn.dequantize(%b, %sb, %zb);
//   nn.conv2d(%x, %w)                                   %s = qnn.conv2d(%a, %b, %za, %zb, %sa, %sb);
//                                                       qnn.dequantize(%s, %sa * %sb, 0)
//   transpose(qnn.dequantize(%a, %s, %z))               qnn.dequantize(transpose(%a), %s, %z)
//   mean(qnn.dequantize(%a, 0.5f, 0), axis=[1])         qnn.dequantize(sum(%a as int32, axis=[1]), 0.5f / n, 0)
//   qnn.quantize(concatenate((                          concatenate((qnn.quantize(qnn.dequantize(%a, %sa, %za), %s, %z),
//     qnn.dequantize(%a, %sa, %za),                                  %b))
//     qnn.dequantize(%b, %s, %z))), %s, %z)
//   qnn.quantize(sigmoid(qnn.dequantize(%a, %s, %z)),   qnn.sigmoid(%a, %s, %z, %so, %zo)
//                %so, %zo)
//   qnn.quantize(qnn.dequantize(%a, %s, %z), %s, %z)    %a
//
// The row of an operator has its form on integers: the column `quantized`, or `moves` for operators whose result consists of
// elements of their arguments, which apply to the integers if all arguments have the same scale and zero point. Exact forms
// (sums of products and sums in 32 bits, comparisons, limits) need only their arguments. Forms that round need a result that
// qnn.quantize reads; they round where qnn.quantize does.
//
// Legal always: results differ from those of floats by the rounding of the floats' sums, and by one quantum of the result
// where a product is rounded (qnn.mul rounds halves up). Operators without a form stay in floats, fused with their
// neighbours; so do sums of two tensors with different scales, which floats round once. Of data with a scale for each channel
// only transposes and weights are rewritten. A rewritten operand of qnn.quantize with other readers is computed twice.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFakeQuantizationToInteger;

// What the pass makes of one call whose arguments are as it stands there; null where it leaves the call as it is.
Expr in_integers(const CallNode& c);

}  // namespace relay
