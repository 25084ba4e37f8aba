// Resizing along one to three spatial axes, one axis after the other.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/codes/operators.h"
#include "ops/batching.h"
#include "ops/composed.h"
#include "ops/follow_layout.h"
#include "ops/gradient.h"
#include "ops/image/sampling.h"
#include "ops/image/window.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Resize1DAttrs, Resize2DAttrs and Resize3DAttrs differ in their default layout.
struct ResizeAttrs : AttrsNode {
  Dims size;
  std::vector<double> roi;
  std::string layout, method = "linear", coordinate_transformation_mode = "half_pixel",
                      rounding_method = "round";
  double cubic_alpha = -0.5;
  int64_t cubic_exclude = 0;
  double extrapolation_value = 0;
  DType out_dtype = kUnsetDType;

 protected:
  ResizeAttrs(const NodeInfo& info, const char* data) : AttrsNode(info), layout(data) {}
};
template <class T>
std::vector<Field> resize_fields() {
  return {
      child("size", &T::size, "Spatial size of the result."),
      attribute("roi", &T::roi,
                "Region for tf_crop_and_resize, as shares of the input: begins, then ends."),
      attribute("layout", &T::layout, "Layout."),
      attribute("method", &T::method, "nearest_neighbor, linear or cubic."),
      attribute("coordinate_transformation_mode", &T::coordinate_transformation_mode,
                "half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
                "tf_half_pixel_for_nn or tf_crop_and_resize."),
      attribute("rounding_method", &T::rounding_method,
                "For the nearest neighbour: round, floor, ceil, round_prefer_floor or "
                "round_prefer_ceil; empty: round with align_corners, else floor."),
      attribute("cubic_alpha", &T::cubic_alpha, "Coefficient of the cubic kernel."),
      attribute("cubic_exclude", &T::cubic_exclude, "Cubic: leave out samples outside."),
      attribute("extrapolation_value", &T::extrapolation_value,
                "Value outside, for tf_crop_and_resize."),
      attribute("out_dtype", &T::out_dtype, "dtype of the result; unset: that of the input.")};
}
struct Resize1DAttrs : AttrsOf<Resize1DAttrs, ResizeAttrs> {
  Resize1DAttrs() : AttrsOf("NCW") {}
  static AttrsList describe() { return {"relay.attrs.Resize1DAttrs", resize_fields<Self>()}; }
};
struct Resize2DAttrs : AttrsOf<Resize2DAttrs, ResizeAttrs> {
  Resize2DAttrs() : AttrsOf("NCHW") {}
  static AttrsList describe() { return {"relay.attrs.Resize2DAttrs", resize_fields<Self>()}; }
};
struct Resize3DAttrs : AttrsOf<Resize3DAttrs, ResizeAttrs> {
  Resize3DAttrs() : AttrsOf("NCDHW") {}
  static AttrsList describe() { return {"relay.attrs.Resize3DAttrs", resize_fields<Self>()}; }
};

template <size_t kDims>
Type resize_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ResizeAttrs>();
  auto l = sampling_layout(ctx, a.layout, kDims, *x);
  if (!l || !check_target(ctx, "size", a.size, kDims) ||
      !one_of(ctx, "method", a.method, {"nearest_neighbor", "linear", "cubic"}) ||
      !one_of(ctx, "coordinate_transformation_mode", a.coordinate_transformation_mode,
              {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
               "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"}) ||
      !one_of(ctx, "rounding_method", a.rounding_method,
              {"round", "floor", "ceil", "round_prefer_floor", "round_prefer_ceil", ""}) ||
      !require(
          ctx,
          a.coordinate_transformation_mode != "tf_crop_and_resize" || a.roi.size() == 2 * kDims,
          codes::op_bad_attribute, "roi does not fit tf_crop_and_resize",
          std::to_string(kDims) + " begins, then " + std::to_string(kDims) + " ends",
          std::to_string(a.roi.size()) + " numbers"))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t d = 0; d < kDims; ++d) shape[axis_of(*l, spatial_axes(kDims)[d])] = a.size[d];
  return tensor_type(std::move(shape), is_set(a.out_dtype) ? a.out_dtype : x->dtype);
}

// Where an output index lies in the input: at low + part, 0 <= part < 1. All modes but the crop
// give a quotient of whole numbers, so `low` is exact however large the image is.
struct Position {
  PrimExpr numerator, denominator;  // whole numbers; null for a crop
  PrimExpr real;                    // float64; only for a crop
};

