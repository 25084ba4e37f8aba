// Operators that move pixels: between space and channels, apart from each other, into larger
// images.
#include <cmath>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ir/layout.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Where the channels and the pixels of an image are.
struct ImageAxes {
  size_t channel, height, width;
};

std::optional<ImageAxes> image_axes(const std::string& layout) {
  if (layout == "NCHW") return ImageAxes{1, 2, 3};
  if (layout == "NHWC") return ImageAxes{3, 1, 2};
  return std::nullopt;
}

std::optional<ImageAxes> checked_axes(RelationContext& ctx, const TensorTypeNode& x,
                                      const std::string& layout) {
  auto axes = image_axes(layout);
  if (!require(ctx, axes.has_value(), codes::op_bad_attribute, "layout is not supported",
               "NCHW or NHWC", layout) ||
      !require(ctx, x.rank() == 4, codes::type_rank, "needs an image", "4 dimensions",
               shape_text(x.shape)))
    return std::nullopt;
  return axes;
}

// `size` divided by a factor that must divide it.
std::optional<Dim> divided(RelationContext& ctx, const Dim& size, int64_t by, const char* what) {
  if (!require(ctx, ctx.equal(relay::mod(size, dim(by)), dim(0)), codes::type_shape,
               std::string(what) + " is not a multiple of " + std::to_string(by), "",
               to_string(size)))
    return std::nullopt;
  return floor_div(size, dim(by));
}

struct SubPixelAttrs : AttrsOf<SubPixelAttrs> {
  int64_t block_size = 1;
  std::string layout = "NCHW", mode = "DCR";
  static AttrsList describe() {
    return {"relay.attrs.SubPixelAttrs",
            {attribute("block_size", &Self::block_size, "Size of a block."),
             attribute("layout", &Self::layout, "Layout."),
             attribute("mode", &Self::mode, "DCR or CDR.")}};
  }
};

// Space to depth when `down`, else depth to space.
template <bool down>
Type sub_pixel_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<SubPixelAttrs>();
  auto axes = checked_axes(ctx, *x, a.layout);
  int64_t b = a.block_size;
  if (!axes ||
      !require(ctx, b >= 1 && b < (int64_t{1} << 20), codes::op_bad_attribute,
               "block_size is out of range", "1 or more", std::to_string(b)) ||
      !require(ctx, a.mode == "DCR" || a.mode == "CDR", codes::op_bad_attribute,
               "mode is not known", "DCR or CDR", a.mode))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  Dim &c = shape[axes->channel], &h = shape[axes->height], &w = shape[axes->width];
  if (down) {
    auto rows = divided(ctx, h, b, "the height");
    auto columns = rows ? divided(ctx, w, b, "the width") : std::nullopt;
    if (!columns) return nullptr;
    h = *rows;
    w = *columns;
    c = c * dim(b * b);
  } else {
    auto channels = divided(ctx, c, b * b, "the number of channels");
    if (!channels) return nullptr;
    c = *channels;
    h = h * dim(b);
    w = w * dim(b);
  }
  return tensor_type(std::move(shape), x->dtype);
}

// Channels of the deep image are (block row, block column, channel) in DCR mode, the pixel order of
// depth-to-space, and (channel, block row, block column) in CDR mode.
std::shared_ptr<const ComputeRule> sub_pixel_rule(bool down) {
  return compute_rule([down](const ComputeContext& ctx) {
    auto& a = ctx.attrs<SubPixelAttrs>();
    ImageAxes axes = *image_axes(a.layout);
    TirTensor x = ctx.inputs[0];
    bool inside = a.mode == "CDR";
    PrimExpr b = index(a.block_size);
    const std::vector<PrimExpr>& flat_shape = down ? x->shape() : ctx.outputs[0].shape;
    PrimExpr channels = flat_shape[axes.channel];
    return tir::compute(
        down ? "T_space_to_depth" : "T_depth_to_space", ctx.outputs[0].shape,
        [&](const Indices& i) {
          Indices at = i;
          const PrimExpr &c = i[axes.channel], &h = i[axes.height], &w = i[axes.width];
          if (down) {
            PrimExpr block = inside ? floor_mod(c, b * b) : floor_div(c, channels);
            at[axes.channel] = inside ? floor_div(c, b * b) : floor_mod(c, channels);
            at[axes.height] = h * b + floor_div(block, b);
            at[axes.width] = w * b + floor_mod(block, b);
          } else {
            PrimExpr block = floor_mod(h, b) * b + floor_mod(w, b);
            at[axes.channel] = inside ? c * b * b + block : block * channels + c;
            at[axes.height] = floor_div(h, b);
            at[axes.width] = floor_div(w, b);
          }
          return x(at);
        });
  });
}

