// Resize, Upsample and other sampling of images.
//
// Resize is linear and separable. Where Relay's image.resize operators mean the same they are used;
// what they have no attributes for (scales that do not divide, antialiasing, other axes) is written
// out as one gather or one matrix product per axis, with weights computed here.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/importer.h"
#include "frontend/onnx/open_args.h"
#include "frontend/onnx/shape_args.h"

namespace relay::importer {
namespace {

struct ResizeSpec {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_alpha = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

struct AxisResize {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// Where output position `o` lies in the input.
double source_of(NodeContext& ctx, const ResizeSpec& s, const AxisResize& a, int64_t o) {
  auto x = static_cast<double>(o), n = static_cast<double>(a.in), m = static_cast<double>(a.out);
  const std::string& c = s.coordinates;
  if (c == "half_pixel") return (x + 0.5) / a.scale - 0.5;
  if (c == "half_pixel_symmetric") {
    double adjustment = m / (a.scale * n);
    return n / 2 * (1 - adjustment) + (x + 0.5) / a.scale - 0.5;
  }
  if (c == "pytorch_half_pixel") return a.out > 1 ? (x + 0.5) / a.scale - 0.5 : 0;
  // The standard counts with the size before it is rounded down.
  double exact = a.scale * n;
  if (c == "align_corners") return exact != 1 ? x * (n - 1) / (exact - 1) : 0;
  if (c == "asymmetric") return x / a.scale;
  if (c == "tf_half_pixel_for_nn") return (x + 0.5) / a.scale;
  if (c == "tf_crop_and_resize") {
    if (exact == 1) return 0.5 * (a.roi_begin + a.roi_end) * (n - 1);
    return a.roi_begin * (n - 1) + x * (a.roi_end - a.roi_begin) * (n - 1) / (exact - 1);
  }
  ctx.fail(codes::frontend_attribute,
           "attribute 'coordinate_transformation_mode' has an unknown value",
           "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
           "tf_half_pixel_for_nn or tf_crop_and_resize",
           c.substr(0, 100));
}

double round_nearest(NodeContext& ctx, const std::string& mode, double x) {
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  ctx.fail(codes::frontend_attribute, "attribute 'nearest_mode' has an unknown value",
           "round_prefer_floor, round_prefer_ceil, floor or ceil", mode.substr(0, 100));
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// One axis as a list of source positions.
Expr nearest_axis(NodeContext& ctx, const Expr& e, int64_t axis, const ResizeSpec& s,
                  const AxisResize& a) {
  std::vector<int64_t> index;
  for (int64_t o = 0; o < a.out; ++o) {
    double x = round_nearest(ctx, s.nearest, source_of(ctx, s, a, o));
    index.push_back(static_cast<int64_t>(std::clamp(x, 0.0, static_cast<double>(a.in - 1))));
  }
  ctx.charge_bytes(a.out, DType::Int(64));
  Tensor t = Tensor::empty(DType::Int(64), {a.out});
  std::copy(index.begin(), index.end(), t.data<int64_t>());
  return ctx.call("take", {e, ctx.constant(std::move(t))}, {{"axis", axis}});
}

// One axis as a product with its weights, linear or cubic.
Expr weighted_axis(NodeContext& ctx, const Expr& e, int64_t axis, const ResizeSpec& s,
                   const AxisResize& a) {
  DType dtype = NodeContext::dtype_of(e);
  ctx.charge_bytes(a.in * a.out, dtype);
  bool cubic = s.mode == "cubic";
  double reach = cubic ? 2 : 1;
  // Antialiasing widens the filter when shrinking.
  double stretch = s.antialias && a.scale < 1 ? a.scale : 1;
  Tensor weights = Tensor::zeros(dtype, {a.in, a.out});
  for (int64_t o = 0; o < a.out; ++o) {
    double x = source_of(ctx, s, a, o);
    double limit = static_cast<double>(a.in - 1);
    // A crop that reaches outside takes the extrapolation value, added by the caller.
    if (s.coordinates == "tf_crop_and_resize" && (x < 0 || x > limit)) continue;
    if (!cubic && !s.antialias) x = std::clamp(x, 0.0, limit);
    auto first = static_cast<int64_t>(std::floor(x - reach / stretch)) + 1;
    auto last = static_cast<int64_t>(std::ceil(x + reach / stretch)) - 1;
    std::vector<std::pair<int64_t, double>> taps;
    double sum = 0;
    for (int64_t i = first; i <= last; ++i) {
      double distance = (static_cast<double>(i) - x) * stretch;
      double w =
          cubic ? cubic_weight(distance, s.cubic_alpha) : std::max(0.0, 1 - std::fabs(distance));
      bool outside = i < 0 || i >= a.in;
      if (outside && s.exclude_outside) continue;
      taps.emplace_back(std::clamp<int64_t>(i, 0, a.in - 1), w);
      sum += w;
    }
    for (auto [i, w] : taps) {
      int64_t at = i * a.out + o;
      weights.set_from_double(at, weights.get_as_double(at) + (sum != 0 ? w / sum : w));
    }
  }
  return ctx.matmul_along(e, axis, weights);
}

// Whether image.resize computes places so, where only spatial axes change and scales are the ratio of
// sizes.
bool is_image_mode(const ResizeSpec& s, int64_t rank) {
  if (rank < 3 || rank > 5 || s.antialias) return false;
  static constexpr std::string_view kModes[] = {"half_pixel",         "half_pixel_symmetric",
                                                "pytorch_half_pixel", "align_corners",
                                                "asymmetric",         "tf_half_pixel_for_nn"};
  return std::find(std::begin(kModes), std::end(kModes), s.coordinates) != std::end(kModes);
}

bool is_image_resize(const ResizeSpec& s, const std::vector<AxisResize>& axes, int64_t rank) {
  if (!is_image_mode(s, rank)) return false;
  if (axes[0].in != axes[0].out || axes[1].in != axes[1].out) return false;
  for (const AxisResize& a : axes) {
    double ratio = static_cast<double>(a.out) / static_cast<double>(a.in);
    if (std::fabs(ratio - a.scale) > 1e-6 * ratio) return false;
  }
  return true;
}

Expr image_resize(NodeContext& ctx, const Expr& x, const ResizeSpec& s, const Dims& size) {
  static const char* const layouts[] = {"NCW", "NCHW", "NCDHW"};
  std::string name = "image.resize" + std::to_string(size.size()) + "d";
  bool nearest = s.mode == "nearest";
  AttrList attrs{{"size", relay::to_value(size)},
                 {"layout", std::string(layouts[size.size() - 1])},
                 {"method", nearest ? std::string("nearest_neighbor") : s.mode},
                 {"coordinate_transformation_mode", s.coordinates}};
  if (nearest) attrs.emplace_back("rounding_method", s.nearest);
  if (s.mode == "cubic") {
    attrs.emplace_back("cubic_alpha", s.cubic_alpha);
    attrs.emplace_back("cubic_exclude", int64_t{s.exclude_outside});
  }
  return ctx.call(name, {x}, attrs);
}

Expr resize(NodeContext& ctx, Expr x, const ResizeSpec& s, const std::vector<AxisResize>& axes) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") {
    ctx.fail(codes::frontend_attribute, "attribute 'mode' has an unknown value",
             "nearest, linear or cubic", s.mode.substr(0, 100));
  }
  for (const AxisResize& a : axes) {
    if (a.in < 1 || a.out < 1 || !(a.scale > 0) || a.out > (int64_t{1} << 31)) {
      ctx.fail(codes::frontend_attribute, "a size or scale is out of range",
               "sizes of 1 or more, scales above 0",
               std::to_string(a.in) + " to " + std::to_string(a.out));
    }
  }
  int64_t rank = NodeContext::rank_of(x);
  bool changes = std::any_of(axes.begin(), axes.end(), [](const AxisResize& a) {
    return a.in != a.out || a.scale != 1 || a.roi_begin != 0 || a.roi_end != 1;
  });
  if (!changes) return x;
  DType dtype = NodeContext::dtype_of(x);
  if (!dtype.is_bool() && is_image_resize(s, axes, rank)) {
    Dims size;
    for (size_t i = 2; i < axes.size(); ++i) size.push_back(dim(axes[i].out));
    return image_resize(ctx, x, s, size);
  }
  bool whole = dtype.is_integer();
  if (s.mode != "nearest" && whole) x = ctx.cast(x, DType::Float(32));
  Expr outside;
  for (int64_t i = 0; i < rank; ++i) {
    const AxisResize& a = axes[static_cast<size_t>(i)];
    if (a.in == a.out && a.scale == 1 && a.roi_begin == 0 && a.roi_end == 1) continue;
    x = s.mode == "nearest" ? nearest_axis(ctx, x, i, s, a) : weighted_axis(ctx, x, i, s, a);
    if (s.coordinates != "tf_crop_and_resize") continue;
    Tensor mask = Tensor::zeros(DType::Bool(), {a.out});
    for (int64_t o = 0; o < a.out; ++o) {
      double at = source_of(ctx, s, a, o);
      mask.data<uint8_t>()[o] = at < 0 || at > static_cast<double>(a.in - 1);
    }
    Expr m = ctx.expand_dims(ctx.constant(std::move(mask)), 1, rank - i - 1);
    outside = outside ? ctx.call("logical_or", {outside, m}) : m;
  }
  if (outside) x = ctx.call("where", {outside, ctx.scalar_like(s.extrapolation, x), x});
  if (s.mode != "nearest" && whole) x = ctx.cast(ctx.call("round", {x}), dtype);
  return x;
}

std::vector<AxisResize> axes_from_shape(NodeContext& ctx, const Expr& x,
                                        const std::vector<int64_t>& resized) {
  std::vector<AxisResize> axes(static_cast<size_t>(NodeContext::rank_of(x)));
  for (size_t i = 0; i < axes.size(); ++i) {
    bool used = std::find(resized.begin(), resized.end(), static_cast<int64_t>(i)) != resized.end();
    auto known = as_const(NodeContext::shape_of(x)[i]);
    // An open dimension that is not resized stays as it is.
    if (used || known) {
      axes[i].in = axes[i].out =
          used && !known ? ctx.const_dim(x, static_cast<int64_t>(i), "a resized dimension")
                         : *known;
    }
  }
  return axes;
}

void apply_scale(NodeContext& ctx, AxisResize& a, double scale) {
  double out = std::floor(static_cast<double>(a.in) * scale);
  if (!(scale > 0) || !(out < 2147483648.0)) {
    ctx.fail(codes::frontend_attribute, "a scale is out of range", "a positive number",
             std::to_string(scale));
  }
  a.scale = scale;
  a.out = static_cast<int64_t>(out);
}

std::vector<double> scales_of(NodeContext& ctx, size_t input) {
  KnownValue k = ctx.must_know(input, "the list of scales");
  std::vector<double> out;
  if (!k.is_constant()) ctx.fail(codes::frontend_dynamic, "the scales depend on an open dimension");
  for (int64_t i = 0; i < k.size(); ++i) out.push_back(k.float_at(i));
  return out;
}

std::vector<int64_t> every_axis(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// A resize of spatial axes some of which are open, or become so: by sizes, or by whole factors, whose
// ratio of sizes is the scale. Null where all sizes are known, or something else is asked for.
Expr resize_open(NodeContext& ctx, const Expr& x, const ResizeSpec& s,
                 const std::vector<int64_t>& which, const std::vector<Dim>& sizes,
                 const std::vector<double>& scales) {
  std::vector<Dim> shape = NodeContext::shape_of(x);
  bool open = false;
  for (size_t i = 0; i < which.size(); ++i) {
    Dim& size = shape[static_cast<size_t>(which[i])];
    double scale = sizes.empty() ? scales[i] : 1;
    if (scale < 1 || scale > 4096 || scale != std::floor(scale)) return nullptr;
    Dim now = sizes.empty() ? size * dim(static_cast<int64_t>(scale)) : sizes[i];
    if (dim_equal(now, size)) continue;
    if (which[i] < 2 || !is_size(now) || is_any(now)) return nullptr;
    open = open || !as_const(now) || !as_const(size);
    size = now;
  }
  bool known_mode = s.mode == "nearest" || s.mode == "linear" || s.mode == "cubic";
  if (!open || !known_mode || !is_image_mode(s, NodeContext::rank_of(x)) ||
      NodeContext::dtype_of(x).is_bool())
    return nullptr;
  return image_resize(ctx, x, s, Dims(shape.begin() + 2, shape.end()));
}

// Scales for all axes. Those of 1 leave their axis alone, so it may be open.
Values scale_all(NodeContext& ctx, const ResizeSpec& s, const std::vector<double>& scales) {
  Expr x = ctx.in(0);
  if (static_cast<int64_t>(scales.size()) != NodeContext::rank_of(x)) {
    ctx.fail(codes::frontend_attribute, "the list of scales has the wrong length",
             std::to_string(NodeContext::rank_of(x)), std::to_string(scales.size()));
  }
  if (Expr open = resize_open(ctx, x, s, every_axis(NodeContext::rank_of(x)), {}, scales)) {
    return {value_of(open)};
  }
  std::vector<int64_t> resized;
  for (size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] != 1) resized.push_back(static_cast<int64_t>(i));
  }
  std::vector<AxisResize> axes = axes_from_shape(ctx, x, resized);
  for (int64_t i : resized)
    apply_scale(ctx, axes[static_cast<size_t>(i)], scales[static_cast<size_t>(i)]);
  return {value_of(resize(ctx, x, s, axes))};
}

// ---- Sizes, scales or regions that a run tells ---------------------------------------------------

// One axis: numbers that a run knows, float64 scalars.
struct OpenAxis {
  Expr in, out, scale, roi_begin, roi_end;
};

// Builds arithmetic of float64.
struct Arithmetic {
  NodeContext& ctx;
  Expr number(double v) const { return ctx.scalar(v, DType::Float(64)); }
  Expr minimum(const Expr& a, const Expr& b) const { return ctx.call("minimum", {a, b}); }
  Expr maximum(const Expr& a, const Expr& b) const { return ctx.call("maximum", {a, b}); }
  Expr floor(const Expr& a) const { return ctx.call("floor", {a}); }
  Expr ceil(const Expr& a) const { return ctx.call("ceil", {a}); }
  Expr equal(const Expr& a, double b) const { return ctx.call("equal", {a, number(b)}); }
  Expr where(const Expr& c, const Expr& a, const Expr& b) const {
    return ctx.call("where", {c, a, b});
  }
  // 0, 1, ... below a scalar.
  Expr below(const Expr& n) const { return open_range(ctx, number(0), n); }
};

// Where the positions `o` of the output lie in the input: source_of for all of them.
Expr open_source(const Arithmetic& m, const ResizeSpec& s, const OpenAxis& a, const Expr& o) {
  NodeContext& ctx = m.ctx;
  const std::string& c = s.coordinates;
  Expr one = m.number(1), half = m.number(0.5);
  Expr middle = ctx.sub(ctx.div(ctx.add(o, half), a.scale), half);
  if (c == "half_pixel") return middle;
  Expr exact = ctx.mul(a.scale, a.in);
  if (c == "half_pixel_symmetric") {
    Expr adjustment = ctx.div(a.out, exact);
    return ctx.add(ctx.mul(ctx.mul(a.in, half), ctx.sub(one, adjustment)), middle);
  }
  if (c == "pytorch_half_pixel") {
    return m.where(ctx.call("greater", {a.out, one}), middle, m.number(0));
  }
  Expr is_one = m.equal(exact, 1), steps = m.where(is_one, one, ctx.sub(exact, one));
  Expr last = ctx.sub(a.in, one);
  if (c == "align_corners") {
    return m.where(is_one, m.number(0), ctx.div(ctx.mul(o, last), steps));
  }
  if (c == "asymmetric") return ctx.div(o, a.scale);
  if (c == "tf_half_pixel_for_nn") return ctx.div(ctx.add(o, half), a.scale);
  if (c != "tf_crop_and_resize") source_of(ctx, s, {}, 0);  // says what is known
  Expr centre = ctx.mul(ctx.mul(half, ctx.add(a.roi_begin, a.roi_end)), last);
  Expr step = ctx.div(ctx.mul(ctx.sub(a.roi_end, a.roi_begin), last), steps);
  Expr along = ctx.add(ctx.mul(a.roi_begin, last), ctx.mul(o, step));
  return m.where(is_one, centre, along);
}

Expr open_nearest(const Arithmetic& m, const Expr& e, int64_t axis, const ResizeSpec& s,
                  const OpenAxis& a, Expr at) {
  NodeContext& ctx = m.ctx;
  Expr half = m.number(0.5);
  if (s.nearest == "round_prefer_floor") {
    at = m.ceil(ctx.sub(at, half));
  } else if (s.nearest == "round_prefer_ceil") {
    at = m.floor(ctx.add(at, half));
  } else if (s.nearest == "floor" || s.nearest == "ceil") {
    at = ctx.call(s.nearest, {at});
  } else {
    round_nearest(ctx, s.nearest, 0);  // says what is known
  }
  at = m.maximum(m.minimum(at, ctx.sub(a.in, m.number(1))), m.number(0));
  return ctx.call("take", {e, ctx.cast(at, DType::Int(64))}, {{"axis", axis}});
}

// The product with a matrix of weights: those of all places within reach of a position, also of the
// ones outside of the input, which then count for the first or last place.
Expr open_weighted(const Arithmetic& m, const Expr& e, int64_t axis, const ResizeSpec& s,
                   const OpenAxis& a, const Expr& at) {
  NodeContext& ctx = m.ctx;
  const bool cubic = s.mode == "cubic";
  Expr zero = m.number(0), one = m.number(1), reach = m.number(cubic ? 2 : 1);
  Expr stretch = s.antialias ? m.minimum(a.scale, one) : one;
  Expr beyond = m.ceil(ctx.div(reach, stretch)), last = ctx.sub(a.in, one);
  // (places, positions)
  Expr places = open_range(ctx, ctx.sub(zero, beyond), ctx.add(a.in, beyond));
  Expr row = ctx.expand_dims(places, 1);
  Expr d = ctx.call("abs", {ctx.mul(ctx.sub(row, ctx.expand_dims(at, 0)), stretch)});
  Expr w;
  if (cubic) {
    auto c = [&](double v) { return m.number(v); };
    double k = s.cubic_alpha;
    Expr near = ctx.add(ctx.mul(ctx.mul(ctx.sub(ctx.mul(c(k + 2), d), c(k + 3)), d), d), one);
    Expr far = ctx.sub(
        ctx.mul(ctx.add(ctx.mul(ctx.sub(ctx.mul(c(k), d), c(5 * k)), d), c(8 * k)), d), c(4 * k));
    w = m.where(ctx.call("less_equal", {d, one}), near,
                m.where(ctx.call("less", {d, reach}), far, zero));
  } else {
    w = m.maximum(ctx.sub(one, d), zero);
  }
  if (s.exclude_outside) {
    Expr inside = ctx.call("logical_and", {ctx.call("greater_equal", {row, zero}),
                                           ctx.call("less_equal", {row, last})});
    w = m.where(inside, w, zero);
  }
  Expr sum = ctx.reduce("sum", w, {0}, true);
  w = ctx.div(w, m.where(m.equal(sum, 0), one, sum));
  Expr nearest = m.maximum(m.minimum(places, last), zero);
  Expr inputs = m.below(a.in);
  Expr counts =
      ctx.cast(ctx.call("equal", {ctx.expand_dims(inputs, 1), ctx.expand_dims(nearest, 0)}),
               DType::Float(64));
  Expr matrix = ctx.matmul(counts, w);  // (inputs, positions)
  DType dtype = NodeContext::dtype_of(e);
  std::vector<int64_t> to_last, back;
  const int64_t rank = NodeContext::rank_of(e);
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) to_last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  to_last.push_back(axis);
  return ctx.transpose(ctx.matmul(ctx.transpose(e, to_last), ctx.cast(matrix, dtype)), back);
}

// Resizes the axes `which` one after the other.
Expr resize_open_axes(NodeContext& ctx, Expr x, const ResizeSpec& s,
                      const std::vector<int64_t>& which, const std::vector<OpenAxis>& axes) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") return resize(ctx, x, s, {});
  Arithmetic m{ctx};
  const int64_t rank = NodeContext::rank_of(x);
  DType dtype = NodeContext::dtype_of(x);
  const bool whole = !dtype.is_floating() && s.mode != "nearest";
  if (whole) x = ctx.cast(x, DType::Float(32));
  Expr outside;
  for (size_t k = 0; k < which.size(); ++k) {
    Expr at = open_source(m, s, axes[k], m.below(axes[k].out));
    x = s.mode == "nearest" ? open_nearest(m, x, which[k], s, axes[k], at)
                            : open_weighted(m, x, which[k], s, axes[k], at);
    if (s.coordinates != "tf_crop_and_resize") continue;
    Expr last = ctx.sub(axes[k].in, m.number(1));
    Expr out = ctx.call("logical_or",
                        {ctx.call("less", {at, m.number(0)}), ctx.call("greater", {at, last})});
    out = ctx.expand_dims(out, 1, rank - which[k] - 1);
    outside = outside ? ctx.call("logical_or", {outside, out}) : out;
  }
  if (outside) x = ctx.call("where", {outside, ctx.scalar_like(s.extrapolation, x), x});
  return whole ? ctx.cast(ctx.call("round", {x}), dtype) : x;
}

