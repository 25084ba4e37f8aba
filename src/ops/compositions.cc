// Operators that are known by a name of their own and are sums, windows and selections of others.
#include <algorithm>
#include <cmath>
#include <limits>

#include "node/structural.h"
#include "ops/composed.h"
#include "ops/elementwise/fixed_point.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::CallNode;

using AttrPairs = std::vector<std::pair<std::string, AttrValue>>;

// ---- Moments

struct MomentAttrs : AttrsOf<MomentAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false, unbiased = false;
  static AttrsList describe() {
    return {"relay.attrs.MomentAttrs",
            {attribute("axis", &Self::axis, "The axes; None: all."),
             attribute("keepdims", &Self::keepdims, "Reduced axes stay, of size 1."),
             attribute("exclude", &Self::exclude, "All axes but those."),
             attribute("unbiased", &Self::unbiased, "Divided by the number less one.")}};
  }
};
struct LogSumExpAttrs : AttrsOf<LogSumExpAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false;
  static AttrsList describe() {
    return {"relay.attrs.LogSumExpAttrs",
            {attribute("axis", &Self::axis, "The axes; None: all."),
             attribute("keepdims", &Self::keepdims, "Reduced axes stay, of size 1.")}};
  }
};

AttrValue axes_value(const std::optional<Ints>& axes) {
  return axes ? to_value(*axes) : AttrValue();
}

// Mean and variance.
std::pair<Expr, Expr> moments(const CallNode& call) {
  auto& a = attrs_of<MomentAttrs>(call);
  AttrPairs attrs{{"axis", axes_value(a.axis)}, {"keepdims", true}, {"exclude", a.exclude}};
  Expr mean = apply("mean", {call.args[0]}, attrs);
  attrs[1].second = AttrValue(a.keepdims);
  attrs.emplace_back("unbiased", a.unbiased);
  Expr variance = apply("variance", {call.args[0], mean}, attrs);
  return {a.keepdims ? mean : reshape_like(mean, variance), variance};
}

Expr standard_deviation(const CallNode& call) { return apply("sqrt", {moments(call).second}); }
Expr mean_variance(const CallNode& call) {
  auto [mean, variance] = moments(call);
  return tuple({mean, variance});
}
Expr mean_std(const CallNode& call) {
  auto [mean, variance] = moments(call);
  return tuple({mean, apply("sqrt", {variance})});
}

Expr logsumexp(const CallNode& call) {
  auto& a = attrs_of<LogSumExpAttrs>(call);
  const AttrPairs kept{{"axis", axes_value(a.axis)}, {"keepdims", true}};
  AttrPairs of_any_size = kept;
  of_any_size.emplace_back("identity_if_empty", true);
  Expr top = apply("max", {call.args[0]}, of_any_size);
  // An infinite maximum is the result, and no difference of infinities.
  Expr base = choose(apply("isfinite", {top}), top, scalar(0, top));
  Expr total = apply("log", {apply("sum", {apply("exp", {call.args[0] - base})}, kept)}) + base;
  if (a.keepdims) return total;
  return apply("squeeze", {total}, {{"axis", axes_value(a.axis)}});
}

struct SegmentSumAttrs : AttrsOf<SegmentSumAttrs> {
  int64_t num_segments = 1;
  static AttrsList describe() {
    return {"relay.attrs.SegmentSumAttrs",
            {attribute("num_segments", &Self::num_segments, "The number of segments.")}};
  }
};

Expr segment_sum(const CallNode& call) {
  const int64_t count = attrs_of<SegmentSumAttrs>(call).num_segments;
  demand(call, count >= 0, "there are no segments", "0 or more", std::to_string(count));
  demand_rank(call, 0, 1, kAnyRank);
  demand_rank(call, 1, 1);
  std::vector<Dim> shape = type_of(call.args[0]).shape;
  shape[0] = dim(count);
  return apply(
      "scatter_nd",
      {filled(0, shape, type_of(call.args[0]).dtype), expanded(call.args[1], 0), call.args[0]},
      {{"mode", std::string("add")}});
}

// ---- unique

struct UniqueAttrs : AttrsOf<UniqueAttrs> {
  bool sorted = true, return_counts = false;
  static AttrsList describe() {
    return {"relay.attrs.UniqueAttrs",
            {attribute("sorted", &Self::sorted,
                       "In ascending order, not in that of their first places."),
             attribute("return_counts", &Self::return_counts, "How often each is there, too.")}};
  }
};

// The vector with other values at some places.
Expr put(const Expr& base, const Expr& places, const Expr& values, const char* mode = "update") {
  return apply("scatter_elements", {base, places, values},
               {{"axis", int64_t{0}}, {"reduction", std::string(mode)}});
}

