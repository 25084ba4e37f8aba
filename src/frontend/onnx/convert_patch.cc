// Images taken apart into patches and put together: Col2Im, convolution at displaced places.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/patches.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

Values convert_col2im(NodeContext& ctx) {
  Expr x = ctx.in(0), image = int_vector(ctx, 1, "the shape of the image"),
       block = int_vector(ctx, 2, "the shape of a patch");
  const int64_t nd = length_of_vector(image);
  if (NodeContext::rank_of(x) != 3 || nd < 1 || length_of_vector(block) != nd) {
    ctx.fail(codes::type_rank, "the input must be (batch, channels * patch, patches)", "rank 3",
             to_string(x->type));
  }
  const auto spatial = static_cast<size_t>(nd);
  return {value_of(image_of_patches(ctx, x, image, block,
                                    {.strides = ctx.attr_list("strides", spatial, 1),
                                     .dilations = ctx.attr_list("dilations", spatial, 1),
                                     .pads = ctx.attr_list("pads", 2 * spatial, 0)}))};
}

// A convolution whose kernel reads the image at places moved by an offset, between four pixels.
Values convert_deform_conv(NodeContext& ctx) {
  Expr x = ctx.in(0), weight = ctx.in(1), offset = ctx.in(2);
  if (NodeContext::rank_of(x) != 4 || NodeContext::rank_of(weight) != 4) {
    ctx.fail(codes::type_rank, "the input must be a batch of images", "rank 4", to_string(x->type));
  }
  const bool modulated = ctx.has(4);
  std::vector<Expr> args{x, offset};
  if (modulated) args.push_back(ctx.in(4));
  args.push_back(weight);
  Expr y = ctx.call(modulated ? "nn.modulated_deformable_conv2d" : "nn.deformable_conv2d", args,
                    {{"strides", to_value(ctx.attr_list("strides", 2, 1))},
                     {"dilation", to_value(ctx.attr_list("dilations", 2, 1))},
                     {"padding", to_value(ctx.attr_list("pads", 4, 0))},
                     {"groups", ctx.attr("group", 1)},
                     {"deformable_groups", ctx.attr("offset_group", 1)},
                     {"border", std::string("zeros")}});
  if (ctx.has(3)) y = ctx.add(y, ctx.expand_dims(ctx.in(3), 1, 2));
  return {value_of(y)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Patch>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Col2Im", 18, convert_col2im},
      {kOnnx, "DeformConv", 19, convert_deform_conv},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
