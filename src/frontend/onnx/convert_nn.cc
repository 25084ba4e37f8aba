// Convolution, pooling, normalisation, softmax, and matrix products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/open_args.h"
#include "frontend/onnx/shape_args.h"

namespace relay::importer {
namespace {

constexpr int64_t kMaxWindow = int64_t{1} << 31;

// Kernel, strides, dilations and pads of a convolution or pooling over `nd` spatial dimensions.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  std::vector<int64_t> begin, end;  // pads

  std::vector<int64_t> padding() const {
    std::vector<int64_t> all = begin;
    all.insert(all.end(), end.begin(), end.end());
    return all;
  }
  bool padded() const {
    auto any = [](const std::vector<int64_t>& v) {
      return std::any_of(v.begin(), v.end(), [](int64_t p) { return p != 0; });
    };
    return any(begin) || any(end);
  }
};

std::vector<int64_t> positive_list(NodeContext& ctx, const char* name, int64_t nd,
                                   const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> v = ctx.attr_ints(name, otherwise);
  if (v.empty()) v.assign(static_cast<size_t>(nd), 1);
  if (static_cast<int64_t>(v.size()) != nd) {
    ctx.fail(codes::frontend_attribute,
             std::string("attribute '") + name + "' has the wrong length", std::to_string(nd),
             std::to_string(v.size()));
  }
  for (int64_t x : v) {
    if (x < 1 || x > kMaxWindow) {
      ctx.fail(codes::frontend_attribute, std::string("attribute '") + name + "' is out of range",
               "1 to 2^31", std::to_string(x));
    }
  }
  return v;
}

Window window_of(NodeContext& ctx, const Expr& x, std::vector<int64_t> kernel) {
  int64_t nd = static_cast<int64_t>(kernel.size());
  Window w;
  w.kernel = std::move(kernel);
  w.strides = positive_list(ctx, "strides", nd, {});
  w.dilations = positive_list(ctx, "dilations", nd, {});
  w.begin.assign(static_cast<size_t>(nd), 0);
  w.end = w.begin;
  std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < w.kernel.size(); ++i) {
      int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
      int64_t total = 0;
      if (stride == 1) {
        total = reach - 1;
      } else {
        int64_t size = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size padded by auto_pad");
        int64_t out = (size + stride - 1) / stride;
        total = std::max<int64_t>((out - 1) * stride + reach - size, 0);
      }
      int64_t half = total / 2;
      w.begin[i] = mode == "SAME_UPPER" ? half : total - half;
      w.end[i] = total - w.begin[i];
    }
  } else if (mode == "NOTSET") {
    std::vector<int64_t> pads = ctx.attr_ints("pads");
    if (!pads.empty()) {
      if (static_cast<int64_t>(pads.size()) != 2 * nd) {
        ctx.fail(codes::frontend_attribute, "attribute 'pads' has the wrong length",
                 std::to_string(2 * nd), std::to_string(pads.size()));
      }
      for (int64_t p : pads) {
        if (p < 0 || p > kMaxWindow) {
          ctx.fail(codes::frontend_attribute, "attribute 'pads' is out of range", "0 to 2^31",
                   std::to_string(p));
        }
      }
      w.begin.assign(pads.begin(), pads.begin() + nd);
      w.end.assign(pads.begin() + nd, pads.end());
    }
  } else if (mode != "VALID") {
    ctx.fail(codes::frontend_attribute, "attribute 'auto_pad' has an unknown value",
             "NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  }
  return w;
}

// The number of spatial dimensions, 1 to 3.
int64_t spatial_rank(NodeContext& ctx, const Expr& x) {
  int64_t nd = NodeContext::rank_of(x) - 2;
  if (nd < 1 || nd > 3) {
    ctx.fail(codes::type_rank, "the input must have 1 to 3 spatial dimensions", "rank 3, 4 or 5",
             to_string(x->type));
  }
  return nd;
}

std::string with_rank(const char* name, int64_t nd) { return name + std::to_string(nd) + "d"; }

Expr add_bias(NodeContext& ctx, Expr y, size_t input) {
  if (!ctx.has(input)) return y;
  return ctx.call("nn.bias_add", {std::move(y), ctx.in(input)}, {{"axis", int64_t{1}}});
}

std::vector<int64_t> kernel_of(NodeContext& ctx, const Expr& w, int64_t nd) {
  if (NodeContext::rank_of(w) != nd + 2) {
    ctx.fail(codes::type_rank, "the weight has the wrong rank", "rank " + std::to_string(nd + 2),
             to_string(w->type));
  }
  std::vector<int64_t> kernel;
  for (int64_t i = 0; i < nd; ++i) {
    kernel.push_back(ctx.const_dim(w, i + 2, "a size of the weight"));
  }
  std::vector<int64_t> declared = ctx.attr_ints("kernel_shape");
  if (!declared.empty() && declared != kernel) {
    ctx.fail(codes::type_shape, "attribute 'kernel_shape' does not fit the weight",
             runtime::shape_to_string(kernel), runtime::shape_to_string(declared));
  }
  return kernel;
}

int64_t groups_of(NodeContext& ctx) {
  int64_t group = ctx.attr("group", 1);
  if (group < 1) {
    ctx.fail(codes::frontend_attribute, "attribute 'group' is out of range", "1 or more",
             std::to_string(group));
  }
  return group;
}

}  // namespace

