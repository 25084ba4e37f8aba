// Pooling: greatest elements, means and norms of windows, and maxima put back.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

// With ceil_mode the last window may reach past the padded input. The same is said by padding more
// at the end, which leaves maximum and exclusive average unchanged. Windows that would start in
// that padding do not exist. A window that is larger than the padded input, by less than a stride,
// stands there once in either mode, as in ONNX Runtime.
void extend_window(NodeContext& ctx, const Expr& x, bool ceil, Window& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    auto known = as_const(NodeContext::shape_of(x)[i + 2]);
    if (!known && !ceil) continue;
    int64_t size = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size pooled with ceil_mode");
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
  std::vector<Dim> out = NodeContext::shape_of(x);
  bool none = false;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    auto size = as_const(out[i + 2]);
    if (!size) return std::nullopt;
    int64_t room = *size + w.begin[i] + w.end[i] - (w.kernel[i] - 1) * w.dilations[i] - 1;
    if (room <= -2 * w.strides[i]) return std::nullopt;  // fewer than no window
    int64_t count = room / w.strides[i] + 1;
    none = none || count == 0;
    out[i + 2] = dim(count);
  }
  return none ? std::optional(out) : std::nullopt;
}

// The places of the maxima, counted through the whole tensor: the element of each window that is
// greatest, and from there where the window stands.
Expr places_of_maxima(NodeContext& ctx, const Expr& x, const Window& w, const Expr& y) {
  const DType i64 = DType::Int(64);
  auto number = [&](int64_t v) { return ctx.scalar(static_cast<double>(v), i64); };
  const auto nd = static_cast<int64_t>(w.kernel.size());
  Expr sizes = sizes_of(ctx, x), results = sizes_of(ctx, y), zero = number(0);
  ValueList widths{to_value({0, 0}), to_value({0, 0})};
  for (size_t i = 0; i < w.kernel.size(); ++i) widths.push_back(to_value({w.begin[i], w.end[i]}));
  DType dtype = NodeContext::dtype_of(x);
  double least = dtype.is_floating() ? -std::numeric_limits<double>::infinity()
                 : dtype.is_int()    ? -std::ldexp(1.0, dtype.bits - 1)
                                     : 0;
  Expr windows = ctx.call("nn.pad", {x, ctx.scalar(least, dtype)},
                          {{"pad_width", AttrValue(std::move(widths))}});
  // (n, c, out, kernel, out, kernel, ...), and the places of windows along each axis.
  std::vector<Expr> starts;
  int64_t count = 1;
  for (int64_t i = 0; i < nd; ++i) {
    auto at = static_cast<size_t>(i);
    Expr out = open_range(ctx, zero, ctx.select(results, 0, 2 + i));
    starts.push_back(ctx.mul(out, number(w.strides[at])));
    Expr inner = ctx.mul(numbers_below(ctx, w.kernel[at]), number(w.dilations[at]));
    Expr places = ctx.add(ctx.expand_dims(starts.back(), 1), ctx.expand_dims(inner, 0));
    windows = ctx.call("take", {windows, places}, {{"axis", 2 + 2 * i}});
    count *= w.kernel[at];
  }
  std::vector<int64_t> order{0, 1};
  for (int64_t i = 0; i < nd; ++i) order.push_back(2 + 2 * i);
  for (int64_t i = 0; i < nd; ++i) order.push_back(3 + 2 * i);
  windows = ctx.transpose(windows, order);
  std::vector<Dim> flat = NodeContext::shape_of(y);
  flat.push_back(dim(count));
  Expr best = ctx.call("argmax", {ctx.reshape(windows, flat)},
                       {{"axis", to_value(std::vector<int64_t>{nd + 2})}});
  best = ctx.cast(best, i64);
  // The index in the window taken apart from the last axis on.
  const bool column_major = ctx.attr("storage_order", 0) != 0;
  std::vector<Expr> at(static_cast<size_t>(nd));
  for (int64_t i = nd; i-- > 0;) {
    auto k = static_cast<size_t>(i);
    Expr inside = ctx.call("floor_mod", {best, number(w.kernel[k])});
    best = ctx.call("floor_divide", {best, number(w.kernel[k])});
    Expr start = ctx.expand_dims(ctx.sub(starts[k], number(w.begin[k])), 1, nd - 1 - i);
    at[k] = ctx.add(start, ctx.mul(inside, number(w.dilations[k])));
  }
  Expr lines = ctx.add(ctx.mul(ctx.expand_dims(open_range(ctx, zero, ctx.select(sizes, 0, 0)), 1),
                               ctx.select(sizes, 0, 1)),
                       ctx.expand_dims(open_range(ctx, zero, ctx.select(sizes, 0, 1)), 0));
  Expr place = ctx.expand_dims(lines, 2, nd);
  Expr within;
  for (int64_t i = 0; i < nd; ++i) {
    int64_t axis = column_major ? nd - 1 - i : i;
    Expr size = ctx.select(sizes, 0, 2 + axis), here = at[static_cast<size_t>(axis)];
    within = within ? ctx.add(ctx.mul(within, size), here) : here;
    place = ctx.mul(place, size);
  }
  return ctx.add(place, within);
}