Position position_of(const ResizeAttrs& a, size_t axis, const PrimExpr& i, PrimExpr in,
                     PrimExpr out) {
  const std::string& mode = a.coordinate_transformation_mode;
  auto n = as_int(in), m = as_int(out);
  if (mode == "tf_crop_and_resize") {
    DType f = DType::Float(64);
    double begin = a.roi[axis], end = a.roi[axis + a.roi.size() / 2];
    PrimExpr last = tir::cast(f, in - 1);
    if (!m) {
      // Of one place it is the middle.
      PrimExpr step = div(imm_float(f, end - begin), tir::cast(f, max(out - 1, index(1))));
      PrimExpr at = imm_float(f, begin) + tir::cast(f, i) * step;
      return {nullptr, nullptr,
              select(eq(out, index(1)), imm_float(f, 0.5 * (begin + end)), at) * last};
    }
    if (*m == 1) return {nullptr, nullptr, imm_float(f, 0.5 * (begin + end)) * last};
    double step = (end - begin) / static_cast<double>(*m - 1);
    return {nullptr, nullptr, (imm_float(f, begin) + tir::cast(f, i) * imm_float(f, step)) * last};
  }
  if (mode == "align_corners") {
    if (m == 1) return {index(0), index(1), nullptr};
    in = in - 1;
    out = m ? out - 1 : max(out - 1, index(1));
  } else if (mode == "pytorch_half_pixel" && m == 1) {
    return {index(0), index(1), nullptr};
  }
  // Small numbers make small divisions: 2/4 is 1/2.
  if (n && m && *n > (mode == "align_corners" ? 1 : 0)) {
    int64_t by = std::gcd(*as_int(in), *as_int(out));
    in = index(*as_int(in) / by);
    out = index(*as_int(out) / by);
  }
  if (mode == "align_corners" || mode == "asymmetric") return {i * in, out, nullptr};
  PrimExpr middle = (i * 2 + 1) * in;
  if (mode == "tf_half_pixel_for_nn") return {middle, out * 2, nullptr};
  PrimExpr first = middle - out;
  if (mode == "pytorch_half_pixel" && !m) first = select(eq(out, index(1)), index(0), first);
  return {first, out * 2, nullptr};
}

// The nearest whole number by `rounding`.
PrimExpr nearest(const Position& p, const std::string& rounding) {
  if (p.real) {
    DType f = p.real->dtype;
    auto call = [&](const char* name, const PrimExpr& v) { return tir::call(name, f, {v}); };
    PrimExpr half = imm_float(f, 0.5);
    return tir::cast(kIndex, rounding == "floor"                ? call("floor", p.real)
                             : rounding == "ceil"               ? call("ceil", p.real)
                             : rounding == "round_prefer_floor" ? call("ceil", p.real - half)
                                                                : call("floor", p.real + half));
  }
  const PrimExpr &n = p.numerator, &d = p.denominator;
  if (rounding == "floor") return floor_div(n, d);
  if (rounding == "ceil") return floor_div(n + d - 1, d);
  // ceil(p - 1/2) and floor(p + 1/2)
  if (rounding == "round_prefer_floor") return floor_div(n * 2 + d - 1, d * 2);
  return floor_div(n * 2 + d, d * 2);
}

// How an element of a result is made of two or four of the input along an axis: the sum of the
// products with the weights, by the divisor.
struct Taps {
  PrimExpr low;  // the first is there (linear), or one before (cubic)
  std::vector<PrimExpr> weights;
  PrimExpr divisor;  // null: 1
};

// With `whole`, weights are multiplied by the position's denominator, which makes them whole
// numbers.
Taps taps_of(const ResizeAttrs& a, const Position& p, const PrimExpr& in, DType acc, bool whole) {
  Taps t{nearest(p, "floor"), {}, nullptr};
  PrimExpr unit = imm_float(acc, 1), part;
  if (p.real) {
    part = tir::cast(acc, p.real - tir::call("floor", p.real->dtype, {p.real}));
  } else {
    part = tir::cast(acc, p.numerator - t.low * p.denominator);
    PrimExpr denominator = tir::cast(acc, p.denominator);
    if (whole) {
      unit = denominator;
    } else {
      part = div(part, denominator);
    }
  }
  if (a.method == "linear") {
    t.weights = {unit - part, part};
    if (whole) t.divisor = unit;
    return t;
  }
  t.weights = cubic_weights(part, unit, a.cubic_alpha);
  if (whole) t.divisor = unit * unit * unit;
  if (a.cubic_exclude == 0) return t;
  for (int64_t k = 0; k < 4; ++k) {
    PrimExpr& w = t.weights[static_cast<size_t>(k)];
    w = select(is_inside(t.low + (k - 1), in), w, imm_float(acc, 0));
    t.divisor = k == 0 ? w : t.divisor + w;
  }
  return t;
}

