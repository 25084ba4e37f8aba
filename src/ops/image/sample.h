// The attributes of what reads images at places that are data.
#pragma once

#include <string>

#include "ops/common.h"

namespace relay::ops {

struct GridSampleAttrs : AttrsOf<GridSampleAttrs> {
  std::string method = "bilinear", layout = "NCHW", padding_mode = "zeros";
  bool align_corners = true;
  static AttrsList describe() {
    return {"relay.attrs.GridSampleAttrs",
            {attribute("method", &Self::method, "nearest, bilinear or bicubic."),
             attribute("layout", &Self::layout, "NCHW or NCDHW."),
             attribute("padding_mode", &Self::padding_mode,
                       "What lies outside: zeros, border or reflection."),
             attribute("align_corners", &Self::align_corners,
                       "-1 and 1 are the centres of the corner elements, not their outer edges.")}};
  }
};

struct CropAndResizeAttrs : AttrsOf<CropAndResizeAttrs> {
  Ints crop_size;
  std::string layout = "NCHW", method = "bilinear";
  double extrapolation_value = 0;
  DType out_dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.CropAndResizeAttrs",
            {attribute("crop_size", &Self::crop_size, "Height and width of a crop."),
             attribute("layout", &Self::layout, "Layout."),
             attribute("method", &Self::method, "bilinear or nearest_neighbor."),
             attribute("extrapolation_value", &Self::extrapolation_value,
                       "Value outside of the image."),
             attribute("out_dtype", &Self::out_dtype,
                       "dtype of the result; unset: that of the input.")}};
  }
};

struct ROIAlignAttrs : AttrsOf<ROIAlignAttrs> {
  Ints pooled_size;
  double spatial_scale = 1;
  int64_t sample_ratio = -1;
  std::string layout = "NCHW", mode = "avg";
  bool aligned = false;
  static AttrsList describe() {
    return {"relay.attrs.ROIAlignAttrs",
            {attribute("pooled_size", &Self::pooled_size, "Height and width of a result."),
             attribute("spatial_scale", &Self::spatial_scale,
                       "From the regions' coordinates to those of the data."),
             attribute("sample_ratio", &Self::sample_ratio,
                       "Samples along each axis of a bin; below 1: as many as it has elements."),
             attribute("layout", &Self::layout, "NCHW."),
             attribute("mode", &Self::mode,
                       "avg or max of the samples; max_corner: of the corners of all samples, each "
                       "times its weight."),
             attribute("aligned", &Self::aligned,
                       "Regions may be shorter than an element of the data; otherwise they are at "
                       "least as long.")}};
  }
};

struct ROIPoolAttrs : AttrsOf<ROIPoolAttrs> {
  Ints pooled_size;
  double spatial_scale = 1;
  std::string layout = "NCHW";
  static AttrsList describe() {
    return {"relay.attrs.ROIPoolAttrs",
            {attribute("pooled_size", &Self::pooled_size, "Height and width of a result."),
             attribute("spatial_scale", &Self::spatial_scale,
                       "From the regions' coordinates to those of the data."),
             attribute("layout", &Self::layout, "NCHW.")}};
  }
};

// ---- Several lanes

Expr batch_regions(const BatchingContext& ctx);
Expr batch_crops(const BatchingContext& ctx);

// ---- The operators in others: what their gradients follow from.

Expr defined_grid_sample(const relay::CallNode& call);
Expr defined_crop_and_resize(const relay::CallNode& call);
// Throws E1003 for the greatest of samples whose number depends on the regions.
Expr defined_roi_align(const relay::CallNode& call);
Expr defined_roi_pool(const relay::CallNode& call);

}  // namespace relay::ops
