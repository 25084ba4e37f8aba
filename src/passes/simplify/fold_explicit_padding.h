// FoldExplicitPadding: moves a pad into the convolution or pool that reads it.
//
// before                                                after
//   nn.conv2d(nn.pad(%x, 0, [.., [1, 1], [1, 1]]), %w)    nn.conv2d(%x, %w, padding=[1, 1, 1, 1])
//   nn.max_pool2d(nn.pad(%x, -inf, ...))                  nn.max_pool2d(%x, padding=...)
//   nn.avg_pool2d(nn.pad(%x, 0, ...))                     nn.avg_pool2d(%x, padding=...,
//                                                                       count_include_pad=True)
//
// Legal for a border of one constant along the spatial axes that is what the operator's own padding
// stands for: zero, or, for the greatest of a window, the least value there is. An average counts
// explicit zeros, so one that has padding which it does not count stays. So does a pool whose
// windows might see nothing but border. Loses nothing: others that read the padded value go on
// reading it. Does not fold negative widths (which cut), reflected or repeated borders.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFoldExplicitPadding;

}  // namespace relay