// What is computed once for each place of an axis, and not for each element.
TirTensor table(const char* name, const PrimExpr& size,
                const std::function<PrimExpr(const PrimExpr&)>& value) {
  return tir::compute(
      name, {size}, [&](const Indices& i) { return value(i[0]); }, kept("table"));
}

// `x` resized along one axis, in dtype `acc` (nearest: in its own); with `whole`, times the
// divisors of the axis. With `keep`, the result is made once, and not again at each use.
TirTensor resize_axis(const TirTensor& x, size_t axis, size_t spatial, const PrimExpr& target,
                      const ResizeAttrs& a, DType acc, bool whole, bool keep) {
  PrimExpr in = x->shape()[axis];
  std::vector<PrimExpr> shape = x->shape();
  shape[axis] = target;
  // Vectors lie along the last axis: there each lane has its own position, which comes from tables.
  bool in_lanes = axis + 1 == shape.size();
  const tir::BlockRole role = keep ? kept("lines") : tir::BlockRole{};
  auto position = [&](const PrimExpr& i) { return position_of(a, spatial, i, in, target); };
  auto read = [&](Indices at, const PrimExpr& place) {
    at[axis] = place;
    return x(at);
  };
  auto clamped = [&](const PrimExpr& place) {
    return tir::cast(DType::Int(32), clamp_index(place, in));
  };
  if (a.method == "nearest_neighbor") {
    std::string rounding = !a.rounding_method.empty()                            ? a.rounding_method
                           : a.coordinate_transformation_mode == "align_corners" ? "round"
                                                                                 : "floor";
    auto place = [&](const PrimExpr& i) { return nearest(position(i), rounding); };
    if (!in_lanes)
      return tir::compute(
          "T_resize", shape,
          [&](const Indices& i) { return read(i, clamp_index(place(i[axis]), in)); }, role);
    TirTensor places =
        table("T_places", target, [&](const PrimExpr& i) { return clamped(place(i)); });
    return tir::compute(
        "T_resize", shape,
        [&](const Indices& i) { return read(i, tir::cast(kIndex, places(i[axis]))); }, role);
  }
  const int64_t before = a.method == "linear" ? 0 : 1;
  const size_t count = a.method == "linear" ? 2 : 4;
  auto taps = [&](const PrimExpr& i) { return taps_of(a, position(i), in, acc, whole); };
  std::vector<TirTensor> places, weights;
  TirTensor divisors;
  if (in_lanes) {
    for (size_t k = 0; k < count; ++k) {
      places.push_back(table("T_places", target, [&](const PrimExpr& i) {
        return clamped(taps(i).low + (static_cast<int64_t>(k) - before));
      }));
      weights.push_back(
          table("T_weights", target, [&](const PrimExpr& i) { return taps(i).weights[k]; }));
    }
    if (!whole && taps(index(0)).divisor) {
      divisors = table("T_divisors", target, [&](const PrimExpr& i) { return taps(i).divisor; });
    }
  }
  return tir::compute(
      "T_resize", shape,
      [&](const Indices& i) {
        Taps t;
        if (!in_lanes) t = taps(i[axis]);
        auto weight = [&](size_t k) { return in_lanes ? weights[k](i[axis]) : t.weights[k]; };
        auto value = [&](size_t k) {
          PrimExpr place = in_lanes ? tir::cast(kIndex, places[k](i[axis]))
                                    : clamp_index(t.low + (static_cast<int64_t>(k) - before), in);
          return tir::cast(acc, read(i, place));
        };
        if (a.method == "linear" && !whole) {
          PrimExpr first = value(0);
          return first + (value(1) - first) * weight(1);
        }
        PrimExpr sum;
        for (size_t k = 0; k < count; ++k) {
          PrimExpr product = weight(k) * value(k);
          sum = k == 0 ? product : sum + product;
        }
        if (in_lanes) return divisors ? div(sum, divisors(i[axis])) : sum;
        return whole || !t.divisor ? sum : div(sum, t.divisor);
      },
      role);
}