Expr unique(const CallNode& call) {
  auto& a = attrs_of<UniqueAttrs>(call);
  const Expr& data = call.args[0];
  demand_rank(call, 0, 1);
  const Dim n = type_of(data).shape[0];
  const DType index = DType::Int(64), small = DType::Int(32);
  Expr order = order_of(data, 0), sorted = taken(data, order, 0);
  // Where a value begins that was not there before.
  Expr before =
      taken(sorted,
            apply("maximum", {iota(n) - indices_constant({1}, {}), indices_constant({0}, {})}), 0);
  Expr begins = apply("logical_or", {apply("not_equal", {sorted, before}), is_equal(iota(n), 0)});
  Expr group =
      apply("cumsum", {as_index(begins)}, {{"axis", int64_t{0}}}) - indices_constant({1}, {});
  Expr zeros = filled(0, {n}, index);
  // Of each group its first place; behind the groups n.
  Expr firsts = apply("scatter_elements", {filled(0, {n}, index) + size_as(n, zeros), group, order},
                      {{"axis", int64_t{0}}, {"reduction", std::string("min")}});
  Expr count = apply("sum", {as_index(begins)}, {{"keepdims", true}});
  Expr number = group;
  if (!a.sorted) {
    // Groups are numbered by their first places.
    Expr by_place = order_of(firsts, 0);
    Expr rank = put(zeros, by_place, iota(n));
    number = taken(rank, group, 0);
    firsts = taken(firsts, by_place, 0);
  }
  Expr inverse = put(zeros, order, number);
  Expr real = apply("less", {iota(n), count});
  Expr places = choose(real, firsts, scalar(0, firsts));
  Expr values = choose(real, taken(data, places, 0), scalar(0, data));
  std::vector<Expr> out{values, cast_to(places, small), cast_to(inverse, small),
                        cast_to(count, small)};
  if (a.return_counts)
    out.push_back(cast_to(put(zeros, number, zeros + indices_constant({1}, {}), "add"), small));
  return tuple(std::move(out));
}

// ---- Pools

struct GlobalPoolAttrs : AttrsOf<GlobalPoolAttrs> {
  std::string layout, out_layout;
  static AttrsList describe() {
    return {
        "relay.attrs.GlobalPoolAttrs",
        {attribute("layout", &Self::layout,
                   "The layout of the data; empty: batch and channels "
                   "first."),
         attribute("out_layout", &Self::out_layout, "The layout of the result; empty: the same.")}};
  }
};

template <bool kMax, int kAxes>
Expr global_pool(const CallNode& call) {
  auto& a = attrs_of<GlobalPoolAttrs>(call);
  const std::string name =
      std::string("nn.adaptive_") + (kMax ? "max" : "avg") + "_pool" + std::to_string(kAxes) + "d";
  const std::string layout = !a.layout.empty() ? a.layout : kAxes == 1 ? "NCW" : "NCDHW";
  return apply(name, {call.args[0]},
               {{"output_size", to_value(Ints(kAxes, 1))},
                {"layout", layout},
                {"out_layout", a.out_layout}});
}

// The gradient of an operator's call by its argument `by`, weighted by an adjoint.
Expr adjoint_of(const CallNode& at, std::string_view name, std::vector<Expr> args,
                const AttrPairs& attrs, const Expr& adjoint, size_t by) {
  Expr made = apply(name, std::move(args), attrs);
  const auto& call = *as<CallNode>(made);
  demand(at, structural_equal(made->type, adjoint->type), "the adjoint has another type",
         to_string(made->type), to_string(adjoint->type));
  return as<OpNode>(call.op)->row->gradient(GradientContext{call, made, {adjoint}})[by];
}

template <bool kMax>
Expr pool_gradient(const CallNode& call) {
  AttrPairs attrs = attr_values(call.attrs);
  return adjoint_of(call, kMax ? "nn.max_pool2d" : "nn.avg_pool2d", {call.args[1]}, attrs,
                    call.args[0], 0);
}

// ---- The gradient of a convolution by its weight