Expr convolution(NodeContext& ctx, Expr x, Expr w, DType out_dtype, std::vector<Expr> quantized) {
  int64_t nd = spatial_rank(ctx, x);
  Window win = window_of(ctx, x, kernel_of(ctx, w, nd));
  AttrList attrs{{"strides", to_value(win.strides)},
                 {"padding", to_value(win.padding())},
                 {"dilation", to_value(win.dilations)},
                 {"groups", groups_of(ctx)},
                 {"channels", ctx.const_dim(w, 0, "the number of channels")},
                 {"kernel_size", to_value(win.kernel)}};
  if (out_dtype != NodeContext::dtype_of(x)) attrs.emplace_back("out_dtype", to_value(out_dtype));
  std::string op = with_rank(quantized.empty() ? "nn.conv" : "qnn.conv", nd);
  std::vector<Expr> args{std::move(x), std::move(w)};
  args.insert(args.end(), quantized.begin(), quantized.end());
  return ctx.call(op, std::move(args), attrs);
}

namespace {

Values convert_conv(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(add_bias(ctx, convolution(ctx, x, ctx.in(1), NodeContext::dtype_of(x)), 2))};
}

// com.microsoft.FusedConv: what is added to the result and applied to it.
Values convert_fused_conv(NodeContext& ctx) {
  Expr x = ctx.in(0);
  Expr y = add_bias(ctx, convolution(ctx, x, ctx.in(1), NodeContext::dtype_of(x)), 2);
  if (ctx.has(3)) y = ctx.add(y, ctx.in(3));
  std::string name = ctx.attr_string("activation", "");
  std::vector<double> params = ctx.attr_floats("activation_params");
  auto param = [&](size_t i, double otherwise) {
    return i < params.size() ? params[i] : otherwise;
  };
  if (name == "Relu") {
    y = ctx.call("nn.relu", {y});
  } else if (name == "Sigmoid" || name == "Tanh") {
    y = ctx.call(name == "Tanh" ? "tanh" : "sigmoid", {y});
  } else if (name == "LeakyRelu") {
    y = ctx.call("nn.leaky_relu", {y}, {{"alpha", param(0, 0.01)}});
  } else if (name == "Clip") {
    y = ctx.call("clip", {y}, {{"a_min", param(0, -3.4e38)}, {"a_max", param(1, 3.4e38)}});
  } else if (name == "HardSigmoid") {
    Expr line =
        ctx.add(ctx.mul(y, ctx.scalar_like(param(0, 0.2), y)), ctx.scalar_like(param(1, 0.5), y));
    y = ctx.call("clip", {line}, {{"a_min", 0.0}, {"a_max", 1.0}});
  } else if (!name.empty()) {
    ctx.unsupported("activation " + name);
  }
  return {value_of(y)};
}

