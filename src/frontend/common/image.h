// Images (batch, channels, spatial axes...) read at places that are computed. resize.h makes them larger or smaller.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// The words are those of image.grid_sample.
struct SampleSpec {
  std::string method = "bilinear";  // of volumes, too; or "nearest", "bicubic"
  std::string padding = "zeros";    // what is outside of the image; or "border", "reflection"
  bool align_corners =
      false;  // whether -1 and 1 are the middles of the outer pixels, not their edges
};
// The image at each place of a grid (batch, sizes of the result..., coordinates), whose coordinates are between -1 and 1,
// that of the last spatial axis first. Of 2 or 3 spatial axes, E0205 for others.
Expr grid_sample(const Builder& build, const Expr& image, const Expr& grid, const SampleSpec& spec);

// The grid of an affine map of images of these spatial sizes: theta is (batch, axes, axes + 1), for the homogeneous
// coordinates of every place.
Expr affine_grid(const Builder& build, const Expr& theta, const std::vector<int64_t>& sizes,
                 bool align_corners);
// The same where `size` is a vector, in float64, of the sizes of the batch, the channels and `axes` spatial axes.
Expr affine_grid_at_run_time(const Builder& build, const Expr& theta, const Expr& size,
                             int64_t axes, bool align_corners);

}  // namespace relay::frontend
