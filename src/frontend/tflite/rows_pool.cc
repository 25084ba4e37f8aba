// Pools.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/pool.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"
#include "frontend/tflite/window.h"

namespace relay::frontend::tflite {

Window window_of(NodeContext& ctx, const Expr& x, schema::Padding padding,
                 std::vector<int64_t> kernel, std::vector<int64_t> strides,
                 std::vector<int64_t> dilations) {
  if (Builder::rank_of(x) != static_cast<int64_t>(kernel.size()) + 2) {
    ctx.fail(codes::type_rank, "the input must be a batch of images with channels last",
             "rank " + std::to_string(kernel.size() + 2), to_string(x->type));
  }
  for (const auto* list : {&kernel, &strides, &dilations}) {
    for (int64_t n : *list) {
      if (n < 1 || n >= kMaxWindow)
        ctx.fail(codes::frontend_attribute, "a kernel, stride or dilation is out of range",
                 "1 or more", std::to_string(n));
    }
  }
  Window w{.kernel = std::move(kernel),
           .strides = std::move(strides),
           .dilations = std::move(dilations),
           .begin = {},
           .end = {},
           .channels_last = true};
  w.begin.assign(w.kernel.size(), 0);
  w.end = w.begin;
  switch (padding) {
    case schema::Padding::same:
      pad_to_same(ctx, x, /*upper=*/true, w);
      break;
    case schema::Padding::valid:
      break;
    default:
      ctx.unsupported("a padding other than SAME and VALID");
  }
  return w;
}

namespace {

Window window_of_pool(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Pool2D>();
  return window_of(ctx, ctx.in(0), o.padding(), {o.filter_h(), o.filter_w()},
                   {o.stride_h(), o.stride_w()}, {1, 1});
}

template <PoolKind kKind>
Values pool_of(NodeContext& ctx) {
  const auto activation = ctx.options<schema::Pool2D>().activation();
  const PoolSpec spec{.window = window_of_pool(ctx)};
  if (ctx.is_quantized()) return one(quantized_pool(ctx, kKind, spec.window, activation));
  return one(ctx.activated(pool(ctx, kKind, ctx.in(0), spec).y, activation));
}

// The root of the mean of squares.
Values l2_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  Expr y = pool(ctx, PoolKind::Average, ctx.mul(x, x), {.window = window_of_pool(ctx)}).y;
  return one(ctx.activated(ctx.call("sqrt", {y}), ctx.options<schema::Pool2D>().activation()));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Pool>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"AVERAGE_POOL_2D", pool_of<PoolKind::Average>, O::pool_2d},
      {"L2_POOL_2D", l2_pool, O::pool_2d},
      {"MAX_POOL_2D", pool_of<PoolKind::Max>, O::pool_2d},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
