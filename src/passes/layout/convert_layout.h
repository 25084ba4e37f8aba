// ConvertLayout: computes convolutions, and what is between them, in another layout.
//
// before (desired: nn.conv2d in NHWC)                 after
//   %0 = nn.conv2d(%x, %w);                             %0 = layout_transform(%x, NCHW -> NHWC);
//   %1 = nn.relu(%0);                                   %1 = nn.conv2d(%0, %w, data_layout="NHWC");
//   nn.conv2d(%1, %v)                                   %2 = nn.relu(%1);
//                                                       %3 = nn.conv2d(%2, %v, data_layout="NHWC");
//                                                       layout_transform(%3, NHWC -> NCHW)
//
// An operator takes part by its layout rule; where a rule declines, values are converted back, so
// conversions stand only at the border of a region. Legal always: layout_transform is a copy.
// Loses when a region is one cheap operator; the rules only start regions at the desired operators.
//
// Desired layouts: `relay.ConvertLayout.<operator>` in the context's config, "NHWC", for operators that are told the layout of
// their data (convolutions, also quantised ones, pools, resizes); "NHWC,HWIO" for that of their weights, too. Without any,
// the target decides: channels last for convolutions on CPUs, and with `relay.ConvertLayout.channels_last` on other targets.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kConvertLayout;

}  // namespace relay
