// Convolution, normalisation and softmax.
#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/norm.h"
#include "frontend/common/shape_args.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

// The kernel of the weights, which the node may repeat.
std::vector<int64_t> declared_kernel(NodeContext& ctx, const Expr& w, int64_t nd) {
  std::vector<int64_t> kernel = kernel_of(ctx, w, nd), declared = ctx.attr_ints("kernel_shape");
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

ConvolutionSpec convolution_spec(NodeContext& ctx, const Expr& x, const Expr& w) {
  const int64_t nd = spatial_rank(ctx, x);
  return {window_of(ctx, x, declared_kernel(ctx, w, nd)), groups_of(ctx)};
}

Expr convolution(NodeContext& ctx, const Expr& x, const Expr& w) {
  const auto [window, groups] = convolution_spec(ctx, x, w);
  return convolution(ctx, x, w, window, groups, NodeContext::dtype_of(x));
}

namespace {

Values convert_conv(NodeContext& ctx) {
  return {
      value_of(with_channel_bias(ctx, convolution(ctx, ctx.in(0), ctx.in(1)), ctx.in_if_given(2)))};
}

Values convert_conv_transpose(NodeContext& ctx) {
  Expr x = ctx.in(0), w = ctx.in(1);
  int64_t nd = spatial_rank(ctx, x);
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
  Window win;
  if (!wanted.empty() || mode == "SAME_UPPER" || mode == "SAME_LOWER") {
    win = unpadded_window(ctx, declared_kernel(ctx, w, nd));
    pad_transposed(ctx, x, mode == "SAME_UPPER", wanted, win, extra);
  } else {
    win = window_of(ctx, x, declared_kernel(ctx, w, nd));
  }
  Expr y = transposed_convolution(ctx, x, w, win, extra, groups_of(ctx));
  return {value_of(with_channel_bias(ctx, y, ctx.in_if_given(2)))};
}

// ---- Normalisation -----------------------------------------------------------------------------

// With the mean and variance of the batch, of which the running ones take in a part.
Values batch_norm_training(NodeContext& ctx) {
  BatchNorm of_batch =
      batch_norm_of_batch(ctx, ctx.in(0), ctx.in(1), ctx.in(2), ctx.attr_float("epsilon", 1e-5));
  const double momentum = ctx.attr_float("momentum", 0.9);
  return {value_of(of_batch.y), value_of(running_average(ctx, ctx.in(3), of_batch.mean, momentum)),
          value_of(running_average(ctx, ctx.in(4), of_batch.variance, momentum))};
}

Values convert_batch_norm(NodeContext& ctx) {
  // Before opset 7 an attribute says so, from 14 on another; between, only that more outputs are used.
  bool training = ctx.opset() < 7 ? ctx.attr("is_test", 0) == 0 && ctx.output_used(1)
                                  : ctx.attr("training_mode", 0) != 0;
  if (training) return batch_norm_training(ctx);
  if (ctx.attr("spatial", 1) == 0) ctx.unsupported("batch normalisation per element (spatial=0)");
  return {value_of(batch_norm(ctx, ctx.in(0), ctx.in(1), ctx.in(2), ctx.in(3), ctx.in(4),
                              ctx.attr_float("epsilon", 1e-5)))};
}

// The axis that is normalised over, or the first of several.
int64_t first_axis(NodeContext& ctx) {
  return ctx.axis(ctx.attr("axis", -1), NodeContext::rank_of(ctx.in(0)));
}

Values convert_layer_norm(NodeContext& ctx) {
  Expr x = ctx.in(0), gamma = ctx.in(1), beta = ctx.in_if_given(2);
  const double epsilon = ctx.attr_float("epsilon", 1e-5);
  if (!ctx.output_used(1) && !ctx.output_used(2)) {
    return {value_of(layer_norm(ctx, x, gamma, beta, first_axis(ctx), epsilon))};
  }
  Moments m = layer_norm_with_moments(ctx, x, gamma, beta, first_axis(ctx), epsilon);
  return {value_of(m.normalised), value_of(m.mean), value_of(m.inverse_deviation)};
}

Values convert_rms_norm(NodeContext& ctx) {
  return {value_of(
      rms_norm(ctx, ctx.in(0), ctx.in(1), first_axis(ctx), ctx.attr_float("epsilon", 1e-5)))};
}

Values convert_instance_norm(NodeContext& ctx) {
  return {value_of(
      instance_norm(ctx, ctx.in(0), ctx.in(1), ctx.in(2), ctx.attr_float("epsilon", 1e-5)))};
}

Values convert_group_norm(NodeContext& ctx) {
  Expr x = ctx.in(0), gamma = ctx.in(1), beta = ctx.in(2);
  const int64_t groups = ctx.attr("num_groups", 0);
  const int64_t channels = ctx.const_dim(x, 1, "the number of channels");
  // Before opset 21 scale and bias belong to groups.
  if (ctx.opset() < 21 && groups != channels && groups > 0) {
    for (Expr* e : {&gamma, &beta}) {
      *e = ctx.call("repeat", {*e}, {{"repeats", channels / groups}, {"axis", int64_t{0}}});
    }
  }
  return {value_of(group_norm(ctx, x, gamma, beta, groups, ctx.attr_float("epsilon", 1e-5)))};
}

Values convert_mean_variance_norm(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::vector<int64_t> axes = ctx.axes(ctx.attr_ints("axes", {0, 2, 3}), NodeContext::rank_of(x));
  std::sort(axes.begin(), axes.end());
  return {value_of(normalise(ctx, x, axes, 1e-9).normalised)};
}

Values convert_lp_norm(NodeContext& ctx) {
  return {value_of(unit_norm(ctx, ctx.in(0), first_axis(ctx), ctx.attr("p", 2)))};
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

Softmax softmax_kind(NodeContext& ctx) {
  const std::string& op = ctx.op_type();
  return op == "Hardmax" ? Softmax::Hard : op == "LogSoftmax" ? Softmax::Log : Softmax::Plain;
}

// Before opset 13 everything from the axis on was one axis.
Values convert_flat_softmax(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const std::vector<Dim> shape = NodeContext::shape_of(x);
  auto rank = static_cast<int64_t>(shape.size());
  int64_t axis = ctx.axis(ctx.attr("axis", 1), rank);
  if (axis == rank - 1) return {value_of(softmax(ctx, softmax_kind(ctx), x, axis))};
  const auto split = static_cast<size_t>(axis);
  Expr matrix = ctx.reshape(x, {product(shape, 0, split), product(shape, split, shape.size())});
  return {value_of(ctx.reshape(softmax(ctx, softmax_kind(ctx), matrix, 1), shape))};
}

Values convert_softmax(NodeContext& ctx) {
  return {value_of(softmax(ctx, softmax_kind(ctx), ctx.in(0), first_axis(ctx)))};
}
}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Nn>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "BatchNormalization", 1, convert_batch_norm},
      {kOnnx, "Conv", 1, convert_conv},
      {kOnnx, "ConvTranspose", 1, convert_conv_transpose},
      {kOnnx, "GroupNormalization", 18, convert_group_norm},
      {kOnnx, "Hardmax", 1, convert_flat_softmax},
      {kOnnx, "Hardmax", 13, convert_softmax},
      {kOnnx, "InstanceNormalization", 1, convert_instance_norm},
      {kOnnx, "LRN", 1, convert_lrn},
      {kOnnx, "LayerNormalization", 1, convert_layer_norm},
      {kOnnx, "LogSoftmax", 1, convert_flat_softmax},
      {kOnnx, "LogSoftmax", 13, convert_softmax},
      {kOnnx, "LpNormalization", 1, convert_lp_norm, kInFloat32},
      {kOnnx, "MeanVarianceNormalization", 9, convert_mean_variance_norm, kInFloat32},
      {kOnnx, "RMSNormalization", 23, convert_rms_norm},
      {kOnnx, "Softmax", 1, convert_flat_softmax},
      {kOnnx, "Softmax", 13, convert_softmax},
      // Exporters put it into the default domain, too.
      {kOnnx, "SimplifiedLayerNormalization", 1, convert_rms_norm},
      {kMicrosoft, "SimplifiedLayerNormalization", 1, convert_rms_norm},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
