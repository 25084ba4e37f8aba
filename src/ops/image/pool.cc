// Pooling over windows, over everything, and to a given size.
#include "ops/image/pool.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/follow_layout.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <limits>

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

template <class T>
std::vector<Field> pool_fields(bool average) {
  std::vector<Field> fields{
      attribute("pool_size", &T::pool_size, "Size of the window."),
      attribute("strides", &T::strides, "Steps between windows."),
      attribute("dilation", &T::dilation, "Distance between the elements of a window."),
      attribute("padding", &T::padding,
                "Border: one number, one for each axis, or begins then ends."),
      attribute("layout", &T::layout, "Layout of the input."),
      attribute("out_layout", &T::out_layout, "Layout of the result; empty: that of the input."),
      attribute("ceil_mode", &T::ceil_mode, "Windows may hang over the end.")};
  if (average)
    fields.push_back(
        attribute("count_include_pad", &T::count_include_pad, "The border counts as elements."));
  return fields;
}
struct MaxPool1DAttrs : AttrsOf<MaxPool1DAttrs, PoolAttrs> {
  MaxPool1DAttrs() : AttrsOf(1, "NCW") {}
  static AttrsList describe() { return {"relay.attrs.MaxPool1DAttrs", pool_fields<Self>(false)}; }
};
struct MaxPool2DAttrs : AttrsOf<MaxPool2DAttrs, PoolAttrs> {
  MaxPool2DAttrs() : AttrsOf(2, "NCHW") {}
  static AttrsList describe() { return {"relay.attrs.MaxPool2DAttrs", pool_fields<Self>(false)}; }
};
struct MaxPool3DAttrs : AttrsOf<MaxPool3DAttrs, PoolAttrs> {
  MaxPool3DAttrs() : AttrsOf(3, "NCDHW") {}
  static AttrsList describe() { return {"relay.attrs.MaxPool3DAttrs", pool_fields<Self>(false)}; }
};
struct AvgPool1DAttrs : AttrsOf<AvgPool1DAttrs, PoolAttrs> {
  AvgPool1DAttrs() : AttrsOf(1, "NCW") {}
  static AttrsList describe() { return {"relay.attrs.AvgPool1DAttrs", pool_fields<Self>(true)}; }
};
struct AvgPool2DAttrs : AttrsOf<AvgPool2DAttrs, PoolAttrs> {
  AvgPool2DAttrs() : AttrsOf(2, "NCHW") {}
  static AttrsList describe() { return {"relay.attrs.AvgPool2DAttrs", pool_fields<Self>(true)}; }
};
struct AvgPool3DAttrs : AttrsOf<AvgPool3DAttrs, PoolAttrs> {
  AvgPool3DAttrs() : AttrsOf(3, "NCDHW") {}
  static AttrsList describe() { return {"relay.attrs.AvgPool3DAttrs", pool_fields<Self>(true)}; }
};

template <class T>
std::vector<Field> adaptive_fields() {
  return {
      attribute("output_size", &T::output_size,
                "Spatial size of the result; empty: that of the input."),
      attribute("layout", &T::layout, "Layout of the input."),
      attribute("out_layout", &T::out_layout, "Layout of the result; empty: that of the input.")};
}
struct AdaptivePool1DAttrs : AttrsOf<AdaptivePool1DAttrs, AdaptivePoolAttrs> {
  AdaptivePool1DAttrs() : AttrsOf("NCW") {}
  static AttrsList describe() {
    return {"relay.attrs.AdaptivePool1DAttrs", adaptive_fields<Self>()};
  }
};
struct AdaptivePool2DAttrs : AttrsOf<AdaptivePool2DAttrs, AdaptivePoolAttrs> {
  AdaptivePool2DAttrs() : AttrsOf("NCHW") {}
  static AttrsList describe() {
    return {"relay.attrs.AdaptivePool2DAttrs", adaptive_fields<Self>()};
  }
};
struct AdaptivePool3DAttrs : AttrsOf<AdaptivePool3DAttrs, AdaptivePoolAttrs> {
  AdaptivePool3DAttrs() : AttrsOf("NCDHW") {}
  static AttrsList describe() {
    return {"relay.attrs.AdaptivePool3DAttrs", adaptive_fields<Self>()};
  }
};