// Between whole numbers, the sums are kept whole until they are rounded to a whole number: then no
// order of the additions, and no wider register, changes the result.
bool stays_whole(const ResizeAttrs& a, DType data, DType out) {
  return data.is_integer() && out.is_integer() && a.method != "nearest_neighbor" &&
         a.coordinate_transformation_mode != "tf_crop_and_resize";
}

// Nothing to do along an axis that keeps its size: every position is whole.
bool keeps_axis(const ResizeAttrs& a, const PrimExpr& in, const PrimExpr& out) {
  auto n = as_int(in);
  return n && n == as_int(out) && a.coordinate_transformation_mode != "tf_crop_and_resize" &&
         a.coordinate_transformation_mode != "tf_half_pixel_for_nn";
}

// Twice the greatest size of a sum of whole numbers along these axes, which is exact in a float of
// so many bits, and so is the place of its quotient between two whole numbers.
double greatest_sum(const ResizeAttrs& a, DType data, const std::vector<size_t>& axes,
                    const std::function<Position(size_t, const PrimExpr&)>& position) {
  double sum = 2 * std::ldexp(1, data.bits);
  for (size_t d : axes) {
    auto denominator = as_int(position(d, index(0)).denominator);
    if (!denominator) return HUGE_VAL;
    auto unit = static_cast<double>(*denominator);
    // The polynomials of a cubic pass through four units, and have two binary places.
    sum *= a.method == "linear" ? unit : 16 * unit * unit * unit;
  }
  return sum;
}

template <size_t kDims>
std::shared_ptr<const ComputeRule> resize_rule() {
  return compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ResizeAttrs>();
    Layout l = Layout::of(a.layout);
    TirTensor data = ctx.inputs[0], x = data;
    const std::vector<PrimExpr>& out_shape = ctx.outputs[0].shape;
    DType out = ctx.outputs[0].dtype;
    bool exact = a.method == "nearest_neighbor";
    bool whole = stays_whole(a, data->dtype, out);
    DType acc = exact ? data->dtype : sampling_dtype(data->dtype);
    std::vector<size_t> resized;
    for (size_t d = kDims; d-- > 0;) {
      size_t axis = axis_of(l, spatial_axes(kDims)[d]);
      if (!keeps_axis(a, data->shape()[axis], out_shape[axis])) resized.push_back(d);
    }
    auto position = [&](size_t d, const PrimExpr& i) {
      size_t axis = axis_of(l, spatial_axes(kDims)[d]);
      return position_of(a, d, i, data->shape()[axis], out_shape[axis]);
    };
    if (whole && greatest_sum(a, data->dtype, resized, position) >= 0x1p24) acc = DType::Float(64);
    // Along the last axis elements are gathered: there are fewest to gather when axes that shrink
    // come before it, and the others after it.
    bool gathers = std::ranges::any_of(resized, [&](size_t d) {
      return axis_of(l, spatial_axes(kDims)[d]) + 1 == out_shape.size();
    });
    std::ranges::stable_partition(resized, [&](size_t d) {
      size_t axis = axis_of(l, spatial_axes(kDims)[d]);
      auto from = as_int(data->shape()[axis]), to = as_int(out_shape[axis]);
      return gathers && axis + 1 < out_shape.size() && from && to && *to < *from;
    });
    for (size_t d : resized) {
      size_t axis = axis_of(l, spatial_axes(kDims)[d]);
      x = resize_axis(x, axis, d, out_shape[axis], a, acc, whole, gathers && d != resized.back());
    }
    if (x->dtype == out && a.coordinate_transformation_mode != "tf_crop_and_resize" && x != data)
      return x;
    return tir::compute("T_resized", out_shape, [&](const Indices& i) {
      PrimExpr v = x(i), divisor;
      for (size_t d : whole ? resized : std::vector<size_t>()) {
        size_t axis = axis_of(l, spatial_axes(kDims)[d]);
        Taps t = taps_of(a, position(d, i[axis]), data->shape()[axis], acc, whole);
        divisor = divisor ? divisor * t.divisor : t.divisor;
      }
      if (divisor) v = div(v, divisor);
      v = exact || x == data ? tir::cast(out, v) : from_sampling(out, v);
      if (a.coordinate_transformation_mode != "tf_crop_and_resize") return v;
      PrimExpr inside = boolean(true);
      for (size_t d = 0; d < kDims; ++d) {
        size_t axis = axis_of(l, spatial_axes(kDims)[d]);
        PrimExpr p = position(d, i[axis]).real;
        inside =
            logical_and(inside, logical_and(ge(p, imm_float(p->dtype, 0)),
                                            le(p, tir::cast(p->dtype, data->shape()[axis] - 1))));
      }
      PrimExpr outside = imm_float(DType::Float(64), a.extrapolation_value);
      return select(inside, v, from_sampling(out, outside));
    });
  });
}

