#include "frontend/torch/layers.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/slices.h"

namespace relay::frontend::torch {
namespace {

// The padding in numbers; a word leaves it at 0.
void set_padding(NodeContext& ctx, Window& window, int64_t nd) {
  const Argument* a = ctx.find("padding");
  const bool is_word =
      a != nullptr && !a->is_list && std::holds_alternative<std::string>(a->elements[0]);
  window.begin.assign(static_cast<size_t>(nd), 0);
  if (!is_word) window.begin = ctx.ints_for("padding", nd, 0);
  window.end = window.begin;
  if (std::ranges::any_of(window.begin, [](int64_t v) { return v < 0 || v > kMaxWindow; }))
    ctx.fail(codes::frontend_attribute, "a padding is negative");
}

void check_positive(NodeContext& ctx, const std::vector<int64_t>& list, const char* what) {
  if (std::ranges::any_of(list, [](int64_t v) { return v < 1 || v > kMaxWindow; }))
    ctx.fail(codes::frontend_attribute, std::string(what) + " is not 1 or more");
}

}  // namespace

Batched batched(NodeContext& ctx, Expr x, int64_t nd) {
  const int64_t rank = Builder::rank_of(x);
  if (rank != nd + 1 && rank != nd + 2) {
    ctx.fail(codes::type_rank, "the input has the wrong rank",
             "rank " + std::to_string(nd + 1) + " or " + std::to_string(nd + 2),
             to_string(x->type));
  }
  if (rank == nd + 2) return {x};
  return {ctx.expand_dims(x, 0), true};
}
Values unbatched(NodeContext& ctx, const Batched& from, std::vector<Expr> results) {
  Values out;
  for (Expr& e : results) out.push_back(value_of(from.added ? ctx.squeeze(e, {0}) : e));
  return out;
}

Expr Convolution::apply(const Builder& build, const Expr& x, const Expr& w) const {
  return transposed ? transposed_convolution(build, x, w, window, extra, groups)
                    : convolution(build, x, w, window, groups, Builder::dtype_of(x));
}

Convolution convolution_of(NodeContext& ctx, int64_t nd, const Expr& w) {
  if (nd < 1 || nd > 3) {
    ctx.fail(codes::type_rank, "a weight has 1 to 3 spatial dimensions", "rank 3, 4 or 5",
             to_string(w->type));
  }
  Convolution out;
  out.window.kernel = kernel_of(ctx, w, nd);
  out.window.strides = ctx.ints_for("stride", nd, 1);
  out.window.dilations = ctx.ints_for("dilation", nd, 1);
  check_positive(ctx, out.window.strides, "a stride");
  check_positive(ctx, out.window.dilations, "a dilation");
  set_padding(ctx, out.window, nd);
  out.extra = ctx.ints_for("output_padding", nd, 0);
  out.groups = ctx.integer("groups", 1);
  check_positive(ctx, {out.groups}, "the number of groups");
  out.transposed = ctx.truth("transposed", false);
  return out;
}

PoolSpec pool_spec(NodeContext& ctx, int64_t nd) {
  PoolSpec out;
  out.window.kernel = ctx.ints_for("kernel_size", nd, 1);
  out.window.strides = out.window.kernel;
  if (!ctx.ints("stride", std::vector<int64_t>{}).empty())
    out.window.strides = ctx.ints_for("stride", nd, 1);
  out.window.dilations = ctx.ints_for("dilation", nd, 1);
  check_positive(ctx, out.window.kernel, "a size of the kernel");
  check_positive(ctx, out.window.strides, "a stride");
  check_positive(ctx, out.window.dilations, "a dilation");
  set_padding(ctx, out.window, nd);
  for (size_t i = 0; i < out.window.kernel.size(); ++i) {
    if (2 * out.window.begin[i] > (out.window.kernel[i] - 1) * out.window.dilations[i] + 1)
      ctx.fail(codes::frontend_attribute, "a padding is more than half of the kernel");
  }
  out.ceil = ctx.truth("ceil_mode", false);
  return out;
}

// The quotients of sums of integers, rounded towards zero. A mean in float64 is off by far less than half of the distance
// to the next quotient.
Expr average_pool_of_integers(NodeContext& ctx, const Expr& x, int64_t nd) {
  Expr mean = average_pool(ctx, ctx.cast(x, DType::Float(64)), nd);
  int64_t divisor = ctx.integer("divisor_override", 1), size = 1;
  for (int64_t k : ctx.ints_for("kernel_size", nd, 1)) size *= k;
  divisor = std::max(std::abs(divisor), size);
  Expr half = ctx.scalar_like(0.5 / static_cast<double>(divisor), mean);
  Expr below = ctx.call("less", {mean, ctx.scalar_like(0, mean)});
  Expr whole = ctx.call("trunc", {ctx.where(below, ctx.sub(mean, half), ctx.add(mean, half))});
  return ctx.cast(whole, Builder::dtype_of(x));
}

Expr average_pool(NodeContext& ctx, const Expr& x, int64_t nd) {
  if (!Builder::dtype_of(x).is_floating()) return average_pool_of_integers(ctx, x, nd);
  PoolSpec spec = pool_spec(ctx, nd);
  spec.count_padding = ctx.truth("count_include_pad", true);
  if (!ctx.has("divisor_override")) return pool(ctx, PoolKind::Average, x, spec).y;
  const int64_t by = ctx.integer("divisor_override");
  if (by == 0) ctx.fail(codes::frontend_attribute, "the divisor is zero");
  if (spec.ceil) {
    // The last window of an axis may reach behind the padding: zeros there are no part of a sum.
    Window& w = spec.window;
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      const int64_t n = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size of the input");
      const int64_t padded = n + 2 * w.begin[i], rest = padded - w.kernel[i];
      int64_t count = rest < 0 ? 0 : (rest + w.strides[i] - 1) / w.strides[i] + 1;
      // It begins before the padding at the end.
      if (count > 0 && (count - 1) * w.strides[i] >= n + w.begin[i]) --count;
      w.end[i] += std::max<int64_t>((count - 1) * w.strides[i] + w.kernel[i] - padded, 0);
    }
    spec.ceil = false;
  }
  // Means that count the padding are sums divided by the size of the window.
  spec.count_padding = true;
  int64_t size = 1;
  for (int64_t k : spec.window.kernel) size *= k;
  Expr mean = pool(ctx, PoolKind::Average, x, spec).y;
  return ctx.mul(mean, ctx.scalar_like(static_cast<double>(size) / static_cast<double>(by), mean));
}