Values convert_conv_transpose(NodeContext& ctx) {
  Expr x = ctx.in(0), w = ctx.in(1);
  int64_t nd = spatial_rank(ctx, x);
  std::vector<int64_t> kernel = kernel_of(ctx, w, nd);
  std::vector<int64_t> strides = positive_list(ctx, "strides", nd, {});
  std::vector<int64_t> dilations = positive_list(ctx, "dilations", nd, {});
  std::vector<int64_t> extra = ctx.attr_ints("output_padding");
  if (extra.empty()) extra.assign(static_cast<size_t>(nd), 0);
  std::vector<int64_t> wanted = ctx.attr_ints("output_shape");
  if (static_cast<int64_t>(wanted.size()) > nd) wanted.erase(wanted.begin(), wanted.end() - nd);
  if (static_cast<int64_t>(extra.size()) != nd ||
      (!wanted.empty() && static_cast<int64_t>(wanted.size()) != nd)) {
    ctx.fail(codes::frontend_attribute, "'output_padding' or 'output_shape' has the wrong length",
             std::to_string(nd));
  }
  std::string mode = ctx.attr_string("auto_pad", "NOTSET");
  std::vector<int64_t> begin(static_cast<size_t>(nd), 0), end = begin;
  if (!wanted.empty() || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    for (size_t i = 0; i < kernel.size(); ++i) {
      int64_t reach = (kernel[i] - 1) * dilations[i] + 1;
      int64_t total = reach - strides[i] + extra[i];
      if (!wanted.empty()) {
        int64_t size = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size of the input");
        total = strides[i] * (size - 1) + extra[i] + reach - wanted[i];
      }
      // What padding cannot give is appended.
      if (total < 0) {
        extra[i] -= total;
        total = 0;
      }
      int64_t half = total / 2;
      begin[i] = mode == "SAME_UPPER" ? half : total - half;
      end[i] = total - begin[i];
    }
  } else if (mode == "NOTSET") {
    std::vector<int64_t> pads = ctx.attr_ints("pads");
    if (!pads.empty()) {
      if (static_cast<int64_t>(pads.size()) != 2 * nd ||
          std::any_of(pads.begin(), pads.end(),
                      [](int64_t p) { return p < 0 || p > kMaxWindow; })) {
        ctx.fail(codes::frontend_attribute, "attribute 'pads' has a wrong length or value",
                 std::to_string(2 * nd) + " sizes of 0 or more");
      }
      begin.assign(pads.begin(), pads.begin() + nd);
      end.assign(pads.begin() + nd, pads.end());
    }
  } else if (mode != "VALID") {
    ctx.fail(codes::frontend_attribute, "attribute 'auto_pad' has an unknown value",
             "NOTSET, SAME_UPPER, SAME_LOWER or VALID", mode);
  }
  int64_t groups = groups_of(ctx);
  std::vector<int64_t> padding = begin;
  padding.insert(padding.end(), end.begin(), end.end());
  int64_t per_group = ctx.const_dim(w, 1, "the number of channels");
  Expr y = ctx.call(with_rank("nn.conv", nd) + "_transpose", {x, w},
                    {{"channels", per_group * groups},
                     {"kernel_size", to_value(kernel)},
                     {"strides", to_value(strides)},
                     {"output_padding", to_value(extra)},
                     {"padding", to_value(padding)},
                     {"dilation", to_value(dilations)},
                     {"groups", groups}});
  return {value_of(add_bias(ctx, y, 2))};
}

// ---- Pooling -----------------------------------------------------------------------------------

// With ceil_mode the last window may reach past the padded input. The same is said by padding more
// at the end, which leaves maximum and exclusive average unchanged. Windows that would start in
// that padding do not exist.
void extend_for_ceil(NodeContext& ctx, const Expr& x, Window& w) {
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    int64_t size = ctx.const_dim(x, static_cast<int64_t>(i) + 2, "a size pooled with ceil_mode");
    int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1, stride = w.strides[i];
    int64_t room = size + w.begin[i] + w.end[i] - reach;
    if (room < 0) continue;
    int64_t count = (room + stride - 1) / stride + 1;
    if ((count - 1) * stride >= size + w.begin[i]) --count;
    w.end[i] += std::max<int64_t>((count - 1) * stride - room, 0);
  }
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