// The sizes and scales of the axes, from a list of scales or one of sizes; `region` may be null.
Values resize_open_args(NodeContext& ctx, const ResizeSpec& s, const std::vector<int64_t>& which,
                        const Expr& scales, const Expr& sizes, const std::string& policy,
                        const Expr& region) {
  Arithmetic m{ctx};
  Expr x = ctx.in(0);
  const auto n = static_cast<int64_t>(which.size());
  Expr in = ctx.cast(ctx.call("take", {sizes_of(ctx, x), ctx.ints(which)}, {{"axis", int64_t{0}}}),
                     DType::Float(64));
  Expr scale = scales, out;
  if (scales) {
    out = m.floor(ctx.mul(in, scales));
  } else {
    scale = ctx.div(sizes, m.maximum(in, m.number(1)));
    out = sizes;
    if (policy != "stretch") {
      bool smaller = policy == "not_larger";
      if (!smaller && policy != "not_smaller") {
        ctx.fail(codes::frontend_attribute,
                 "attribute 'keep_aspect_ratio_policy' has an unknown value",
                 "stretch, not_larger or not_smaller", policy.substr(0, 100));
      }
      scale = ctx.mul(ctx.reduce(smaller ? "min" : "max", scale, {0}, true),
                      ctx.full(1, {dim(n)}, DType::Float(64)));
      out = m.floor(ctx.add(ctx.mul(scale, in), m.number(0.5)));
    }
  }
  std::vector<OpenAxis> axes;
  for (int64_t k = 0; k < n; ++k) {
    auto entry = [&](const Expr& list, int64_t at) { return ctx.select(list, 0, at); };
    OpenAxis a{entry(in, k), entry(out, k), entry(scale, k), m.number(0), m.number(1)};
    if (region) {
      a.roi_begin = entry(region, k);
      a.roi_end = entry(region, n + k);
    }
    axes.push_back(std::move(a));
  }
  return {value_of(resize_open_axes(ctx, x, s, which, axes))};
}

