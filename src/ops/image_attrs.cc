#include "ops/image_attrs.h"

namespace relay::ops {
namespace {

template <class T>
std::vector<Field> resize_fields() {
  return {
      attribute("size", &T::size, "Spatial size of the result."),
      attribute("roi", &T::roi,
                "Region for tf_crop_and_resize, as shares of the input: begins, then ends."),
      attribute("layout", &T::layout, "Layout."),
      attribute("method", &T::method, "nearest_neighbor, linear or cubic."),
      attribute("coordinate_transformation_mode", &T::coordinate_transformation_mode,
                "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
                "tf_half_pixel_for_nn or tf_crop_and_resize."),
      attribute("rounding_method", &T::rounding_method,
                "For the nearest neighbour: round, floor, ceil, round_prefer_floor or "
                "round_prefer_ceil; empty: round with align_corners, else floor."),
      attribute("cubic_alpha", &T::cubic_alpha, "Coefficient of the cubic kernel."),
      attribute("cubic_exclude", &T::cubic_exclude, "Cubic: leave out samples outside."),
      attribute("extrapolation_value", &T::extrapolation_value,
                "Value outside, for tf_crop_and_resize."),
      attribute("out_dtype", &T::out_dtype, "dtype of the result; unset: that of the input.")};
}

}  // namespace

#define RELAY_INFO(Name, ...)                                                             \
  const NodeInfo& Name::static_info() {                                                   \
    static const NodeInfo info = describe_attrs<Name>("relay.attrs." #Name, __VA_ARGS__); \
    return info;                                                                          \
  }

RELAY_INFO(Resize1DAttrs, resize_fields<Resize1DAttrs>())
RELAY_INFO(Resize2DAttrs, resize_fields<Resize2DAttrs>())
RELAY_INFO(Resize3DAttrs, resize_fields<Resize3DAttrs>())
RELAY_INFO(CropAndResizeAttrs,
           {attribute("crop_size", &CropAndResizeAttrs::crop_size, "Height and width of a crop."),
            attribute("layout", &CropAndResizeAttrs::layout, "Layout."),
            attribute("method", &CropAndResizeAttrs::method, "bilinear or nearest_neighbor."),
            attribute("extrapolation_value", &CropAndResizeAttrs::extrapolation_value,
                      "Value outside of the image."),
            attribute("out_dtype", &CropAndResizeAttrs::out_dtype,
                      "dtype of the result; unset: that of the input.")})
RELAY_INFO(AffineGridAttrs, {attribute("target_shape", &AffineGridAttrs::target_shape,
                                       "Height and width of the grid.")})
RELAY_INFO(GridSampleAttrs,
           {attribute("method", &GridSampleAttrs::method, "nearest, bilinear or bicubic."),
            attribute("layout", &GridSampleAttrs::layout, "NCHW or NCDHW."),
            attribute("padding_mode", &GridSampleAttrs::padding_mode,
                      "What lies outside: zeros, border or reflection."),
            attribute("align_corners", &GridSampleAttrs::align_corners,
                      "-1 and 1 are the centres of the corner elements, not their outer edges.")})
RELAY_INFO(ROIAlignAttrs,
           {attribute("pooled_size", &ROIAlignAttrs::pooled_size, "Height and width of a result."),
            attribute("spatial_scale", &ROIAlignAttrs::spatial_scale,
                      "From the regions' coordinates to those of the data."),
            attribute("sample_ratio", &ROIAlignAttrs::sample_ratio,
                      "Samples along each axis of a bin; below 1: as many as it has elements."),
            attribute("layout", &ROIAlignAttrs::layout, "NCHW."),
            attribute("mode", &ROIAlignAttrs::mode, "avg or max of the samples.")})
RELAY_INFO(ROIPoolAttrs,
           {attribute("pooled_size", &ROIPoolAttrs::pooled_size, "Height and width of a result."),
            attribute("spatial_scale", &ROIPoolAttrs::spatial_scale,
                      "From the regions' coordinates to those of the data."),
            attribute("layout", &ROIPoolAttrs::layout, "NCHW.")})

#undef RELAY_INFO

}  // namespace relay::ops