// For each element of the result, what is read once each axis is interpolated.
double resize_cost(const CallNode& c) {
  auto& a = static_cast<const ResizeAttrs&>(*c.attrs.get());
  return (a.method == "nearest_neighbor" ? 0
          : a.method == "linear"         ? 4
                                         : 24) *
         num_elements(c.type);
}

// Where an axis grows by a whole factor, element i takes from the `count` places of the result from
// factor * i - before on.
struct Reach {
  int64_t factor, before, count;
};

std::optional<Reach> reach_of(const ResizeAttrs& a, size_t d, const Dim& from, const Dim& to) {
  auto n = as_const(from), m = as_const(to);
  // Few places, or a product with a matrix is as good.
  constexpr int64_t kMostPlaces = 16;
  if (!n || !m || *n < 1 || *m % *n != 0 || *m / *n < 2 || *m / *n > kMostPlaces)
    return std::nullopt;
  const int64_t factor = *m / *n, aside = a.method == "cubic" ? 1 : 0;
  // The first and the last place that read an element, beside factor * i.
  int64_t first = 0, last = 0;
  for (int64_t o = 0; o < *m; ++o) {
    Position p = position_of(a, d, index(o), index(*n), index(*m));
    auto above = p.real ? std::nullopt : as_int(p.numerator),
         below = p.real ? std::nullopt : as_int(p.denominator);
    if (!above || !below || *below < 1) return std::nullopt;
    const int64_t low = *above / *below - (*above % *below < 0 ? 1 : 0);
    for (int64_t k = low - aside; k <= low + 1 + aside; ++k) {
      const int64_t beside = o - factor * std::clamp<int64_t>(k, 0, *n - 1);
      first = std::min(first, beside);
      last = std::max(last, beside);
    }
  }
  if (last - first + 1 > kMostPlaces) return std::nullopt;
  return Reach{factor, -first, last - first + 1};
}

// g times the transposed matrix (in, out) along an axis, of which only what `r` says is not zero.
Expr gathered(const Expr& g, int64_t axis, const Expr& matrix, const Reach& r) {
  const std::vector<Dim>& shape = type_of(matrix).shape;
  const int64_t n = *as_const(shape[0]), m = *as_const(shape[1]);
  Ints places;
  std::vector<bool> known;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < r.count; ++k) {
      const int64_t o = r.factor * i - r.before + k;
      places.push_back(std::clamp<int64_t>(o, 0, m - 1));
      known.push_back(o >= 0 && o < m);
    }
  }
  Expr weights =
      apply("gather", {matrix, indices_constant(places, {n, r.count})}, {{"axis", int64_t{1}}});
  weights = kept(mask_constant(known, {n, r.count}), weights);
  const int64_t reach = r.factor * (n - 1) + 1;
  Expr around = pad_axis(g, axis, dim(r.before),
                         dim(std::max<int64_t>(reach + r.count - 1 - r.before - m, 0)));
  Expr sum;
  for (int64_t k = 0; k < r.count; ++k) {
    Expr weight =
        apply("squeeze", {slice_axis(weights, 1, dim(k), dim(1))}, {{"axis", to_value(Ints{1})}});
    Expr part =
        sliced(around, {axis}, {k}, {k + reach}, {r.factor}) * along(weight, axis, rank_of(g));
    sum = sum ? sum + part : part;
  }
  return sum;
}

