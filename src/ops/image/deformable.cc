// Convolutions whose kernel reads the data at places that are moved by an offset (Dai et al., Deformable
// Convolutional Networks, 2017; Zhu et al., Deformable ConvNets v2, 2019).
#include <algorithm>

#include "ops/composed.h"
#include "ops/contraction/conv.h"
#include "ops/gradient.h"
#include "ops/image/window.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::CallNode;

struct DeformableAttrs : AttrsOf<DeformableAttrs, ConvAttrs> {
  int64_t deformable_groups = 1;
  std::string border = "edge";
  DeformableAttrs() : AttrsOf(2, "NCHW", "OIHW") {}
  static AttrsList describe() {
    AttrsList out{"relay.attrs.DeformableConv2DAttrs", conv_fields<DeformableAttrs>()};
    out.fields.push_back(attribute("deformable_groups", &Self::deformable_groups,
                                   "Groups of channels that have an offset of their own."));
    out.fields.push_back(attribute(
        "border", &Self::border,
        "edge: beyond the outermost elements' places there is nothing; zeros: there are zeros, and "
        "half an element outside is half of the outermost."));
    return out;
  }
};

// The call's tensors with channels first, and its sizes, of which those of the batch and of the images may be open.
struct Deformed {
  Expr x, offset, mask, weight;  // mask: or null
  int64_t channels = 0, out = 0, kernel_y = 0, kernel_x = 0, groups = 1, moved = 1;
  Dim n = {}, height = {}, width = {}, out_y = {}, out_x = {};
  Ints strides = {}, dilation = {}, padding = {};
  bool zeros_outside = false;
  int64_t taps() const { return kernel_y * kernel_x; }
  Dim places() const { return dim(taps()) * out_y * out_x; }
};

Deformed checked(const CallNode& call, bool modulated) {
  auto& a = attrs_of<DeformableAttrs>(call);
  const bool last = a.data_layout == "NHWC", out_last = a.kernel_layout == "HWIO";
  demand(call,
         (last || a.data_layout == "NCHW") && (out_last || a.kernel_layout == "OIHW") &&
             (a.out_layout.empty() || a.out_layout == a.data_layout),
         "a layout is not supported", "NCHW or NHWC, OIHW or HWIO",
         a.data_layout + ", " + a.kernel_layout + ", " + a.out_layout);
  const DType dtype = type_of(call.args[0]).dtype;
  for (size_t i = 0; i < call.args.size(); ++i) {
    demand_rank(call, i, 4);
    const DType other = type_of(call.args[i]).dtype;
    demand(call, other.is_floating() && other == dtype, "needs one floating dtype",
           dtype.to_string(), other.to_string());
  }
  auto first = [&](const Expr& e) { return last ? move_axis(e, 3, 1) : e; };
  Deformed d{.x = first(call.args[0]),
             .offset = first(call.args[1]),
             .mask = modulated ? first(call.args[2]) : Expr(nullptr),
             .weight = out_last ? transposed(call.args.back(), {3, 2, 0, 1}) : call.args.back()};
  const std::vector<Dim>& x = type_of(d.x).shape;
  const Ints w = numbers_of(call, type_of(d.weight).shape, "a size of the weight");
  const auto padding = full_padding(a.padding, 2);
  auto fit = [](const Ints& list, size_t size, int64_t least) {
    return list.size() == size &&
           std::ranges::all_of(list, [=](int64_t v) { return v >= least && v <= kLargestStep; });
  };
  demand(call,
         padding && fit(*padding, 4, 0) && fit(a.strides, 2, 1) && fit(a.dilation, 2, 1) &&
             fit({a.groups, a.deformable_groups}, 2, 1),
         "strides, padding, dilation or groups do not fit",
         "two strides and dilations of 1 or more, borders and groups up to " +
             std::to_string(kLargestStep));
  demand_few(call, element_count({w[2], w[3]}), kMostOperators * 16, "places of the kernel");
  demand(call, a.border == "edge" || a.border == "zeros", "border is not known", "edge or zeros",
         a.border);
  demand(call, std::ranges::none_of(x, is_any), "a size of the data depends on data",
         "numbers or names", shape_text(x));
  d.n = x[0], d.channels = number_of(call, x[1], "the channels"), d.height = x[2], d.width = x[3];
  d.out = w[0], d.kernel_y = w[2], d.kernel_x = w[3];
  d.groups = a.groups, d.moved = a.deformable_groups;
  d.strides = a.strides, d.dilation = a.dilation, d.padding = *padding;
  d.zeros_outside = a.border == "zeros";
  auto windows = [&](const Dim& size, int64_t kernel, size_t axis) {
    const int64_t beside = d.padding[axis] + d.padding[axis + 2] - (kernel - 1) * d.dilation[axis];
    const Dim last = size + dim(beside - 1);
    demand(call, kernel >= 1 && as_const(last).value_or(0) >= 0,
           "the kernel does not fit into the padded data");
    return floor_div(last, dim(d.strides[axis])) + dim(1);
  };
  d.out_y = windows(d.height, d.kernel_y, 0), d.out_x = windows(d.width, d.kernel_x, 1);
  demand(call,
         d.channels % d.groups == 0 && d.out % d.groups == 0 && d.channels % d.moved == 0 &&
             w[1] == d.channels / d.groups,
         "the groups do not divide the channels",
         "a weight of " + std::to_string(d.channels / d.groups) + " channels",
         to_string(call.args.back()->type));
  demand(call,
         (!a.channels || *a.channels == d.out) &&
             (!a.kernel_size || *a.kernel_size == Ints{d.kernel_y, d.kernel_x}),
         "channels or kernel_size contradict the weight");
  auto known = [](const Dim& size) { return as_const(size).value_or(1); };
  demand(call,
         std::max(element_count({known(d.n), d.channels, known(d.height), known(d.width)}),
                  element_count({known(d.n), d.channels, d.out, d.taps(), known(d.out_y),
                                 known(d.out_x)})) < 0x1p48,
         "the sizes are out of range", "fewer than 2^48 elements and products");
  // A run checks the sizes that are open, one after the other.
  auto expect = [&](Expr& e, int64_t parts, const char* what) {
    const std::vector<Dim> want{d.n, dim(d.moved * parts * d.taps()), d.out_y, d.out_x};
    std::vector<Dim> sizes = type_of(e).shape;
    bool fits = true;
    for (size_t k = 0; k < 4; ++k) fits &= !dim_differs(sizes[k], want[k]);
    demand(call, fits, std::string(what) + " does not fit, channels first", shape_text(want),
           shape_text(sizes));
    for (size_t k = 0; k < 4; ++k) {
      if (dim_equal(sizes[k], want[k])) continue;
      sizes[k] = want[k];
      e = reshape_to(e, sizes);
    }
  };
  expect(d.offset, 2, "the offset");
  if (modulated) expect(d.mask, 1, "the mask");
  return d;
}

