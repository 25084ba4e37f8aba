// AlterOpLayout: packs weights the way the target's kernels read them.
//
// before                                        after (16 lanes: panels of 32 columns)
//   nn.dense(%x, %w)                              nn.contrib_dense_pack(%x,
//                                                     layout_transform(%w, NC -> NC32n))
//   nn.matmul(%x, %y, transpose_a=True)           nn.contrib_dense_pack(transpose(%x), the same of
//                                                     %y), where rows are far apart
//   nn.conv2d(%x, %w, data_layout="NHWC")         nn.conv2d(%x, layout_transform(%w, OIHW ->
//                                                     OHWI32o), kernel_layout="OHWI32o")
//   nn.conv2d(%x, %w), few channels of results,   layout_transform(nn.conv2d(layout_transform(%x,
//       data_layout="NHWC"                            NHWC -> NCHW), %w, data_layout="NCHW"),
//                                                     NCHW -> NHWC): lanes over columns
//   the same with one tap, up to 64 channels      layout_transform(reshape(nn.batch_matmul(%w, %x as
//       (of a group), between such transforms         planes)), NCHW -> NHWC)
//   nn.conv2d(.., groups=g)                       the same; groups of fewer outputs than a panel
//                                                     are merged, with zeros between them
//   depthwise nn.conv2d(%x, %w)                   kernel_layout="HWIO"
//   nn.conv2d_transpose(%x, const)                kernel_layout="HWIO"
//   nn.batch_matmul(%x, %y, transpose_b=True)     nn.batch_matmul(%x, transpose(%y),
//                                                     transpose_b=False)
//   nn.dense(%x, %w), %w of open sizes            nn.matmul(%x, transpose(%w))
//   einsum((%x, %y), "ij,kj->ik")                 einsum((%x, transpose(%y)), "ac,cb->ab")
//   nn.contrib_dense_bits(%x, const)              weight, scale and zero_point in panels; with
//                                                     accuracy_level=4 where bytes are multiplied:
//                                                     qnn.contrib_dense_bits of x in int8
//   nn.dense(reshape(layout_transform(%x, NHWC    nn.contrib_dense_pack(reshape(%x), the weight
//       -> NCHW), [N, CHW]), const)                   with its columns in the other order)
//   nn.softmax(%x, axis=0), few columns           transpose(nn.softmax(transpose(%x), axis=-1))
// and likewise for convolutions over one and three axes.
//
// after (targets without blocked kernels, whose neighbouring work items compute neighbouring columns)
//   nn.dense(%x, const)                           nn.contrib_dense_pack(%x,
//                                                     layout_transform(const, NC -> NC16n))
//   nn.conv2d(%x, const)                          kernel_layout="OIHW16o"
//   nn.dense(%x, %w), other columns               nn.matmul(%x, transpose(%w))
//
// FoldConstant computes the layout_transform of a constant, so the packed weight is what the
// artifact holds. Other weights are packed at every call where several rows are multiplied with
// them, but for few rows of long sums, which a schedule rule takes with lanes along the sum. Those that
// are the same in all iterations of a loop are packed like constants where HoistLayouts takes the packed
// weight out of the loop (it is on, and they have 4096 bytes or more); smaller ones like other weights.
// Legal for float32 of known sizes; merged groups only for constants. Columns beyond the last full
// panel are zeros and are never stored.
// Merged groups multiply what they do not read with zeros, so an infinity in one group's data makes
// NaN in the others of its panel.
// Does not pack weights that are shared with an operator that reads them unpacked twice in memory:
// both forms are kept then.
#pragma once

#include <functional>

#include "passes/pass.h"

namespace relay {

extern const Pass kAlterOpLayout;

// Whether the pass will pack the matrix that a call of the function multiplies rows with. The context must outlive it.
std::function<bool(const CallNode&)> packs_matrices(const Function& f, const PassContext& ctx);

}  // namespace relay