struct BackwardWeightAttrs : AttrsOf<BackwardWeightAttrs> {
  Ints strides{1, 1}, padding{0, 0}, dilation{1, 1};
  int64_t groups = 1;
  std::optional<int64_t> channels;
  std::optional<Ints> kernel_size;
  std::string grad_layout = "NCHW", data_layout = "NCHW", kernel_layout = "OIHW";
  DType out_dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.Conv2DBackwardWeightAttrs",
            {attribute("strides", &Self::strides, "As in nn.conv2d."),
             attribute("padding", &Self::padding, "As in nn.conv2d."),
             attribute("dilation", &Self::dilation, "As in nn.conv2d."),
             attribute("groups", &Self::groups, "Groups of channels that are convolved apart."),
             attribute("channels", &Self::channels, "Channels of the adjoint; None: what it has."),
             attribute("kernel_size", &Self::kernel_size, "Height and width of the weight."),
             attribute("grad_layout", &Self::grad_layout, "Layout of the adjoint."),
             attribute("data_layout", &Self::data_layout, "Layout of the data."),
             attribute("kernel_layout", &Self::kernel_layout, "Layout of the weight."),
             attribute("out_dtype", &Self::out_dtype, "dtype of the result; unset: the data's.")}};
  }
};

Expr conv2d_backward_weight(const CallNode& call) {
  auto& a = attrs_of<BackwardWeightAttrs>(call);
  const Expr &g = call.args[0], &x = call.args[1];
  demand(call, a.kernel_size && a.kernel_size->size() == 2 && a.groups >= 1,
         "needs the size of the kernel", "kernel_size=[height, width]");
  auto channels_of = [&](const Expr& e, const std::string& layout) {
    const size_t at = layout.find('C');
    demand(call, rank_of(e) == 4 && layout.size() == 4 && at < 4, "takes images in plain layouts",
           "4 axes, as NCHW", to_string(e->type) + " in " + layout);
    return type_of(e).shape[at];
  };
  const Dim out = channels_of(g, a.grad_layout), in = channels_of(x, a.data_layout);
  demand(call, !a.channels || !as_const(out) || *as_const(out) == *a.channels,
         "channels contradicts the adjoint", a.channels ? std::to_string(*a.channels) : "",
         to_string(out));
  std::vector<Dim> shape;
  for (char axis : a.kernel_layout) {
    shape.push_back(axis == 'O'   ? out
                    : axis == 'I' ? floor_div(in, dim(a.groups))
                                  : dim((*a.kernel_size)[axis == 'W' ? 1 : 0]));
  }
  Expr weight = filled(0, shape, type_of(x).dtype);
  Expr out_weight = adjoint_of(call, "nn.conv2d", {x, weight},
                               {{"strides", to_value(a.strides)},
                                {"padding", to_value(a.padding)},
                                {"dilation", to_value(a.dilation)},
                                {"groups", a.groups},
                                {"data_layout", a.data_layout},
                                {"kernel_layout", a.kernel_layout},
                                {"out_layout", a.grad_layout}},
                               g, 1);
  return is_set(a.out_dtype) ? cast_to(out_weight, a.out_dtype) : out_weight;
}

// ---- Upsampling

struct Upsampling3DAttrs : AttrsOf<Upsampling3DAttrs> {
  double scale_d = 1, scale_h = 1, scale_w = 1;
  std::string layout = "NCDHW", method = "nearest_neighbor",
              coordinate_transformation_mode = "half_pixel";
  static AttrsList describe() {
    return {"relay.attrs.UpSampling3DAttrs",
            {attribute("scale_d", &Self::scale_d, "The factor of the depth."),
             attribute("scale_h", &Self::scale_h, "The factor of the height."),
             attribute("scale_w", &Self::scale_w, "The factor of the width."),
             attribute("layout", &Self::layout, "The layout of the data."),
             attribute("method", &Self::method, "nearest_neighbor or trilinear."),
             attribute("coordinate_transformation_mode", &Self::coordinate_transformation_mode,
                       "How places are found, as in image.resize3d.")}};
  }
};

Expr upsampling3d(const CallNode& call) {
  auto& a = attrs_of<Upsampling3DAttrs>(call);
  const std::vector<Dim>& shape = type_of(call.args[0]).shape;
  Ints size;
  for (auto [axis, scale] : {std::pair{'D', a.scale_d}, {'H', a.scale_h}, {'W', a.scale_w}}) {
    const size_t at = a.layout.find(axis);
    demand(call, at < shape.size() && scale > 0 && scale <= kLargestStep,
           "the layout or a scale does not fit", "a layout of 5 axes, and scales above 0",
           a.layout);
    const auto n = static_cast<double>(number_of(call, shape[at], "the size of the data"));
    size.push_back(std::llrint(n * scale));
  }
  return apply("image.resize3d", {call.args[0]},
               {{"size", to_value(size)},
                {"layout", a.layout},
                {"method", std::string(a.method == "trilinear" ? "linear" : a.method)},
                {"coordinate_transformation_mode", a.coordinate_transformation_mode},
                {"rounding_method", std::string()}});
}

// ---- Windows of images

