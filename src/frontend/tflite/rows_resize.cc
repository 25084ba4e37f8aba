// Images made larger or smaller, along the axes 1 and 2.
#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/resize.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values resize(NodeContext& ctx, const ResizeSpec& spec) {
  return known_or_open(
      ctx,
      [&](NodeContext& known) {
        return one(resize_by_sizes(known, known.in_of_rank(0, 3), spec, {1, 2},
                                   shape_elements(known, 1, "the size")));
      },
      [&](NodeContext& open) {
        Expr size = float_vector_of(open, 1, "the size", 2);
        return one(resize_at_run_time(open, open.in_of_rank(0, 3), spec, {1, 2}, nullptr, size,
                                      "stretch", nullptr));
      });
}

Values bilinear(NodeContext& ctx) {
  const auto& o = ctx.options<schema::ResizeBilinear>();
  if (o.align_corners() && o.half_pixel_centers())
    ctx.unsupported("aligned corners and half pixels at once");
  if (ctx.is_quantized()) {
    return one(quantized_resize_bilinear(ctx, o.align_corners(), o.half_pixel_centers()));
  }
  ResizeSpec spec{.mode = "linear"};
  spec.coordinates = o.align_corners()        ? "align_corners"
                     : o.half_pixel_centers() ? "half_pixel"
                                              : "asymmetric";
  return resize(ctx, spec);
}

Values nearest(NodeContext& ctx) {
  const auto& o = ctx.options<schema::ResizeNearest>();
  if (o.align_corners() && o.half_pixel_centers())
    ctx.unsupported("aligned corners and half pixels at once");
  ResizeSpec spec{.mode = "nearest"};
  spec.coordinates = o.align_corners()        ? "align_corners"
                     : o.half_pixel_centers() ? "tf_half_pixel_for_nn"
                                              : "asymmetric";
  spec.nearest = o.align_corners() ? "round_prefer_ceil" : "floor";
  return resize(ctx, spec);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Resize>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"RESIZE_BILINEAR", bilinear, O::resize_bilinear},
      {"RESIZE_NEAREST_NEIGHBOR", nearest, O::resize_nearest},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
