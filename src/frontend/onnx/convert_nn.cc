// Convolution, normalisation and softmax.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

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
  return convolution(ctx, std::move(x), std::move(w), win, groups_of(ctx), out_dtype,
                     std::move(quantized));
}

namespace {

Values convert_conv(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return {value_of(add_bias(ctx, convolution(ctx, x, ctx.in(1), NodeContext::dtype_of(x)), 2))};
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
  const DType dtype = NodeContext::dtype_of(x);
  auto wide = [&](const Expr& e) { return dtype.bits == 16 ? ctx.cast(e, DType::Float(32)) : e; };
  Moments m = normalise(ctx, wide(x), axes, epsilon);
  Expr y = ctx.mul(m.normalised, wide(gamma));
  if (ctx.has(2)) y = ctx.add(y, wide(ctx.in(2)));
  auto result = [&](const Expr& e) { return value_of(ctx.cast(e, dtype)); };
  return {result(y), result(m.mean), result(m.inverse_deviation)};
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
}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Nn>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "BatchNormalization", 1, convert_batch_norm},
      {kOnnx, "Conv", 1, convert_conv},
      {kOnnx, "ConvTranspose", 1, convert_conv_transpose},
      {kOnnx, "GroupNormalization", 18, convert_group_norm},
      {kOnnx, "Hardmax", 1, convert_hardmax_flat},
      {kOnnx, "Hardmax", 13, convert_hardmax},
      {kOnnx, "InstanceNormalization", 1, convert_instance_norm},
      {kOnnx, "LRN", 1, convert_lrn},
      {kOnnx, "LayerNormalization", 1, convert_layer_norm},
      {kOnnx, "LogSoftmax", 1, convert_softmax_flat},
      {kOnnx, "LogSoftmax", 13, convert_softmax},
      {kOnnx, "LpNormalization", 1, convert_lp_norm, kInFloat32},
      {kOnnx, "MeanVarianceNormalization", 9, convert_mean_variance_norm, kInFloat32},
      {kOnnx, "RMSNormalization", 23, convert_rms_norm},
      {kOnnx, "Softmax", 1, convert_softmax_flat},
      {kOnnx, "Softmax", 13, convert_softmax},
      // Exporters put it into the default domain, too.
      {kOnnx, "SimplifiedLayerNormalization", 1, convert_rms_norm},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, convert_rms_norm},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