// The data at the moved places: (n, moved, channels / moved, taps * out_y * out_x).
Expr sampled(const Deformed& d) {
  const int64_t k = d.taps();
  const std::vector<Dim> flat{d.n, dim(d.moved), dim(1), d.places()};
  const DType dtype = type_of(d.x).dtype;
  Expr moves = reshape_to(d.offset, {d.n, dim(d.moved), dim(k), dim(2), d.out_y, d.out_x});
  // Where an unmoved kernel reads along an axis, and how far beside that.
  auto position = [&](size_t axis, const Dim& out) {
    Ints taps;
    for (int64_t e = 0; e < k; ++e) {
      const int64_t at = axis == 0 ? e / d.kernel_x : e % d.kernel_x;
      taps.push_back(at * d.dilation[axis] - d.padding[axis]);
    }
    Expr window = iota(out);
    if (d.strides[axis] != 1) window = window * indices_constant({d.strides[axis]}, {});
    Expr at = indices_constant(taps, {k, 1, 1}) + (axis == 0 ? expanded(window, 1) : window);
    Expr move = apply("squeeze", {slice_axis(moves, 3, dim(static_cast<int64_t>(axis)), dim(1))},
                      {{"axis", to_value(Ints{3})}});
    return move + cast_to(at, dtype);
  };
  struct Axis {
    Expr place, low, part;
  };
  auto axis_of = [&](size_t axis, const Dim& out) {
    Expr place = position(axis, out), low = apply("floor", {place});
    return Axis{place, low, place - low};
  };
  const Axis y = axis_of(0, d.out_y), x = axis_of(1, d.out_x);
  auto within = [&](const Expr& at, const Dim& size) {
    return apply("logical_and", {apply("greater_equal", {at, scalar(0, at)}),
                                 apply("less", {at, size_as(size, at)})});
  };
  auto inside = [&](const Expr& row, const Expr& column) {
    return apply("logical_and", {within(row, d.height), within(column, d.width)});
  };
  auto element = [&](const Expr& at, const Dim& size) {
    Expr low = apply("maximum", {at, scalar(0, at)});
    return as_index(apply("minimum", {low, size_as(size - dim(1), at)}));
  };
  const Dim part_channels = dim(d.channels / d.moved);
  Expr image = reshape_to(d.x, {d.n, dim(d.moved), part_channels, d.height * d.width});
  const std::vector<Dim> everywhere{d.n, dim(d.moved), part_channels, d.places()};
  Expr sum;
  for (int corner = 0; corner < 4; ++corner) {
    const bool down = corner / 2 == 1, aside = corner % 2 == 1;
    auto side = [](const Axis& a, bool high) { return high ? 1 + a.low : a.low; };
    auto weight = [](const Axis& a, bool high) { return high ? a.part : 1 - a.part; };
    Expr row = side(y, down), column = side(x, aside);
    Expr share = weight(y, down) * weight(x, aside);
    share = kept(d.zeros_outside ? inside(row, column) : inside(y.place, x.place), share);
    Expr index = element(row, d.height);
    index = index * size_as(d.width, index) + element(column, d.width);
    index = apply("broadcast_to", {reshape_to(index, flat)}, {{"shape", shape_value(everywhere)}});
    Expr part = apply("gather", {image, index}, {{"axis", int64_t{3}}}) * reshape_to(share, flat);
    sum = sum ? sum + part : part;
  }
  return d.mask ? sum * reshape_to(d.mask, flat) : sum;
}

