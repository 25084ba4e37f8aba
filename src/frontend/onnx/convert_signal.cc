// Windows and the discrete Fourier transform (written out as a matrix product), and losses.
#include <cmath>
#include <numbers>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/onnx/importer.h"

namespace relay::importer {
namespace {

Values convert_window(NodeContext& ctx) {
  int64_t n = ctx.const_int(0, "the size of the window");
  DType dtype = ctx.attr_dtype("output_datatype", DType::Float(32));
  if (n < 0) ctx.fail(codes::frontend_attribute, "the size of the window is negative");
  ctx.charge_bytes(n, dtype);
  double a0 = 0.5, a1 = 0.5, a2 = 0;  // Hann
  if (ctx.op_type() == "HammingWindow") {
    a0 = 25.0 / 46;
    a1 = 1 - a0;
  } else if (ctx.op_type() == "BlackmanWindow") {
    a0 = 0.42;
    a2 = 0.08;
  }
  double period = static_cast<double>(ctx.attr("periodic", 1) != 0 ? n : n - 1);
  Tensor t = Tensor::empty(dtype, {n});
  for (int64_t i = 0; i < n; ++i) {
    double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    t.set_from_double(i, a0 - a1 * std::cos(angle) + a2 * std::cos(2 * angle));
  }
  return {value_of(std::move(t))};
}

Values convert_dft(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t rank = NodeContext::rank_of(x);
  if (rank < 2)
    ctx.fail(codes::type_rank, "the input needs a last axis of real and imaginary parts");
  int64_t axis =
      ctx.opset() >= 20 ? (ctx.has(2) ? ctx.const_int(2, "the axis") : -2) : ctx.attr("axis", 1);
  axis = ctx.axis(axis, rank);
  if (axis == rank - 1) ctx.fail(codes::frontend_attribute, "the last axis cannot be transformed");
  bool inverse = ctx.attr("inverse", 0) != 0, onesided = ctx.attr("onesided", 0) != 0;
  int64_t parts = ctx.const_dim(x, rank - 1, "the number of parts");
  if (parts != 1 && parts != 2) {
    ctx.fail(codes::type_shape, "the last axis must hold real, or real and imaginary parts",
             "1 or 2", std::to_string(parts));
  }
  int64_t given = ctx.const_dim(x, axis, "the length of the signal");
  int64_t n = ctx.has(1) ? ctx.const_int(1, "the length of the transform") : given;
  if (n < 1) ctx.fail(codes::frontend_attribute, "the length of the transform must be positive");
  // Longer signals are cut, shorter ones continued by zeros, which the matrix simply lacks.
  int64_t used = std::min(given, n);
  x = ctx.slice(x, axis, 0, used);
  // A one-sided inverse starts from half of a spectrum; the other half is its mirror image.
  if (inverse && onesided) ctx.unsupported("a one-sided inverse transform");
  int64_t bins = onesided ? n / 2 + 1 : n;
  DType dtype = NodeContext::dtype_of(x);
  ctx.charge_bytes(2 * used * bins, dtype);
  Tensor cosines = Tensor::empty(dtype, {used, bins}), sines = Tensor::empty(dtype, {used, bins});
  double scale = inverse ? 1.0 / static_cast<double>(n) : 1.0;
  for (int64_t t = 0; t < used; ++t) {
    for (int64_t k = 0; k < bins; ++k) {
      double turn = static_cast<double>((t * k) % n) / static_cast<double>(n);
      double angle = 2 * std::numbers::pi * turn;
      cosines.set_from_double(t * bins + k, scale * std::cos(angle));
      sines.set_from_double(t * bins + k, scale * (inverse ? -std::sin(angle) : std::sin(angle)));
    }
  }
  auto product = [&](const Expr& signal, const Tensor& m) {
    return ctx.matmul_along(signal, axis, m);
  };
  // (re + i im)(cos - i sin)
  Expr re = ctx.select(x, rank - 1, 0);
  Expr out_re = product(re, cosines), out_im = ctx.call("negative", {product(re, sines)});
  if (parts == 2) {
    Expr im = ctx.select(x, rank - 1, 1);
    out_re = ctx.add(out_re, product(im, sines));
    out_im = ctx.add(out_im, product(im, cosines));
  }
  return {value_of(ctx.concat(
      {ctx.expand_dims(out_re, rank - 1), ctx.expand_dims(out_im, rank - 1)}, rank - 1))};
}

Expr negative_log_likelihood(NodeContext& ctx, const Expr& log_prob, const Expr& given) {
  DType dtype = NodeContext::dtype_of(log_prob);
  DType index = NodeContext::dtype_of(given);
  Expr target = given;
  Expr ignored;
  if (ctx.has_attr("ignore_index")) {
    auto number = static_cast<double>(ctx.attr("ignore_index", -1));
    ignored = ctx.call("equal", {target, ctx.scalar(number, index)});
    target = ctx.call("where", {ignored, ctx.scalar(0, index), target});
  }
  Expr picked = ctx.call("gather", {log_prob, ctx.expand_dims(target, 1)}, {{"axis", int64_t{1}}});
  Expr loss = ctx.call("negative", {ctx.squeeze(picked, {1})});
  Expr weight;
  if (ctx.has(2)) weight = ctx.call("take", {ctx.in(2), target}, {{"axis", int64_t{0}}});
  if (ignored) {
    Expr one = weight ? weight : ctx.scalar(1, dtype);
    weight = ctx.call("where", {ignored, ctx.scalar(0, dtype), one});
  }
  if (weight) loss = ctx.mul(loss, weight);
  std::string reduction = ctx.attr_string("reduction", "mean");
  if (reduction == "none") return loss;
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < NodeContext::rank_of(loss); ++a) axes.push_back(a);
  if (reduction == "sum") return ctx.reduce("sum", loss, axes, false);
  if (reduction != "mean") {
    ctx.fail(codes::frontend_attribute, "attribute 'reduction' has an unknown value",
             "none, sum or mean", reduction.substr(0, 100));
  }
  if (!weight) return ctx.reduce("mean", loss, axes, false);
  return ctx.div(ctx.reduce("sum", loss, axes, false), ctx.reduce("sum", weight, axes, false));
}

Values convert_nll_loss(NodeContext& ctx) {
  return {value_of(negative_log_likelihood(ctx, ctx.in(0), ctx.in(1)))};
}

Values convert_softmax_cross_entropy(NodeContext& ctx) {
  Expr log_prob = ctx.call("nn.log_softmax", {ctx.in(0)}, {{"axis", int64_t{1}}});
  return {value_of(negative_log_likelihood(ctx, log_prob, ctx.in(1))), value_of(log_prob)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Signal>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "BlackmanWindow", 17, convert_window},
      {kOnnx, "DFT", 17, convert_dft},
      {kOnnx, "HammingWindow", 17, convert_window},
      {kOnnx, "HannWindow", 17, convert_window},
      {kOnnx, "NegativeLogLikelihoodLoss", 12, convert_nll_loss},
      {kOnnx, "SoftmaxCrossEntropyLoss", 12, convert_softmax_cross_entropy},
  };
  return rows;
}

}  // namespace relay::importer
