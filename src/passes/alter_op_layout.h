// AlterOpLayout: packs constant weights the way the target's kernels read them.
//
// before                                        after (16 lanes: panels of 32 columns)
//   nn.dense(%x, const[N, K])                     nn.contrib_dense_pack(%x,
//                                                     layout_transform(const, NC -> NC32n))
//   nn.conv2d(%x, const[O, I, h, w],              nn.conv2d(%x, layout_transform(const, OIHW ->
//       data_layout="NHWC")                           OHWI32o), kernel_layout="OHWI32o")
//   nn.conv2d(.., groups=g)                       the same; groups of fewer outputs than a panel
//                                                     are merged, with zeros between them
//   depthwise nn.conv2d(%x, const[C, 1, h, w])    kernel_layout="HWIO"
//   nn.conv2d_transpose(%x, const[I, O, h, w])    kernel_layout="HWIO"
//   nn.dense(reshape(layout_transform(%x, NHWC    nn.contrib_dense_pack(reshape(%x), the weight
//       -> NCHW), [N, CHW]), const)                   with its columns in the other order)
//
// FoldConstant computes the layout_transform, so the packed weights are what the artifact holds.
// Legal when the weight is a constant expression: packing at run time would cost a pass over it for
// every call. Columns beyond the last full panel are zeros and are never stored.
// Merged groups multiply what they do not read with zeros, so an infinity in one group's data makes
// NaN in the others of its panel.
// Loses nothing: every kernel that reads packed weights is at least as fast.
// Does not pack weights that are shared with an operator that reads them unpacked twice in memory:
// both forms are kept then.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kAlterOpLayout;

}  // namespace relay
