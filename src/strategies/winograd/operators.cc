// Convolutions with 3x3 kernels by minimal filtering: F(4x4, 3x3).
//
// A tile of 4x4 results needs the 6x6 elements under it. Both the elements and the kernel are
// transformed so that the results come from 36 products instead of 144, at the price of additions
// before and after. (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015,
// with the interpolation points 0, 1, -1, 2, -2.)
#include <array>

#include "analysis/calls.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/contraction/conv.h"
#include "ops/image/window.h"
#include "ops/rows.h"
#include "strategies/winograd/tiles.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;
using winograd::kKernel;
using winograd::kPoints;
using winograd::kTile;

struct Conv2DWinogradAttrs : AttrsOf<Conv2DWinogradAttrs, ConvAttrs> {
  int64_t tile_size = 4;
  Conv2DWinogradAttrs() : AttrsOf(2, "NCHW", "OIHW") {}
  static AttrsList describe() {
    std::vector<Field> fields = conv_fields<Self>();
    fields.insert(fields.begin(),
                  attribute("tile_size", &Self::tile_size, "Sides of the tiles of results: 4."));
    return {"relay.attrs.Conv2DWinogradAttrs", std::move(fields)};
  }
};

using Line = std::function<PrimExpr(int64_t)>;  // the elements of one line of a tile
using Lines = std::vector<PrimExpr>;

PrimExpr times(double factor, const PrimExpr& x) { return imm_float(x->dtype, factor) * x; }

// Transforms of one line. Equal terms are written alike, so that they are computed once.
Lines transform_data(const Line& d) {
  PrimExpr even = d(4) - times(4, d(2)), odd = d(3) - times(4, d(1));
  PrimExpr near = d(4) - d(2), far = times(2, d(3) - d(1));
  return {times(4, d(0)) - times(5, d(2)) + d(4), even + odd, even - odd, near + far, near - far,
          times(4, d(1)) - times(5, d(3)) + d(5)};
}

Lines transform_result(const Line& m) {
  PrimExpr sum1 = m(1) + m(2), sum2 = m(3) + m(4);
  PrimExpr difference1 = m(1) - m(2), difference2 = m(3) - m(4);
  return {m(0) + sum1 + sum2, difference1 + times(2, difference2), sum1 + times(4, sum2),
          difference1 + times(8, difference2) + m(5)};
}

Lines transform_kernel(const Line& g) {
  PrimExpr ends = g(0) + g(2);
  PrimExpr weighted = times(1. / 24, g(0)) + times(1. / 6, g(2)), middle = times(1. / 12, g(1));
  return {times(1. / 4, g(0)), times(-1. / 6, ends + g(1)), times(-1. / 6, ends - g(1)),
          weighted + middle,   weighted - middle,           g(2)};
}

// The line's element at `i`. The schedule unrolls i, and then one of them is left.
PrimExpr pick(const PrimExpr& i, const Lines& of) {
  PrimExpr out = of.back();
  for (size_t k = of.size() - 1; k-- > 0;)
    out = select(eq(i, index(static_cast<int64_t>(k))), of[k], out);
  return out;
}

bool check_tile_size(RelationContext& ctx, int64_t tile_size) {
  return require(ctx, tile_size == kTile, codes::op_bad_attribute, "tile_size is not supported",
                 "4", std::to_string(tile_size));
}

bool check_dtype(RelationContext& ctx, const TensorTypeNode& t) {
  return require(ctx, t.dtype.is_float(32) || t.dtype.is_float(64), codes::type_dtype,
                 "the transforms lose too much of this dtype", "float32 or float64",
                 t.dtype.to_string());
}

struct ConvWinogradWeightTransformAttrs : AttrsOf<ConvWinogradWeightTransformAttrs> {
  int64_t tile_size = 4;
  std::string kernel_layout = "OIHW";
  static AttrsList describe() {
    return {"relay.attrs.ConvWinogradWeightTransformAttrs",
            {attribute("tile_size", &Self::tile_size, "Sides of the tiles of results: 4."),
             attribute("kernel_layout", &Self::kernel_layout,
                       "Layout of the kernel: OIHW, or panels OHWIbo.")}};
  }
};

// Whether a kernel's layout is that of panels of outputs, OHWI32o; nullopt for one that is not supported.
std::optional<bool> in_panels(const std::string& kernel_layout) {
  auto l = Layout::parse(kernel_layout);
  if (kernel_layout == "OIHW") return false;
  if (!l || l->rank() != 5 || kernel_layout.substr(0, 4) != "OHWI" || l->block_of('O') == 1) {
    return std::nullopt;
  }
  return true;
}