Values convert_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t nd = spatial_rank(ctx, x);
  if (!ctx.has_attr("kernel_shape")) {
    ctx.fail(codes::frontend_attribute, "attribute 'kernel_shape' is missing");
  }
  Window w = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd, {}));
  bool average = ctx.op_type() == "AveragePool";
  bool include_pad = average && ctx.attr("count_include_pad", 0) != 0;
  if (ctx.attr("ceil_mode", 0) != 0) {
    Window full = w;
    extend_for_ceil(ctx, x, full);
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
  }
  AttrList attrs{{"pool_size", to_value(w.kernel)},
                 {"strides", to_value(w.strides)},
                 {"dilation", to_value(w.dilations)},
                 {"padding", to_value(w.padding())}};
  if (average) attrs.emplace_back("count_include_pad", include_pad);
  Expr y = ctx.call(with_rank(average ? "nn.avg_pool" : "nn.max_pool", nd), {x}, attrs);
  if (!ctx.output_used(1)) return {value_of(y)};
  return {value_of(y), value_of(places_of_maxima(ctx, x, w, y))};
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
  Expr more = ctx.sub(int_vector(ctx, 2, "the shape of the result"), sizes_of(ctx, y));
  Expr none = ctx.full(0, {dim(nd + 2)}, DType::Int(64));
  return {value_of(ctx.call("dyn.pad", {y, ctx.concat({none, more}, 0), ctx.scalar_like(0, y)}))};
}