struct Pooling {
  Expr x, y;  // x with the padding that no window says
  Window window;
};

Pooling pool(NodeContext& ctx, Expr x, bool average) {
  int64_t nd = spatial_rank(ctx, x);
  if (!ctx.has_attr("kernel_shape")) {
    ctx.fail(codes::frontend_attribute, "attribute 'kernel_shape' is missing");
  }
  Window w = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd, {}));
  bool include_pad = average && ctx.attr("count_include_pad", 0) != 0;
  Window full = w;
  extend_window(ctx, x, ctx.attr("ceil_mode", 0) != 0, full);
  if (include_pad && full.end != w.end) {
    // The padding counts, what reaches past it does not: pad first, then average exclusively.
    ValueList widths{to_value({0, 0}), to_value({0, 0})};
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      widths.push_back(to_value({w.begin[i], w.end[i]}));
      full.end[i] -= w.end[i];
      full.begin[i] = 0;
    }
    x = ctx.call(
        "nn.pad", {x, ctx.scalar_like(0, x)},
        {{"pad_width", AttrValue(std::move(widths))}, {"pad_mode", std::string("constant")}});
    include_pad = false;
  }
  w = full;
  if (auto empty = empty_result(x, w)) {
    return {x, ctx.full(0, *empty, NodeContext::dtype_of(x)), w};
  }
  AttrList attrs{{"pool_size", to_value(w.kernel)},
                 {"strides", to_value(w.strides)},
                 {"dilation", to_value(w.dilations)},
                 {"padding", to_value(w.padding())}};
  if (average) attrs.emplace_back("count_include_pad", include_pad);
  Expr y = ctx.call(with_rank(average ? "nn.avg_pool" : "nn.max_pool", nd), {x}, attrs);
  return {x, y, w};
}

Values convert_pool(NodeContext& ctx) {
  Pooling p = pool(ctx, ctx.in(0), ctx.op_type() == "AveragePool");
  if (!ctx.output_used(1)) return {value_of(p.y)};
  return {value_of(p.y), value_of(places_of_maxima(ctx, p.x, p.window, p.y))};
}

