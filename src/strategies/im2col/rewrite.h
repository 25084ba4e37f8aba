// Im2Col: computes convolutions that have more weights than pixels by products with the weights as they are in memory.
//
// before                                         after
//   nn.conv2d(%x, %w)                              %0 = the windows of %x, a row for each weight of a result:
//     few pixels, %w no constant                        [C*KH*KW, N*H*W];
//                                                  transpose(nn.matmul(reshape(%w, [O, C*KH*KW]), %0))
//   transpose(nn.conv2d(%x, %g), [1, 0, 2, 3])     %0 = the windows of %x, a row for each result:
//     the gradient of such a weight                     [C*KH*KW, N*H*W];
//                                                  nn.dense(reshape(%g, [O, N*H*W]), %0)
// and likewise over one and three axes.
//
// Kernels of convolutions read weights in panels of channels. Those of a model that is trained are moved there at each step,
// and their gradients back: in the last layers of a network that classifies images, with 512 channels and 4x4 pixels, that is
// twice the memory of the weights, for as little work as the pixels have. The windows of so few pixels are less than the
// weights, although each pixel is in many of them. On a Sapphire Rapids, four images of 4x4x512 take 0.59 of the time forward
// and 0.42 for the gradient of the weight.
// Legal for floating-point numbers of at least 32 bits, known sizes and one group, with channels first; the sums have another
// order.
// Loses the copy of the windows: so windows are asked to be a quarter of the weight, or to be no longer than its gradient has
// channels. Weights that stay in L2 are moved quickly, and constants once and for all: both are left alone.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kIm2Col;

}  // namespace relay