// What a pool is computed in: sums of integers must not wrap before they are divided.
DType accumulator(DType d, bool average) {
  if (!average) return d;
  if (d.is_floating()) return d.bits == 16 ? DType::Float(32) : d;
  return d.bits <= 16 ? DType::Int(32) : DType::Int(64);
}

bool check_dtype(RelationContext& ctx, const TensorTypeNode& x) {
  return require(ctx, !x.dtype.is_bool(), codes::type_dtype, "needs numbers",
                 "an integer or floating dtype", "bool");
}

}  // namespace

std::optional<Layout> pool_layout_of(RelationContext& ctx, const std::string& text, size_t dims,
                                     const TensorTypeNode& x) {
  auto l = Layout::parse(text);
  std::string primal = l ? l->primal_axes() : "", want = "NC" + std::string(spatial_axes(dims));
  std::sort(primal.begin(), primal.end());
  std::sort(want.begin(), want.end());
  if (!require(ctx, primal == want && l->rank() == static_cast<int64_t>(dims) + 2,
               codes::op_bad_attribute, "layout is not supported",
               "NC" + std::string(spatial_axes(dims)) + " in any order", text) ||
      !require(ctx, x.rank() == l->rank(), codes::type_rank,
               "the data does not have the layout's dimensions", text, shape_text(x.shape)))
    return std::nullopt;
  return l;
}

std::optional<std::vector<Dim>> pooled_shape(RelationContext& ctx, const PoolAttrs& a, size_t dims,
                                             const TensorTypeNode& x) {
  auto l = pool_layout_of(ctx, a.layout, dims, x);
  auto pad = full_padding(a.padding, dims);
  if (!l || !check_list(ctx, a.pool_size, dims, 1, "pool_size") ||
      !check_list(ctx, a.strides, dims, 1, "strides") ||
      !check_list(ctx, a.dilation, dims, 1, "dilation") || !check_dtype(ctx, x) ||
      !require(
          ctx, pad.has_value(), codes::op_bad_attribute, "padding is out of range",
          "1, " + std::to_string(dims) + " or " + std::to_string(2 * dims) + " numbers from 0") ||
      !require(ctx, a.out_layout.empty() || a.out_layout == a.layout, codes::op_bad_attribute,
               "out_layout other than layout is not supported", a.layout, a.out_layout))
    return std::nullopt;
  std::vector<Dim> shape = x.shape;
  for (size_t i = 0; i < dims; ++i) {
    Dim& d = shape[axis_of(*l, spatial_axes(dims)[i])];
    // Every window sees the input, so that no result comes from the border alone.
    Dim reach = dim(a.pool_size[i] - 1) * dim(a.dilation[i]) + dim(1);
    if (!require(ctx, *as_const(reach) > std::max((*pad)[i], (*pad)[dims + i]),
                 codes::op_bad_attribute, "padding is as large as the window or larger",
                 "less than " + to_string(reach),
                 to_string(field_detail::Convert<Ints>::to(a.padding))))
      return std::nullopt;
    auto size = window_size(ctx, d, dim(a.pool_size[i]), a.strides[i], a.dilation[i], (*pad)[i],
                            (*pad)[dims + i], a.ceil_mode);
    if (!size) return std::nullopt;
    d = *size;
  }
  return shape;
}

