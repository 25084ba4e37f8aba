#include "frontend/common/pool.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "analysis/calls.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"

namespace relay::frontend {
namespace {

// The attribute of pools whose last windows may reach past the padded input.
constexpr const char* kPastEnd = "ceil_mode";

bool has_open_size(const Expr& x, const Window& w) {
  const std::vector<Dim>& shape = Builder::shape_of(x);
  const auto first = shape.begin() + w.first_axis();
  return std::any_of(first, first + static_cast<int64_t>(w.kernel.size()),
                     [](const Dim& d) { return !as_const(d); });
}

// Where a last window may reach past the padded input, the same is said by padding more at the end, which leaves maximum
// and exclusive average unchanged. Windows that would start in that padding do not exist. A window that is larger than
// the padded input, by less than a stride, stands there once in either mode. How much is missing at the end of an open
// size is unknown: the operator itself lets windows reach past it then (`kPastEnd`).
void extend_window(const Expr& x, bool ceil, Window& w) {
  if (ceil && has_open_size(x, w)) return;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + w.first_axis();
    auto known = as_const(Builder::shape_of(x)[static_cast<size_t>(axis)]);
    if (!known) continue;
    int64_t size = *known;
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
    int64_t room = size + w.begin[i] + w.end[i] - reach;
    if (room < 0) {
      if (-room < stride && size > 0) w.end[i] -= room;
      continue;
    }
    if (!ceil) continue;
    int64_t count = (room + stride - 1) / stride + 1;
    if ((count - 1) * stride >= size + w.begin[i]) --count;
    w.end[i] += std::max<int64_t>((count - 1) * stride - room, 0);
  }
}

// The sizes of the result where no window fits along some axis, and all sizes are known; nullopt elsewhere.
std::optional<std::vector<Dim>> empty_result(const Expr& x, const Window& w) {
  std::vector<Dim> out = Builder::shape_of(x);
  bool none = false;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    Dim& along = out[i + static_cast<size_t>(w.first_axis())];
    auto size = as_const(along);
    if (!size) return std::nullopt;
    int64_t room = *size + w.begin[i] + w.end[i] - (w.kernel[i] - 1) * w.dilations[i] - 1;
    if (room <= -2 * w.strides[i]) return std::nullopt;  // fewer than no window
    int64_t count = room / w.strides[i] + 1;
    none = none || count == 0;
    along = dim(count);
  }
  return none ? std::optional(out) : std::nullopt;
}

// The widths of nn.pad for the pads of a window.
AttrValue pad_widths(const Window& w) {
  ValueList widths{to_value({0, 0})};
  if (!w.channels_last) widths.push_back(to_value({0, 0}));
  for (size_t i = 0; i < w.kernel.size(); ++i) widths.push_back(to_value({w.begin[i], w.end[i]}));
  if (w.channels_last) widths.push_back(to_value({0, 0}));
  return AttrValue(std::move(widths));
}

AttrList window_attrs(const Window& w) {
  AttrList attrs{{"pool_size", to_value(w.kernel)},
                 {"strides", to_value(w.strides)},
                 {"dilation", to_value(w.dilations)},
                 {"padding", to_value(w.padding())}};
  if (w.channels_last) attrs.emplace_back("layout", w.layout());
  return attrs;
}

Expr windows_pooled(const Builder& build, const char* op, const Expr& x, const Window& w,
                    const AttrList& more) {
  AttrList attrs = window_attrs(w);
  attrs.insert(attrs.end(), more.begin(), more.end());
  return build.call(with_rank(op, static_cast<int64_t>(w.kernel.size())), {x}, attrs);
}

std::vector<int64_t> spatial_axes(const Builder& build, const Expr& x) {
  const int64_t rank = Builder::rank_of(x);
  if (rank < 2) {
    build.fail(codes::type_rank, "the input needs spatial dimensions", "rank 3 or more");
  }
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

}  // namespace

Pooled pool(const Builder& build, PoolKind kind, const Expr& input, const PoolSpec& spec) {
  const bool average = kind == PoolKind::Average;
  Expr x = input;
  Window w = spec.window;
  bool count_padding = average && spec.count_padding;
  Window full = w;
  extend_window(x, spec.ceil, full);
  if (count_padding && full.end != w.end) {
    // The padding counts, what reaches past it does not: pad first, then average exclusively.
    x = build.call("nn.pad", {x, build.scalar_like(0, x)},
                   {{"pad_width", pad_widths(w)}, {"pad_mode", std::string("constant")}});
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      full.end[i] -= w.end[i];
      full.begin[i] = 0;
    }
    count_padding = false;
  }
  w = full;
  if (auto empty = empty_result(x, w)) {
    return {build.full(0, *empty, Builder::dtype_of(x)), x, w};
  }
  AttrList attrs{{kPastEnd, spec.ceil && has_open_size(x, w)}};
  if (average) attrs.emplace_back("count_include_pad", count_padding);
  return {windows_pooled(build, average ? "nn.avg_pool" : "nn.max_pool", x, w, attrs), x, w};
}

