// Merges contiguous rows into one axis.
//
// before                                        after
//   for b in range(batch):                        for m in range(batch * n):
//     for s in range(n):                            for c in range(64):
//       for c in range(64):                           block y(i = m, j = c, k: reduce):
//         block y(i = b, j = s, l = c, k: reduce):      y[i, j] += x[i, k] * w[k, j]
//           y[i, j, l] += x[i, j, k] * w[k, l]
//
// A tile of rows ends where their axis does. Where that is short, or as long as only a run knows, tiles of the merged axis
// are full, and the weights pass by once for all of them.
// Legal when every block has both axes side by side and nothing tells them apart: each access of a buffer has both, in
// this order, or none. The buffers are the same memory.
// Axes of size 1 and windows of one element, as those of 1x1 convolutions, are left out first (unit_axes.h), so that their
// pixels are rows too.
// Does nothing where the inner axis is known to be long enough for tiles, and for windows.
// The last axes of constant sizes that a kernel reduces are one likewise, in all of its blocks: vectors of 8 elements lie across
// the ends of rows of 4 or of 283. So are the last ones that it keeps where it reduces axes before them and they are short:
// the maxima over the first axis of (1019, 256, 2) are 512 columns.
// Elements that change places are merged likewise along any axes that stay neighbours, as height and width between NCHW and
// NHWC: what is left over by blocks of elements is once in an image then, not once in a line.
// The last axes of a kernel that maps elements, down to two, are one where rows fill no whole vectors: the index of three axes
// that a schedule joins is a quotient of a quotient, along which no step can be proven.
#pragma once

#include "tir/stmt.h"

namespace relay {

// The kernel itself where there is nothing to merge.
tir::PrimFunc merge_rows(const tir::PrimFunc& f);

}  // namespace relay