std::vector<WindowAxis> window_axes(const PoolAttrs& a, const std::vector<PrimExpr>& data,
                                    const std::vector<PrimExpr>& windows) {
  const size_t dims = a.pool_size.size();
  const Layout l = Layout::of(a.layout);
  const Ints pad = *full_padding(a.padding, dims);
  std::vector<WindowAxis> out;
  for (size_t d = 0; d < dims; ++d) {
    // Windows hang over the end only with ceil_mode; then reads are guarded at both ends.
    WindowAxis axis{axis_of(l, spatial_axes(dims)[d]),
                    a.pool_size[d],
                    a.strides[d],
                    a.dilation[d],
                    pad[d],
                    false};
    axis.reads_outside = pad[d] > 0 || pad[dims + d] > 0 || a.ceil_mode;
    auto in = as_int(data[axis.at]), count = as_int(windows[axis.at]);
    if (axis.reads_outside && in && count && *in > 0 && *count > 0) {
      const int64_t reach = (*count - 1) * axis.stride;  // from the first window to the last
      // A tap is of use unless it is before the image in the last window, or behind it in the first.
      const int64_t before = std::max<int64_t>(axis.pad_begin - reach, 0);
      const int64_t first = std::min((before + axis.dilation - 1) / axis.dilation, axis.count - 1);
      const int64_t last =
          std::clamp((*in - 1 + axis.pad_begin) / axis.dilation, first, axis.count - 1);
      axis.count = last - first + 1;
      axis.pad_begin -= first * axis.dilation;
      axis.reads_outside =
          axis.pad_begin > 0 || reach + (axis.count - 1) * axis.dilation - axis.pad_begin >= *in;
    }
    out.push_back(axis);
  }
  return out;
}

Indices element_of(const std::vector<WindowAxis>& axes, const Indices& i, const Indices& taps) {
  Indices at = i;
  for (size_t d = 0; d < axes.size(); ++d) at[axes[d].at] = axes[d].element(i[axes[d].at], taps[d]);
  return at;
}

PrimExpr inside_image(const std::vector<WindowAxis>& axes, const std::vector<PrimExpr>& shape,
                      const Indices& at) {
  PrimExpr inside = boolean(true);
  for (const WindowAxis& a : axes) {
    if (!a.reads_outside) continue;
    inside = logical_and(inside, logical_and(ge(at[a.at], index(0)), lt(at[a.at], shape[a.at])));
  }
  return inside;
}

namespace {

template <size_t kDims>
Type pool_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto shape = pooled_shape(ctx, ctx.attrs<PoolAttrs>(), kDims, *x);
  return shape ? tensor_type(std::move(*shape), x->dtype) : Type(nullptr);
}

// One pool as compute rules see it: its windows along each spatial axis.
struct PoolWindows {
  std::vector<WindowAxis> axes;
  Combiner combiner;
  DType acc;
  std::vector<PrimExpr> out;

  PrimExpr reduced(std::vector<PrimExpr> extents,
                   const std::function<PrimExpr(const Indices&)>& body) const {
    return tir::reduce(combiner, std::move(extents), body);
  }
  // The shape of `x` from the first element that a window has to the last, border and all.
  std::vector<PrimExpr> spans(const TirTensor& x) const {
    std::vector<PrimExpr> shape = x->shape();
    for (const WindowAxis& a : axes)
      shape[a.at] = (out[a.at] - 1) * a.stride + ((a.count - 1) * a.dilation + 1);
    return shape;
  }
  // The element of `x` at a place that may lie in the border.
  PrimExpr read(const TirTensor& x, const Indices& at) const {
    PrimExpr inside = inside_image(axes, x->shape(), at);
    PrimExpr v = tir::cast(acc, x(at));
    return as_int(inside) == 1 ? v : select(inside, v, identity_of(combiner, acc));
  }
};

// Whether one axis after the other takes clearly fewer steps than whole windows. An axis that is
// reduced early is reduced once for each place that the later axes read. Vectors along an axis with
// strides are put together of some loads each; only the last reduction has to.
bool is_cheaper_by_axes(const PoolWindows& w) {
  constexpr double kStridedLoad = 3;
  // Lines of open length are no local memory; where a window is small, its elements are read at once.
  constexpr double kFewElements = 16;
  const bool open = !as_int(w.out.back());
  double whole = 1, by_axes = 0, places = 1;
  for (size_t d = w.axes.size(); d-- > 0;) {
    const WindowAxis& a = w.axes[d];
    bool strided = a.at + 1 == w.out.size() && a.stride > 1;
    auto loads = static_cast<double>(a.count) * (strided ? kStridedLoad : 1);
    whole *= loads;
    by_axes += loads * places;
    // The last window reaches over its step: for few windows that is much.
    auto windows = static_cast<double>(as_int(w.out[a.at]).value_or(64));
    double reach = static_cast<double>((a.count - 1) * a.dilation + 1 - a.stride);
    places *= static_cast<double>(a.stride) + reach / windows;
  }
  return w.axes.size() > 1 && by_axes <= 0.75 * whole && !(open && whole <= kFewElements);
}

