// Images taken apart into patches and put together: Col2Im, convolution at displaced places.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

const DType kI64 = DType::Int(64);

std::vector<int64_t> list_for_axes(NodeContext& ctx, const char* name, int64_t size,
                                   int64_t otherwise) {
  std::vector<int64_t> v = ctx.attr_ints(name);
  if (v.empty()) v.assign(static_cast<size_t>(size), otherwise);
  if (static_cast<int64_t>(v.size()) != size) {
    ctx.fail(codes::frontend_attribute,
             std::string("attribute '") + name + "' has the wrong length", std::to_string(size),
             std::to_string(v.size()));
  }
  return v;
}

// Every column of the input is a patch of the image; where patches overlap they are added.
Values convert_col2im(NodeContext& ctx) {
  Expr x = ctx.in(0), image = int_vector(ctx, 1, "the shape of the image"),
       block = int_vector(ctx, 2, "the shape of a patch");
  const int64_t nd = length_of_vector(image);
  if (NodeContext::rank_of(x) != 3 || nd < 1 || length_of_vector(block) != nd) {
    ctx.fail(codes::type_rank, "the input must be (batch, channels * patch, patches)", "rank 3",
             to_string(x->type));
  }
  std::vector<int64_t> dilations = list_for_axes(ctx, "dilations", nd, 1),
                       strides = list_for_axes(ctx, "strides", nd, 1),
                       pads = list_for_axes(ctx, "pads", 2 * nd, 0);
  auto number = [&](int64_t v) { return ctx.scalar(static_cast<double>(v), kI64); };
  auto divide = [&](const Expr& a, const Expr& b) { return ctx.call("floor_divide", {a, b}); };
  auto product_of = [&](const Expr& v) { return ctx.reduce("prod", v, {0}, false); };
  Expr in_patch = open_range(ctx, number(0), product_of(block));
  // How many patches there are along each axis.
  std::vector<Expr> sizes, extents, counts;
  Expr patches = number(1);
  for (int64_t i = 0; i < nd; ++i) {
    auto k = static_cast<size_t>(i);
    sizes.push_back(ctx.select(image, 0, i));
    extents.push_back(ctx.select(block, 0, i));
    Expr reach = ctx.mul(ctx.sub(extents[k], number(1)), number(dilations[k]));
    Expr room = ctx.sub(ctx.add(sizes[k], number(pads[k] + pads[k + static_cast<size_t>(nd)])),
                        ctx.add(reach, number(1)));
    counts.push_back(ctx.add(divide(room, number(strides[k])), number(1)));
    patches = ctx.mul(patches, counts[k]);
  }
  Expr patch = open_range(ctx, number(0), patches);
  // (in the patch, patch): where each element goes, counted through the image.
  Expr rest_in = in_patch, rest_of = patch, place, inside, step = number(1);
  for (int64_t i = nd; i-- > 0;) {
    auto k = static_cast<size_t>(i);
    Expr within = ctx.call("floor_mod", {rest_in, extents[k]});
    Expr which = ctx.call("floor_mod", {rest_of, counts[k]});
    rest_in = divide(rest_in, extents[k]);
    rest_of = divide(rest_of, counts[k]);
    Expr begin = ctx.sub(ctx.mul(which, number(strides[k])), number(pads[k]));
    Expr at = ctx.add(ctx.expand_dims(ctx.mul(within, number(dilations[k])), 1),
                      ctx.expand_dims(begin, 0));
    Expr good = ctx.call("logical_and", {ctx.call("greater_equal", {at, number(0)}),
                                         ctx.call("less", {at, sizes[k]})});
    inside = inside ? ctx.call("logical_and", {inside, good}) : good;
    Expr here = ctx.mul(at, step);
    place = place ? ctx.add(place, here) : here;
    step = ctx.mul(step, sizes[k]);
  }
  // What lies in the padding goes behind the image, and is cut off.
  place = ctx.call("where", {inside, place, step});
  Expr all = ctx.mul(product_of(block), patches);
  auto as_vector = [&](const Expr& e) { return ctx.reshape(e, std::vector<int64_t>{1}); };
  Expr columns = ctx.concat({ctx.ints({-1}), as_vector(all)}, 0);
  Expr values = ctx.call("dyn.reshape", {x, columns});
  Expr lines = ctx.select(sizes_of(ctx, values), 0, 0);
  DType dtype = NodeContext::dtype_of(x);
  Expr shape = ctx.concat({as_vector(lines), as_vector(ctx.add(step, number(1)))}, 0);
  Expr zeros = ctx.call("dyn.full", {ctx.scalar(0, dtype), shape});
  Expr places = ctx.call("dyn.broadcast_to", {ctx.reshape(place, {dim(1), dim_any()}),
                                              ctx.concat({as_vector(lines), as_vector(all)}, 0)});
  Expr y = ctx.call("scatter_elements", {zeros, places, values},
                    {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  y = open_slice(ctx, y, ctx.ints({0}), as_vector(step), ctx.ints({1}), {1});
  Expr batch = entries(ctx, sizes_of(ctx, x), 0, 1);
  return {value_of(
      open_reshape(ctx, y, ctx.concat({batch, divide(as_vector(lines), batch), image}, 0)))};
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
                    {{"strides", to_value(list_for_axes(ctx, "strides", 2, 1))},
                     {"dilation", to_value(list_for_axes(ctx, "dilations", 2, 1))},
                     {"padding", to_value(list_for_axes(ctx, "pads", 4, 0))},
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