// Top, left, bottom and right of one, two or four numbers.
Ints four_sides(const CallNode& call, const Ints& padding) {
  switch (padding.size()) {
    case 1:
      return Ints(4, padding[0]);
    case 2:
      return {padding[0], padding[1], padding[0], padding[1]};
    case 4:
      return padding;
    default:
      misused(call, "padding is of no known form", "1, 2 or 4 numbers",
              std::to_string(padding.size()));
  }
}
std::pair<int64_t, int64_t> two_of(const CallNode& call, const Ints& list, const char* what) {
  demand(call,
         (list.size() == 1 || list.size() == 2) &&
             std::ranges::all_of(list, [](int64_t n) { return n >= 1 && n <= kLargestStep; }),
         std::string(what) + " are two numbers from 1 to " + std::to_string(kLargestStep));
  return {list[0], list.back()};
}

struct Dilation2DAttrs : AttrsOf<Dilation2DAttrs> {
  Ints strides{1, 1}, padding{0, 0}, dilations{1, 1};
  std::string data_layout = "NCHW", kernel_layout = "IHW", out_dtype;
  static AttrsList describe() {
    return {"relay.attrs.Dilation2DAttrs",
            {attribute("strides", &Self::strides, "Steps between windows."),
             attribute("padding", &Self::padding, "1, 2 or 4 widths around the image."),
             attribute("dilations", &Self::dilations, "Steps within a window."),
             attribute("data_layout", &Self::data_layout, "NCHW or NHWC."),
             attribute("kernel_layout", &Self::kernel_layout, "IHW or HWI."),
             attribute("out_dtype", &Self::out_dtype, "dtype of the result; empty: the data's.")}};
  }
};

// The greatest sum of an element and the weight of its place in the window.
Expr dilation2d(const CallNode& call) {
  auto& a = attrs_of<Dilation2DAttrs>(call);
  demand(call,
         (a.data_layout == "NCHW" || a.data_layout == "NHWC") &&
             (a.kernel_layout == "IHW" || a.kernel_layout == "HWI"),
         "a layout is not supported", "NCHW or NHWC, IHW or HWI",
         a.data_layout + ", " + a.kernel_layout);
  demand_rank(call, 0, 4);
  demand_rank(call, 1, 3);
  const bool last = a.data_layout == "NHWC";
  Expr x = last ? move_axis(call.args[0], 3, 1) : call.args[0];
  Expr w = a.kernel_layout == "HWI" ? move_axis(call.args[1], 2, 0) : call.args[1];
  const DType dtype = type_of(x).dtype;
  demand(call, dtype.is_floating() && type_of(w).dtype == dtype, "needs one floating dtype",
         dtype.to_string(), type_of(w).dtype.to_string());
  const Ints p = four_sides(call, a.padding);
  auto [step_y, step_x] = two_of(call, a.strides, "strides");
  auto [wide_y, wide_x] = two_of(call, a.dilations, "dilations");
  const double least = -std::numeric_limits<double>::infinity();
  x = padded(x, {{0, 0}, {0, 0}, {p[0], p[2]}, {p[1], p[3]}}, scalar(least, x));
  const std::vector<Dim>& shape = type_of(x).shape;
  const int64_t height = number_of(call, shape[2], "the height"),
                width = number_of(call, shape[3], "the width");
  const Ints kernel = numbers_of(call, type_of(w).shape, "a size of the weight");
  demand_few(call, element_count({kernel[1], kernel[2]}), kMostOperators, "places of a window");
  const int64_t out_y = (height - (kernel[1] - 1) * wide_y - 1) / step_y + 1,
                out_x = (width - (kernel[2] - 1) * wide_x - 1) / step_x + 1;
  demand(call,
         kernel[1] >= 1 && kernel[2] >= 1 && height > (kernel[1] - 1) * wide_y &&
             width > (kernel[2] - 1) * wide_x,
         "the window does not fit into the image");
  Expr out;
  for (int64_t ky = 0; ky < kernel[1]; ++ky) {
    for (int64_t kx = 0; kx < kernel[2]; ++kx) {
      const int64_t y = ky * wide_y, x_at = kx * wide_x;
      Expr part =
          sliced(x, {2, 3}, {y, x_at},
                 {y + (out_y - 1) * step_y + 1, x_at + (out_x - 1) * step_x + 1}, {step_y, step_x});
      Expr weight = sliced(w, {1, 2}, {ky, kx}, {ky + 1, kx + 1}, {1, 1});
      part = part + weight;
      out = out ? apply("maximum", {out, part}) : part;
    }
  }
  if (!a.out_dtype.empty()) out = apply("cast", {out}, {{"dtype", a.out_dtype}});
  return last ? move_axis(out, 1, 3) : out;
}