// The windows reduced along one axis after the other, the outermost first. What is between spans
// the border along the later axes, so that only the first reads the input, and tests anything.
TirTensor reduce_by_axes(const PoolWindows& w, const TirTensor& x) {
  TirTensor from = x;
  std::vector<PrimExpr> shape = w.spans(x);
  for (size_t d = 0; d < w.axes.size(); ++d) {
    const WindowAxis& a = w.axes[d];
    bool first = d == 0, last = d + 1 == w.axes.size();
    shape[a.at] = w.out[a.at];
    TirTensor source = from;
    // The rule lower/rules/sliding_windows.cc places it.
    tir::BlockRole role;
    if (!last) role = {"windows", "", static_cast<int64_t>(a.at)};
    from = tir::compute(
        last ? "pool" : "pool_part", shape,
        [&](const Indices& i) {
          return w.reduced({index(a.count)}, [&](const Indices& k) {
            Indices at = i;
            at[a.at] = i[a.at] * a.stride + k[0] * a.dilation;
            if (!first) return source(at);
            for (const WindowAxis& b : w.axes) at[b.at] = at[b.at] - b.pad_begin;
            return w.read(source, at);
          });
        },
        std::move(role));
  }
  return from;
}

// Whether windows along the axis are so long and so many that each shares most of its elements with the next ones.
bool is_long(const PoolWindows& w, const WindowAxis& a) {
  constexpr int64_t kLongWindow = 32, kPasses = 8;
  auto windows = as_int(w.out[a.at]);
  if (!windows || a.count < kLongWindow) return false;
  const int64_t span = (*windows - 1) * a.stride + (a.count - 1) * a.dilation + 1;
  return *windows * a.count > kPasses * span;
}

// The windows reduced along one axis after the other, a long one by way of windows of 4, 16, 64, .. elements: each is made
// of four of those before, so that an element is read about as often as the length has digits. The greatest of a window is
// that of windows that overlap; a sum is put together of one part for each digit, and is as exact as one by pairs.
TirTensor reduce_long_windows(const PoolWindows& w, const TirTensor& x) {
  constexpr int64_t kRadix = 4;
  std::vector<PrimExpr> shape = w.spans(x);
  TirTensor from = x;
  // Only what reads the data meets the border: what is made of it spans the border of the later axes.
  auto element = [&](const TirTensor& source, Indices at) {
    if (source.get() != x.get()) return source(at);
    for (const WindowAxis& b : w.axes) at[b.at] = at[b.at] - b.pad_begin;
    return w.read(source, at);
  };
  // For each place along the axis that `stride` leads to, `taps` elements of `source` at offsets from it.
  auto part = [&](const TirTensor& source, const WindowAxis& a, int64_t stride, int64_t taps,
                  const std::function<PrimExpr(const PrimExpr&)>& offset) {
    return tir::compute("pool_part", shape, [&](const Indices& i) {
      return w.reduced({index(taps)}, [&](const Indices& k) {
        Indices at = i;
        at[a.at] = i[a.at] * stride + offset(k[0]);
        return element(source, std::move(at));
      });
    });
  };
  for (const WindowAxis& a : w.axes) {
    const PrimExpr span = shape[a.at];
    std::vector<TirTensor> windows{from};  // of 1, 4, 16, .. elements
    int64_t length = 1;
    for (; is_long(w, a) && length * kRadix <= a.count; length *= kRadix) {
      const int64_t step = length * a.dilation;
      shape[a.at] = span - (length * kRadix - 1) * a.dilation;
      windows.push_back(
          part(windows.back(), a, 1, kRadix, [&](const PrimExpr& k) { return k * step; }));
    }
    shape[a.at] = w.out[a.at];
    if (w.combiner == Combiner::Max) {
      from = part(
          windows.back(), a, a.stride, (a.count + length - 1) / length,
          [&](const PrimExpr& k) { return min(k * length, index(a.count - length)) * a.dilation; });
      continue;
    }
    std::vector<TirTensor> parts;
    for (int64_t begin = 0; begin < a.count; length /= kRadix) {
      const int64_t taps = (a.count - begin) / length;
      if (taps > 0) {
        parts.push_back(part(windows.back(), a, a.stride, taps,
                             [&](const PrimExpr& k) { return (k * length + begin) * a.dilation; }));
      }
      windows.pop_back();
      begin += taps * length;
    }
    from = parts[0];
    if (parts.size() == 1) continue;
    from = tir::compute("pool_sum", shape, [&](const Indices& i) {
      PrimExpr sum = parts[0](i);
      for (size_t k = 1; k < parts.size(); ++k) sum = sum + parts[k](i);
      return sum;
    });
  }
  return from;
}