Expr places_of_maxima(const Builder& build, const Pooled& pooled, PlacesIn counted,
                      bool column_major) {
  const auto& [y, x, w] = pooled;
  const DType i64 = DType::Int(64);
  const auto nd = static_cast<int64_t>(w.kernel.size());
  if (empty_result(x, w)) return build.full(0, Builder::shape_of(y), i64);
  Expr sizes = sizes_of(build, x), zero = build.scalar(0, i64);
  auto size = [&](int64_t axis) { return build.select(sizes, 0, axis); };
  AttrList attrs = window_attrs(w);
  if (!w.channels_last) attrs.emplace_back("layout", w.layout());
  auto* call = as<CallNode>(y);
  attrs.emplace_back(kPastEnd, call != nullptr && bool_attr(*call, kPastEnd));
  Expr within = build.call("nn.max_pool_places", {x, y}, attrs);
  if (column_major) {
    // Counted through the columns: the place taken apart from the last axis on.
    Expr rest = within;
    within = Expr();
    for (int64_t i = nd; i-- > 0;) {
      Expr at = build.call("floor_mod", {rest, size(2 + i)});
      rest = build.call("floor_divide", {rest, size(2 + i)});
      within = within ? build.add(build.mul(within, size(2 + i)), at) : at;
    }
  }
  if (counted == PlacesIn::Channel) return within;
  Expr image = size(2);
  for (int64_t i = 1; i < nd; ++i) image = build.mul(image, size(2 + i));
  Expr images = build.expand_dims(open_range(build, zero, size(0)), 1);
  Expr channels = build.expand_dims(open_range(build, zero, size(1)), 0);
  Expr lines = build.add(build.mul(images, size(1)), channels);
  return build.add(build.expand_dims(build.mul(lines, image), 2, nd), within);
}

std::vector<Dim> unpooled_shape(const Builder& build, const Expr& x, const Window& w) {
  std::vector<Dim> shape = Builder::shape_of(x);
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t size = build.const_dim(x, 2 + static_cast<int64_t>(i), "a size that is unpooled");
    shape[i + 2] = dim((size - 1) * w.strides[i] + w.kernel[i] - w.begin[i] - w.end[i]);
  }
  return shape;
}

Expr unpool(const Builder& build, const Expr& x, const Expr& places, PlacesIn counted,
            const std::vector<Dim>& shape) {
  check_sizes(build, shape);
  // What places are counted through is the last axis; axes before it are lines of their own.
  const size_t apart = counted == PlacesIn::Channel ? 2 : 0;
  auto flat = [&](const std::vector<Dim>& sizes) {
    std::vector<Dim> out;
    if (apart > 0) out.push_back(product(sizes, 0, apart));
    out.push_back(product(sizes, apart, sizes.size()));
    return out;
  };
  const std::vector<Dim> own = flat(Builder::shape_of(x));
  Expr y = build.call("scatter_elements",
                      {build.full(0, flat(shape), Builder::dtype_of(x)), build.reshape(places, own),
                       build.reshape(x, own)},
                      {{"axis", int64_t{apart > 0 ? 1 : 0}}, {"reduction", std::string("update")}});
  return build.reshape(y, shape);
}

Expr norm_pool(const Builder& build, const Expr& x, const PoolSpec& spec, double p) {
  Window w = spec.window;
  if (spec.ceil && has_open_size(x, w)) {
    // Zeros past the end add nothing: as many as the last window needs at most, and too few for a window of their own.
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      w.end[i] = std::min(w.end[i] + w.strides[i] - 1, (w.kernel[i] - 1) * w.dilations[i]);
    }
  }
  extend_window(x, spec.ceil, w);
  if (auto empty = empty_result(x, w)) return build.full(0, *empty, Builder::dtype_of(x));
  Expr powers = build.call("abs", {x});
  if (p != 1) powers = build.call("power", {powers, build.scalar_like(p, x)});
  Expr mean = windows_pooled(build, "nn.avg_pool", powers, w, {{"count_include_pad", true}});
  double count = 1;
  for (int64_t k : w.kernel) count *= static_cast<double>(k);
  Expr sum = build.mul(mean, build.scalar_like(count, x));
  if (p != 1) sum = build.call("power", {sum, build.scalar_like(1 / p, x)});
  return sum;
}

Expr global_pool(const Builder& build, PoolKind kind, const Expr& x) {
  const std::vector<int64_t> axes = spatial_axes(build, x);
  const bool average = kind == PoolKind::Average;
  if (axes.size() == 2) {
    return build.call(average ? "nn.global_avg_pool2d" : "nn.global_max_pool2d", {x});
  }
  return build.reduce(average ? "mean" : "max", x, axes, true);
}

Expr global_norm_pool(const Builder& build, const Expr& x, double p) {
  const std::vector<int64_t> axes = spatial_axes(build, x);
  Expr powers = build.call("power", {build.call("abs", {x}), build.scalar_like(p, x)});
  Expr sum = build.reduce("sum", powers, axes, true);
  return build.call("power", {sum, build.scalar_like(1 / p, x)});
}

}  // namespace relay::frontend
