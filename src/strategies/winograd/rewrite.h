// WinogradConvolution: computes 3x3 convolutions with a quarter of the products.
//
// before (channels last)                      after
//   nn.conv2d(%x, const[O, I, 3, 3])            %0 = ...winograd_weight_transform(const);
//                                               ...winograd_without_weight_transform(%x, %0)
//
// F(4x4, 3x3): tiles of 4x4 results from 36 products for each pair of channels instead of 144.
// (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015.) The transforms cost
// additions that do not depend on the other side's channels, and the transformed weights are four
// times as many: so it pays with many channels on both sides and enough tiles.
// Weights that only a run tells - those of a model that is trained, and of its gradients - are transformed at each run, which
// asks for more tiles; AlterOpLayout packs them first. A weight is transformed once for all convolutions that use it.
// Legal for float32 weights, stride 1, no dilation, one group; the batch, the height and the width may be open: whether it pays
// is then asked of the sizes that the program was traced with, or else of those that images of so many channels
// often have. Constants that are not finite stay, and
// weights that only a run tells are taken to be finite, as inputs are.
// Results differ by the rounding of the transforms, about 1e-5 of their size.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kWinogradConvolution;

}  // namespace relay
