// The attribute structs of the operators that sample images.
#pragma once

#include "ops/attrs.h"

namespace relay::ops {

// Resize1DAttrs, Resize2DAttrs and Resize3DAttrs differ in their default layout.
struct ResizeAttrs : AttrsNode {
  Ints size;
  std::vector<double> roi;
  std::string layout, method = "linear", coordinate_transformation_mode = "half_pixel",
                      rounding_method = "round";
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  DType out_dtype = kUnsetDType;

 protected:
  ResizeAttrs(const NodeInfo& info, const char* data) : AttrsNode(info), layout(data) {}
};
struct Resize1DAttrs : ResizeAttrs {
  Resize1DAttrs() : ResizeAttrs(static_info(), "NCW") {}
  static const NodeInfo& static_info();
};
struct Resize2DAttrs : ResizeAttrs {
  Resize2DAttrs() : ResizeAttrs(static_info(), "NCHW") {}
  static const NodeInfo& static_info();
};
struct Resize3DAttrs : ResizeAttrs {
  Resize3DAttrs() : ResizeAttrs(static_info(), "NCDHW") {}
  static const NodeInfo& static_info();
};
struct CropAndResizeAttrs : AttrsNode {
  Ints crop_size;
  std::string layout = "NCHW", method = "bilinear";
  double extrapolation_value = 0;
  DType out_dtype = kUnsetDType;
  CropAndResizeAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct AffineGridAttrs : AttrsNode {
  Ints target_shape;
  AffineGridAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct GridSampleAttrs : AttrsNode {
  std::string method = "bilinear", layout = "NCHW", padding_mode = "zeros";
  bool align_corners = true;
  GridSampleAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct ROIAlignAttrs : AttrsNode {
  Ints pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NCHW", mode = "avg";
  ROIAlignAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info();
};
struct ROIPoolAttrs : AttrsNode {
  Ints pooled_size;
  double spatial_scale = 1;
  std::string layout = "NCHW";
  ROIPoolAttrs() : AttrsNode(static_info()) {}
  static const NodeInfo& static_info();
};

}  // namespace relay::ops
