// Gradients of pools.
#include "ops/image/pool.h"

#include <algorithm>
#include <functional>

namespace relay::ops {
namespace {

using relay::Type;

// The windows of a pool over its data.
struct Windows {
  const Expr& x;
  Layout layout;
  size_t dims;
  Ints size, strides, dilation, padding;
  std::vector<Dim> out;  // the result's shape

  size_t axis(size_t d) const { return axis_of(layout, spatial_axes(dims)[d]); }
  Dim reach(size_t d) const { return dilated_size(out[axis(d)], strides[d]); }
  // The padded size: at least what the last window reaches.
  Dim whole(size_t d) const {
    return max(type_of(x).shape[axis(d)] + dim(padding[d] + padding[dims + d]),
               reach(d) + dim((size[d] - 1) * dilation[d]));
  }
  Expr at(const Ints& k) const {
    Dims begin, end;
    Ints steps, axes;
    for (size_t d = 0; d < dims; ++d) {
      begin.push_back(dim(k[d] * dilation[d]));
      end.push_back(dim(k[d] * dilation[d]) + reach(d));
      steps.push_back(strides[d]);
      axes.push_back(static_cast<int64_t>(axis(d)));
    }
    return apply("strided_slice", {x},
                 {{"begin", to_value(begin)},
                  {"end", to_value(end)},
                  {"strides", to_value(steps)},
                  {"axes", to_value(axes)}});
  }
  // Whether each element of the data is in just one window.
  bool tile() const {
    bool each = std::ranges::all_of(padding, [](int64_t p) { return p == 0; });
    for (size_t d = 0; d < dims; ++d) {
      auto count = as_const(out[axis(d)]), all = as_const(type_of(x).shape[axis(d)]);
      each = each && strides[d] == size[d] && dilation[d] == 1 && count && all &&
             *all == *count * size[d];
    }
    return each;
  }
  // What windows have, to be broadcast to the elements of each.
  Expr spread(const Expr& e) const {
    Expr apart = e;
    for (size_t a : spatial_from_last())
      apart = apply("expand_dims", {apart}, {{"axis", static_cast<int64_t>(a) + 1}});
    return apart;
  }
  std::vector<size_t> spatial_from_last() const {
    std::vector<size_t> axes;
    for (size_t d = 0; d < dims; ++d) axes.push_back(axis(d));
    std::ranges::sort(axes, std::greater());
    return axes;
  }
  // The data with each spatial axis as that of the windows and that of the places in one.
  Expr in_windows() const {
    std::vector<Dim> shape = type_of(x).shape;
    for (size_t a : spatial_from_last()) {
      shape[a] = out[a];
      for (size_t d = 0; d < dims; ++d) {
        if (axis(d) == a) shape.insert(shape.begin() + static_cast<int64_t>(a) + 1, dim(size[d]));
      }
    }
    return reshape_to(x, shape);
  }
  // Calls `visit` with each place of a window.
  template <class F>
  void each_place(const F& visit) const {
    Ints k(dims, 0);
    for (;;) {
      visit(k);
      size_t d = dims;
      while (d-- > 0 && ++k[d] == size[d]) k[d] = 0;
      if (d == static_cast<size_t>(-1)) return;
    }
  }
};

// Of a pool's call; a size that only the data tells has no gradient.
Windows windows_of(const GradientContext& ctx, const PoolAttrs& a, size_t dims) {
  const std::vector<Dim>& shape = type_of(ctx.result).shape;
  if (std::ranges::any_of(shape, is_any) || std::ranges::any_of(type_of(ctx.arg(0)).shape, is_any))
    no_gradient(ctx, "only the data tells a size");
  return {ctx.arg(0), Layout::of(a.layout),           dims, a.pool_size, a.strides,
          a.dilation, *full_padding(a.padding, dims), shape};
}

// What the one-dimensional pool makes of the identity matrix: how much of each element a window has.
Expr shares_of(const Expr& like, const Dim& size, const std::function<Expr(const Expr&)>& pool) {
  Expr lines = apply("expand_dims", {identity_matrix(size, like)}, {{"axis", int64_t{0}}});
  return apply("squeeze", {pool(lines)}, {{"axis", to_value(Ints{0})}});
}

// The adjoint of each window, divided by the number of elements in its mean.
Expr divided(const Expr& g, const PoolAttrs& a, const Windows& w) {
  const bool full = std::ranges::all_of(w.padding, [](int64_t p) { return p == 0; });
  double count = 1;
  for (int64_t n : w.size) count *= static_cast<double>(n);
  if (!a.ceil_mode && (full || a.count_include_pad)) return g * scalar(1 / count, g);
  Expr out = g;
  for (size_t d = 0; d < w.dims; ++d) {
    Expr shares = shares_of(g, type_of(w.x).shape[w.axis(d)], [&](const Expr& lines) {
      return apply("nn.avg_pool1d", {lines},
                   {{"pool_size", to_value(Ints{w.size[d]})},
                    {"strides", to_value(Ints{w.strides[d]})},
                    {"dilation", to_value(Ints{w.dilation[d]})},
                    {"padding", to_value(Ints{w.padding[d], w.padding[w.dims + d]})},
                    {"ceil_mode", a.ceil_mode},
                    {"count_include_pad", a.count_include_pad}});
    });
    // All elements of a window have one share; where it has none there is nothing to give.
    Expr share = apply("max", {shares}, {{"axis", to_value(Ints{0})}, {"identity_if_empty", true}});
    out = out * along(share, static_cast<int64_t>(w.axis(d)), rank_of(g));
  }
  return out;
}

// Each element over and over until the axes have the sizes of `data`, which are multiples of what they are.
Expr repeated(const Expr& e, const std::string& layout, size_t dims, const std::vector<Dim>& data) {
  Layout l = Layout::of(layout);
  Dims size;
  for (char axis : spatial_axes(dims)) size.push_back(data[axis_of(l, axis)]);
  if (l.rank() == static_cast<int64_t>(dims) + 2) {
    return apply("image.resize" + std::to_string(dims) + "d", {e},
                 {{"size", to_value(size)},
                  {"layout", layout},
                  {"method", "nearest_neighbor"},
                  {"coordinate_transformation_mode", "asymmetric"},
                  {"rounding_method", "floor"}});
  }
  // Blocks of channels.
  Expr out = e;
  for (size_t d = 0; d < dims; ++d) {
    const auto axis = static_cast<int64_t>(axis_of(l, spatial_axes(dims)[d]));
    const auto at = static_cast<size_t>(axis);
    out = apply(
        "repeat", {out},
        {{"repeats", *as_const(data[at]) / *as_const(type_of(out).shape[at])}, {"axis", axis}});
  }
  return out;
}

// The one-dimensional pool that an adaptive one is along an axis.
Expr adaptive_line(const Expr& lines, const Dim& size) {
  return apply("nn.adaptive_avg_pool1d", {lines},
               {{"output_size", to_value(Ints{as_const(size).value_or(1)})}});
}

// One window is a mean of all; windows of one size are next to each other; others are a product with a
// matrix along each axis.
Adjoints adaptive_average_gradient(const GradientContext& ctx, const std::string& layout) {
  Layout l = Layout::of(layout);
  auto dims = static_cast<size_t>(l.rank()) - 2;
  const Expr& g = ctx.adjoint();
  const std::vector<Dim>&shape = type_of(ctx.arg(0)).shape, &result = type_of(g).shape;
  bool even = true, one = true;
  Expr share = g;
  for (size_t d = 0; d < dims; ++d) {
    size_t axis = axis_of(l, spatial_axes(dims)[d]);
    if (is_any(shape[axis])) no_gradient(ctx, "only the data tells a size");
    auto n = as_const(shape[axis]), m = as_const(result[axis]);
    one = one && m == 1;
    even = even && n && m && *m > 0 && *n % *m == 0;
    if (one || even) share = share / size_as(one ? shape[axis] : dim(*n / *m), share);
  }
  if (one) return {broadcast_like(share, ctx.arg(0))};
  if (even) return {repeated(share, layout, dims, shape)};
  Expr out = g;
  for (size_t d = 0; d < dims; ++d) {
    size_t axis = axis_of(l, spatial_axes(dims)[d]);
    Expr shares = shares_of(out, shape[axis],
                            [&](const Expr& lines) { return adaptive_line(lines, result[axis]); });
    out = along_axis(out, static_cast<int64_t>(axis), shares);
  }
  return {out};
}

// Windows differ in size and may overlap: for each element and each window, whether it is the
// greatest in it. Elements that tie share the adjoint.
Adjoints adaptive_max_gradient(const GradientContext& ctx, const std::string& layout) {
  Layout l = Layout::of(layout);
  auto dims = static_cast<size_t>(l.rank()) - 2;
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  if (std::ranges::any_of(type_of(x).shape, is_any)) no_gradient(ctx, "only the data tells a size");
  // Behind each spatial axis of the data comes that of the windows.
  Expr data = x, result = ctx.result, adjoint = g, inside;
  int64_t rank = rank_of(x) + static_cast<int64_t>(dims);
  std::vector<size_t> spatial;
  for (size_t d = 0; d < dims; ++d) spatial.push_back(axis_of(l, spatial_axes(dims)[d]));
  std::ranges::sort(spatial);
  Ints windows, elements;
  for (size_t d = 0; d < dims; ++d) {
    size_t axis = spatial[d];
    auto at = static_cast<int64_t>(axis + d);
    elements.push_back(at);
    windows.push_back(at + 1);
    Expr share = shares_of(g, type_of(x).shape[axis], [&](const Expr& lines) {
      return adaptive_line(lines, type_of(ctx.result).shape[axis]);
    });
    int64_t behind = rank - at - 2;
    Expr member = is_greater(share, 0);
    if (behind > 0)
      member = apply("expand_dims", {member}, {{"axis", int64_t{2}}, {"num_newaxis", behind}});
    inside = inside ? apply("logical_and", {inside, member}) : member;
  }
  for (int64_t at : windows) data = apply("expand_dims", {data}, {{"axis", at}});
  for (int64_t at : elements) {
    result = apply("expand_dims", {result}, {{"axis", at}});
    adjoint = apply("expand_dims", {adjoint}, {{"axis", at}});
  }
  Expr best = indicator(apply("logical_and", {inside, is_equal(data, result)}), g);
  Expr share = adjoint / sum_over(best, elements, true);
  return {sum_over(best * share, windows)};
}

}  // namespace

// Each element takes from all windows that it is in: a sum over windows of the adjoints, which are apart
// as far as the windows' steps.
template <size_t kDims>
Adjoints average_pool_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<PoolAttrs>();
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  const std::vector<Dim>&shape = type_of(ctx.result).shape, &data = type_of(x).shape;
  Windows w = windows_of(ctx, a, kDims);
  Expr each = divided(g, a, w);
  if (w.tile()) return {repeated(each, a.layout, kDims, data)};
  Ints gaps(shape.size(), 1);
  double count = 1;
  for (size_t d = 0; d < kDims; ++d) {
    gaps[w.axis(d)] = a.strides[d];
    count *= static_cast<double>(a.pool_size[d]);
  }
  Expr apart = apply("nn.dilate", {each}, {{"strides", to_value(gaps)}});
  std::vector<Dim> begins;
  ValueList widths(shape.size(), to_value(Ints{0, 0}));
  for (size_t d = 0; d < kDims; ++d) {
    const int64_t last = (a.pool_size[d] - 1) * a.dilation[d];
    const Dim size = data[w.axis(d)];
    // Without what lies in the border, where that needs no cut of the adjoints.
    Dim before = dim(last - w.padding[d]), behind = size + dim(w.padding[d]) - w.reach(d);
    const bool direct = last >= w.padding[d] && as_const(behind).value_or(-1) >= 0;
    begins.push_back(direct ? dim(0) : dim(w.padding[d]));
    widths[w.axis(d)] = direct ? to_value(Dims{before, behind})
                               : to_value(Dims{dim(last), w.whole(d) - w.reach(d)});
  }
  apart = apply("nn.pad", {apart, scalar(0, apart)}, {{"pad_width", AttrValue(std::move(widths))}});
  Expr out = apply("nn.avg_pool" + std::to_string(kDims) + "d", {apart},
                   {{"pool_size", to_value(a.pool_size)},
                    {"dilation", to_value(a.dilation)},
                    {"strides", to_value(Ints(kDims, 1))},
                    {"layout", a.layout}});
  out = out * scalar(count, out);
  for (size_t d = 0; d < kDims; ++d)
    out = slice_axis(out, static_cast<int64_t>(w.axis(d)), begins[d], data[w.axis(d)]);
  return {out};
}