struct DilateAttrs : AttrsOf<DilateAttrs> {
  Ints strides{1, 1};
  double dilation_value = 0;
  static AttrsList describe() {
    return {"relay.attrs.DilateAttrs",
            {attribute("strides", &Self::strides, "Distance of elements along each axis."),
             attribute("dilation_value", &Self::dilation_value, "Stands in between.")}};
  }
};

Type dilate_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  const Ints& strides = ctx.attrs<DilateAttrs>().strides;
  if (!require(ctx, static_cast<int64_t>(strides.size()) == x->rank(), codes::op_bad_attribute,
               "strides must have an entry for each axis", std::to_string(x->rank()),
               std::to_string(strides.size())))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!require(ctx, strides[d] >= 1 && strides[d] < (int64_t{1} << 40), codes::op_bad_attribute,
                 "a stride is out of range", "1 or more", std::to_string(strides[d])))
      return nullptr;
    shape[d] = dilated_size(shape[d], strides[d]);
  }
  return tensor_type(std::move(shape), x->dtype);
}

struct UpSamplingAttrs : AttrsOf<UpSamplingAttrs> {
  double scale_h = 1, scale_w = 1;
  std::string layout = "NCHW", method = "nearest_neighbor";
  bool align_corners = false;
  static AttrsList describe() {
    return {"relay.attrs.UpSamplingAttrs",
            {attribute("scale_h", &Self::scale_h, "Factor of the height."),
             attribute("scale_w", &Self::scale_w, "Factor of the width."),
             attribute("layout", &Self::layout, "Layout of the image."),
             attribute("method", &Self::method, "nearest_neighbor or bilinear."),
             attribute("align_corners", &Self::align_corners, "Corners stay in place.")}};
  }
};

// The attributes of nn.upsampling as the resize that it is.
Attrs resize_attrs(const OpInfo& resize, const UpSamplingAttrs& a, int64_t height, int64_t width) {
  return make_attrs(*resize.attrs,
                    {{"size", ValueList{height, width}},
                     {"layout", a.layout},
                     {"method", a.method == "bilinear" ? std::string("linear") : a.method},
                     {"coordinate_transformation_mode",
                      std::string(a.align_corners ? "align_corners" : "asymmetric")},
                     {"rounding_method", std::string(a.align_corners ? "round" : "floor")}},
                    resize.name, {});
}

Type upsampling_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<UpSamplingAttrs>();
  auto axes = checked_axes(ctx, *x, a.layout);
  auto sensible = [](double scale) { return scale > 0 && scale < 0x1p20; };
  if (!axes ||
      !require(ctx, sensible(a.scale_h) && sensible(a.scale_w), codes::op_bad_attribute,
               "a scale is out of range", "more than 0",
               std::to_string(a.scale_h) + " and " + std::to_string(a.scale_w)) ||
      !require(ctx, a.method == "nearest_neighbor" || a.method == "bilinear",
               codes::op_bad_attribute, "method is not supported", "nearest_neighbor or bilinear",
               a.method))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (bool rows : {true, false}) {
    Dim& size = shape[rows ? axes->height : axes->width];
    auto known = as_const(size);
    double scaled =
        known ? std::round(static_cast<double>(*known) * (rows ? a.scale_h : a.scale_w)) : 0;
    if (!require(ctx, scaled >= 1 && scaled < 0x1p40, codes::type_shape,
                 "height and width must be known and not zero", "constants", shape_text(x->shape)))
      return nullptr;
    size = dim(static_cast<int64_t>(scaled));
  }
  return tensor_type(std::move(shape), x->dtype);
}

std::vector<TirTensor> upsampling_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<UpSamplingAttrs>();
  ImageAxes axes = *image_axes(a.layout);
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  const OpInfo& resize = *OpRegistry::global().get("image.resize2d")->row;
  ComputeContext resized = ctx;
  resized.attrs_ref =
      resize_attrs(resize, a, *as_int(shape[axes.height]), *as_int(shape[axes.width]));
  return resize.compute->build(resized);
}

double upsampling_cost(const CallNode& c) {
  auto& a = static_cast<const UpSamplingAttrs&>(*c.attrs.get());
  return (a.method == "nearest_neighbor" ? 0 : 4) * num_elements(c.type);
}