Values convert_lp_pool(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t nd = spatial_rank(ctx, x);
  double p = static_cast<double>(ctx.attr("p", 2));
  if (p < 1) ctx.fail(codes::frontend_attribute, "attribute 'p' must be positive");
  Window w = window_of(ctx, x, positive_list(ctx, "kernel_shape", nd, {}));
  if (ctx.attr("ceil_mode", 0) != 0) extend_for_ceil(ctx, x, w);
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

// ---- Normalisation -----------------------------------------------------------------------------

// With the mean and variance of the batch, of which the running ones take in a part.
Values batch_norm_training(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  std::vector<int64_t> axes{0};
  for (int64_t a = 2; a < rank; ++a) axes.push_back(a);
  DType dtype = NodeContext::dtype_of(x), wide = dtype.bits == 16 ? DType::Float(32) : dtype;
  Expr value = ctx.cast(x, wide);
  Expr mean = ctx.reduce("mean", value, axes, true);
  Expr centred = ctx.sub(value, mean);
  Expr variance = ctx.reduce("mean", ctx.mul(centred, centred), axes, true);
  auto channel = [&](size_t input) {
    Expr p = ctx.cast(ctx.in(input), wide);
    return rank > 2 ? ctx.expand_dims(p, 1, rank - 2) : p;
  };
  Expr root =
      ctx.call("sqrt", {ctx.add(variance, ctx.scalar(ctx.attr_float("epsilon", 1e-5), wide))});
  Expr y = ctx.add(ctx.mul(ctx.div(centred, root), channel(1)), channel(2));
  const double momentum = ctx.attr_float("momentum", 0.9);
  auto running = [&](size_t input, const Expr& now) {
    Expr old = ctx.in(input);
    Expr vector = ctx.cast(ctx.squeeze(now, axes), NodeContext::dtype_of(old));
    return value_of(ctx.add(ctx.mul(old, ctx.scalar_like(momentum, old)),
                            ctx.mul(vector, ctx.scalar_like(1 - momentum, vector))));
  };
  return {value_of(ctx.cast(y, dtype)), running(3, mean), running(4, variance)};
}

Values convert_batch_norm(NodeContext& ctx) {
  // Before opset 7 an attribute says so, from 14 on another; between, only that more outputs are used.
  bool training = ctx.opset() < 7 ? ctx.attr("is_test", 0) == 0 && ctx.output_used(1)
                                  : ctx.attr("training_mode", 0) != 0;
  if (training) return batch_norm_training(ctx);
  if (ctx.attr("spatial", 1) == 0) ctx.unsupported("batch normalisation per element (spatial=0)");
  Expr x = ctx.in(0);
  DType dtype = NodeContext::dtype_of(x);
  auto param = [&](size_t i) { return ctx.cast(ctx.in(i), dtype); };
  Expr all = ctx.call("nn.batch_norm", {x, param(1), param(2), param(3), param(4)},
                      {{"axis", int64_t{1}}, {"epsilon", ctx.attr_float("epsilon", 1e-5)}});
  return {value_of(ctx.item(all, 0))};
}

struct Moments {
  Expr mean, inverse_deviation, normalised;
};

// Normalisation over some axes, spelt out.
Moments normalise(NodeContext& ctx, const Expr& x, const std::vector<int64_t>& axes,
                  double epsilon) {
  Expr mean = ctx.reduce("mean", x, axes, true);
  Expr centred = ctx.sub(x, mean);
  Expr variance = ctx.reduce("mean", ctx.mul(centred, centred), axes, true);
  Expr root = ctx.call("sqrt", {ctx.add(variance, ctx.scalar_like(epsilon, x))});
  Expr inverse = ctx.div(ctx.scalar_like(1, x), root);
  return {mean, inverse, ctx.mul(centred, inverse)};
}

Values convert_layer_norm(NodeContext& ctx) {
  Expr x = ctx.in(0), gamma = ctx.in(1);
  int64_t rank = NodeContext::rank_of(x);
  int64_t axis = ctx.axis(ctx.attr("axis", -1), rank);
  double epsilon = ctx.attr_float("epsilon", 1e-5);
  bool moments = ctx.output_used(1) || ctx.output_used(2);
  if (axis == rank - 1 && !moments && NodeContext::rank_of(gamma) == 1) {
    Expr beta = ctx.has(2) ? ctx.in(2)
                           : ctx.full(0, NodeContext::shape_of(gamma), NodeContext::dtype_of(x));
    return {value_of(ctx.call("nn.layer_norm", {x, gamma, beta},
                              {{"axis", int64_t{-1}}, {"epsilon", epsilon}}))};
  }
  std::vector<int64_t> axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  Moments m = normalise(ctx, x, axes, epsilon);
  Expr y = ctx.mul(m.normalised, gamma);
  if (ctx.has(2)) y = ctx.add(y, ctx.in(2));
  return {value_of(y), value_of(m.mean), value_of(m.inverse_deviation)};
}

Values convert_rms_norm(NodeContext& ctx) {
  Expr x = ctx.in(0);
  DType dtype = NodeContext::dtype_of(x);
  int64_t rank = NodeContext::rank_of(x);
  int64_t axis = ctx.axis(ctx.attr("axis", -1), rank);
  std::vector<int64_t> axes(static_cast<size_t>(rank - axis));
  std::iota(axes.begin(), axes.end(), axis);
  Expr wide = dtype.bits == 16 ? ctx.cast(x, DType::Float(32)) : x;
  Expr square = ctx.reduce("mean", ctx.mul(wide, wide), axes, true);
  Expr root =
      ctx.call("sqrt", {ctx.add(square, ctx.scalar_like(ctx.attr_float("epsilon", 1e-5), wide))});
  Expr y = ctx.cast(ctx.div(wide, root), dtype);
  return {value_of(ctx.mul(y, ctx.in(1)))};
}

Values convert_instance_norm(NodeContext& ctx) {
  return {value_of(ctx.call("nn.instance_norm", {ctx.in(0), ctx.in(1), ctx.in(2)},
                            {{"axis", int64_t{1}}, {"epsilon", ctx.attr_float("epsilon", 1e-5)}}))};
}

Values convert_group_norm(NodeContext& ctx) {
  Expr x = ctx.in(0), gamma = ctx.in(1), beta = ctx.in(2);
  int64_t groups = ctx.attr("num_groups", 0);
  if (NodeContext::rank_of(x) < 2) {
    ctx.fail(codes::type_rank, "the input needs a channel dimension", "rank 2 or more");
  }
  int64_t channels = ctx.const_dim(x, 1, "the number of channels");
  if (groups < 1 || channels % groups != 0) {
    ctx.fail(codes::frontend_attribute, "attribute 'num_groups' does not divide the channels",
             "a divisor of " + std::to_string(channels), std::to_string(groups));
  }
  // Before opset 21 scale and bias belong to groups.
  if (ctx.opset() < 21 && groups != channels) {
    auto widen = [&](const Expr& e) {
      return ctx.call("repeat", {e}, {{"repeats", channels / groups}, {"axis", int64_t{0}}});
    };
    gamma = widen(gamma);
    beta = widen(beta);
  }
  return {value_of(ctx.call("nn.group_norm", {x, gamma, beta},
                            {{"num_groups", groups},
                             {"axis", int64_t{1}},
                             {"epsilon", ctx.attr_float("epsilon", 1e-5)}}))};
}

Values convert_mean_variance_norm(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::vector<int64_t> axes = ctx.axes(ctx.attr_ints("axes", {0, 2, 3}), NodeContext::rank_of(x));
  std::sort(axes.begin(), axes.end());
  return {value_of(normalise(ctx, x, axes, 1e-9).normalised)};
}

Values convert_lp_norm(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::vector<int64_t> axis{ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(x))};
  Expr norm;
  if (ctx.attr("p", 2) == 1) {
    norm = ctx.reduce("sum", ctx.call("abs", {x}), axis, true);
  } else {
    norm = ctx.call("sqrt", {ctx.reduce("sum", ctx.mul(x, x), axis, true)});
  }
  // A line of zeros stays one.
  Expr zero = ctx.call("equal", {norm, ctx.scalar_like(0, x)});
  return {value_of(ctx.div(x, ctx.call("where", {zero, ctx.scalar_like(1, x), norm})))};
}