// Resizing is a product with a matrix along each axis: what it makes of the identity matrix along that
// axis alone. Where the axis grows by a whole factor, only the few places are added that an element has
// gone to. Of a crop, what it makes of zeros is the value outside, which is a constant.
template <size_t kDims>
Adjoints resize_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<ResizeAttrs>();
  Layout l = Layout::of(a.layout);
  const TensorTypeNode& x = type_of(ctx.arg(0));
  if (!x.dtype.is_floating()) return {};
  Expr out = cast_to(ctx.adjoint(), x.dtype);
  for (size_t d = 0; d < kDims; ++d) {
    size_t axis = axis_of(l, spatial_axes(kDims)[d]);
    if (is_any(x.shape[axis]) || l.rank() != static_cast<int64_t>(kDims) + 2)
      no_gradient(ctx, "only the data tells a size, or the layout has blocks");
    Expr lines =
        apply("expand_dims", {identity_matrix(x.shape[axis], out)}, {{"axis", int64_t{0}}});
    std::vector<std::pair<std::string, AttrValue>> attrs{
        {"size", to_value(Dims{a.size[d]})},
        {"method", a.method},
        {"coordinate_transformation_mode", a.coordinate_transformation_mode},
        {"rounding_method", a.rounding_method},
        {"cubic_alpha", a.cubic_alpha},
        {"cubic_exclude", a.cubic_exclude}};
    if (a.roi.size() == 2 * kDims) attrs.emplace_back("roi", ValueList{a.roi[d], a.roi[kDims + d]});
    Expr matrix =
        apply("squeeze", {apply("image.resize1d", {lines}, attrs)}, {{"axis", to_value(Ints{0})}});
    auto reach = reach_of(a, d, x.shape[axis], a.size[d]);
    out = reach ? gathered(out, static_cast<int64_t>(axis), matrix, *reach)
                : along_axis(out, static_cast<int64_t>(axis), matrix);
  }
  return {out};
}

// The nearest neighbour, which is inside the image, in the dtype of the data.
bool takes_neighbours(const CallNode& c) {
  return text_attr(c, "method") == "nearest_neighbor" &&
         text_attr(c, "coordinate_transformation_mode") != "tf_crop_and_resize" &&
         !is_set(attr_as<DType>(c.attrs, "out_dtype"));
}

// What all resizing operators say alike.
OpInfo resize_row(const char* name, const char* doc, const NodeInfo& attrs, TypeRelation relation,
                  std::shared_ptr<const ComputeRule> compute, LayoutRule layout,
                  GradientRule gradient, std::vector<OpExample> examples) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The input, in `layout`."}},
      .attrs = &attrs,
      .support_level = 5,
      .fusion = FusionClass::Injective,
      .effect = Effect::Pure,
      .relation = std::move(relation),
      .compute = std::move(compute),
      .layout = std::move(layout),
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = resize_cost,
      .gradient = std::move(gradient),
      .batching = batch_rows_by_layout,
      .moves = ElementMoves{.when = takes_neighbours},
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Resize>() {
  static const OpInfo rows[] = {
      resize_row("image.resize1d",
                 "A sequence at another length, by nearest neighbour, linear or cubic.",
                 Resize1DAttrs::static_info(), resize_relation<1>, resize_rule<1>(),
                 follow_layout<Resize1DAttrs>, resize_gradient<1>,
                 {{{"Tensor[(1, 2, 5), float32]"}, "size=[8]"},
                  {{"Tensor[(1, 2, 5), float32]"}, "size=[3], method=\"cubic\""}}),
      resize_row(
          "image.resize2d", "An image at another size, by nearest neighbour, linear or cubic.",
          Resize2DAttrs::static_info(), resize_relation<2>, resize_rule<2>(),
          follow_layout<Resize2DAttrs>, resize_gradient<2>,
          {{{"Tensor[(1, 2, 4, 5), float32]"}, "size=[8, 7], method=\"linear\""},
           {{"Tensor[(1, 4, 5, 2), float32]"},
            "size=[3, 7], method=\"cubic\", layout=\"NHWC\", cubic_exclude=1"},
           {{"Tensor[(1, 2, 4, 5), float32]"},
            "size=[3, 3], coordinate_transformation_mode=\"tf_crop_and_resize\", roi=[-0.2f, 0.1f, "
            "1f, 0.9f], extrapolation_value=7f"},
           {{"Tensor[(1, 2, 4, 5), int32]"},
            "size=[8, 10], method=\"nearest_neighbor\", "
            "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\""}}),
      resize_row("image.resize3d",
                 "A volume at another size, by nearest neighbour, linear or cubic.",
                 Resize3DAttrs::static_info(), resize_relation<3>, resize_rule<3>(),
                 follow_layout<Resize3DAttrs>, resize_gradient<3>,
                 {{{"Tensor[(1, 2, 3, 4, 5), float32]"}, "size=[4, 3, 9]"},
                  {{"Tensor[(1, 1, 3, 4, 2), float32]"},
                   "size=[2, 4, 3], method=\"nearest_neighbor\", "
                   "coordinate_transformation_mode=\"align_corners\""}}),
  };
  return rows;
}

}  // namespace relay::ops