// Upsample, and Resize of opset 10: scales for all axes.
Values scale_all_open(NodeContext& ctx, const ResizeSpec& s) {
  const int64_t rank = NodeContext::rank_of(ctx.in(0));
  return resize_open_args(ctx, s, every_axis(rank),
                          float_vector_of(ctx, 1, "the list of scales", rank), nullptr, "",
                          nullptr);
}

ResizeSpec upsample_spec(NodeContext& ctx) {
  ResizeSpec s;
  s.mode = ctx.attr_string("mode", "nearest");
  if (s.mode == "bilinear") s.mode = "linear";
  s.coordinates = "asymmetric";
  s.nearest = "floor";
  return s;
}

Values convert_upsample_attr(NodeContext& ctx) {
  return scale_all(ctx, upsample_spec(ctx), ctx.attr_floats("scales"));
}
Values convert_upsample(NodeContext& ctx) {
  const ResizeSpec s = upsample_spec(ctx);
  return known_or_open(
      ctx, [&](NodeContext& known) { return scale_all(known, s, scales_of(known, 1)); },
      [&](NodeContext& open) { return scale_all_open(open, s); });
}

ResizeSpec resize_spec(NodeContext& ctx) {
  ResizeSpec s;
  s.mode = ctx.attr_string("mode", s.mode);
  s.coordinates = ctx.attr_string("coordinate_transformation_mode", s.coordinates);
  s.nearest = ctx.attr_string("nearest_mode", s.nearest);
  s.cubic_alpha = ctx.attr_float("cubic_coeff_a", s.cubic_alpha);
  s.exclude_outside = ctx.attr("exclude_outside", 0) != 0;
  s.antialias = ctx.attr("antialias", 0) != 0;
  s.extrapolation = ctx.attr_float("extrapolation_value", 0);
  return s;
}

