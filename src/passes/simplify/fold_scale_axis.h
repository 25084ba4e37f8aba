// FoldScaleAxis: moves a per-channel scale into the weights of the convolution or dense before it.
//
// before                                               after
//   multiply(nn.conv2d(%x, %w), %s)                      nn.conv2d(%x, %w * s')
//   multiply(add(nn.conv2d(%x, %w), %b), %s)             add(nn.conv2d(%x, %w * s'), %b * %s)
//   multiply(nn.dense(%x, %w), %s)                       nn.dense(%x, %w * s')   (and matmul)
//
// %s varies along the output channels only. Legal when the weight, the scale and the bias are
// constants (FoldConstant then computes the products) and the unscaled value has no other use. The
// result differs from the original by rounding only.
// Loses when the scale is not a constant: the product with the weights would be made at every run.
// Does not move scales that come before the convolution.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFoldScaleAxis;

}  // namespace relay