TirTensor reduce_windows(const PoolWindows& w, const TirTensor& x) {
  if (std::ranges::any_of(w.axes, [&](const WindowAxis& a) { return is_long(w, a); }))
    return reduce_long_windows(w, x);
  if (is_cheaper_by_axes(w)) return reduce_by_axes(w, x);
  std::vector<PrimExpr> extents;
  for (const WindowAxis& a : w.axes) extents.push_back(index(a.count));
  return tir::compute("pool", w.out, [&](const Indices& i) {
    return w.reduced(extents,
                     [&](const Indices& k) { return w.read(x, element_of(w.axes, i, k)); });
  });
}

template <size_t kDims>
std::shared_ptr<const ComputeRule> pool_rule(bool average) {
  return compute_rule([average](const ComputeContext& ctx) {
    auto& a = ctx.attrs<PoolAttrs>();
    Layout l = Layout::of(a.layout);
    Ints pad = *full_padding(a.padding, kDims);
    TirTensor x = ctx.inputs[0];
    DType acc = accumulator(x->dtype, average);
    PoolWindows w{window_axes(a, x->shape(), ctx.outputs[0].shape),
                  average ? Combiner::Sum : Combiner::Max, acc, ctx.outputs[0].shape};
    for (WindowAxis& axis : w.axes) {
      // A single window has no next one: it is none of those that vectors read with gaps.
      if (as_int(w.out[axis.at]) == 1) axis.stride = 1;
    }
    TirTensor r = reduce_windows(w, x);
    if (!average) return r;
    auto hangs_over = [&](size_t d) { return pad[d] > 0 || pad[kDims + d] > 0 || a.ceil_mode; };
    return tir::compute("pool_avg", r->shape(), [&](const Indices& i) {
      PrimExpr count = index(1);
      for (size_t d = 0; d < kDims; ++d) {
        size_t axis = axis_of(l, spatial_axes(kDims)[d]);
        if (!hangs_over(d)) {
          count = count * a.pool_size[d];
          continue;
        }
        // Elements of the window inside the input, or inside the border too.
        PrimExpr begin = i[axis] * a.strides[d] - pad[d];
        PrimExpr limit = x->shape()[axis] + (a.count_include_pad ? pad[kDims + d] : 0);
        PrimExpr low = a.count_include_pad ? begin : max(begin, index(0));
        if (a.dilation[d] == 1) {
          count = count * (min(begin + a.pool_size[d], limit) - low);
        } else {
          PrimExpr inside = index(0);
          for (int64_t k = 0; k < a.pool_size[d]; ++k) {
            PrimExpr p = begin + k * a.dilation[d];
            PrimExpr ok = lt(p, limit);
            if (!a.count_include_pad) ok = logical_and(ok, ge(p, index(0)));
            inside = inside + tir::cast(kIndex, ok);
          }
          count = count * inside;
        }
      }
      PrimExpr n = max(count, index(1));
      return tir::cast(x->dtype, div(r(i), tir::cast(acc, n)));
    });
  });
}