// An input that is absent, or an empty list.
bool is_left_out(NodeContext& ctx, size_t input) {
  if (!ctx.has(input)) return true;
  auto shape = shape_of_input(ctx, input);
  return shape && shape->size() == 1 && as_const((*shape)[0]) == 0;
}

Values resize_open_inputs(NodeContext& ctx) {
  ResizeSpec s = resize_spec(ctx);
  int64_t rank = NodeContext::rank_of(ctx.in(0));
  std::vector<int64_t> which = every_axis(rank);
  if (ctx.has_attr("axes")) which = ctx.axes(ctx.attr_ints("axes"), rank);
  bool by_size = !is_left_out(ctx, 3);
  bool crops = s.coordinates == "tf_crop_and_resize";
  const auto n = static_cast<int64_t>(which.size());
  return resize_open_args(ctx, s, which,
                          by_size ? nullptr : float_vector_of(ctx, 2, "the list of scales", n),
                          by_size ? float_vector_of(ctx, 3, "the list of sizes", n) : nullptr,
                          ctx.attr_string("keep_aspect_ratio_policy", "stretch"),
                          crops ? float_vector_of(ctx, 1, "the region", 2 * n) : nullptr);
}

Values resize_known(NodeContext& ctx) {
  ResizeSpec s = resize_spec(ctx);
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> which = every_axis(rank);
  if (ctx.has_attr("axes")) which = ctx.axes(ctx.attr_ints("axes"), rank);

  bool by_size = !is_left_out(ctx, 3);
  std::vector<double> scales;
  std::vector<Dim> sizes;
  if (by_size) {
    sizes = ctx.must_know(3, "the list of sizes").ints;
  } else {
    scales = scales_of(ctx, 2);
  }
  size_t given = by_size ? sizes.size() : scales.size();
  if (given != which.size()) {
    ctx.fail(codes::frontend_attribute, "the list of sizes or scales has the wrong length",
             std::to_string(which.size()), std::to_string(given));
  }
  std::string policy = ctx.attr_string("keep_aspect_ratio_policy", "stretch");
  if (!by_size || policy == "stretch") {
    if (Expr open = resize_open(ctx, x, s, which, sizes, scales)) return {value_of(open)};
  }
  std::vector<int64_t> resized;
  for (size_t i = 0; i < which.size(); ++i) {
    const Dim& own = NodeContext::shape_of(x)[static_cast<size_t>(which[i])];
    bool same = by_size ? dim_equal(own, sizes[i]) : scales[i] == 1;
    if (!same || s.coordinates == "tf_crop_and_resize") resized.push_back(which[i]);
  }
  std::vector<AxisResize> axes = axes_from_shape(ctx, x, resized);
  if (by_size) {
    std::vector<int64_t> wanted(which.size());
    double common = policy == "not_larger" ? 1e300 : 0;
    for (size_t i = 0; i < which.size(); ++i) {
      AxisResize& a = axes[static_cast<size_t>(which[i])];
      bool open = !as_const(sizes[i]) &&
                  dim_equal(sizes[i], NodeContext::shape_of(x)[static_cast<size_t>(which[i])]);
      if (!open && !as_const(sizes[i])) {
        ctx.fail(codes::frontend_dynamic, "a size depends on an input's open dimension", "a number",
                 to_string(sizes[i]));
      }
      wanted[i] = open ? a.in : *as_const(sizes[i]);
      double scale =
          static_cast<double>(wanted[i]) / static_cast<double>(std::max<int64_t>(a.in, 1));
      common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
    }
    for (size_t i = 0; i < which.size(); ++i) {
      AxisResize& a = axes[static_cast<size_t>(which[i])];
      if (policy == "stretch") {
        a.out = wanted[i];
        a.scale = static_cast<double>(a.out) / static_cast<double>(std::max<int64_t>(a.in, 1));
      } else if (policy == "not_larger" || policy == "not_smaller") {
        a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
        a.scale = common;
      } else {
        ctx.fail(codes::frontend_attribute,
                 "attribute 'keep_aspect_ratio_policy' has an unknown value",
                 "stretch, not_larger or not_smaller", policy.substr(0, 100));
      }
    }
  } else {
    for (size_t i = 0; i < which.size(); ++i) {
      if (scales[i] != 1) apply_scale(ctx, axes[static_cast<size_t>(which[i])], scales[i]);
    }
  }
  if (s.coordinates == "tf_crop_and_resize") {
    std::vector<double> roi = scales_of(ctx, 1);
    if (roi.size() != 2 * which.size()) {
      ctx.fail(codes::frontend_attribute, "the region has the wrong length",
               std::to_string(2 * which.size()), std::to_string(roi.size()));
    }
    for (size_t i = 0; i < which.size(); ++i) {
      axes[static_cast<size_t>(which[i])].roi_begin = roi[i];
      axes[static_cast<size_t>(which[i])].roi_end = roi[i + which.size()];
    }
  }
  return {value_of(resize(ctx, x, s, axes))};
}

