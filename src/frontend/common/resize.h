// Resizing of any axes, by nearest places, lines or cubic curves.
//
// It is linear and separable. Where Relay's image.resize operators mean the same they are used;
// what they have no attributes for (scales that do not divide, antialiasing, other axes) is written
// out as one gather or one matrix product for each axis, with weights computed here or, for sizes
// that a run knows, by the program.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// The words are those of image.resize2d; E0504 for others.
struct ResizeSpec {
  std::string mode = "nearest";            // or "linear", "cubic"
  std::string coordinates = "half_pixel";  // where a place of the result lies in the input
  std::string nearest = "round_prefer_floor";
  double cubic_alpha = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  bool corner_scale = false;  // resize_by_sizes: the scale is (out - 1) / (in - 1), not out / in
  double extrapolation = 0;   // of places outside of the input, of a crop
};

// The axes `which` by scales; those of 1 leave their axis alone, so it may be open. `region` is that of
// "tf_crop_and_resize" and empty else: where it begins in each of the axes, from 0 to 1, then where it ends.
// `sizes`, if there are any, are those of the result; they may differ from those that the scales give.
Expr resize_by_scales(const Builder& build, const Expr& x, const ResizeSpec& spec,
                      const std::vector<int64_t>& which, const std::vector<double>& scales,
                      const std::vector<double>& region = {},
                      const std::vector<int64_t>& sizes = {});
// The same to sizes. `policy` is "stretch", or how the ratio of sizes is kept: with one scale for all axes, by which
// none gets larger ("not_larger") or smaller ("not_smaller") than it is told.
Expr resize_by_sizes(const Builder& build, const Expr& x, const ResizeSpec& spec,
                     const std::vector<int64_t>& which, const std::vector<Dim>& sizes,
                     const std::string& policy = "stretch", const std::vector<double>& region = {});
// The same by a vector of scales or, where that is null, of sizes that a run knows, in float64; `region` may be null.
Expr resize_at_run_time(const Builder& build, const Expr& x, const ResizeSpec& spec,
                        const std::vector<int64_t>& which, const Expr& scales, const Expr& sizes,
                        const std::string& policy, const Expr& region);

}  // namespace relay::frontend
