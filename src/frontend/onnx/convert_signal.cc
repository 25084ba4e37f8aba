// Windows, the discrete Fourier transform, and losses.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/activation.h"
#include "frontend/common/fourier.h"
#include "frontend/common/loss.h"
#include "frontend/common/open_args.h"
#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {
namespace {

// The window a0 - a1 cos(angle) + a2 cos(2 angle).
struct Window {
  double a0 = 0.5, a1 = 0.5, a2 = 0;  // Hann
};
Window window_of(const std::string& op) {
  if (op == "HammingWindow") return {25.0 / 46, 21.0 / 46, 0};
  if (op == "BlackmanWindow") return {0.42, 0.5, 0.08};
  return {};
}

Values window_known(NodeContext& ctx) {
  int64_t n = ctx.const_int(0, "the size of the window");
  DType dtype = ctx.attr_dtype("output_datatype", DType::Float(32));
  if (n < 0) ctx.fail(codes::frontend_attribute, "the size of the window is negative");
  ctx.charge_bytes(n, dtype);
  auto [a0, a1, a2] = window_of(ctx.op_type());
  double period = static_cast<double>(ctx.attr("periodic", 1) != 0 ? n : n - 1);
  Tensor t = Tensor::empty(dtype, {n});
  for (int64_t i = 0; i < n; ++i) {
    double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    t.set_from_double(i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return {value_of(std::move(t))};
}

Values window_open(NodeContext& ctx) {
  const DType f64 = DType::Float(64);
  auto number = [&](double v) { return ctx.scalar(v, f64); };
  Expr n = one_number(ctx, 0, f64);
  auto [a0, a1, a2] = window_of(ctx.op_type());
  Expr period = ctx.attr("periodic", 1) != 0 ? n : ctx.sub(n, number(1));
  Expr at = open_range(ctx, number(0), n);
  Expr angle = ctx.div(ctx.mul(at, number(2 * std::numbers::pi)), period);
  auto cosine = [&](double times, double factor) {
    return ctx.mul(ctx.call("cos", {ctx.mul(angle, number(times))}), number(factor));
  };
  Expr y = ctx.add(ctx.sub(number(a0), cosine(1, a1)), cosine(2, a2));
  return {value_of(ctx.cast(y, ctx.attr_dtype("output_datatype", DType::Float(32))))};
}

Values convert_window(NodeContext& ctx) { return known_or_open(ctx, window_known, window_open); }

FourierSpec fourier_spec(NodeContext& ctx, int64_t onesided) {
  return {.inverse = ctx.attr("inverse", 0) != 0, .onesided = ctx.attr("onesided", onesided) != 0};
}

Values dft_known(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  complex_parts(ctx, x);
  int64_t axis =
      ctx.opset() >= 20 ? (ctx.has(2) ? ctx.const_int(2, "the axis") : -2) : ctx.attr("axis", 1);
  axis = ctx.axis(axis, rank);
  if (axis == rank - 1) ctx.fail(codes::frontend_attribute, "the last axis cannot be transformed");
  const FourierSpec spec = fourier_spec(ctx, 0);
  int64_t n = ctx.has(1) ? ctx.const_int(1, "the length of the transform")
                         : ctx.const_dim(x, axis, "the length of the signal");
  if (n < 1) ctx.fail(codes::frontend_attribute, "the length of the transform must be positive");
  // Computed in the run, as a product with a matrix.
  if (spec.inverse && spec.onesided) {
    ctx.fail(codes::frontend_dynamic, "a one-sided inverse transform");
  }
  return {value_of(fourier(ctx, x, axis, n, spec))};
}

Values dft_open(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  const int64_t parts = complex_parts(ctx, x);
  Expr count = ctx.has(1) ? one_number(ctx, 1, i64) : nullptr;
  Expr axis;
  if (ctx.opset() < 20) {
    axis = ctx.ints({ctx.axis(ctx.attr("axis", 1), rank)});
  } else if (ctx.has(2)) {
    axis = ctx.reshape(one_number(ctx, 2, i64), std::vector<int64_t>{1});
  } else {
    axis = ctx.ints({rank - 2});
  }
  // That axis, then the one of the parts, behind all others.
  axis = axes_from_front(ctx, axis, rank);
  Expr last = ctx.concat({axis, ctx.ints({rank - 1})}, 0);
  Expr order = ctx.concat({other_axes(ctx, last, rank), last}, 0);
  Expr lines = ctx.call("dyn.transpose", {x, order});
  Expr y = fourier_at_run_time(ctx, lines, parts, count, fourier_spec(ctx, 0));
  return {value_of(ctx.call("dyn.transpose", {y, ctx.call("invert_permutation", {order})}))};
}

Values convert_dft(NodeContext& ctx) { return known_or_open(ctx, dft_known, dft_open); }

// Triangles on the mel scale: each filter rises from the centre of the one before to its own, and falls
// to that of the one after.
Values convert_mel_weight_matrix(NodeContext& ctx) {
  const DType f64 = DType::Float(64), i64 = DType::Int(64);
  auto number = [&](double v) { return ctx.scalar(v, f64); };
  auto mel = [&](const Expr& hertz) {
    Expr ratio = ctx.add(ctx.div(hertz, number(700)), number(1));
    return ctx.mul(ctx.call("log", {ratio}), number(2595 / std::numbers::ln10));
  };
  Expr filters = one_number(ctx, 0, f64), length = one_number(ctx, 1, f64);
  Expr low = mel(one_number(ctx, 3, f64)), high = mel(one_number(ctx, 4, f64));
  Expr points = ctx.add(filters, number(2));
  Expr step = ctx.div(ctx.sub(high, low), points);
  Expr mels = ctx.add(ctx.mul(open_range(ctx, number(0), points), step), low);
  Expr grown = ctx.call("exp", {ctx.mul(mels, number(std::numbers::ln10 / 2595))});
  Expr hertz = ctx.mul(ctx.sub(grown, number(1)), number(700));
  Expr places = ctx.call(
      "floor", {ctx.div(ctx.mul(ctx.add(length, number(1)), hertz), one_number(ctx, 2, f64))});
  Expr filter = open_range(ctx, ctx.scalar(0, i64), ctx.cast(filters, i64));
  auto edge = [&](double k) {
    Expr at = ctx.add(filter, ctx.scalar(k, i64));
    return ctx.expand_dims(ctx.call("take", {places, at}, {{"axis", int64_t{0}}}), 0);
  };
  Expr left = edge(0), centre = edge(1), right = edge(2);
  Expr bins = ctx.add(ctx.call("floor", {ctx.div(length, number(2))}), number(1));
  Expr bin = ctx.expand_dims(open_range(ctx, number(0), bins), 1);
  auto part = [&](const Expr& distance, const Expr& width) {
    Expr empty = ctx.call("equal", {width, number(0)});
    return ctx.call("where", {empty, number(1),
                              ctx.div(distance, ctx.call("where", {empty, number(1), width}))});
  };
  auto both = [&](const char* a, const Expr& x, const char* b, const Expr& y) {
    return ctx.call("logical_and", {ctx.call(a, {bin, x}), ctx.call(b, {bin, y})});
  };
  Expr rising = ctx.call("where", {both("greater_equal", left, "less_equal", centre),
                                   part(ctx.sub(bin, left), ctx.sub(centre, left)), number(0)});
  Expr y = ctx.call("where", {both("greater_equal", centre, "less", right),
                              part(ctx.sub(right, bin), ctx.sub(right, centre)), rising});
  return {value_of(ctx.cast(y, ctx.attr_dtype("output_datatype", DType::Float(32))))};
}

Values convert_stft(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr x = ctx.in(0), step = one_number(ctx, 1, i64);
  if (NodeContext::rank_of(x) != 3) {
    ctx.fail(codes::type_shape, "the signal must be (batch, length, 1 or 2)", "3 dimensions",
             to_string(x->type));
  }
  Expr length;
  if (ctx.has(3)) {
    length = one_number(ctx, 3, i64);
  } else if (ctx.has(2)) {
    length = ctx.select(sizes_of(ctx, ctx.in(2)), 0, 0);
  } else {
    ctx.fail(codes::frontend_graph, "neither a window nor a length is given");
  }
  return {
      value_of(short_time_fourier(ctx, x, step, length, ctx.in_if_given(2), fourier_spec(ctx, 1)))};
}

Loss loss_of(NodeContext& ctx) {
  static constexpr std::pair<std::string_view, LossReduction> kNames[] = {
      {"none", LossReduction::None}, {"sum", LossReduction::Sum}, {"mean", LossReduction::Mean}};
  const std::string reduction = ctx.attr_string("reduction", "mean");
  auto row =
      std::ranges::find(kNames, reduction, &std::pair<std::string_view, LossReduction>::first);
  if (row == std::end(kNames)) {
    ctx.fail(codes::frontend_attribute, "attribute 'reduction' has an unknown value",
             "none, sum or mean", reduction.substr(0, 100));
  }
  Loss loss{.weights = ctx.in_if_given(2), .reduction = row->second};
  if (ctx.has_attr("ignore_index")) loss.ignored = ctx.attr("ignore_index", -1);
  return loss;
}

Values convert_nll_loss(NodeContext& ctx) {
  return {value_of(negative_log_likelihood(ctx, ctx.in(0), ctx.in(1), loss_of(ctx)))};
}

Values convert_softmax_cross_entropy(NodeContext& ctx) {
  Expr log_prob = softmax(ctx, Softmax::Log, ctx.in(0), 1);
  return {value_of(negative_log_likelihood(ctx, log_prob, ctx.in(1), loss_of(ctx))),
          value_of(log_prob)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Signal>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "BlackmanWindow", 17, convert_window},
      {kOnnx, "DFT", 17, convert_dft},
      {kOnnx, "HammingWindow", 17, convert_window},
      {kOnnx, "HannWindow", 17, convert_window},
      {kOnnx, "MelWeightMatrix", 17, convert_mel_weight_matrix},
      {kOnnx, "NegativeLogLikelihoodLoss", 12, convert_nll_loss, kInFloat32},
      {kOnnx, "STFT", 17, convert_stft},
      {kOnnx, "SoftmaxCrossEntropyLoss", 12, convert_softmax_cross_entropy, kInFloat32},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
