// FakeQuantizationToInteger: what a model computes on numbers that stand for integers is computed on
// the integers.
//
// before                                                after
//   %x = qnn.dequantize(%a, %sa, %za);
//   %w = qnn.dequantize(%b, %sb, %zb);
//   nn.conv2d(%x, %w)                                   %s = qnn.conv2d(%a, %b, %za, %zb, %sa, %sb);
//                                                       qnn.dequantize(%s, %sa * %sb, 0)
//   transpose(qnn.dequantize(%a, %s, %z))               qnn.dequantize(transpose(%a), %s, %z)
//   qnn.quantize(qnn.dequantize(%a, %s, %z), %s, %z)    %a
//
// Sums of products of 8-bit numbers (conv2d, dense, matmul, batch_matmul) become those of the
// quantised dialect, which are exact; what moves, joins or pads elements, and max pools, move to the
// other side of the dequantisation. All else stays in floats: fused with the sum before it, it costs
// nothing. Results differ from those of floats by the rounding of the floats' sums. Does not touch
// data with a scale for each channel, but for weights of output channels.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFakeQuantizationToInteger;

// What the pass makes of one call whose arguments are as it stands there; null where it leaves the call as it is.
Expr in_integers(const CallNode& c);

}  // namespace relay