struct CorrelationAttrs : AttrsOf<CorrelationAttrs> {
  int64_t kernel_size = 1, max_displacement = 1, stride1 = 1, stride2 = 1;
  Ints padding{0, 0};
  bool is_multiply = true;
  std::string layout = "NCHW";
  static AttrsList describe() {
    return {"relay.attrs.CorrelationAttrs",
            {attribute("kernel_size", &Self::kernel_size, "Size of the patches, odd."),
             attribute("max_displacement", &Self::max_displacement, "How far they are moved."),
             attribute("stride1", &Self::stride1, "Steps between patches of the first image."),
             attribute("stride2", &Self::stride2, "Steps between displacements."),
             attribute("padding", &Self::padding, "1, 2 or 4 widths around both images."),
             attribute("is_multiply", &Self::is_multiply, "Products, not distances."),
             attribute("layout", &Self::layout, "NCHW.")}};
  }
};

Expr correlation(const CallNode& call) {
  auto& a = attrs_of<CorrelationAttrs>(call);
  demand(call, a.layout == "NCHW", "the layout is not supported", "NCHW", a.layout);
  demand(call,
         a.kernel_size >= 1 && a.kernel_size % 2 == 1 && a.max_displacement >= 0 &&
             a.stride1 >= 1 && a.stride2 >= 1 &&
             std::max({a.kernel_size, a.max_displacement, a.stride1, a.stride2}) <= kLargestStep,
         "the sizes of patches and steps do not fit");
  demand(
      call, rank_of(call.args[0]) == 4 && structural_equal(call.args[0]->type, call.args[1]->type),
      "takes two images of one type", to_string(call.args[0]->type), to_string(call.args[1]->type));
  const Ints p = four_sides(call, a.padding);
  auto around = [&](const Expr& e) {
    return padded(e, {{0, 0}, {0, 0}, {p[0], p[2]}, {p[1], p[3]}}, scalar(0, e));
  };
  Expr first = around(call.args[0]), second = around(call.args[1]);
  const int64_t height = number_of(call, type_of(first).shape[2], "the height"),
                width = number_of(call, type_of(first).shape[3], "the width");
  const int64_t border = 2 * (a.max_displacement + (a.kernel_size - 1) / 2);
  const int64_t out_y = (height - border + a.stride1 - 1) / a.stride1,
                out_x = (width - border + a.stride1 - 1) / a.stride1;
  demand(call, height > border && width > border, "the patches do not fit into the image",
         "more than " + std::to_string(border), std::to_string(std::min(height, width)));
  const int64_t radius = a.max_displacement / a.stride2;
  demand_few(call, element_count({2 * radius + 1, 2 * radius + 1}), kMostOperators,
             "displacements");
  auto part = [&](const Expr& e, int64_t dy, int64_t dx) {
    const int64_t y = a.max_displacement + dy * a.stride2, x = a.max_displacement + dx * a.stride2;
    return sliced(
        e, {2, 3}, {y, x},
        {y + (out_y - 1) * a.stride1 + a.kernel_size, x + (out_x - 1) * a.stride1 + a.kernel_size},
        {1, 1});
  };
  Expr still = part(first, 0, 0);
  std::vector<Expr> channels;
  for (int64_t dy = -radius; dy <= radius; ++dy) {
    for (int64_t dx = -radius; dx <= radius; ++dx) {
      Expr moved = part(second, dy, dx);
      Expr both = a.is_multiply ? still * moved : apply("abs", {still - moved});
      both = apply("mean", {both}, {{"axis", to_value(Ints{1})}, {"keepdims", true}});
      channels.push_back(apply("nn.avg_pool2d", {both},
                               {{"pool_size", to_value(Ints(2, a.kernel_size))},
                                {"strides", to_value(Ints(2, a.stride1))}}));
    }
  }
  return joined(std::move(channels), 1);
}

// ---- Bits

struct BitPackAttrs : AttrsOf<BitPackAttrs> {
  int64_t bits = 1, pack_axis = 1, bit_axis = 2;
  DType pack_type = DType::UInt(32);
  std::string name = "BitPack";
  static AttrsList describe() {
    return {"relay.attrs.BitPackAttrs",
            {attribute("bits", &Self::bits, "Bits of an element, from the lowest on."),
             attribute("pack_axis", &Self::pack_axis, "The axis that is packed into words."),
             attribute("bit_axis", &Self::bit_axis, "Where the axis of the bits is put."),
             attribute("pack_type", &Self::pack_type, "dtype of the words, without sign."),
             attribute("name", &Self::name, "A name, which changes nothing.")}};
  }
};

