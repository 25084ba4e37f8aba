// Images put together from patches.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// How patches lie in an image, for each spatial axis: the steps from patch to patch and from element to element, and the
// pads before all axes, then behind them.
struct PatchSpec {
  std::vector<int64_t> strides, dilations, pads;
};
// Every column of x, (batch, channels * patch, patches), is a patch of an image (batch, channels, spatial axes...); where
// patches overlap they are added. The sizes of the image and of a patch are int64 vectors of known length.
Expr image_of_patches(const Builder& build, const Expr& x, const Expr& image, const Expr& block,
                      const PatchSpec& spec);

}  // namespace relay::frontend
