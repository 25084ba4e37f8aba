// Images at another size.
#include "base/codes/frontend.h"
#include "frontend/common/resize.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// Scale factors, where they are given, say where places lie; else the sizes do.
Values resized(NodeContext& ctx, ResizeSpec spec, int64_t nd) {
  Expr x = ctx.tensor(ctx.has("input") ? "input" : "self");
  if (Builder::rank_of(x) != nd + 2)
    ctx.fail(codes::frontend_attribute, "the input has the wrong rank", std::to_string(nd + 2));
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < nd; ++a) axes.push_back(a + 2);
  std::vector<double> scales;
  if (ctx.has("scale_factors")) scales = ctx.reals("scale_factors");
  static constexpr const char* kNames[3][3] = {
      {"scales"}, {"scales_h", "scales_w"}, {"scales_d", "scales_h", "scales_w"}};
  std::vector<double> by_axis;
  for (int64_t a = 0; a < nd; ++a) {
    const char* name = kNames[nd - 1][a];
    if (ctx.has(name)) by_axis.push_back(ctx.real(name));
  }
  if (scales.empty() && static_cast<int64_t>(by_axis.size()) == nd) scales = by_axis;
  const bool corners = spec.coordinates == "align_corners";
  const std::vector<Dim> out = ctx.out_shape();
  if (ctx.has("output_size")) ctx.sizes("output_size");
  const std::vector<Dim> sizes(out.begin() + 2, out.end());
  if (static_cast<int64_t>(scales.size()) == nd && !corners)
    return {value_of(resize_by_scales(ctx, x, spec, axes, scales))};
  return {value_of(resize_by_sizes(ctx, x, spec, axes, sizes))};
}

template <int64_t kRank>
Values nearest(NodeContext& ctx) {
  ResizeSpec spec;
  spec.coordinates = "asymmetric";
  spec.nearest = "floor";
  return resized(ctx, spec, kRank);
}
template <int64_t kRank>
Values nearest_exact(NodeContext& ctx) {
  ResizeSpec spec;
  spec.nearest = "round_prefer_ceil";
  return resized(ctx, spec, kRank);
}
template <int64_t kRank>
Values linear(NodeContext& ctx) {
  ResizeSpec spec;
  spec.mode = "linear";
  if (ctx.truth("align_corners", false)) spec.coordinates = "align_corners";
  return resized(ctx, spec, kRank);
}
Values cubic(NodeContext& ctx) {
  ResizeSpec spec;
  spec.mode = "cubic";
  if (ctx.truth("align_corners", false)) spec.coordinates = "align_corners";
  return resized(ctx, spec, 2);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Resize>() {
  static constexpr Row kRows[] = {
      {"aten.upsample_nearest1d.default", nearest<1>},
      {"aten.upsample_nearest1d.vec", nearest<1>},
      {"aten.upsample_nearest2d.default", nearest<2>},
      {"aten.upsample_nearest2d.vec", nearest<2>},
      {"aten.upsample_nearest3d.default", nearest<3>},
      {"aten.upsample_nearest3d.vec", nearest<3>},
      {"aten._upsample_nearest_exact1d.default", nearest_exact<1>},
      {"aten._upsample_nearest_exact1d.vec", nearest_exact<1>},
      {"aten._upsample_nearest_exact2d.default", nearest_exact<2>},
      {"aten._upsample_nearest_exact2d.vec", nearest_exact<2>},
      {"aten._upsample_nearest_exact3d.default", nearest_exact<3>},
      {"aten._upsample_nearest_exact3d.vec", nearest_exact<3>},
      {"aten.upsample_linear1d.default", linear<1>, kInFloat32},
      {"aten.upsample_linear1d.vec", linear<1>, kInFloat32},
      {"aten.upsample_bilinear2d.default", linear<2>, kInFloat32},
      {"aten.upsample_bilinear2d.vec", linear<2>, kInFloat32},
      {"aten.upsample_trilinear3d.default", linear<3>, kInFloat32},
      {"aten.upsample_trilinear3d.vec", linear<3>, kInFloat32},
      {"aten.upsample_bicubic2d.default", cubic, kInFloat32},
      {"aten.upsample_bicubic2d.vec", cubic, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