// The first element is the highest bit of a word.
Expr bitpack(const CallNode& call) {
  auto& a = attrs_of<BitPackAttrs>(call);
  const Expr& x = call.args[0];
  const int64_t rank = rank_of(x), axis = axis_in(call, a.pack_axis, rank),
                plane_axis = axis_in(call, a.bit_axis, rank + 1);
  const DType dtype = type_of(x).dtype;
  demand(call, dtype.is_integer() && a.pack_type.is_uint() && a.bits >= 1 && a.bits <= 8,
         "packs 1 to 8 bits of integers into words without sign");
  const int64_t lanes = a.pack_type.bits;
  std::vector<Dim> shape = type_of(x).shape;
  const int64_t size = number_of(call, shape[static_cast<size_t>(axis)], "the packed axis");
  demand(call, size % lanes == 0, "the axis is not of whole words",
         "a multiple of " + std::to_string(lanes), std::to_string(size));
  shape[static_cast<size_t>(axis)] = dim(size / lanes);
  shape.insert(shape.begin() + axis + 1, dim(lanes));
  Ints powers;
  for (int64_t k = lanes; k-- > 0;) powers.push_back(k);
  Expr places = cast_to(indices_constant(powers, {lanes}), a.pack_type);
  places = along(places, axis + 1, rank + 1);
  std::vector<Expr> planes;
  for (int64_t bit = 0; bit < a.bits; ++bit) {
    Expr one = apply("bitwise_and", {apply("right_shift", {x, scalar(static_cast<double>(bit), x)}),
                                     scalar(1, x)});
    Expr words = apply("left_shift", {reshape_to(cast_to(one, a.pack_type), shape), places});
    planes.push_back(cast_to(sum_over(words, {axis + 1}), a.pack_type));
  }
  return stacked(std::move(planes), plane_axis);
}

// What the lowest bits of integers stand for: as they are, or each bit as -1 or 1.
Expr bit_value(const CallNode& call, const Expr& e, int64_t bits, bool unipolar) {
  demand(call, type_of(e).dtype.is_integer() && bits >= 1 && bits <= 8,
         "takes 1 to 8 bits of integers", "an integer dtype", type_of(e).dtype.to_string());
  Expr wide = cast_to(e, DType::Int(32));
  const auto most = static_cast<double>((int64_t{1} << bits) - 1);
  Expr low = apply("bitwise_and", {wide, scalar(most, wide)});
  return unipolar ? 2 * low - scalar(most, low) : low;
}

struct BitserialDenseAttrs : AttrsOf<BitserialDenseAttrs> {
  std::optional<int64_t> units;
  int64_t data_bits = 1, weight_bits = 1;
  DType pack_dtype = DType::UInt(32), out_dtype = DType::Int(16);
  bool unipolar = true;
  static AttrsList describe() {
    return {
        "relay.attrs.BinaryDenseAttrs",
        {attribute("units", &Self::units, "Rows of the weight; None: those that it has."),
         attribute("data_bits", &Self::data_bits, "Bits of the data."),
         attribute("weight_bits", &Self::weight_bits, "Bits of the weight."),
         attribute("pack_dtype", &Self::pack_dtype, "Of Relay's own kernels; changes nothing."),
         attribute("out_dtype", &Self::out_dtype, "dtype of the result."),
         attribute("unipolar", &Self::unipolar, "A bit of the weight is -1 or 1, not 0 or 1.")}};
  }
};
struct BitserialConvAttrs : AttrsOf<BitserialConvAttrs> {
  Ints strides{1, 1}, padding{0, 0};
  std::optional<Ints> kernel_size;
  std::optional<int64_t> channels;
  int64_t activation_bits = 1, weight_bits = 1;
  std::string data_layout = "NCHW", kernel_layout = "OIHW";
  DType pack_dtype = DType::UInt(32), out_dtype = DType::Int(16);
  bool unipolar = true;
  static AttrsList describe() {
    return {
        "relay.attrs.BinaryConv2DAttrs",
        {attribute("strides", &Self::strides, "Steps between windows."),
         attribute("padding", &Self::padding, "1, 2 or 4 widths around the image."),
         attribute("kernel_size", &Self::kernel_size, "Of the weight; None: what it has."),
         attribute("channels", &Self::channels, "Of the result; None: what the weight has."),
         attribute("activation_bits", &Self::activation_bits, "Bits of the data."),
         attribute("weight_bits", &Self::weight_bits, "Bits of the weight."),
         attribute("data_layout", &Self::data_layout, "As in nn.conv2d."),
         attribute("kernel_layout", &Self::kernel_layout, "As in nn.conv2d."),
         attribute("pack_dtype", &Self::pack_dtype, "Of Relay's own kernels; changes nothing."),
         attribute("out_dtype", &Self::out_dtype, "dtype of the result."),
         attribute("unipolar", &Self::unipolar, "A bit of the weight is -1 or 1, not 0 or 1.")}};
  }
};