Values convert_resize(NodeContext& ctx) {
  return known_or_open(ctx, resize_known, resize_open_inputs);
}

Values convert_grid_sample(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::string mode = ctx.attr_string("mode", ctx.opset() >= 20 ? "linear" : "bilinear");
  if (mode == "linear") mode = "bilinear";
  if (mode == "cubic") mode = "bicubic";
  int64_t rank = NodeContext::rank_of(x);
  if (rank != 4 && rank != 5) {
    ctx.fail(codes::type_rank, "the input must be an image or a volume", "rank 4 or 5",
             to_string(x->type));
  }
  // Relay's grid has its coordinates in the second dimension.
  std::vector<int64_t> axes{0, rank - 1};
  for (int64_t a = 1; a + 1 < rank; ++a) axes.push_back(a);
  return {value_of(ctx.call("image.grid_sample", {x, ctx.transpose(ctx.in(1), axes)},
                            {{"method", mode},
                             {"layout", std::string(rank == 4 ? "NCHW" : "NCDHW")},
                             {"padding_mode", ctx.attr_string("padding_mode", "zeros")},
                             {"align_corners", ctx.attr("align_corners", 0) != 0}}))};
}

// How many dimensions the image has that theta, a matrix of as many rows for each of the batch, turns.
int64_t affine_dimensions(NodeContext& ctx, const Expr& theta) {
  std::optional<int64_t> nd;
  if (NodeContext::rank_of(theta) == 3) nd = as_const(NodeContext::shape_of(theta)[1]);
  if (!nd) nd = length_of_vector(int_vector(ctx, 1, "the size")) - 2;
  if (nd != 2 && nd != 3) {
    ctx.fail(codes::frontend_attribute, "the size must have 4 or 5 entries", "4 or 5",
             std::to_string(*nd + 2));
  }
  return *nd;
}

