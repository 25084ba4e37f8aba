// Images at another size.
#include "base/codes/frontend.h"
#include "frontend/torch/layers.h"

namespace relay::frontend::torch {
namespace {

Values resized(NodeContext& ctx, ResizeSpec spec, int64_t nd) {
  Expr x = ctx.tensor(ctx.has("input") ? "input" : "self");
  if (Builder::rank_of(x) != nd + 2)
    ctx.fail(codes::frontend_attribute, "the input has the wrong rank", std::to_string(nd + 2));
  const Resizing resizing = resizing_of(ctx, std::move(spec), nd);
  const std::vector<Dim> out = ctx.out_shape();
  if (ctx.has("output_size")) ctx.sizes("output_size");
  return {value_of(resizing.apply(ctx, x, {out.begin() + 2, out.end()}))};
}

template <int64_t kRank>
Values nearest(NodeContext& ctx) {
  return resized(ctx, nearest_spec(), kRank);
}
template <int64_t kRank>
Values nearest_exact(NodeContext& ctx) {
  return resized(ctx, nearest_exact_spec(), kRank);
}
template <int64_t kRank>
Values linear(NodeContext& ctx) {
  return resized(ctx, smooth_spec(ctx, "linear"), kRank);
}
Values cubic(NodeContext& ctx) { return resized(ctx, smooth_spec(ctx, "cubic"), 2); }
Values filtered_linear(NodeContext& ctx) { return resized(ctx, antialias_spec(ctx, "linear"), 2); }
Values filtered_cubic(NodeContext& ctx) { return resized(ctx, antialias_spec(ctx, "cubic"), 2); }

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
      {"aten._upsample_bilinear2d_aa.default", filtered_linear, kInFloat32},
      {"aten._upsample_bilinear2d_aa.vec", filtered_linear, kInFloat32},
      {"aten._upsample_bicubic2d_aa.default", filtered_cubic, kInFloat32},
      {"aten._upsample_bicubic2d_aa.vec", filtered_cubic, kInFloat32},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