Type weight_relation(RelationContext& ctx) {
  const TensorTypeNode* w = ctx.tensor(0);
  auto& a = ctx.attrs<ConvWinogradWeightTransformAttrs>();
  if (w == nullptr || !check_tile_size(ctx, a.tile_size) || !check_dtype(ctx, *w)) return nullptr;
  auto panels = in_panels(a.kernel_layout);
  if (!require(ctx, panels.has_value(), codes::op_bad_attribute, "kernel_layout is not supported",
               "OIHW, or panels such as OHWI32o", a.kernel_layout))
    return nullptr;
  const Layout layout = Layout::of(a.kernel_layout);
  auto side = [&](char name) { return w->shape[static_cast<size_t>(layout.index_of(name))]; };
  if (!require(ctx,
               w->rank() == layout.rank() && ctx.equal(side('H'), dim(kKernel)) &&
                   ctx.equal(side('W'), dim(kKernel)) &&
                   (!*panels || ctx.equal(w->shape[4], dim(layout.block_of('O')))),
               codes::type_shape, "the weight is no 3x3 kernel in its layout", a.kernel_layout,
               shape_text(w->shape)))
    return nullptr;
  std::vector<Dim> shape{dim(kPoints), dim(kPoints), side('O'), side('I')};
  if (*panels) shape.push_back(w->shape[4]);
  return tensor_type(std::move(shape), w->dtype);
}

// Each block has its part in winograd as its role; the schedule rule of that name places them.
tir::BlockRole winograd_part(const char* name) { return {"winograd", name}; }

TirTensor weight_compute(const ComputeContext& ctx) {
  TirTensor w = ctx.inputs[0];
  const bool panels = *in_panels(ctx.attrs<ConvWinogradWeightTransformAttrs>().kernel_layout);
  std::vector<PrimExpr> out = ctx.outputs[0].shape, lines = out;
  lines[1] = index(kKernel);
  TirTensor rows = tir::compute(
      "weight_rows", lines,
      [&](const Indices& i) {
        return pick(i[0], transform_kernel([&](int64_t r) {
                      return panels ? w(Indices{i[2], index(r), i[1], i[3], i[4]})
                                    : w(i[2], i[3], index(r), i[1]);
                    }));
      },
      winograd_part("weight_rows"));
  return tir::compute("weight", out, [&](const Indices& i) {
    return pick(i[1], transform_kernel([&](int64_t s) {
                  Indices at = i;
                  at[1] = index(s);
                  return rows(at);
                }));
  });
}

