// Resize, Upsample and other sampling of images.
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/image.h"
#include "frontend/common/open_args.h"
#include "frontend/common/resize.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

std::vector<double> scales_of(NodeContext& ctx, size_t input) {
  KnownValue k = ctx.must_know(input, "the list of scales");
  std::vector<double> out;
  if (!k.is_constant()) ctx.fail(codes::frontend_dynamic, "the scales depend on an open dimension");
  for (int64_t i = 0; i < k.size(); ++i) out.push_back(k.float_at(i));
  return out;
}

// Upsample, and Resize of opset 10: scales for all axes.
Values scale_all(NodeContext& ctx, const ResizeSpec& s, const std::vector<double>& scales) {
  Expr x = ctx.in(0);
  const std::vector<int64_t> all = Builder::all_axes(NodeContext::rank_of(x));
  return {value_of(resize_by_scales(ctx, x, s, all, scales))};
}
Values scale_all_open(NodeContext& ctx, const ResizeSpec& s) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  Expr scales = float_vector_of(ctx, 1, "the list of scales", rank);
  return {value_of(
      resize_at_run_time(ctx, x, s, Builder::all_axes(rank), scales, nullptr, "stretch", nullptr))};
}

ResizeSpec upsample_spec(NodeContext& ctx) {
  ResizeSpec s;
  s.mode = ctx.attr_string("mode", "nearest");
  if (s.mode == "bilinear") s.mode = "linear";
  s.coordinates = "asymmetric";
  s.nearest = "floor";
  return s;
}

Values convert_upsample_attr(NodeContext& ctx) {
  return scale_all(ctx, upsample_spec(ctx), ctx.attr_floats("scales"));
}
Values convert_upsample(NodeContext& ctx) {
  const ResizeSpec s = upsample_spec(ctx);
  return known_or_open(
      ctx, [&](NodeContext& known) { return scale_all(known, s, scales_of(known, 1)); },
      [&](NodeContext& open) { return scale_all_open(open, s); });
}

ResizeSpec resize_spec(NodeContext& ctx) {
  ResizeSpec s;
  s.mode = ctx.attr_string("mode", s.mode);
  s.coordinates = ctx.attr_string("coordinate_transformation_mode", s.coordinates);
  s.nearest = ctx.attr_string("nearest_mode", s.nearest);
  s.cubic_alpha = ctx.attr_float("cubic_coeff_a", s.cubic_alpha);
  s.exclude_outside = ctx.attr("exclude_outside", 0) != 0;
  s.antialias = ctx.attr("antialias", 0) != 0;
  s.extrapolation = ctx.attr_float("extrapolation_value", 0);
  return s;
}

// An input that is absent, or an empty list.
bool is_left_out(NodeContext& ctx, size_t input) {
  if (!ctx.has(input)) return true;
  auto shape = shape_of_input(ctx, input);
  return shape && shape->size() == 1 && as_const((*shape)[0]) == 0;
}

std::string ratio_policy(NodeContext& ctx) {
  return ctx.attr_string("keep_aspect_ratio_policy", "stretch");
}

Values resize_open_inputs(NodeContext& ctx) {
  const ResizeSpec s = resize_spec(ctx);
  const std::vector<int64_t> which = ctx.attr_axes(NodeContext::rank_of(ctx.in(0)));
  const auto n = static_cast<int64_t>(which.size());
  Expr sizes, scales, region;
  if (is_left_out(ctx, 3)) {
    scales = float_vector_of(ctx, 2, "the list of scales", n);
  } else {
    sizes = float_vector_of(ctx, 3, "the list of sizes", n);
  }
  if (s.coordinates == "tf_crop_and_resize") region = float_vector_of(ctx, 1, "the region", 2 * n);
  return {value_of(
      resize_at_run_time(ctx, ctx.in(0), s, which, scales, sizes, ratio_policy(ctx), region))};
}

Values resize_known(NodeContext& ctx) {
  const ResizeSpec s = resize_spec(ctx);
  const std::vector<int64_t> which = ctx.attr_axes(NodeContext::rank_of(ctx.in(0)));
  std::vector<double> region;
  if (s.coordinates == "tf_crop_and_resize") region = scales_of(ctx, 1);
  if (is_left_out(ctx, 3)) {
    return {value_of(resize_by_scales(ctx, ctx.in(0), s, which, scales_of(ctx, 2), region))};
  }
  const std::vector<Dim> sizes = ctx.must_know(3, "the list of sizes").ints;
  return {value_of(resize_by_sizes(ctx, ctx.in(0), s, which, sizes, ratio_policy(ctx), region))};
}

Values convert_resize(NodeContext& ctx) {
  return known_or_open(ctx, resize_known, resize_open_inputs);
}

Values convert_grid_sample(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::string mode = ctx.attr_string("mode", ctx.opset() >= 20 ? "linear" : "bilinear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  return {value_of(grid_sample(ctx, x, ctx.in(1),
                               {.method = mode,
                                .padding = ctx.attr_string("padding_mode", "zeros"),
                                .align_corners = ctx.attr("align_corners", 0) != 0}))};
}