// The grid is the product of theta with the homogeneous coordinates of every place.
Values affine_grid_known(NodeContext& ctx) {
  Expr theta = ctx.in(0);
  std::vector<int64_t> size = ctx.const_ints(1, "the size");
  const int64_t nd = affine_dimensions(ctx, theta);
  if (static_cast<int64_t>(size.size()) != nd + 2) {
    ctx.fail(codes::frontend_attribute, "the size has the wrong length", std::to_string(nd + 2),
             std::to_string(size.size()));
  }
  bool corners = ctx.attr("align_corners", 0) != 0;
  DType dtype = NodeContext::dtype_of(theta);
  int64_t places = 1;
  for (int64_t i = 0; i < nd; ++i) {
    int64_t n = size[static_cast<size_t>(i + 2)];
    if (n < 1 || n > (1 << 24)) ctx.fail(codes::frontend_attribute, "a size is out of range");
    places *= n;
    ctx.charge_bytes(places, dtype);
  }
  ctx.charge_bytes(places * (nd + 1), dtype);
  // Columns x, y, (z,) 1; x runs along the last dimension.
  Tensor base = Tensor::empty(dtype, {nd + 1, places});
  for (int64_t p = 0; p < places; ++p) {
    int64_t rest = p;
    for (int64_t c = 0; c < nd; ++c) {
      int64_t n = size[size.size() - 1 - static_cast<size_t>(c)];
      auto at = static_cast<double>(rest % n), m = static_cast<double>(n);
      rest /= n;
      double v = corners ? (n > 1 ? 2 * at / (m - 1) - 1 : 0) : (2 * at + 1) / m - 1;
      base.set_from_double(c * places + p, v);
    }
    base.set_from_double(nd * places + p, 1);
  }
  Expr grid = ctx.transpose(ctx.matmul(theta, ctx.constant(std::move(base))), {0, 2, 1});
  std::vector<Dim> shape{NodeContext::shape_of(theta)[0]};
  for (size_t i = 2; i < size.size(); ++i) shape.push_back(dim(size[i]));
  shape.push_back(dim(nd));
  return {value_of(ctx.reshape(grid, shape))};
}