Expr adaptive_average_pool(const Builder& build, const Expr& x, const std::vector<int64_t>& size) {
  if (std::ranges::all_of(size, [](int64_t n) { return n == 1; }))
    return global_pool(build, PoolKind::Average, x);
  return build.call(with_rank("nn.adaptive_avg_pool", static_cast<int64_t>(size.size())), {x},
                    {{"output_size", to_value(size)}});
}

namespace {

// Along an axis the elements nearest to i - before, for `before` and `behind` that may be below 0.
Expr nearest_border(const Builder& build, const Expr& x, int64_t axis, int64_t before,
                    int64_t behind) {
  const int64_t n = build.const_dim(x, axis, "the size of an axis with a border");
  std::vector<int64_t> places;
  for (int64_t i = 0; i < n + before + behind; ++i)
    places.push_back(std::clamp<int64_t>(i - before, 0, n - 1));
  build.charge_bytes(static_cast<int64_t>(places.size()), DType::Int(64));
  return build.call("take", {x, build.ints(places)},
                    {{"axis", axis}, {"mode", std::string("fast")}});
}

}  // namespace

Expr padded(NodeContext& ctx, const Expr& x, const char* widths, const std::string& mode,
            const Expr& fill) {
  const int64_t rank = Builder::rank_of(x);
  const std::vector<int64_t> list = ctx.ints(widths);
  if (list.size() % 2 != 0 || static_cast<int64_t>(list.size()) > 2 * rank)
    ctx.fail(codes::frontend_attribute, "the list of pads has the wrong length");
  if (mode == "edge" && std::ranges::any_of(list, [](int64_t n) { return n < 0; })) {
    Expr out = x;
    for (size_t i = 0; i < list.size() / 2; ++i)
      out = nearest_border(ctx, out, rank - 1 - static_cast<int64_t>(i), list[2 * i],
                           list[2 * i + 1]);
    return out;
  }
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  for (size_t i = 0; i < list.size() / 2; ++i) {
    const size_t axis = static_cast<size_t>(rank) - 1 - i;
    pads[axis] = list[2 * i];
    pads[axis + static_cast<size_t>(rank)] = list[2 * i + 1];
  }
  return pad(ctx, x, pads, mode, fill ? fill : ctx.scalar_like(0, x));
}