Values convert_lrn(NodeContext& ctx) {
  return {value_of(ctx.call("nn.lrn", {ctx.in(0)},
                            {{"size", ctx.attr("size", 5)},
                             {"axis", int64_t{1}},
                             {"bias", ctx.attr_float("bias", 1.0)},
                             {"alpha", ctx.attr_float("alpha", 1e-4)},
                             {"beta", ctx.attr_float("beta", 0.75)}}))};
}

// ---- Softmax -----------------------------------------------------------------------------------

Expr softmax_like(NodeContext& ctx, const Expr& x, int64_t axis) {
  const std::string& op = ctx.op_type();
  if (op != "Hardmax") {
    return ctx.call(op == "LogSoftmax" ? "nn.log_softmax" : "nn.softmax", {x}, {{"axis", axis}});
  }
  int64_t depth = ctx.const_dim(x, axis, "the size of the axis");
  if (depth == 0) return x;  // nothing has no greatest element, and needs none
  DType dtype = NodeContext::dtype_of(x);
  Expr best = ctx.call("argmax", {x}, {{"axis", to_value(std::vector<int64_t>{axis})}});
  int64_t rank = NodeContext::rank_of(x);
  return ctx.call("one_hot", {best, ctx.scalar(1, dtype), ctx.scalar(0, dtype)},
                  {{"depth", depth},
                   {"axis", axis == rank - 1 ? int64_t{-1} : axis},
                   {"dtype", to_value(dtype)}});
}

// Before opset 13 everything from the axis on was one axis.
Values softmax_flat(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const std::vector<Dim> shape = NodeContext::shape_of(x);
  auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = ctx.axis(ctx.attr("axis", 1), rank);
  if (axis == rank - 1) return {value_of(softmax_like(ctx, x, axis))};
  Dim rows = dim(1), columns = dim(1);
  for (int64_t a = 0; a < rank; ++a) {
    Dim& side = a < axis ? rows : columns;
    side = side * shape[static_cast<size_t>(a)];
  }
  return {value_of(ctx.reshape(softmax_like(ctx, ctx.reshape(x, {rows, columns}), 1), shape))};
}

Values softmax_axis(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(softmax_like(ctx, x, ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(x))))};
}

Values convert_softmax_flat(NodeContext& ctx) { return softmax_flat(ctx); }
Values convert_softmax(NodeContext& ctx) { return softmax_axis(ctx); }
Values convert_hardmax_flat(NodeContext& ctx) { return softmax_flat(ctx); }
Values convert_hardmax(NodeContext& ctx) { return softmax_axis(ctx); }

// ---- Matrix products ---------------------------------------------------------------------------

Values convert_gemm(NodeContext& ctx) {
  auto check = [&](const Type& type, size_t rank, const char* which) {
    if (rank == 2) return;
    ctx.fail(codes::type_rank, std::string("the ") + which + " operand must be a matrix", "rank 2",
             to_string(type));
  };
  Expr a = ctx.in(0);
  check(a->type, NodeContext::shape_of(a).size(), "first");
  if (ctx.attr("transA", 0) != 0) a = ctx.transpose(a, {1, 0});
  Expr y;
  if (ctx.attr("transB", 0) != 0) {
    // A weight with one row per output is what nn.dense takes.
    Expr b = ctx.in(1);
    check(b->type, NodeContext::shape_of(b).size(), "second");
    y = ctx.call("nn.dense", {a, b});
  } else {
    y = ctx.matmul_input(a, 1);
    check(y->type, NodeContext::shape_of(y).size(), "second");
  }
  double alpha = ctx.attr_float("alpha", 1), beta = ctx.attr_float("beta", 1);
  if (alpha != 1) y = ctx.mul(y, ctx.scalar_like(alpha, y));
  if (ctx.has(2) && beta != 0) {
    Expr c = ctx.in(2);
    if (beta != 1) c = ctx.mul(c, ctx.scalar_like(beta, c));
    bool row = NodeContext::rank_of(c) == 1 &&
               dim_equal(NodeContext::shape_of(c)[0], NodeContext::shape_of(y)[1]);
    y = row ? ctx.call("nn.bias_add", {y, c}, {{"axis", int64_t{-1}}}) : ctx.add(y, c);
  }
  return {value_of(y)};
}