// The sum of theta's columns, each times the coordinate of its axis; x runs along the last axis.
Values affine_grid_open(NodeContext& ctx) {
  Arithmetic m{ctx};
  Expr theta = ctx.in(0);
  const int64_t nd = affine_dimensions(ctx, theta);
  Expr size = float_vector_of(ctx, 1, "the size", nd + 2);
  const bool corners = ctx.attr("align_corners", 0) != 0;
  DType dtype = NodeContext::dtype_of(theta);
  // (batch, 1, ..., parts, columns), one axis of the image after the other between the two.
  Expr wide = ctx.expand_dims(theta, 1, nd);
  Expr grid = ctx.select(wide, nd + 2, nd);
  for (int64_t c = 0; c < nd; ++c) {
    const int64_t axis = nd - 1 - c;  // of the image
    Expr n = ctx.select(size, 0, 2 + axis), at = m.below(n), one = m.number(1), two = m.number(2);
    Expr place;
    if (corners) {
      Expr single = m.equal(n, 1), steps = m.where(single, one, ctx.sub(n, one));
      place = m.where(single, m.number(0), ctx.sub(ctx.div(ctx.mul(two, at), steps), one));
    } else {
      place = ctx.sub(ctx.div(ctx.add(ctx.mul(two, at), one), n), one);
    }
    // Behind it: the axes of the image that follow, and the parts.
    place = ctx.expand_dims(ctx.cast(place, dtype), 1, nd - axis);
    grid = ctx.add(grid, ctx.mul(ctx.select(wide, nd + 2, c), place));
  }
  return {value_of(grid)};
}