Type data_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
  if (x == nullptr || w == nullptr) return nullptr;
  auto& a = ctx.attrs<Conv2DWinogradAttrs>();
  auto ones = [](const Ints& list) {
    return std::all_of(list.begin(), list.end(), [](int64_t v) { return v == 1; });
  };
  auto pad = full_padding(a.padding, 2);
  if (!check_tile_size(ctx, a.tile_size) || !check_dtype(ctx, *x) ||
      !check_list(ctx, a.strides, 2, 1, "strides") ||
      !check_list(ctx, a.dilation, 2, 1, "dilation") ||
      !require(ctx, ones(a.strides) && ones(a.dilation) && a.groups == 1, codes::op_bad_attribute,
               "strides, dilation or groups are not supported", "1 for each") ||
      !require(ctx, a.data_layout == "NHWC" || a.data_layout == "NCHW", codes::op_bad_attribute,
               "data_layout is not supported", "NCHW or NHWC", a.data_layout) ||
      !require(ctx, a.out_layout.empty() || a.out_layout == a.data_layout, codes::op_bad_attribute,
               "out_layout is not supported", "that of the data", a.out_layout) ||
      !require(ctx, !is_set(a.out_dtype) || a.out_dtype == x->dtype, codes::op_bad_attribute,
               "out_dtype is not supported", x->dtype.to_string(), a.out_dtype.to_string()) ||
      !require(ctx, pad.has_value(), codes::op_bad_attribute, "padding is out of range",
               "1, 2 or 4 numbers from 0") ||
      !require(ctx, x->rank() == 4, codes::type_rank,
               "the data does not have the layout's dimensions", a.data_layout,
               shape_text(x->shape)) ||
      !require(ctx,
               (w->rank() == 4 || (w->rank() == 5 && a.channels)) &&
                   ctx.equal(w->shape[0], dim(kPoints)) && ctx.equal(w->shape[1], dim(kPoints)),
               codes::type_shape, "the weight is not transformed",
               "(6, 6, O, I), or (6, 6, O/b, I, b) and channels", shape_text(w->shape)) ||
      !require(ctx, x->dtype == w->dtype, codes::type_dtype,
               "data and weight have different dtypes", "one dtype",
               x->dtype.to_string() + " and " + w->dtype.to_string()))
    return nullptr;
  Layout data = Layout::of(a.data_layout);
  Dim out_channels = a.channels ? dim(*a.channels) : w->shape[2];
  Dim panels = w->rank() == 4 ? out_channels : ceil_div(out_channels, w->shape[4]);
  if (!require(ctx, ctx.equal(w->shape[3], x->shape[axis_of(data, 'C')]), codes::type_shape,
               "the data's channels do not fit the weight's", to_string(w->shape[3]),
               to_string(x->shape[axis_of(data, 'C')])) ||
      !require(ctx, ctx.equal(w->shape[2], panels), codes::op_bad_attribute,
               "channels contradicts the weight", to_string(panels), to_string(w->shape[2])))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  shape[axis_of(data, 'C')] = out_channels;
  for (size_t i = 0; i < 2; ++i) {
    size_t axis = axis_of(data, spatial_axes(2)[i]);
    auto size =
        window_size(ctx, x->shape[axis], dim(kKernel), 1, 1, (*pad)[i], (*pad)[2 + i], false);
    if (!size) return nullptr;
    shape[axis] = *size;
  }
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor data_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<Conv2DWinogradAttrs>();
  TirTensor x = ctx.inputs[0], w = ctx.inputs[1];
  const std::vector<PrimExpr>& out = ctx.outputs[0].shape;
  Layout layout = Layout::of(a.data_layout);
  size_t n = axis_of(layout, 'N'), c = axis_of(layout, 'C'), h = axis_of(layout, 'H'),
         v = axis_of(layout, 'W');
  Ints pad = *full_padding(a.padding, 2);
  PrimExpr inputs = x->shape()[c], outputs = out[c], batch = out[n];
  auto tiles = [](const PrimExpr& size) { return floor_div(size + (kTile - 1), index(kTile)); };
  PrimExpr tile_rows = tiles(out[h]), tile_columns = tiles(out[v]);

  // Zeros around the input, also where the last tiles reach over the end.
  std::vector<PrimExpr> padded{batch, tile_rows * kTile + 2, tile_columns * kTile + 2, inputs};
  TirTensor element = tir::compute(
      "pad", padded,
      [&](const Indices& i) {
        PrimExpr row = i[1] - pad[0], column = i[2] - pad[1];
        Indices at(4);
        at[n] = i[0];
        at[h] = row;
        at[v] = column;
        at[c] = i[3];
        PrimExpr inside = logical_and(logical_and(ge(row, index(0)), lt(row, x->shape()[h])),
                                      logical_and(ge(column, index(0)), lt(column, x->shape()[v])));
        return select(inside, x(at), imm(x->dtype, 0));
      },
      winograd_part("pad"));
  TirTensor rows = tir::compute(
      "data_rows", {batch, tile_rows, tile_columns, index(kPoints), index(kPoints), inputs},
      [&](const Indices& i) {
        return pick(i[3], transform_data([&](int64_t r) {
                      return element(i[0], i[1] * kTile + r, i[2] * kTile + i[4], i[5]);
                    }));
      },
      winograd_part("data_rows"));
  TirTensor data = tir::compute(
      "data", {index(kPoints), index(kPoints), batch, tile_rows, tile_columns, inputs},
      [&](const Indices& i) {
        return pick(i[1], transform_data([&](int64_t s) {
                      return rows(i[2], i[3], i[4], i[0], index(s), i[5]);
                    }));
      },
      winograd_part("data"));
  TirTensor product = tir::compute(
      "product", {index(kPoints), index(kPoints), batch, tile_rows, tile_columns, outputs},
      [&](const Indices& i) {
        return tir::sum({inputs}, [&](const Indices& k) {
          PrimExpr weight;
          if (w->rank() == 4) {
            weight = w(i[0], i[1], i[5], k[0]);
          } else {
            const PrimExpr& panel = w->shape()[4];
            weight = w(i[0], i[1], floor_div(i[5], panel), k[0], floor_mod(i[5], panel));
          }
          return data(i[0], i[1], i[2], i[3], i[4], k[0]) * weight;
        });
      },
      winograd_part("product"));
  TirTensor result_rows = tir::compute(
      "result_rows", {batch, tile_rows, tile_columns, index(kTile), index(kPoints), outputs},
      [&](const Indices& i) {
        return pick(i[3], transform_result([&](int64_t r) {
                      return product(index(r), i[4], i[0], i[1], i[2], i[5]);
                    }));
      },
      winograd_part("result_rows"));
  return tir::compute(
      "conv2d_winograd", out,
      [&](const Indices& i) {
        return pick(floor_mod(i[v], index(kTile)), transform_result([&](int64_t s) {
                      return result_rows(i[n], floor_div(i[h], index(kTile)),
                                         floor_div(i[v], index(kTile)),
                                         floor_mod(i[h], index(kTile)), index(s), i[c]);
                    }));
      },
      winograd_part("result"));
}