Expr bitserial_dense(const CallNode& call) {
  auto& a = attrs_of<BitserialDenseAttrs>(call);
  demand_rank(call, 1, 2);
  Expr w = bit_value(call, call.args[1], a.weight_bits, a.unipolar);
  demand(call, !a.units || as_const(type_of(w).shape[0]) == *a.units,
         "units contradicts the weight");
  return cast_to(apply("nn.dense", {bit_value(call, call.args[0], a.data_bits, false), w}),
                 a.out_dtype);
}

Expr bitserial_conv2d(const CallNode& call) {
  auto& a = attrs_of<BitserialConvAttrs>(call);
  AttrPairs attrs{{"strides", to_value(a.strides)},
                  {"padding", to_value(a.padding)},
                  {"data_layout", a.data_layout},
                  {"kernel_layout", a.kernel_layout}};
  if (a.kernel_size) attrs.emplace_back("kernel_size", to_value(*a.kernel_size));
  if (a.channels) attrs.emplace_back("channels", *a.channels);
  return cast_to(apply("nn.conv2d",
                       {bit_value(call, call.args[0], a.activation_bits, false),
                        bit_value(call, call.args[1], a.weight_bits, a.unipolar)},
                       attrs),
                 a.out_dtype);
}

const ArgInfo kData{"data", "The input."};
const ArgInfo kWeight{"weight", "The weight."};