Values convert_affine_grid(NodeContext& ctx) {
  return known_or_open(ctx, affine_grid_known, affine_grid_open);
}

Values convert_roi_align(NodeContext& ctx) {
  const std::string pooling = ctx.attr_string("mode", "avg");
  if (pooling != "avg" && pooling != "max")
    ctx.unsupported("mode '" + pooling.substr(0, 100) + "'");
  Expr rois = ctx.in(1);
  DType dtype = NodeContext::dtype_of(rois);
  std::string mode = ctx.attr_string("coordinate_transformation_mode",
                                     ctx.opset() >= 16 ? "half_pixel" : "output_half_pixel");
  double scale = ctx.attr_float("spatial_scale", 1.0);
  if (mode == "half_pixel") {
    if (scale == 0) ctx.fail(codes::frontend_attribute, "attribute 'spatial_scale' is zero");
    rois = ctx.sub(rois, ctx.scalar(0.5 / scale, dtype));
  }
  Expr batch = ctx.expand_dims(ctx.cast(ctx.in(2), dtype), 1);
  int64_t ratio = ctx.attr("sampling_ratio", 0);
  return {value_of(ctx.call(
      "vision.roi_align", {ctx.in(0), ctx.concat({batch, rois}, 1)},
      {{"pooled_size", to_value({ctx.attr("output_height", 1), ctx.attr("output_width", 1)})},
       {"spatial_scale", scale},
       {"sample_ratio", ratio > 0 ? ratio : int64_t{-1}},
       {"layout", std::string("NCHW")},
       // The standard weighs the corners of a sample first, and takes the greatest of those.
       {"mode", std::string(pooling == "max" ? "max_corner" : "avg")}}))};
}

// The format of the image stands in its bytes.
Values convert_image_decoder(NodeContext& ctx) {
  const std::string format = ctx.attr_string("pixel_format", "RGB");
  if (format != "RGB" && format != "BGR" && format != "Grayscale") {
    ctx.fail(codes::frontend_attribute, "attribute 'pixel_format' has an unknown value",
             "RGB, BGR or Grayscale", format.substr(0, 100));
  }
  return {value_of(ctx.call("image.decode", {ctx.in(0)}, {{"pixel_format", format}}))};
}

Values convert_max_roi_pool(NodeContext& ctx) {
  return {value_of(ctx.call("vision.roi_pool", {ctx.in(0), ctx.in(1)},
                            {{"pooled_size", to_value(ctx.attr_ints("pooled_shape"))},
                             {"spatial_scale", ctx.attr_float("spatial_scale", 1.0)},
                             {"layout", std::string("NCHW")}}))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Resize>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "AffineGrid", 20, convert_affine_grid},
      {kOnnx, "GridSample", 16, convert_grid_sample},
      {kOnnx, "ImageDecoder", 20, convert_image_decoder},
      {kOnnx, "MaxRoiPool", 1, convert_max_roi_pool},
      {kOnnx, "Resize", 10, convert_upsample},
      {kOnnx, "Resize", 11, convert_resize},
      {kOnnx, "RoiAlign", 10, convert_roi_align},
      {kOnnx, "Upsample", 7, convert_upsample_attr},
      {kOnnx, "Upsample", 9, convert_upsample},
  };
  return rows;
}

}  // namespace relay::importer