// For pools over the whole input: there must be some.
bool check_whole(RelationContext& ctx, const std::string& out_layout, const std::string& layout,
                 const TensorTypeNode& x, const Layout& l, size_t dims) {
  if (!check_dtype(ctx, x) ||
      !require(ctx, out_layout.empty() || out_layout == layout, codes::op_bad_attribute,
               "out_layout other than layout is not supported", layout, out_layout))
    return false;
  for (char axis : spatial_axes(dims)) {
    if (!require(ctx, ctx.at_least(x.shape[axis_of(l, axis)], dim(1)), codes::type_shape,
                 "the data is empty along " + std::string(1, axis), "1 or more",
                 shape_text(x.shape)))
      return false;
  }
  return true;
}

template <size_t kDims>
Type adaptive_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<AdaptivePoolAttrs>();
  auto l = pool_layout_of(ctx, a.layout, kDims, *x);
  if (!l || !check_whole(ctx, a.out_layout, a.layout, *x, *l, kDims)) return nullptr;
  if (!a.output_size.empty() && a.output_size.size() != 1 &&
      !check_list(ctx, a.output_size, kDims, 1, "output_size"))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t i = 0; i < kDims && !a.output_size.empty(); ++i) {
    int64_t n = a.output_size.size() == 1 ? a.output_size[0] : a.output_size[i];
    if (!require(ctx, n >= 1, codes::op_bad_attribute, "output_size must be at least 1",
                 "1 or more", std::to_string(n)))
      return nullptr;
    shape[axis_of(*l, spatial_axes(kDims)[i])] = dim(n);
  }
  return tensor_type(std::move(shape), x->dtype);
}

// Window i of an adaptive pool: [floor(i*in/out), ceil((i+1)*in/out)).
TirTensor windows(const ComputeContext& ctx, const Layout& l, size_t dims, bool average) {
  TirTensor x = ctx.inputs[0];
  const std::vector<PrimExpr>& out = ctx.outputs[0].shape;
  DType acc = accumulator(x->dtype, average);
  struct Axis {
    size_t at;
    PrimExpr in, out;
    bool even;
  };
  std::vector<Axis> axes;
  std::vector<PrimExpr> extents;
  for (size_t d = 0; d < dims; ++d) {
    Axis a;
    a.at = axis_of(l, spatial_axes(dims)[d]);
    a.in = x->shape()[a.at];
    a.out = out[a.at];
    auto in = as_int(a.in), n = as_int(a.out);
    a.even = is_one(a.out) || (in && n && *in % *n == 0);
    extents.push_back(a.even ? floor_div(a.in, a.out) : floor_div(a.in + a.out - 1, a.out) + 1);
    axes.push_back(a);
  }
  auto begin = [](const Axis& a, const PrimExpr& i) {
    return is_one(a.out) ? index(0)
           : a.even      ? i * floor_div(a.in, a.out)
                         : floor_div(i * a.in, a.out);
  };
  auto end = [](const Axis& a, const PrimExpr& i) {
    return floor_div((i + 1) * a.in + a.out - 1, a.out);
  };
  TirTensor r = tir::compute("adaptive_pool", out, [&](const Indices& i) {
    return tir::reduce(average ? Combiner::Sum : Combiner::Max, extents, [&](const Indices& k) {
      Indices at = i;
      PrimExpr inside = boolean(true);
      for (size_t d = 0; d < dims; ++d) {
        at[axes[d].at] = begin(axes[d], i[axes[d].at]) + k[d];
        if (!axes[d].even)
          inside = logical_and(inside, lt(at[axes[d].at], end(axes[d], i[axes[d].at])));
      }
      PrimExpr v = tir::cast(acc, x(at));
      return as_int(inside) == 1 ? v : select(inside, v, average ? imm(acc, 0) : min_value(acc));
    });
  });
  if (!average) return r;
  return tir::compute("adaptive_avg", out, [&](const Indices& i) {
    PrimExpr n = index(1);
    for (const Axis& a : axes)
      n = n * (a.even ? floor_div(a.in, a.out) : end(a, i[a.at]) - begin(a, i[a.at]));
    return tir::cast(x->dtype, div(r(i), tir::cast(acc, n)));
  });
}

