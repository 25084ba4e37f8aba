// SkipBorder: computes a convolution with far taps without the products of its border.
//
// before (channels last, 28 rows, a 3x3 kernel whose taps are 12 apart)
//   nn.conv2d(%x, const, padding=[12, ..], dilation=[12, 12])
// after
//   %0 = nn.conv2d(rows 0 to 23 of %x, taps 1 to 2 along the rows);      rows 0 to 11 of the result
//   %1 = nn.conv2d(%x, const);                                          rows 12 to 15
//   %2 = nn.conv2d(rows 4 to 27 of %x, taps 0 to 1);                     rows 16 to 27
//   concatenate((%0, %1, %2), axis=1)
//
// A tap that lies in the border of zeros for a whole stretch of rows adds nothing there. The same for columns, where that
// leaves out more than cutting lines costs. Taps that lie in the border for all of the result disappear: of a 3x3 kernel
// with taps farther apart than the image is long, one is left. Neighbouring taps leave out the border beyond all
// windows that see the image: a 3x3 kernel on 8x8 padded by 20 computes 10x10 of its 46x46 results, and the others
// are zeros.
// Legal for constant weights that are finite and static shapes: then a zero times a weight is a zero, and every
// sum is what it was. Loses where a stretch is so short that a kernel of its own costs more than its products.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kSkipBorder;

}  // namespace relay
