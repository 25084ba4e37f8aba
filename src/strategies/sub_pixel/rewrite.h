// SubPixelConvolution: computes a transposed convolution by convolutions, whose results are then
// spread out.
//
// before (channels last, stride s)               after
//   nn.conv2d_transpose(%x, const[I, O, K, K])     %0 = nn.conv2d(%x, const[s*s*O, I, K/s, K/s]);
//                                                  spread(%0)   [h, w, (s s O)] -> [h*s, w*s, O],
//                                                               cut to the result's size
//
// A transposed convolution that is computed as written multiplies each weight with the zeros
// between the pixels: s*s times the work. Here each of the s*s places between two pixels has its
// share of the weights. (Shi et al., "Is the deconvolution layer the same as a convolutional
// layer?", 2016.) Three forms, by the least work:
//   - one convolution with a channel for each place and output, as above; a window that covers what
//     all places need has some weights that are zero, or pixels that are cut;
//   - the same with a window of 3x3, when minimal filtering (WinogradConvolution) takes it;
//   - a convolution for each place, each with its own padding: nothing is computed in vain. Places
//     that no weight reaches are zeros.
// An image of one pixel takes the kernel's size as its stride, and so becomes one matrix product.
// Over one axis or three likewise, without the second form.
// The groups of a convolution stay groups, each with its places; those of one channel take a convolution for each place.
// Legal for constant weights that are finite and no dilation; sizes of the image may be open where the result's follow from
// them by the stride and a constant; kernels
// that the stride does not divide are filled up with zeros. Sums are added in another order. Weights
// that only a run tells - in the gradient of a convolution with strides - have a convolution for each
// place: their taps are moved at each run, which is little beside the products.
// Targets without kernels for blocked layouts are left alone, but for those with `relay.ConvertLayout.channels_last`, which
// take no form for minimal filtering.
// Loses nothing but the copy that spreads the results, into which what follows is fused.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kSubPixelConvolution;

}  // namespace relay