template <size_t kDims>
std::shared_ptr<const ComputeRule> adaptive_rule(bool average) {
  return compute_rule([average](const ComputeContext& ctx) {
    return windows(ctx, Layout::of(ctx.attrs<AdaptivePoolAttrs>().layout), kDims, average);
  });
}

Type global_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<GlobalPool2DAttrs>();
  auto l = pool_layout_of(ctx, a.layout, 2, *x);
  if (!l || !check_whole(ctx, a.out_layout, a.layout, *x, *l, 2)) return nullptr;
  std::vector<Dim> shape = x->shape;
  shape[axis_of(*l, 'H')] = shape[axis_of(*l, 'W')] = dim(1);
  return tensor_type(std::move(shape), x->dtype);
}

std::shared_ptr<const ComputeRule> global_rule(bool average) {
  return compute_rule([average](const ComputeContext& ctx) {
    return windows(ctx, Layout::of(ctx.attrs<GlobalPool2DAttrs>().layout), 2, average);
  });
}

double pool_cost(const CallNode& c) { return num_elements(c.args[0]->type); }

// What all pools say alike.
OpInfo pool_row(const char* name, const char* doc, const NodeInfo& attrs, TypeRelation relation,
                std::shared_ptr<const ComputeRule> compute, LayoutRule layout,
                GradientRule gradient, const char* type, const char* text, Precision precision) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The input, in `layout`."}},
      .attrs = &attrs,
      .support_level = 2,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = std::move(relation),
      .compute = std::move(compute),
      .contraction = Absent::NotOneSum,
      .layout = std::move(layout),
      .memory = Absent::OnePiece,
      .precision = precision,
      .cost = pool_cost,
      .gradient = std::move(gradient),
      .batching = batch_rows_by_layout,
      .examples = {{{type}, text}},
      .expected = Absent::ByNumPy,
  };
}