Expr Resizing::apply(const Builder& build, const Expr& x, const std::vector<Dim>& sizes) const {
  std::vector<int64_t> axes;
  for (int64_t a = 2; a < Builder::rank_of(x); ++a) axes.push_back(a);
  if (scales.empty()) return resize_by_sizes(build, x, spec, axes, sizes);
  // Scales that are given beside sizes need not agree with them.
  std::vector<int64_t> wanted;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto in = as_const(Builder::shape_of(x)[i + 2]), out = as_const(sizes[i]);
    if (!in || !out) return resize_by_scales(build, x, spec, axes, scales);
    wanted.push_back(*out);
  }
  return resize_by_scales(build, x, spec, axes, scales, {}, wanted);
}

Resizing resizing_of(NodeContext& ctx, ResizeSpec spec, int64_t nd) {
  std::vector<double> scales;
  if (ctx.has("scale_factors")) scales = ctx.reals("scale_factors");
  std::vector<double> by_axis;
  for (const char* name : {"scales_d", "scales_h", "scales_w", "scales"})
    if (ctx.has(name)) by_axis.push_back(ctx.real(name));
  if (scales.empty()) scales = std::move(by_axis);
  if (static_cast<int64_t>(scales.size()) != nd || spec.coordinates == "align_corners" ||
      spec.corner_scale)
    scales.clear();
  return {std::move(spec), std::move(scales)};
}

ResizeSpec nearest_spec() {
  ResizeSpec spec;
  spec.coordinates = "asymmetric";
  spec.nearest = "floor";
  return spec;
}

ResizeSpec smooth_spec(NodeContext& ctx, const char* mode) {
  ResizeSpec spec;
  spec.mode = mode;
  if (ctx.truth("align_corners", false)) spec.coordinates = "align_corners";
  return spec;
}
ResizeSpec nearest_exact_spec() {
  ResizeSpec spec;
  spec.nearest = "round_prefer_ceil";
  return spec;
}
ResizeSpec antialias_spec(NodeContext& ctx, const char* mode) {
  ResizeSpec spec;
  spec.mode = mode;
  spec.antialias = spec.exclude_outside = true;
  // PyTorch aligns the centres of the filters, with a scale of aligned corners.
  spec.corner_scale = ctx.truth("align_corners", false);
  spec.cubic_alpha = -0.5;  // as Pillow's
  return spec;
}

SampleSpec sample_spec(NodeContext& ctx) {
  constexpr const char* kMethods[] = {"bilinear", "nearest", "bicubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const int64_t method = ctx.integer("interpolation_mode"), padding = ctx.integer("padding_mode");
  if (method < 0 || method > 2 || padding < 0 || padding > 2)
    ctx.fail(codes::frontend_attribute, "there is no such way to sample");
  return {kMethods[method], kPaddings[padding], ctx.truth("align_corners", false)};
}

}  // namespace relay::frontend::torch