Values convert_det(NodeContext& ctx) { return {value_of(ctx.call("linalg.det", {ctx.in(0)}))}; }

Values convert_matmul(NodeContext& ctx) { return {value_of(ctx.matmul_input(ctx.in(0), 1))}; }

// Moves the dimensions named by `from` into the order of `to`, a permutation of it.
Expr permute(NodeContext& ctx, Expr e, const std::string& from, const std::string& to) {
  std::vector<int64_t> axes;
  for (char c : to) axes.push_back(static_cast<int64_t>(from.find(c)));
  return ctx.transpose(std::move(e), axes);
}

struct Term {
  Expr e;
  std::string labels;
};

// Sums over the labels that `keep` lacks.
void sum_out(NodeContext& ctx, Term& t, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (keep.find(t.labels[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      left += t.labels[i];
    }
  }
  t.e = ctx.reduce("sum", t.e, axes, false);
  t.labels = left;
}

// The product of two terms, keeping the labels of `keep`, as one batched matrix product.
Term contract(NodeContext& ctx, Term a, Term b, const std::string& keep) {
  auto has = [](const std::string& s, char c) { return s.find(c) != std::string::npos; };
  sum_out(ctx, a, keep + b.labels);
  sum_out(ctx, b, keep + a.labels);
  std::string batch, inner, rows, columns;
  for (char c : a.labels) {
    if (has(b.labels, c)) {
      (has(keep, c) ? batch : inner) += c;
    } else {
      rows += c;
    }
  }
  for (char c : b.labels) {
    if (!has(a.labels, c)) columns += c;
  }
  std::map<char, Dim> sizes;
  for (const Term* t : {&a, &b}) {
    for (size_t i = 0; i < t->labels.size(); ++i) {
      const Dim& d = NodeContext::shape_of(t->e)[i];
      auto [it, fresh] = sizes.try_emplace(t->labels[i], d);
      if (!fresh && dim_differs(it->second, d)) {
        ctx.fail(codes::type_shape, "the sizes of an index differ", to_string(it->second),
                 to_string(d));
      }
    }
  }
  auto product = [&](const std::string& labels) {
    Dim p = dim(1);
    for (char c : labels) p = p * sizes.at(c);
    return p;
  };
  Expr left = permute(ctx, a.e, a.labels, batch + rows + inner);
  Expr right = permute(ctx, b.e, b.labels, batch + inner + columns);
  left = ctx.reshape(left, {product(batch), product(rows), product(inner)});
  right = ctx.reshape(right, {product(batch), product(inner), product(columns)});
  std::vector<Dim> result;
  std::string labels = batch + rows + columns;
  for (char c : labels) result.push_back(sizes.at(c));
  Expr y =
      ctx.call("nn.batch_matmul", {left, right}, {{"transpose_a", false}, {"transpose_b", false}});
  return {ctx.reshape(y, result), labels};
}

// Terms are contracted from left to right, each pair as a batched matrix product. An ellipsis
// stands for labels of its own, one per dimension.
Values convert_einsum(NodeContext& ctx) {
  std::string equation = ctx.attr_string("equation", "");
  std::erase(equation, ' ');
  std::vector<Expr> operands = ctx.all();
  auto bad = [&](const std::string& why) {
    ctx.fail(codes::frontend_attribute, "the equation cannot be used: " + why, {},
             equation.substr(0, 200));
  };
  if (equation.size() > 1000) bad("it is too long");
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> inputs(1);
  for (char c : left) {
    if (c == ',') {
      inputs.emplace_back();
    } else {
      inputs.back() += c;
    }
  }
  if (inputs.size() != operands.size()) bad("it has another number of operands");
  // Characters below 'A' serve as labels of the ellipsis' dimensions.
  size_t widest = 0;
  auto expand = [&](std::string labels, int64_t rank) {
    size_t dots = labels.find("...");
    if (dots == std::string::npos) return labels;
    auto more = static_cast<int64_t>(labels.size()) - 3;
    if (rank < more || rank - more > 16) bad("an operand has another rank");
    auto n = static_cast<size_t>(rank - more);
    widest = std::max(widest, n);
    std::string own;
    for (size_t i = 0; i < n; ++i) own += static_cast<char>('0' + 16 - n + i);
    return labels.replace(dots, 3, own);
  };
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t rank = NodeContext::rank_of(operands[i]);
    std::string labels = expand(inputs[i], rank);
    if (static_cast<int64_t>(labels.size()) != rank) bad("an operand has another rank");
    std::string sorted = labels;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      // A diagonal is no matrix product.
      return {value_of(ctx.call("einsum", {ctx.tuple_of(operands)}, {{"equation", equation}}))};
    }
    for (char c : inputs[i]) {
      if (c != '.' && !std::isalpha(static_cast<unsigned char>(c))) bad("an index is not a letter");
    }
    terms.push_back({operands[i], labels});
  }
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    size_t dots = output.find("...");
    if (dots != std::string::npos) {
      std::string own;
      for (size_t i = 0; i < widest; ++i) own += static_cast<char>('0' + 16 - widest + i);
      output.replace(dots, 3, own);
    }
  } else {
    // Labels that occur once, in alphabetical order after the ellipsis.
    std::map<char, int> uses;
    for (const Term& t : terms) {
      for (char c : t.labels) uses[c] += 1;
    }
    for (auto [c, n] : uses) {
      if (n == 1 || c < 'A') output += c;
    }
  }
  for (char c : output) {
    bool found = std::any_of(terms.begin(), terms.end(),
                             [&](const Term& t) { return t.labels.find(c) != std::string::npos; });
    if (!found || std::count(output.begin(), output.end(), c) > 1) bad("its result is unclear");
  }
  Term at = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string keep = output;
    for (size_t j = i + 1; j < terms.size(); ++j) keep += terms[j].labels;
    at = contract(ctx, std::move(at), terms[i], keep);
  }
  sum_out(ctx, at, output);
  return {value_of(permute(ctx, at.e, at.labels, output))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Nn>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "AveragePool", 1, convert_pool},
      {kOnnx, "BatchNormalization", 1, convert_batch_norm},
      {kOnnx, "Conv", 1, convert_conv},
      {kOnnx, "ConvTranspose", 1, convert_conv_transpose},
      {kOnnx, "Det", 11, convert_det},
      {kOnnx, "Einsum", 12, convert_einsum},
      {kOnnx, "Gemm", 1, convert_gemm},
      {kOnnx, "GlobalAveragePool", 1, convert_global_pool},
      {kOnnx, "GlobalLpPool", 1, convert_global_pool},
      {kOnnx, "GlobalMaxPool", 1, convert_global_pool},
      {kOnnx, "GroupNormalization", 18, convert_group_norm},
      {kOnnx, "Hardmax", 1, convert_hardmax_flat},
      {kOnnx, "Hardmax", 13, convert_hardmax},
      {kOnnx, "InstanceNormalization", 1, convert_instance_norm},
      {kOnnx, "LRN", 1, convert_lrn},
      {kOnnx, "LayerNormalization", 1, convert_layer_norm},
      {kOnnx, "LogSoftmax", 1, convert_softmax_flat},
      {kOnnx, "LogSoftmax", 13, convert_softmax},
      {kOnnx, "LpNormalization", 1, convert_lp_norm},
      {kOnnx, "LpPool", 1, convert_lp_pool},
      {kOnnx, "MatMul", 1, convert_matmul},
      {kOnnx, "MaxPool", 1, convert_pool},
      {kOnnx, "MaxUnpool", 9, convert_max_unpool},
      {kOnnx, "MeanVarianceNormalization", 9, convert_mean_variance_norm},
      {kOnnx, "RMSNormalization", 23, convert_rms_norm},
      {kOnnx, "Softmax", 1, convert_softmax_flat},
      {kOnnx, "Softmax", 13, convert_softmax},
      // Exporters put it into the default domain, too.
      {kOnnx, "SimplifiedLayerNormalization", 1, convert_rms_norm},
      {kMicrosoft, "FusedConv", 1, convert_fused_conv},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, convert_rms_norm},
  };
  return rows;
}

}  // namespace relay::importer