// Elements of a window that tie share its adjoint. Windows that overlap, or leave elements out, are walked by two operators:
// one counts the ties of each, one collects for each element what the windows that it is in have for it.
template <size_t kDims>
Adjoints max_pool_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<PoolAttrs>();
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  Windows w = windows_of(ctx, a, kDims);
  if (w.tile()) {
    Expr ties;
    w.each_place([&](const Ints& k) {
      Expr best = indicator(is_equal(w.at(k), ctx.result), g);
      ties = ties ? ties + best : best;
    });
    Expr winners = indicator(is_equal(w.in_windows(), w.spread(ctx.result)), g);
    return {reshape_to(winners * w.spread(g / ties), type_of(x).shape)};
  }
  const std::vector<std::pair<std::string, AttrValue>> attrs{{"pool_size", to_value(a.pool_size)},
                                                             {"strides", to_value(a.strides)},
                                                             {"dilation", to_value(a.dilation)},
                                                             {"padding", to_value(a.padding)},
                                                             {"layout", a.layout},
                                                             {"ceil_mode", a.ceil_mode}};
  Expr ties = apply("nn.max_pool_gather", {x, ctx.result, scalar(1, g)}, attrs);
  return {apply("nn.max_pool_spread", {x, ctx.result, g / ties}, attrs)};
}