// How many dimensions the image has that theta, a matrix of as many rows for each of the batch, turns.
int64_t affine_dimensions(NodeContext& ctx, const Expr& theta) {
  std::optional<int64_t> nd;
  if (NodeContext::rank_of(theta) == 3) nd = as_const(NodeContext::shape_of(theta)[1]);
  if (!nd) nd = length_of_vector(int_vector(ctx, 1, "the size")) - 2;
  if (nd != 2 && nd != 3) {
    ctx.fail(codes::frontend_attribute, "the size must have 4 or 5 entries", "4 or 5",
             std::to_string(*nd + 2));
  }
  return *nd;
}

Values affine_grid_known(NodeContext& ctx) {
  Expr theta = ctx.in(0);
  std::vector<int64_t> size = ctx.const_ints(1, "the size");
  const int64_t nd = affine_dimensions(ctx, theta);
  if (static_cast<int64_t>(size.size()) != nd + 2) {
    ctx.fail(codes::frontend_attribute, "the size has the wrong length", std::to_string(nd + 2),
             std::to_string(size.size()));
  }
  size.erase(size.begin(), size.begin() + 2);  // batch and channels
  return {value_of(affine_grid(ctx, theta, size, ctx.attr("align_corners", 0) != 0))};
}

Values affine_grid_open(NodeContext& ctx) {
  Expr theta = ctx.in(0);
  const int64_t nd = affine_dimensions(ctx, theta);
  Expr size = float_vector_of(ctx, 1, "the size", nd + 2);
  return {
      value_of(affine_grid_at_run_time(ctx, theta, size, nd, ctx.attr("align_corners", 0) != 0))};
}

Values convert_affine_grid(NodeContext& ctx) {
  return known_or_open(ctx, affine_grid_known, affine_grid_open);
}

Values convert_roi_align(NodeContext& ctx) {
  const std::string pooling = ctx.attr_string("mode", "avg");
  if (pooling != "avg" && pooling != "max")
    ctx.unsupported("mode '" + pooling.substr(0, 100) + "'");
  Expr rois = ctx.in(1);
  DType dtype = NodeContext::dtype_of(rois);
  std::string mode = ctx.attr_string("coordinate_transformation_mode",
                                     ctx.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  double scale = ctx.attr_float("spatial_scale", 1.0);
  if (mode == "half_pixel") {
    if (scale == 0) ctx.fail(codes::frontend_attribute, "attribute 'spatial_scale' is zero");
    rois = ctx.sub(rois, ctx.scalar(0.5 / scale, dtype));
  }
  Expr batch = ctx.expand_dims(ctx.cast(ctx.in(2), dtype), 1);
  int64_t ratio = ctx.attr("sampling_ratio", 0);
  return {value_of(ctx.call(
      "vision.roi_align", {ctx.in(0), ctx.concat({batch, rois}, 1)},
      {{"pooled_size", to_value({ctx.attr("output_height", 1), ctx.attr("output_width", 1)})},
       {"spatial_scale", scale},
       {"sample_ratio", ratio > 0 ? ratio : int64_t{-1}},
       {"layout", std::string("NCHW")},
       // Earlier versions, and "output_half_pixel", lengthen short regions.
       {"aligned", mode == "half_pixel"},
       // The standard weighs the corners of a sample first, and takes the greatest of those.
       {"mode", std::string(pooling == "max" ? "max_corner" : "avg")}}))};
}

// The format of the image stands in its bytes.
Values convert_image_decoder(NodeContext& ctx) {
  const std::string format = ctx.attr_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    ctx.fail(codes::frontend_attribute, "attribute 'pixel_format' has an unknown value",
             "RGB, BGR or Grayscale", format.substr(0, 100));
  }
  return {value_of(ctx.call("image.decode", {ctx.in(0)}, {{"pixel_format", format}}))};
}

Values convert_max_roi_pool(NodeContext& ctx) {
  return {value_of(ctx.call("vision.roi_pool", {ctx.in(0), ctx.in(1)},
                            {{"pooled_size", to_value(ctx.attr_ints("pooled_shape"))},
                             {"spatial_scale", ctx.attr_float("spatial_scale", 1.0)},
                             {"layout", std::string("NCHW")}}))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Resize>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "AffineGrid", 20, convert_affine_grid},
      {kOnnx, "GridSample", 16, convert_grid_sample},
      {kOnnx, "ImageDecoder", 20, convert_image_decoder},
      {kOnnx, "MaxRoiPool", 1, convert_max_roi_pool},
      {kOnnx, "Resize", 10, convert_upsample},
      {kOnnx, "Resize", 11, convert_resize},
      {kOnnx, "RoiAlign", 10, convert_roi_align},
      {kOnnx, "Upsample", 7, convert_upsample_attr},
      {kOnnx, "Upsample", 9, convert_upsample},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