// What the convolution costs as it is defined: so times compare.
double data_cost(const CallNode& c) {
  auto& a = static_cast<const Conv2DWinogradAttrs&>(*c.attrs.get());
  auto* x = as<TensorTypeNode>(c.args[0]->type);
  auto channels = as_const(x->shape[axis_of(Layout::of(a.data_layout), 'C')]);
  return 2.0 * kKernel * kKernel * static_cast<double>(channels.value_or(0)) * num_elements(c.type);
}

// Two products by the 6x3 matrix of the transform for each pair of channels.
double weight_cost(const CallNode& c) {
  constexpr double kSide = 6, kTaps = 3;
  return 2 * (kSide * kTaps * kTaps + kSide * kSide * kTaps) / (kSide * kSide) *
         num_elements(c.type);
}

// A weight that is transformed at each run is packed before it is four times as large.
Expr packed_winograd(const CallNode& c, WeightPacker& packer) {
  if (!packer.packs(c.args[1]) || static_shape(c.args[1])->size() != 4) return nullptr;
  const std::string columns = std::to_string(packer.panel(c.args[1])) + "o";
  auto* transform = as<CallNode>(c.args[1]);
  Expr& weight = packer.shared(c.args[1], "transformed");
  if (weight) {
    // Another convolution has the same.
  } else if (transform != nullptr && !packer.is_constant(c.args[1]) &&
             is_call_to(c.args[1], "nn.contrib_conv2d_winograd_weight_transform")) {
    weight =
        with_attrs(*transform, {packer.packed(c, transform->args[0], "OIHW", "OHWI" + columns)},
                   {{"kernel_layout", AttrValue("OHWI" + columns)}});
  } else {
    weight = packer.packed(c, c.args[1], "HWOI", "HWOI" + columns);
  }
  return with_attrs(c, {c.args[0], weight},
                    {{"channels", AttrValue((*static_shape(c.args[1]))[2])}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Winograd>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.contrib_conv2d_winograd_weight_transform",
          .doc = "The weight (O, I, 3, 3) of a convolution as "
                 "nn.contrib_conv2d_winograd_without_weight_transform "
                 "takes it: (6, 6, O, I), or (6, 6, O/b, I, b) of panels.",
          .args = {{"weight", "The kernel, in kernel_layout."}},
          .attrs = &ConvWinogradWeightTransformAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = weight_relation,
          .compute = compute_rule(weight_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = weight_cost,
          .gradient = Absent::MadeByPasses,
          .batching = Absent::LaneByLane,
          .examples = {{{"Tensor[(3, 2, 3, 3), float32]"}, "tile_size=4"},
                       {{"Tensor[(2, 3, 3, 2, 4), float32]"},
                        "tile_size=4, kernel_layout=\"OHWI4o\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.contrib_conv2d_winograd_without_weight_transform",
          .doc = "Convolution with a 3x3 kernel that is transformed already, by minimal filtering: "
                 "a quarter "
                 "of the products; float32 results differ from nn.conv2d's by about 1e-5 of their "
                 "size.",
          .args = {{"data", "The input, in data_layout."},
                   {"weight",
                    "The transformed kernel: (6, 6, O, I), or panels (6, 6, O/b, I, b)."}},
          .attrs = &Conv2DWinogradAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = data_relation,
          .compute = compute_rule(data_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = data_cost,
          .gradient = Absent::MadeByPasses,
          .batching = Absent::LaneByLane,
          .packing = packed_winograd,
          .examples = {{{"Tensor[(1, 2, 7, 6), float32]", "Tensor[(6, 6, 3, 2), float32]"},
                        "tile_size=4, padding=[1, 1]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
