// Convolutions of images with channels last.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/shape_args.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"
#include "frontend/tflite/window.h"

namespace relay::frontend::tflite {
namespace {

void check_rank(NodeContext& ctx, const Expr& w, int64_t rank) {
  if (Builder::rank_of(w) == rank) return;
  ctx.fail(codes::type_rank, "the weight has the wrong rank", "rank " + std::to_string(rank),
           to_string(w->type));
}

// Kernel sizes of weights, along these axes.
std::vector<int64_t> kernel_sizes(NodeContext& ctx, const Expr& w, std::vector<int64_t> axes) {
  for (int64_t& a : axes) a = ctx.const_dim(w, a, "a size of the weight");
  return axes;
}

// How many groups of the input's channels the weights read.
int64_t groups_of(NodeContext& ctx, const Expr& x, int64_t per_group) {
  const int64_t channels =
      ctx.const_dim(x, Builder::rank_of(x) - 1, "the number of channels of the input");
  if (per_group < 1 || channels % per_group != 0) {
    ctx.fail(codes::type_shape, "the weight does not fit the channels of the input",
             "a divisor of " + std::to_string(channels), std::to_string(per_group));
  }
  return channels / per_group;
}

// The sum of products, with bias and activation; integers as the format rounds them.
Values convolved(NodeContext& ctx, const ConvolutionParts& parts,
                 schema::FusedActivation activation) {
  if (ctx.is_quantized(parts.input)) return one(quantized_convolution(ctx, parts, activation));
  Expr y;
  if (ctx.is_quantized(parts.weight)) {
    y = hybrid_convolution(ctx, parts);
  } else {
    Expr w = ctx.transpose(ctx.in(parts.weight), parts.order);
    y = convolution(ctx, ctx.in(parts.input), w, parts.window, parts.groups,
                    ctx.in_dtype(parts.input));
  }
  if (ctx.has(parts.bias)) y = ctx.add(y, ctx.in(parts.bias));
  return one(ctx.activated(y, activation));
}

// (x, weights (out, height, width, in), bias)
Values conv_2d(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Conv2D>();
  Expr x = ctx.in(0), w = ctx.in(1);
  check_rank(ctx, w, 4);
  Window window = window_of(ctx, x, o.padding(), kernel_sizes(ctx, w, {1, 2}),
                            {o.stride_h(), o.stride_w()}, {o.dilation_h(), o.dilation_w()});
  const int64_t groups = groups_of(ctx, x, ctx.const_dim(w, 3, "the channels of the weight"));
  return convolved(ctx, {.window = std::move(window), .groups = groups, .order = {0, 3, 1, 2}},
                   o.activation());
}

// (x, weights (1, height, width, out), bias)
Values depthwise_conv_2d(NodeContext& ctx) {
  const auto& o = ctx.options<schema::DepthwiseConv2D>();
  Expr x = ctx.in(0), w = ctx.in(1);
  check_rank(ctx, w, 4);
  Window window = window_of(ctx, x, o.padding(), kernel_sizes(ctx, w, {1, 2}),
                            {o.stride_h(), o.stride_w()}, {o.dilation_h(), o.dilation_w()});
  return convolved(ctx,
                   {.window = std::move(window),
                    .groups = groups_of(ctx, x, 1),
                    .order = {3, 0, 1, 2},
                    .channel_axis = 3},
                   o.activation());
}

// (x, weights (depth, height, width, in, out), bias)
Values conv_3d(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Conv3D>();
  Expr x = ctx.in(0), w = ctx.in(1);
  check_rank(ctx, w, 5);
  Window window = window_of(ctx, x, o.padding(), kernel_sizes(ctx, w, {0, 1, 2}),
                            {o.stride_d(), o.stride_h(), o.stride_w()},
                            {o.dilation_d(), o.dilation_h(), o.dilation_w()});
  const int64_t groups = groups_of(ctx, x, ctx.const_dim(w, 3, "the channels of the weight"));
  return convolved(
      ctx,
      {.window = std::move(window), .groups = groups, .order = {4, 3, 0, 1, 2}, .channel_axis = 4},
      o.activation());
}

// Pads of a transposed convolution to a result of this shape: as those of the convolution that it transposes.
std::vector<int64_t> pad_to_result(NodeContext& ctx, const Expr& x, bool same, Window& w,
                                   const std::vector<Dim>& shape) {
  std::vector<int64_t> extra(w.kernel.size(), 0);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t in = ctx.const_dim(x, static_cast<int64_t>(i) + 1, "a size of the input");
    const auto size = as_const(shape[i + 1]);
    if (!size || *size < 1 || *size > INT32_MAX) {
      ctx.fail(codes::frontend_attribute, "a size of the result is out of range", "1 to 2^31 - 1",
               to_string(shape[i + 1]));
    }
    const int64_t stride = w.strides[i], reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t steps = (*size + stride - 1) / stride;
    const int64_t total = same ? std::max<int64_t>((steps - 1) * stride + reach - *size, 0) : 0;
    w.begin[i] = total / 2;
    int64_t whole = 0;  // the size of the result without pads
    if (__builtin_mul_overflow(in - 1, stride, &whole) ||
        __builtin_add_overflow(whole, reach - w.begin[i] - *size, &w.end[i]))
      ctx.fail(codes::frontend_limit, "the size of the result overflows");
    if (w.end[i] < 0) {
      extra[i] = -w.end[i];
      w.end[i] = 0;
    }
  }
  return extra;
}

Values transposed(NodeContext& ctx, ConvolutionParts parts, bool same,
                  schema::FusedActivation activation) {
  Expr x = ctx.in(parts.input);
  const size_t nd = parts.window.kernel.size();
  const std::vector<Dim> shape = shape_elements(ctx, 0, "the shape of the result");
  if (shape.size() != nd + 2) {
    ctx.fail(codes::frontend_attribute, "the shape of the result has the wrong length",
             std::to_string(nd + 2), std::to_string(shape.size()));
  }
  const Dim batch = Builder::shape_of(x)[0],
            channels =
                Builder::shape_of(ctx.in(parts.weight))[static_cast<size_t>(parts.channel_axis)];
  if (dim_differs(shape.front(), batch) || dim_differs(shape.back(), channels)) {
    ctx.fail(codes::type_shape, "the shape of the result does not fit its batch and channels",
             to_string(batch) + " and " + to_string(channels),
             to_string(shape.front()) + " and " + to_string(shape.back()));
  }
  parts.extra = pad_to_result(ctx, x, same, parts.window, shape);
  parts.is_transposed = true;
  if (ctx.is_quantized(parts.input)) return one(quantized_convolution(ctx, parts, activation));
  if (ctx.is_quantized(parts.weight))
    ctx.unsupported("a transposed convolution of floats with integer weights");
  Expr w = ctx.transpose(ctx.in(parts.weight), parts.order);
  Expr y = transposed_convolution(ctx, x, w, parts.window, parts.extra, 1);
  if (ctx.has(parts.bias)) y = ctx.add(y, ctx.in(parts.bias));
  return one(ctx.activated(y, activation));
}

// (shape, weights (out, height, width, in), x, bias)
Values transpose_conv(NodeContext& ctx) {
  const auto& o = ctx.options<schema::TransposeConv>();
  Expr w = ctx.in(1);
  check_rank(ctx, w, 4);
  Window window = window_of(ctx, ctx.in(2), schema::Padding::valid, kernel_sizes(ctx, w, {1, 2}),
                            {o.stride_h(), o.stride_w()}, {1, 1});
  return transposed(
      ctx, {.input = 2, .weight = 1, .bias = 3, .window = std::move(window), .order = {3, 0, 1, 2}},
      o.padding() == schema::Padding::same, o.activation());
}

// (shape, weights (depth, height, width, out, in), x, bias)
Values conv_3d_transpose(NodeContext& ctx) {
  const auto& o = ctx.options<schema::Conv3D>();
  Expr w = ctx.in(1);
  check_rank(ctx, w, 5);
  Window window = window_of(ctx, ctx.in(2), schema::Padding::valid, kernel_sizes(ctx, w, {0, 1, 2}),
                            {o.stride_d(), o.stride_h(), o.stride_w()},
                            {o.dilation_d(), o.dilation_h(), o.dilation_w()});
  return transposed(ctx,
                    {.input = 2,
                     .weight = 1,
                     .bias = 3,
                     .window = std::move(window),
                     .order = {4, 3, 0, 1, 2},
                     .channel_axis = 3},
                    o.padding() == schema::Padding::same, o.activation());
}

}  // namespace

template <>
std::span<const Row> rows<Family::Convolution>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"CONV_2D", conv_2d, O::conv_2d},
      {"CONV_3D", conv_3d, O::conv_3d},
      {"CONV_3D_TRANSPOSE", conv_3d_transpose, O::conv_3d},
      {"DEPTHWISE_CONV_2D", depthwise_conv_2d, O::depthwise_conv_2d},
      {"TRANSPOSE_CONV", transpose_conv, O::transpose_conv},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
