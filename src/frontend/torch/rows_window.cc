// Pools whose windows differ in size or stand where a run says, and gradients of maxima at the places where they were.
#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/gather.h"
#include "frontend/common/window.h"
#include "frontend/torch/layers.h"

namespace relay::frontend::torch {
namespace {

// (batch, channels, all elements of an image)
Expr flat_image(const Builder& build, const Expr& x) {
  return build.merge_axes(x, 2, static_cast<size_t>(Builder::rank_of(x)));
}

int64_t elements_of(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (int64_t n : sizes) count *= n;
  return count;
}

// The shape (batch, channels, sizes...) of an image with these spatial sizes.
std::vector<Dim> image_shape(const Expr& x, const std::vector<int64_t>& sizes) {
  std::vector<Dim> out(Builder::shape_of(x).begin(), Builder::shape_of(x).begin() + 2);
  for (int64_t n : sizes) out.push_back(dim(n));
  return out;
}

// The greatest element of each window and its place in the image. `places` holds the elements of each window in the flat
// image: (windows, elements), or (batch, channels, windows, elements).
Values window_maxima(NodeContext& ctx, const Batched& b, const std::vector<int64_t>& sizes,
                     Expr places) {
  Expr x = flat_image(ctx, b.x);
  const auto rank = static_cast<size_t>(Builder::rank_of(places));
  std::vector<Dim> shape(Builder::shape_of(x).begin(), Builder::shape_of(x).begin() + 2);
  shape.insert(shape.end(), Builder::shape_of(places).end() - 2, Builder::shape_of(places).end());
  Expr flat = ctx.merge_axes(places, rank - 2, rank), windows;
  if (rank == 2) {
    windows = ctx.call("take", {x, flat}, {{"axis", int64_t{2}}, {"mode", std::string("fast")}});
    places = ctx.broadcast_to(places, shape);
  } else {
    windows = ctx.call("gather", {x, flat}, {{"axis", int64_t{2}}, {"checked", false}});
  }
  windows = ctx.reshape(windows, shape);
  Expr greatest = ctx.reduce("max", windows, {3}, false);
  Expr at = ctx.call("argmax", {windows},
                     {{"axis", to_value(std::vector<int64_t>{3})}, {"keepdims", true}});
  Expr place =
      ctx.call("gather", {places, ctx.cast(at, kI64)}, {{"axis", int64_t{3}}, {"checked", false}});
  const std::vector<Dim> out = image_shape(x, sizes);
  return unbatched(ctx, b, {ctx.reshape(greatest, out), ctx.reshape(place, out)});
}

// A window of an adaptive pool begins at i * n / m and ends below (i + 1) * n / m, rounded down and up. The last element of
// a shorter one is repeated.
std::vector<std::vector<int64_t>> adaptive_windows(int64_t n, int64_t m) {
  std::vector<std::vector<int64_t>> out;
  size_t longest = 0;
  for (int64_t i = 0; i < m; ++i) {
    std::vector<int64_t>& window = out.emplace_back();
    for (int64_t at = i * n / m; at < ((i + 1) * n + m - 1) / m; ++at) window.push_back(at);
    longest = std::max(longest, window.size());
  }
  for (std::vector<int64_t>& window : out) window.resize(longest, window.back());
  return out;
}

template <int64_t kRank>
Values adaptive_max_pool(NodeContext& ctx) {
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  const std::vector<int64_t> size = ctx.ints_for("output_size", kRank, 1);
  if (ctx.outputs().size() < 2) {
    return unbatched(ctx, b,
                     {ctx.call(with_rank("nn.adaptive_max_pool", kRank), {b.x},
                               {{"output_size", to_value(size)}})});
  }
  // Windows of all axes, and elements of a window, one after the other.
  std::vector<std::vector<int64_t>> all{{0}};
  for (int64_t a = 0; a < kRank; ++a) {
    const int64_t n = ctx.const_dim(b.x, a + 2, "a size of the input"),
                  m = size[static_cast<size_t>(a)];
    if (m < 0 || n < 1) ctx.unsupported("an adaptive pool of these sizes");
    std::vector<std::vector<int64_t>> next;
    const std::vector<std::vector<int64_t>> along = adaptive_windows(n, m);
    if (!along.empty() && !all.empty()) {
      ctx.charge_bytes(
          static_cast<int64_t>(all.size() * all[0].size() * along.size() * along[0].size()), kI64);
    }
    for (const std::vector<int64_t>& outer : all) {
      for (const std::vector<int64_t>& inner : along) {
        std::vector<int64_t>& window = next.emplace_back();
        for (int64_t before : outer)
          for (int64_t at : inner) window.push_back(before * n + at);
      }
    }
    all.swap(next);
  }
  std::vector<int64_t> places;
  for (const std::vector<int64_t>& window : all)
    places.insert(places.end(), window.begin(), window.end());
  const int64_t windows = static_cast<int64_t>(all.size()),
                elements = all.empty() ? 1 : static_cast<int64_t>(all[0].size());
  if (windows == 0) {
    const std::vector<Dim> none = image_shape(b.x, size);
    return unbatched(ctx, b, {ctx.full(0, none, Builder::dtype_of(b.x)), ctx.full(0, none, kI64)});
  }
  Expr table = ctx.reshape(ctx.ints(places), std::vector<int64_t>{windows, elements});
  return window_maxima(ctx, b, size, table);
}

// Where the windows of an axis begin, (batch, channels, count): they spread over what is left of the axis by a sample of
// each channel.
Expr fractional_starts(NodeContext& ctx, const Expr& sample, int64_t n, int64_t window,
                       int64_t count) {
  const DType dtype = Builder::dtype_of(sample);
  std::vector<Dim> shape = Builder::shape_of(sample);
  Expr last =
      ctx.broadcast_to(ctx.expand_dims(ctx.scalar(static_cast<double>(n - window), kI64), 0, 3),
                       {shape[0], shape[1], dim(1)});
  if (count == 1) return last;
  Expr alpha = ctx.div(ctx.scalar(static_cast<double>(n - window), dtype),
                       ctx.scalar(static_cast<double>(count - 1), dtype));
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i + 1 < count; ++i) numbers.push_back(i);
  Expr at = ctx.add(ctx.cast(ctx.ints(numbers), dtype), ctx.expand_dims(sample, 2));
  auto whole = [&](const Expr& e) { return ctx.cast(ctx.call("trunc", {e}), kI64); };
  Expr first =
      ctx.sub(whole(ctx.mul(at, alpha)), ctx.expand_dims(whole(ctx.mul(sample, alpha)), 2));
  return ctx.concat({first, last}, 2);
}

template <int64_t kRank>
Values fractional_max_pool(NodeContext& ctx) {
  const Batched b = batched(ctx, ctx.tensor("self"), kRank);
  const std::vector<int64_t> window = ctx.ints_for("kernel_size", kRank, 1),
                             size = ctx.ints_for("output_size", kRank, 1);
  Expr samples = ctx.tensor("random_samples");
  constexpr auto kAxes = static_cast<size_t>(kRank);
  // (batch, channels, windows of each axis, elements of each axis)
  Expr places;
  for (size_t a = 0; a < kAxes; ++a) {
    const int64_t n = ctx.const_dim(b.x, static_cast<int64_t>(a) + 2, "a size of the input");
    if (size[a] < 1 || window[a] < 1 || window[a] + size[a] - 1 > n)
      ctx.fail(codes::frontend_attribute, "the windows do not fit into the image");
    // Samples of an image are those of its columns first.
    const size_t which = kRank == 2 ? kAxes - 1 - a : a;
    Expr sample = ctx.select(samples, 2, static_cast<int64_t>(which));
    Expr starts = fractional_starts(ctx, sample, n, window[a], size[a]);
    std::vector<int64_t> steps;
    for (int64_t k = 0; k < window[a]; ++k) steps.push_back(k);
    Expr at = ctx.add(ctx.expand_dims(starts, 3), ctx.ints(steps));
    // (batch, channels, 1..., windows, 1..., 1..., elements, 1...)
    std::vector<Dim> shape(Builder::shape_of(at).begin(), Builder::shape_of(at).begin() + 2);
    for (size_t i = 0; i < kAxes; ++i) shape.push_back(dim(i == a ? size[a] : 1));
    for (size_t i = 0; i < kAxes; ++i) shape.push_back(dim(i == a ? window[a] : 1));
    at = ctx.reshape(at, shape);
    places = places ? ctx.add(ctx.mul(places, ctx.scalar(static_cast<double>(n), kI64)), at) : at;
  }
  std::vector<Dim> shape(Builder::shape_of(places).begin(), Builder::shape_of(places).begin() + 2);
  shape.push_back(dim(elements_of(size)));
  shape.push_back(dim(elements_of(window)));
  return window_maxima(ctx, b, size, ctx.reshape(places, shape));
}

// The adjoints of maxima, added where the maxima are in a batch of images.
Values add_to_maxima(NodeContext& ctx, int64_t rank, bool may_lack_maxima) {
  const Batched x = batched(ctx, ctx.tensor("self"), rank);
  const Batched places = batched(ctx, ctx.tensor("indices"), rank);
  Expr grad = batched(ctx, ctx.tensor("grad_output"), rank).x;
  if (may_lack_maxima) {
    Expr known = ctx.call("greater_equal", {places.x, ctx.scalar(0, Builder::dtype_of(places.x))});
    grad = ctx.where(known, grad, ctx.scalar_like(0, grad));
  }
  Expr zeros = ctx.call("zeros_like", {x.x});
  Expr sums = scatter_elements(ctx, flat_image(ctx, zeros), value_of(flat_image(ctx, places.x)),
                               flat_image(ctx, grad), 2, Scatter::Add);
  return unbatched(ctx, x, {ctx.reshape(sums, Builder::shape_of(x.x))});
}

template <int64_t kRank>
Values maxima_backward(NodeContext& ctx) {
  for (const char* name : {"kernel_size", "output_size"}) ctx.find(name);
  return add_to_maxima(ctx, kRank, false);
}

template <int64_t kRank>
Values max_pool_backward(NodeContext& ctx) {
  const Window w = pool_spec(ctx, kRank).window;
  // All elements of a dilated window may be padding; its place is -1.
  bool may_lack_maxima = false;
  for (size_t i = 0; i < w.kernel.size(); ++i)
    may_lack_maxima |= w.dilations[i] > 1 && (w.begin[i] > 0 || w.end[i] > 0);
  return add_to_maxima(ctx, kRank, may_lack_maxima);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Window>() {
  static constexpr Row kRows[] = {
      {"aten.adaptive_max_pool1d.default", adaptive_max_pool<1>},
      {"aten.adaptive_max_pool2d.default", adaptive_max_pool<2>},
      {"aten.adaptive_max_pool3d.default", adaptive_max_pool<3>},
      {"aten.adaptive_max_pool2d_backward.default", maxima_backward<2>},
      {"aten.adaptive_max_pool3d_backward.default", maxima_backward<3>},
      {"aten.fractional_max_pool2d.default", fractional_max_pool<2>},
      {"aten.fractional_max_pool3d.default", fractional_max_pool<3>},
      {"aten.max_pool2d_with_indices_backward.default", max_pool_backward<2>, kInFloat32},
      {"aten.max_pool3d_with_indices_backward.default", max_pool_backward<3>, kInFloat32},
      {"aten.fractional_max_pool2d_backward.default", maxima_backward<2>},
      {"aten.fractional_max_pool3d_backward.default", maxima_backward<3>},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