// The elements at the places that MaxPool has given, zeros around them.
Values convert_max_unpool(NodeContext& ctx) {
  Expr x = ctx.in(0), places = ctx.cast(ctx.in(1), DType::Int(64));
  const int64_t nd = spatial_rank(ctx, x);
  std::vector<int64_t> kernel = positive_list(ctx, "kernel_shape", nd, {});
  std::vector<int64_t> strides =
      positive_list(ctx, "strides", nd, std::vector<int64_t>(static_cast<size_t>(nd), 1));
  std::vector<int64_t> pads = ctx.attr_ints("pads");
  if (pads.empty()) pads.assign(static_cast<size_t>(2 * nd), 0);
  if (static_cast<int64_t>(pads.size()) != 2 * nd) {
    ctx.fail(codes::frontend_attribute, "attribute 'pads' has a wrong length",
             std::to_string(2 * nd), std::to_string(pads.size()));
  }
  std::vector<Dim> shape = NodeContext::shape_of(x);
  for (int64_t i = 0; i < nd; ++i) {
    auto k = static_cast<size_t>(i);
    int64_t size = ctx.const_dim(x, 2 + i, "a size that is unpooled");
    shape[k + 2] =
        dim((size - 1) * strides[k] + kernel[k] - pads[k] - pads[k + static_cast<size_t>(nd)]);
  }
  check_sizes(ctx, shape);
  const Dim all = product(shape, 0, shape.size());
  auto flat = [&](const Expr& e) {
    return ctx.reshape(e, {product(NodeContext::shape_of(x), 0, shape.size())});
  };
  Expr y = ctx.call("scatter_elements",
                    {ctx.full(0, {all}, NodeContext::dtype_of(x)), flat(places), flat(x)},
                    {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
  y = ctx.reshape(y, shape);
  if (!ctx.has(2)) return {value_of(y)};
  // A larger shape than that is filled up at the ends.
  Expr more = ctx.sub(int_vector_of(ctx, 2, "the shape of the result", nd + 2), sizes_of(ctx, y));
  Expr none = ctx.full(0, {dim(nd + 2)}, DType::Int(64));
  return {value_of(ctx.call("dyn.pad", {y, ctx.concat({none, more}, 0), ctx.scalar_like(0, y)}))};
}

Values convert_lp_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t nd = spatial_rank(ctx, x);
  double p = static_cast<double>(ctx.attr("p", 2));
  if (p < 1) ctx.fail(codes::frontend_attribute, "attribute 'p' must be positive");
  Window w = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd, {}));
  extend_window(ctx, x, ctx.attr("ceil_mode", 0) != 0, w);
  if (auto empty = empty_result(x, w)) {
    return {value_of(ctx.full(0, *empty, NodeContext::dtype_of(x)))};
  }
  Expr powers = ctx.call("abs", {x});
  if (p != 1) powers = ctx.call("power", {powers, ctx.scalar_like(p, x)});
  Expr mean = ctx.call(with_rank("nn.avg_pool", nd), {powers},
                       {{"pool_size", to_value(w.kernel)},
                        {"strides", to_value(w.strides)},
                        {"dilation", to_value(w.dilations)},
                        {"padding", to_value(w.padding())},
                        {"count_include_pad", true}});
  double count = 1;
  for (int64_t k : w.kernel) count *= static_cast<double>(k);
  Expr sum = ctx.mul(mean, ctx.scalar_like(count, x));
  if (p != 1) sum = ctx.call("power", {sum, ctx.scalar_like(1 / p, x)});
  return {value_of(sum)};
}

Values convert_global_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  if (rank < 2) ctx.fail(codes::type_rank, "the input needs spatial dimensions", "rank 3 or more");
  const std::string& op = ctx.op_type();
  if (rank == 4 && op != "GlobalLpPool") {
    return {value_of(
        ctx.call(op == "GlobalMaxPool" ? "nn.global_max_pool2d" : "nn.global_avg_pool2d", {x}))};
  }
  std::vector<int64_t> axes(static_cast<size_t>(rank - 2));
  std::iota(axes.begin(), axes.end(), 2);
  if (op == "GlobalMaxPool") return {value_of(ctx.reduce("max", x, axes, true))};
  if (op == "GlobalAveragePool") return {value_of(ctx.reduce("mean", x, axes, true))};
  double p = static_cast<double>(ctx.attr("p", 2));
  if (p < 1) ctx.fail(codes::frontend_attribute, "attribute 'p' must be positive");
  Expr powers = ctx.call("power", {ctx.call("abs", {x}), ctx.scalar_like(p, x)});
  Expr sum = ctx.reduce("sum", powers, axes, true);
  return {value_of(ctx.call("power", {sum, ctx.scalar_like(1 / p, x)}))};
}
}  // namespace

Expr pooled(NodeContext& ctx, const Expr& x, bool average) { return pool(ctx, x, average).y; }

template <>
std::span<const ConverterRow> converter_rows<Converters::Pool>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "AveragePool", 1, convert_pool},
      {kOnnx, "GlobalAveragePool", 1, convert_global_pool},
      {kOnnx, "GlobalLpPool", 1, convert_global_pool},
      {kOnnx, "GlobalMaxPool", 1, convert_global_pool},
      {kOnnx, "LpPool", 1, convert_lp_pool},
      {kOnnx, "MaxPool", 1, convert_pool},
      {kOnnx, "MaxUnpool", 9, convert_max_unpool},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