template <bool kModulated>
Expr deformable_conv2d(const CallNode& call) {
  const Deformed d = checked(call, kModulated);
  const Dim depth = dim(d.channels / d.groups * d.taps()), places = d.out_y * d.out_x,
            groups = dim(d.groups), each = dim(d.out / d.groups);
  Expr columns = reshape_to(sampled(d), {d.n, groups, depth, places});
  // Groups are rows of matrices, so that a batch of products says all.
  columns = reshape_to(columns, {d.n * groups, depth, places});
  Expr kernels = reshape_to(d.weight, {dim(1), groups, each, depth});
  kernels = apply("broadcast_to", {kernels}, {{"shape", shape_value({d.n, groups, each, depth})}});
  kernels = reshape_to(kernels, {d.n * groups, each, depth});
  Expr y = apply("nn.batch_matmul", {kernels, columns}, {{"transpose_b", false}});
  y = reshape_to(y, {d.n, dim(d.out), d.out_y, d.out_x});
  auto& a = attrs_of<DeformableAttrs>(call);
  if (a.data_layout == "NHWC") y = move_axis(y, 1, 3);
  return is_set(a.out_dtype) ? cast_to(y, a.out_dtype) : y;
}

const ArgInfo kData{"data", "The input, in data_layout."};
const ArgInfo kOffset{
    "offset",
    "How far places are moved, y then x for each element of the kernel and group, "
    "in the layout of the data."};
const ArgInfo kWeight{"weight", "The kernel, in kernel_layout."};

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Deformable>() {
  static const OpInfo rows[] = {
      composed_row(
          "nn.deformable_conv2d",
          "A convolution that reads the data at moved places, between its elements.",
          {kData, kOffset, kWeight}, &DeformableAttrs::static_info(), deformable_conv2d<false>,
          {{{"Tensor[(2, 4, 5, 6), float32]", "Tensor[(2, 36, 5, 6), float32]",
             "Tensor[(6, 2, 3, 3), float32]"},
            "padding=[1, 1], groups=2, deformable_groups=2"},
           {{"Tensor[(1, 5, 6, 2), float32]", "Tensor[(1, 3, 3, 8), float32]",
             "Tensor[(2, 2, 2, 3), float32]"},
            "data_layout=\"NHWC\", kernel_layout=\"HWIO\", strides=[1, 2], dilation=[2, 1], "
            "border=\"zeros\""}}),
      composed_row("nn.modulated_deformable_conv2d",
                   "The same, where each element that is read has a weight of its own, too.",
                   {kData,
                    kOffset,
                    {"mask", "The weights, one for each element of the kernel and group."},
                    kWeight},
                   &DeformableAttrs::static_info(), deformable_conv2d<true>,
                   {{{"Tensor[(1, 2, 4, 5), float32]", "Tensor[(1, 8, 3, 4), float32]",
                      "Tensor[(1, 4, 3, 4), float32]", "Tensor[(3, 2, 2, 2), float32]"},
                     "border=\"zeros\""}}),
  };
  return rows;
}

}  // namespace relay::ops
