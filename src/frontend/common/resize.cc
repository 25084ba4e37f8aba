#include "frontend/common/resize.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/arithmetic.h"
#include "frontend/common/shape_args.h"

namespace relay::frontend {
namespace {

constexpr std::string_view kCrop = "tf_crop_and_resize";

struct AxisResize {
  int64_t in = 1, out = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// Where output position `o` lies in the input.
double source_of(const Builder& build, const ResizeSpec& s, const AxisResize& a, int64_t o) {
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
  build.fail(codes::frontend_attribute, "there is no such coordinate transformation",
             "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
             "tf_half_pixel_for_nn or tf_crop_and_resize",
             c.substr(0, 100));
}

double round_nearest(const Builder& build, const std::string& mode, double x) {
  if (mode == "round_prefer_floor") return std::ceil(x - 0.5);
  if (mode == "round_prefer_ceil") return std::floor(x + 0.5);
  if (mode == "floor") return std::floor(x);
  if (mode == "ceil") return std::ceil(x);
  build.fail(codes::frontend_attribute, "there is no such rounding of positions",
             "round_prefer_floor, round_prefer_ceil, floor or ceil", mode.substr(0, 100));
}

double cubic_weight(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// One axis as a list of source positions.
Expr nearest_axis(const Builder& build, const Expr& e, int64_t axis, const ResizeSpec& s,
                  const AxisResize& a) {
  build.charge_bytes(a.out, DType::Int(64));
  std::vector<int64_t> index;
  for (int64_t o = 0; o < a.out; ++o) {
    double x = round_nearest(build, s.nearest, source_of(build, s, a, o));
    index.push_back(static_cast<int64_t>(std::clamp(x, 0.0, static_cast<double>(a.in - 1))));
  }
  Tensor t = Tensor::empty(DType::Int(64), {a.out});
  std::copy(index.begin(), index.end(), t.data<int64_t>());
  return build.call("take", {e, build.constant(std::move(t))}, {{"axis", axis}});
}

// One axis as a product with its weights, linear or cubic.
Expr weighted_axis(const Builder& build, const Expr& e, int64_t axis, const ResizeSpec& s,
                   const AxisResize& a) {
  DType dtype = Builder::dtype_of(e);
  if (dtype.is_string()) build.unsupported("a weighted sum of strings");
  build.charge_bytes(a.in * a.out, dtype);
  bool cubic = s.mode == "cubic";
  double reach = cubic ? 2 : 1;
  // Antialiasing widens the filter when shrinking.
  double stretch = s.antialias && a.scale < 1 ? a.scale : 1;
  Tensor weights = Tensor::zeros(dtype, {a.in, a.out});
  for (int64_t o = 0; o < a.out; ++o) {
    double x = source_of(build, s, a, o);
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
  return build.matmul_along(e, axis, weights);
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

Expr image_resize(const Builder& build, const Expr& x, const ResizeSpec& s, const Dims& size) {
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
  return build.call(name, {x}, attrs);
}

Expr resize(const Builder& build, Expr x, const ResizeSpec& s,
            const std::vector<AxisResize>& axes) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic") {
    build.fail(codes::frontend_attribute, "there is no such interpolation",
               "nearest, linear or cubic", s.mode.substr(0, 100));
  }
  for (const AxisResize& a : axes) {
    if (a.in < 1 || a.out < 1 || !(a.scale > 0) || a.out > (int64_t{1} << 31)) {
      build.fail(codes::frontend_attribute, "a size or scale is out of range",
                 "sizes of 1 or more, scales above 0",
                 std::to_string(a.in) + " to " + std::to_string(a.out));
    }
  }
  int64_t rank = Builder::rank_of(x);
  bool changes = std::any_of(axes.begin(), axes.end(), [](const AxisResize& a) {
    return a.in != a.out || a.scale != 1 || a.roi_begin != 0 || a.roi_end != 1;
  });
  if (!changes) return x;
  DType dtype = Builder::dtype_of(x);
  if (!dtype.is_bool() && is_image_resize(s, axes, rank)) {
    Dims size;
    for (size_t i = 2; i < axes.size(); ++i) size.push_back(dim(axes[i].out));
    return image_resize(build, x, s, size);
  }
  bool whole = dtype.is_integer();
  if (s.mode != "nearest" && whole) x = build.cast(x, DType::Float(32));
  Expr outside;
  for (int64_t i = 0; i < rank; ++i) {
    const AxisResize& a = axes[static_cast<size_t>(i)];
    if (a.in == a.out && a.scale == 1 && a.roi_begin == 0 && a.roi_end == 1) continue;
    x = s.mode == "nearest" ? nearest_axis(build, x, i, s, a) : weighted_axis(build, x, i, s, a);
    if (s.coordinates != "tf_crop_and_resize") continue;
    Tensor mask = Tensor::zeros(DType::Bool(), {a.out});
    for (int64_t o = 0; o < a.out; ++o) {
      double at = source_of(build, s, a, o);
      mask.data<uint8_t>()[o] = at < 0 || at > static_cast<double>(a.in - 1);
    }
    Expr m = build.expand_dims(build.constant(std::move(mask)), 1, rank - i - 1);
    outside = outside ? build.call("logical_or", {outside, m}) : m;
  }
  if (outside) x = build.call("where", {outside, build.scalar_like(s.extrapolation, x), x});
  if (s.mode != "nearest" && whole) x = build.cast(build.call("round", {x}), dtype);
  return x;
}

std::vector<AxisResize> axes_from_shape(const Builder& build, const Expr& x,
                                        const std::vector<int64_t>& resized) {
  std::vector<AxisResize> axes(static_cast<size_t>(Builder::rank_of(x)));
  for (size_t i = 0; i < axes.size(); ++i) {
    bool used = std::find(resized.begin(), resized.end(), static_cast<int64_t>(i)) != resized.end();
    auto known = as_const(Builder::shape_of(x)[i]);
    // An open dimension that is not resized stays as it is.
    if (used || known) {
      axes[i].in = axes[i].out =
          used && !known ? build.const_dim(x, static_cast<int64_t>(i), "a resized dimension")
                         : *known;
    }
  }
  return axes;
}

// The scale of an axis between two sizes. PyTorch's scale of aligned corners steps by 0, which is an
// infinite scale, if one of the sizes is 1.
double scale_between(const ResizeSpec& s, int64_t in, int64_t out) {
  if (!s.corner_scale || in == out)
    return static_cast<double>(out) / static_cast<double>(std::max<int64_t>(in, 1));
  if (in <= 1 || out <= 1) return std::numeric_limits<double>::infinity();
  return static_cast<double>(out - 1) / static_cast<double>(in - 1);
}

void apply_scale(const Builder& build, AxisResize& a, double scale) {
  double out = std::floor(static_cast<double>(a.in) * scale);
  if (!(scale > 0) || !(out < 2147483648.0)) {
    build.fail(codes::frontend_attribute, "a scale is out of range", "a positive number",
               std::to_string(scale));
  }
  a.scale = scale;
  a.out = static_cast<int64_t>(out);
}

// A resize of spatial axes some of which are open, or become so: by sizes, or by whole factors, whose
// ratio of sizes is the scale. Null where all sizes are known, or something else is asked for.
Expr resize_open(const Builder& build, const Expr& x, const ResizeSpec& s,
                 const std::vector<int64_t>& which, const std::vector<Dim>& sizes,
                 const std::vector<double>& scales) {
  std::vector<Dim> shape = Builder::shape_of(x);
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
  if (!open || !known_mode || !is_image_mode(s, Builder::rank_of(x)) ||
      Builder::dtype_of(x).is_bool())
    return nullptr;
  return image_resize(build, x, s, Dims(shape.begin() + 2, shape.end()));
}

[[noreturn]] void unknown_policy(const Builder& build, const std::string& policy) {
  build.fail(codes::frontend_attribute, "there is no such way to keep the ratio of sizes",
             "stretch, not_larger or not_smaller", policy.substr(0, 100));
}

// The axes in full: those of `which` that change, or that are cropped, as numbers.
std::vector<AxisResize> axes_to_resize(const Builder& build, const Expr& x, const ResizeSpec& s,
                                       const std::vector<int64_t>& which,
                                       const std::function<bool(size_t)>& keeps) {
  std::vector<int64_t> resized;
  for (size_t i = 0; i < which.size(); ++i) {
    if (!keeps(i) || s.coordinates == kCrop) resized.push_back(which[i]);
  }
  return axes_from_shape(build, x, resized);
}

void check_count(const Builder& build, const char* what, size_t wanted, size_t given) {
  if (given == wanted) return;
  build.fail(codes::frontend_attribute, std::string(what) + " has the wrong length",
             std::to_string(wanted), std::to_string(given));
}

// Only a crop has a region: where it begins in each axis, then where it ends.
void set_region(const Builder& build, const ResizeSpec& s, const std::vector<int64_t>& which,
                const std::vector<double>& region, std::vector<AxisResize>& axes) {
  if (s.coordinates != kCrop) return;
  check_count(build, "the region", 2 * which.size(), region.size());
  for (size_t i = 0; i < which.size(); ++i) {
    axes[static_cast<size_t>(which[i])].roi_begin = region[i];
    axes[static_cast<size_t>(which[i])].roi_end = region[i + which.size()];
  }
}

}  // namespace

Expr resize_by_scales(const Builder& build, const Expr& x, const ResizeSpec& s,
                      const std::vector<int64_t>& which, const std::vector<double>& scales,
                      const std::vector<double>& region, const std::vector<int64_t>& sizes) {
  check_count(build, "the list of scales", which.size(), scales.size());
  if (sizes.empty()) {
    if (Expr open = resize_open(build, x, s, which, {}, scales)) return open;
  } else {
    check_count(build, "the list of sizes", which.size(), sizes.size());
  }
  auto keeps = [&](size_t i) { return scales[i] == 1 && sizes.empty(); };
  std::vector<AxisResize> axes = axes_to_resize(build, x, s, which, keeps);
  for (size_t i = 0; i < which.size(); ++i) {
    AxisResize& a = axes[static_cast<size_t>(which[i])];
    if (scales[i] != 1) apply_scale(build, a, scales[i]);
    if (!sizes.empty()) a.out = sizes[i];
  }
  set_region(build, s, which, region, axes);
  return resize(build, x, s, axes);
}

Expr resize_by_sizes(const Builder& build, const Expr& x, const ResizeSpec& s,
                     const std::vector<int64_t>& which, const std::vector<Dim>& sizes,
                     const std::string& policy, const std::vector<double>& region) {
  check_count(build, "the list of sizes", which.size(), sizes.size());
  if (policy == "stretch") {
    if (Expr open = resize_open(build, x, s, which, sizes, {})) return open;
  } else if (policy != "not_larger" && policy != "not_smaller") {
    unknown_policy(build, policy);
  }
  auto own = [&](size_t i) { return Builder::shape_of(x)[static_cast<size_t>(which[i])]; };
  std::vector<AxisResize> axes =
      axes_to_resize(build, x, s, which, [&](size_t i) { return dim_equal(own(i), sizes[i]); });
  std::vector<int64_t> wanted(which.size());
  double common = policy == "not_larger" ? 1e300 : 0;
  for (size_t i = 0; i < which.size(); ++i) {
    AxisResize& a = axes[static_cast<size_t>(which[i])];
    bool open = !as_const(sizes[i]) && dim_equal(sizes[i], own(i));
    if (!open && !as_const(sizes[i])) {
      build.fail(codes::frontend_dynamic, "a size depends on an input's open dimension", "a number",
                 to_string(sizes[i]));
    }
    wanted[i] = open ? a.in : *as_const(sizes[i]);
    double scale = scale_between(s, a.in, wanted[i]);
    common = policy == "not_larger" ? std::min(common, scale) : std::max(common, scale);
  }
  for (size_t i = 0; i < which.size(); ++i) {
    AxisResize& a = axes[static_cast<size_t>(which[i])];
    if (policy == "stretch") {
      a.out = wanted[i];
      a.scale = scale_between(s, a.in, a.out);
    } else {
      a.out = static_cast<int64_t>(std::floor(common * static_cast<double>(a.in) + 0.5));
      a.scale = common;
    }
  }
  set_region(build, s, which, region, axes);
  return resize(build, x, s, axes);
}

namespace {

// ---- Sizes, scales or regions that a run tells ---------------------------------------------------

// One axis: numbers that a run knows, float64 scalars.
struct OpenAxis {
  Expr in, out, scale, roi_begin, roi_end;
};

// Where the positions `o` of the output lie in the input: source_of for all of them.
Expr open_source(const Arithmetic& m, const ResizeSpec& s, const OpenAxis& a, const Expr& o) {
  const Builder& build = m.build;
  const std::string& c = s.coordinates;
  Expr one = m.number(1), half = m.number(0.5);
  Expr middle = build.sub(build.div(build.add(o, half), a.scale), half);
  if (c == "half_pixel") return middle;
  Expr exact = build.mul(a.scale, a.in);
  if (c == "half_pixel_symmetric") {
    Expr adjustment = build.div(a.out, exact);
    return build.add(build.mul(build.mul(a.in, half), build.sub(one, adjustment)), middle);
  }
  if (c == "pytorch_half_pixel") {
    return m.where(build.call("greater", {a.out, one}), middle, m.number(0));
  }
  Expr is_one = m.equal(exact, 1), steps = m.where(is_one, one, build.sub(exact, one));
  Expr last = build.sub(a.in, one);
  if (c == "align_corners") {
    return m.where(is_one, m.number(0), build.div(build.mul(o, last), steps));
  }
  if (c == "asymmetric") return build.div(o, a.scale);
  if (c == "tf_half_pixel_for_nn") return build.div(build.add(o, half), a.scale);
  if (c != "tf_crop_and_resize") source_of(build, s, {}, 0);  // says what is known
  Expr centre = build.mul(build.mul(half, build.add(a.roi_begin, a.roi_end)), last);
  Expr step = build.div(build.mul(build.sub(a.roi_end, a.roi_begin), last), steps);
  Expr along = build.add(build.mul(a.roi_begin, last), build.mul(o, step));
  return m.where(is_one, centre, along);
}

Expr open_nearest(const Arithmetic& m, const Expr& e, int64_t axis, const ResizeSpec& s,
                  const OpenAxis& a, Expr at) {
  const Builder& build = m.build;
  Expr half = m.number(0.5);
  if (s.nearest == "round_prefer_floor") {
    at = m.ceil(build.sub(at, half));
  } else if (s.nearest == "round_prefer_ceil") {
    at = m.floor(build.add(at, half));
  } else if (s.nearest == "floor" || s.nearest == "ceil") {
    at = build.call(s.nearest, {at});
  } else {
    round_nearest(build, s.nearest, 0);  // says what is known
  }
  at = m.maximum(m.minimum(at, build.sub(a.in, m.number(1))), m.number(0));
  return build.call("take", {e, build.cast(at, DType::Int(64))}, {{"axis", axis}});
}

// The product with a matrix of weights: those of all places within reach of a position, also of the
// ones outside of the input, which then count for the first or last place.
Expr open_weighted(const Arithmetic& m, const Expr& e, int64_t axis, const ResizeSpec& s,
                   const OpenAxis& a, const Expr& at) {
  const Builder& build = m.build;
  const bool cubic = s.mode == "cubic";
  Expr zero = m.number(0), one = m.number(1), reach = m.number(cubic ? 2 : 1);
  Expr stretch = s.antialias ? m.minimum(a.scale, one) : one;
  Expr beyond = m.ceil(build.div(reach, stretch)), last = build.sub(a.in, one);
  // (places, positions)
  Expr places = open_range(build, build.sub(zero, beyond), build.add(a.in, beyond));
  Expr row = build.expand_dims(places, 1);
  Expr d = build.call("abs", {build.mul(build.sub(row, build.expand_dims(at, 0)), stretch)});
  Expr w;
  if (cubic) {
    auto c = [&](double v) { return m.number(v); };
    double k = s.cubic_alpha;
    Expr near =
        build.add(build.mul(build.mul(build.sub(build.mul(c(k + 2), d), c(k + 3)), d), d), one);
    Expr far = build.sub(
        build.mul(build.add(build.mul(build.sub(build.mul(c(k), d), c(5 * k)), d), c(8 * k)), d),
        c(4 * k));
    w = m.where(build.call("less_equal", {d, one}), near,
                m.where(build.call("less", {d, reach}), far, zero));
  } else {
    w = m.maximum(build.sub(one, d), zero);
  }
  if (s.exclude_outside) {
    Expr inside = build.call("logical_and", {build.call("greater_equal", {row, zero}),
                                             build.call("less_equal", {row, last})});
    w = m.where(inside, w, zero);
  }
  Expr sum = build.reduce("sum", w, {0}, true);
  w = build.div(w, m.where(m.equal(sum, 0), one, sum));
  Expr nearest = m.maximum(m.minimum(places, last), zero);
  Expr inputs = m.below(a.in);
  Expr counts =
      build.cast(build.call("equal", {build.expand_dims(inputs, 1), build.expand_dims(nearest, 0)}),
                 DType::Float(64));
  Expr matrix = build.matmul(counts, w);  // (inputs, positions)
  Expr weights = build.cast(matrix, Builder::dtype_of(e));
  return build.with_axis_last(e, axis,
                              [&](const Expr& lines) { return build.matmul(lines, weights); });
}

// Resizes the axes `which` one after the other.
Expr resize_open_axes(const Builder& build, Expr x, const ResizeSpec& s,
                      const std::vector<int64_t>& which, const std::vector<OpenAxis>& axes) {
  if (s.mode != "nearest" && s.mode != "linear" && s.mode != "cubic")
    return resize(build, x, s, {});
  Arithmetic m{build};
  const int64_t rank = Builder::rank_of(x);
  DType dtype = Builder::dtype_of(x);
  const bool whole = !dtype.is_floating() && s.mode != "nearest";
  if (whole) x = build.cast(x, DType::Float(32));
  Expr outside;
  for (size_t k = 0; k < which.size(); ++k) {
    Expr at = open_source(m, s, axes[k], m.below(axes[k].out));
    x = s.mode == "nearest" ? open_nearest(m, x, which[k], s, axes[k], at)
                            : open_weighted(m, x, which[k], s, axes[k], at);
    if (s.coordinates != "tf_crop_and_resize") continue;
    Expr last = build.sub(axes[k].in, m.number(1));
    Expr out = build.call(
        "logical_or", {build.call("less", {at, m.number(0)}), build.call("greater", {at, last})});
    out = build.expand_dims(out, 1, rank - which[k] - 1);
    outside = outside ? build.call("logical_or", {outside, out}) : out;
  }
  if (outside) x = build.call("where", {outside, build.scalar_like(s.extrapolation, x), x});
  return whole ? build.cast(build.call("round", {x}), dtype) : x;
}

}  // namespace

Expr resize_at_run_time(const Builder& build, const Expr& x, const ResizeSpec& s,
                        const std::vector<int64_t>& which, const Expr& scales, const Expr& sizes,
                        const std::string& policy, const Expr& region) {
  Arithmetic m{build};
  const auto n = static_cast<int64_t>(which.size());
  Expr in = build.cast(
      build.call("take", {sizes_of(build, x), build.ints(which)}, {{"axis", int64_t{0}}}),
      DType::Float(64));
  Expr scale = scales, out;
  if (scales) {
    out = m.floor(build.mul(in, scales));
  } else {
    scale = build.div(sizes, m.maximum(in, m.number(1)));
    out = sizes;
    if (policy != "stretch") {
      bool smaller = policy == "not_larger";
      if (!smaller && policy != "not_smaller") {
        unknown_policy(build, policy);
      }
      scale = build.mul(build.reduce(smaller ? "min" : "max", scale, {0}, true),
                        build.full(1, {dim(n)}, DType::Float(64)));
      out = m.floor(build.add(build.mul(scale, in), m.number(0.5)));
    }
  }
  std::vector<OpenAxis> axes;
  for (int64_t k = 0; k < n; ++k) {
    auto entry = [&](const Expr& list, int64_t at) { return build.select(list, 0, at); };
    OpenAxis a{entry(in, k), entry(out, k), entry(scale, k), m.number(0), m.number(1)};
    if (region) {
      a.roi_begin = entry(region, k);
      a.roi_end = entry(region, n + k);
    }
    axes.push_back(std::move(a));
  }
  return resize_open_axes(build, x, s, which, axes);
}

}  // namespace relay::frontend