template <bool kAverage>
Adjoints adaptive_gradient(const GradientContext& ctx) {
  const std::string& layout = ctx.attrs<AdaptivePoolAttrs>().layout;
  return kAverage ? adaptive_average_gradient(ctx, layout) : adaptive_max_gradient(ctx, layout);
}

template <bool kAverage>
Adjoints global_gradient(const GradientContext& ctx) {
  const std::string& layout = ctx.attrs<GlobalPool2DAttrs>().layout;
  return kAverage ? adaptive_average_gradient(ctx, layout) : adaptive_max_gradient(ctx, layout);
}

template Adjoints average_pool_gradient<1>(const GradientContext&);
template Adjoints average_pool_gradient<2>(const GradientContext&);
template Adjoints average_pool_gradient<3>(const GradientContext&);
template Adjoints max_pool_gradient<1>(const GradientContext&);
template Adjoints max_pool_gradient<2>(const GradientContext&);
template Adjoints max_pool_gradient<3>(const GradientContext&);
template Adjoints adaptive_gradient<false>(const GradientContext&);
template Adjoints adaptive_gradient<true>(const GradientContext&);
template Adjoints global_gradient<false>(const GradientContext&);
template Adjoints global_gradient<true>(const GradientContext&);

}  // namespace relay::ops