OpInfo mean_of_window(OpInfo row, size_t dims) {
  return with_window(std::move(row), dims, "layout", Window::Border::Counted);
}
// The greatest of a window is one of its elements.
OpInfo greatest_of_window(OpInfo row, size_t dims) {
  row.moves = ElementMoves{.by_order = true, .when = windows_cover_elements};
  return with_window(std::move(row), dims, "layout", Window::Border::Least);
}
OpInfo greatest_of_parts(OpInfo row) {
  row.moves = ElementMoves{.by_order = true};
  return row;
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Pool>() {
  static constexpr const char *one = "Tensor[(1, 2, 9), float32]",
                              *two = "Tensor[(1, 3, 8, 9), float32]",
                              *three = "Tensor[(1, 2, 4, 5, 5), float32]";
  static const OpInfo rows[] = {
      greatest_of_window(
          pool_row("nn.max_pool1d", "Greatest of each window.", MaxPool1DAttrs::static_info(),
                   pool_relation<1>, pool_rule<1>(false), follow_layout<MaxPool1DAttrs>,
                   max_pool_gradient<1>, one, "pool_size=[3], strides=[2], padding=[1]",
                   Precision::Follow),
          1),
      greatest_of_window(
          pool_row("nn.max_pool2d", "Greatest of each window.", MaxPool2DAttrs::static_info(),
                   pool_relation<2>, pool_rule<2>(false), follow_layout<MaxPool2DAttrs>,
                   max_pool_gradient<2>, two,
                   "pool_size=[3, 3], strides=[2, 2], padding=[1, 1], ceil_mode=True",
                   Precision::Follow),
          2),
      greatest_of_window(
          pool_row("nn.max_pool3d", "Greatest of each window.", MaxPool3DAttrs::static_info(),
                   pool_relation<3>, pool_rule<3>(false), follow_layout<MaxPool3DAttrs>,
                   max_pool_gradient<3>, three, "pool_size=[2, 2, 2]", Precision::Follow),
          3),
      max_pool_places_row(),
      max_pool_gather_row(),
      max_pool_spread_row(),
      mean_of_window(
          pool_row("nn.avg_pool1d", "Mean of each window.", AvgPool1DAttrs::static_info(),
                   pool_relation<1>, pool_rule<1>(true), follow_layout<AvgPool1DAttrs>,
                   average_pool_gradient<1>, one, "pool_size=[3], padding=[1]", Precision::Never),
          1),
      with_quantized_form(
          mean_of_window(
              pool_row("nn.avg_pool2d", "Mean of each window.", AvgPool2DAttrs::static_info(),
                       pool_relation<2>, pool_rule<2>(true), follow_layout<AvgPool2DAttrs>,
                       average_pool_gradient<2>, two,
                       "pool_size=[3, 2], strides=[2, 1], padding=[1, 0]", Precision::Never),
              2),
          by_dialect("qnn.avg_pool2d")),
      mean_of_window(pool_row("nn.avg_pool3d", "Mean of each window.",
                              AvgPool3DAttrs::static_info(), pool_relation<3>, pool_rule<3>(true),
                              follow_layout<AvgPool3DAttrs>, average_pool_gradient<3>, three,
                              "pool_size=[2, 2, 2], padding=[1, 1, 1], count_include_pad=True",
                              Precision::Never),
                     3),
      greatest_of_parts(
          pool_row("nn.adaptive_max_pool1d", "Greatest of windows that cover the input evenly.",
                   AdaptivePool1DAttrs::static_info(), adaptive_relation<1>,
                   adaptive_rule<1>(false), follow_layout<AdaptivePool1DAttrs>,
                   adaptive_gradient<false>, one, "output_size=[4]", Precision::Follow)),
      greatest_of_parts(
          pool_row("nn.adaptive_max_pool2d", "Greatest of windows that cover the input evenly.",
                   AdaptivePool2DAttrs::static_info(), adaptive_relation<2>,
                   adaptive_rule<2>(false), follow_layout<AdaptivePool2DAttrs>,
                   adaptive_gradient<false>, two, "output_size=[4, 2]", Precision::Follow)),
      greatest_of_parts(
          pool_row("nn.adaptive_max_pool3d", "Greatest of windows that cover the input evenly.",
                   AdaptivePool3DAttrs::static_info(), adaptive_relation<3>,
                   adaptive_rule<3>(false), follow_layout<AdaptivePool3DAttrs>,
                   adaptive_gradient<false>, three, "output_size=[2, 1, 3]", Precision::Follow)),
      pool_row("nn.adaptive_avg_pool1d", "Mean of windows that cover the input evenly.",
               AdaptivePool1DAttrs::static_info(), adaptive_relation<1>, adaptive_rule<1>(true),
               follow_layout<AdaptivePool1DAttrs>, adaptive_gradient<true>, one, "output_size=[3]",
               Precision::Never),
      pool_row("nn.adaptive_avg_pool2d", "Mean of windows that cover the input evenly.",
               AdaptivePool2DAttrs::static_info(), adaptive_relation<2>, adaptive_rule<2>(true),
               follow_layout<AdaptivePool2DAttrs>, adaptive_gradient<true>, two,
               "output_size=[3, 3]", Precision::Never),
      pool_row("nn.adaptive_avg_pool3d", "Mean of windows that cover the input evenly.",
               AdaptivePool3DAttrs::static_info(), adaptive_relation<3>, adaptive_rule<3>(true),
               follow_layout<AdaptivePool3DAttrs>, adaptive_gradient<true>, three,
               "output_size=[2, 2, 2]", Precision::Never),
      with_quantized_form(pool_row("nn.global_avg_pool2d", "Mean over height and width.",
                                   GlobalPool2DAttrs::static_info(), global_relation,
                                   global_rule(true), follow_layout<GlobalPool2DAttrs>,
                                   global_gradient<true>, two, "", Precision::Never),
                          quantized_global_mean),
      greatest_of_parts(pool_row("nn.global_max_pool2d", "Greatest over height and width.",
                                 GlobalPool2DAttrs::static_info(), global_relation,
                                 global_rule(false), follow_layout<GlobalPool2DAttrs>,
                                 global_gradient<false>, two, "", Precision::Follow)),
  };
  return rows;
}

}  // namespace relay::ops