TirTensor dilate_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<DilateAttrs>();
  TirTensor x = ctx.inputs[0];
  PrimExpr between = tir::cast(x->dtype, imm_float(DType::Float(64), a.dilation_value));
  return tir::compute("T_dilate", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    PrimExpr is_element = boolean(true);
    for (size_t d = 0; d < i.size(); ++d) {
      if (a.strides[d] == 1) continue;
      at[d] = floor_div(i[d], index(a.strides[d]));
      is_element = logical_and(is_element, eq(floor_mod(i[d], index(a.strides[d])), index(0)));
    }
    return select(is_element, x(at), between);
  });
}

// ---- Gradients

// Each of the two undoes the other.
Adjoints sub_pixel_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<SubPixelAttrs>();
  bool down = is_call_to(Expr(&ctx.call), "nn.space_to_depth");
  return {apply(down ? "nn.depth_to_space" : "nn.space_to_depth", {ctx.adjoint()},
                {{"block_size", a.block_size}, {"layout", a.layout}, {"mode", a.mode}})};
}

// That of the resize that it is.
Adjoints upsampling_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<UpSamplingAttrs>();
  ImageAxes axes = *image_axes(a.layout);
  Op resize = OpRegistry::global().get("image.resize2d");
  const std::vector<Dim>& shape = type_of(ctx.result).shape;
  Call same = call(
      Expr(resize), {ctx.arg(0)},
      resize_attrs(*resize->row, a, *as_const(shape[axes.height]), *as_const(shape[axes.width])),
      ctx.call.span);
  return resize->row->gradient(GradientContext{*same.get(), ctx.result, ctx.adjoints});
}

Adjoints dilate_gradient(const GradientContext& ctx) {
  const Ints& strides = ctx.attrs<DilateAttrs>().strides;
  return {apply("strided_slice", {ctx.adjoint()},
                {{"begin", to_value(Ints(strides.size(), 0))},
                 {"end", to_value(Ints(strides.size(), INT32_MAX))},
                 {"strides", to_value(strides)}})};
}

// ---- Batching

// No zeros between the lanes.
Expr batch_dilate(const BatchingContext& ctx) {
  Ints strides = ctx.attrs<DilateAttrs>().strides;
  strides.insert(strides.begin(), 1);
  return with_attrs(ctx.call, ctx.args, {{"strides", to_value(strides)}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Spatial>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.depth_to_space",
          .doc = "Spreads blocks of channels over squares of pixels.",
          .args = {{"data", "The image, in `layout`."}},
          .attrs = &SubPixelAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = sub_pixel_type<false>,
          .compute = sub_pixel_rule(false),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = sub_pixel_gradient,
          .batching = batch_rows_by_layout,
          .moves = ElementMoves{},
          .examples = {{{"Tensor[(1, 8, 2, 3), float32]"}, "block_size=2"},
                       {{"Tensor[(1, 2, 3, 12), float32]"},
                        "block_size=2, layout=\"NHWC\", mode=\"CDR\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.space_to_depth",
          .doc = "Collects squares of pixels into channels.",
          .args = {{"data", "The image, in `layout`."}},
          .attrs = &SubPixelAttrs::static_info(),
          .support_level = 5,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = sub_pixel_type<true>,
          .compute = sub_pixel_rule(true),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = sub_pixel_gradient,
          .batching = batch_rows_by_layout,
          .moves = ElementMoves{},
          .examples = {{{"Tensor[(1, 2, 4, 6), float32]"}, "block_size=2"},
                       {{"Tensor[(1, 4, 6, 3), float32]"},
                        "block_size=2, layout=\"NHWC\", mode=\"CDR\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.upsampling",
          .doc = "An image enlarged by factors.",
          .args = {{"data", "The image, in `layout`."}},
          .attrs = &UpSamplingAttrs::static_info(),
          .support_level = 2,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = upsampling_type,
          .compute = compute_rule_multi(upsampling_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = upsampling_cost,
          .gradient = upsampling_gradient,
          .batching = batch_rows_by_layout,
          .examples = {{{"Tensor[(1, 2, 3, 4), float32]"}, "scale_h=2.0f, scale_w=3.0f"},
                       {{"Tensor[(1, 3, 4, 2), float32]"},
                        "scale_h=2.0f, scale_w=1.5f, layout=\"NHWC\", method=\"bilinear\", "
                        "align_corners=True"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.dilate",
          .doc = "Puts a value between the elements: they become strides apart.",
          .args = {{"data", "The input."}},
          .attrs = &DilateAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = dilate_type,
          .compute = compute_rule(dilate_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = dilate_gradient,
          .batching = batch_dilate,
          .examples = {{{"Tensor[(3, 4), float32]"}, "strides=[2, 3], dilation_value=-1.0f"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