OpInfo global_pool_row(const char* name, DefinitionRule definition, std::string example) {
  return composed_row(name, "One value for each image and channel.", {kData},
                      &GlobalPoolAttrs::static_info(), std::move(definition),
                      {{{std::move(example)}, ""}});
}
OpInfo pool_gradient_row(const char* name, const char* of, DefinitionRule definition) {
  return composed_row(name, std::string("The gradient of ") + of + ", weighted by the adjoint.",
                      {{"out_grad", "The adjoint of the result."}, kData}, operator_row(of)->attrs,
                      std::move(definition),
                      {{{"Tensor[(1, 2, 2, 3), float32]", "Tensor[(1, 2, 4, 6), float32]"},
                        "pool_size=[2, 2], strides=[2, 2]"}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Compositions>() {
  static const OpInfo rows[] = {
      composed_row("logsumexp", "The logarithm of the sum of exponentials, without overflow.",
                   {kData}, &LogSumExpAttrs::static_info(), logsumexp,
                   {{{"Tensor[(2, 5, 3), float32]"}, "axis=[1]"},
                    {{"Tensor[(4, 3), float32]"}, "keepdims=True"}}),
      composed_row("std", "The standard deviation.", {kData}, &MomentAttrs::static_info(),
                   standard_deviation,
                   {{{"Tensor[(2, 5, 3), float32]"}, "axis=[1], unbiased=True"},
                    {{"Tensor[(4, 3), float32]"}, "axis=[0], exclude=True, keepdims=True"}}),
      composed_row("mean_variance", "Mean and variance, a tuple.", {kData},
                   &MomentAttrs::static_info(), mean_variance,
                   {{{"Tensor[(2, 5, 3), float32]"}, "axis=[1]"}}),
      composed_row("mean_std", "Mean and standard deviation, a tuple.", {kData},
                   &MomentAttrs::static_info(), mean_std,
                   {{{"Tensor[(2, 5, 3), float32]"}, "axis=[2], keepdims=True"}}),
      composed_row("segment_sum", "The sums of the rows of each segment.",
                   {kData, {"segment_ids", "The segment of each row."}},
                   &SegmentSumAttrs::static_info(), segment_sum,
                   {{.args = {"Tensor[(4, 2), float32]", "Tensor[(4,), int32]"},
                     .attrs = "num_segments=3",
                     .inputs = {{1, 2, 3, 4, 5, 6, 7, 8}, {0, 2, 0, 2}},
                     .results = {}}}),
      fixed_point_row(),
      fixed_point_per_axis_row(),
      composed_row("unique",
                   "The values of a vector, their first places, the place among them of each "
                   "element, and how many they are; vectors as long as the data, zeros at the end.",
                   {kData}, &UniqueAttrs::static_info(), unique,
                   {{.args = {"Tensor[(8,), int32]"},
                     .attrs = "sorted=False, return_counts=True",
                     .low = 0,
                     .high = 4},
                    {.args = {"Tensor[(8,), int32]"}, .attrs = "", .low = 0, .high = 4}}),
      global_pool_row("nn.global_max_pool1d", global_pool<true, 1>, "Tensor[(2, 3, 5), float32]"),
      global_pool_row("nn.global_avg_pool1d", global_pool<false, 1>, "Tensor[(2, 3, 5), float32]"),
      global_pool_row("nn.global_max_pool3d", global_pool<true, 3>,
                      "Tensor[(1, 2, 3, 2, 4), float32]"),
      global_pool_row("nn.global_avg_pool3d", global_pool<false, 3>,
                      "Tensor[(1, 2, 3, 2, 4), float32]"),
      pool_gradient_row("nn.max_pool2d_grad", "nn.max_pool2d", pool_gradient<true>),
      pool_gradient_row("nn.avg_pool2d_grad", "nn.avg_pool2d", pool_gradient<false>),
      composed_row(
          "nn.conv2d_backward_weight",
          "The gradient of nn.conv2d by its weight, weighted by the adjoint of its result.",
          {{"grad", "The adjoint, in grad_layout."}, {"data", "The data, in data_layout."}},
          &BackwardWeightAttrs::static_info(), conv2d_backward_weight,
          {{{"Tensor[(2, 4, 3, 3), float32]", "Tensor[(2, 6, 6, 5), float32]"},
            "kernel_size=[3, 2], strides=[2, 2], padding=[1, 1, 0, 0], groups=2"},
           {{"Tensor[(1, 4, 3, 2), float32]", "Tensor[(1, 5, 5, 3), float32]"},
            "kernel_size=[2, 3], grad_layout=\"NHWC\", data_layout=\"NHWC\", "
            "kernel_layout=\"HWIO\""}}),
      composed_row("nn.upsampling3d", "The volumes scaled up.", {kData},
                   &Upsampling3DAttrs::static_info(), upsampling3d,
                   {{{"Tensor[(1, 2, 2, 3, 2), float32]"}, "scale_d=2f, scale_h=2f, scale_w=3f"}}),
      composed_row("image.dilation2d",
                   "The greatest sum of an element in a window and the weight of its place.",
                   {kData, {"weight", "A weight for each channel and place."}},
                   &Dilation2DAttrs::static_info(), dilation2d,
                   {{{"Tensor[(1, 2, 6, 5), float32]", "Tensor[(2, 2, 3), float32]"},
                     "strides=[2, 1], padding=[1, 0], dilations=[1, 2]"},
                    {{"Tensor[(1, 4, 5, 2), float32]", "Tensor[(2, 2, 2), float32]"},
                     "data_layout=\"NHWC\", kernel_layout=\"HWI\""}}),
      composed_row("nn.correlation",
                   "The mean product of patches of two images, the second moved by each "
                   "displacement, which are the channels.",
                   {{"data1", "The first image."}, {"data2", "The second."}},
                   &CorrelationAttrs::static_info(), correlation,
                   {{{"Tensor[(1, 3, 8, 7), float32]", "Tensor[(1, 3, 8, 7), float32]"},
                     "kernel_size=3, max_displacement=2, stride1=2, stride2=2, padding=[2, 1]"},
                    {{"Tensor[(1, 2, 5, 5), float32]", "Tensor[(1, 2, 5, 5), float32]"},
                     "is_multiply=False"}}),
      composed_row("nn.bitpack", "The lowest bits of integers, packed along an axis into words.",
                   {kData}, &BitPackAttrs::static_info(), bitpack,
                   {{.args = {"Tensor[(2, 16), uint8]"},
                     .attrs = "bits=2, pack_axis=1, bit_axis=1, pack_type=\"uint8\"",
                     .low = 0,
                     .high = 4}}),
      composed_row("nn.bitserial_dense",
                   "The product by the transpose of a matrix, both of few bits.", {kData, kWeight},
                   &BitserialDenseAttrs::static_info(), bitserial_dense,
                   {{.args = {"Tensor[(2, 8), uint8]", "Tensor[(3, 8), uint8]"},
                     .attrs = "data_bits=2, weight_bits=1",
                     .low = 0,
                     .high = 4}}),
      composed_row("nn.bitserial_conv2d", "A convolution of images and weights of few bits.",
                   {kData, kWeight}, &BitserialConvAttrs::static_info(), bitserial_conv2d,
                   {{.args = {"Tensor[(1, 2, 5, 5), uint8]", "Tensor[(3, 2, 3, 3), uint8]"},
                     .attrs = "activation_bits=2, weight_bits=2, unipolar=False, padding=[1, 1]",
                     .low = 0,
                     .high = 4}}),
  };
  return rows;
}

}  // namespace relay::ops
