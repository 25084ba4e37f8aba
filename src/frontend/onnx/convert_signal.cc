// Windows and the discrete Fourier transform (written out as a matrix product), and losses.
#include <cmath>
#include <numbers>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
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

Values dft_known(NodeContext& ctx) {
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
  // What is more regular than a matrix of numbers is left to the run.
  if (inverse && onesided) ctx.fail(codes::frontend_dynamic, "a one-sided inverse transform");
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

// The transform of the last axis but one of `x`, whose last holds `parts`, 1 or 2. `count` is the length
// of the transform, null for that of the signal.
Expr transformed(NodeContext& ctx, const Expr& x, int64_t parts, const Expr& count, bool inverse,
                 bool onesided) {
  const DType f64 = DType::Float(64);
  const int64_t rank = NodeContext::rank_of(x), axis = rank - 2;
  auto number = [&](double v) { return ctx.scalar(v, f64); };
  Expr given = ctx.cast(ctx.select(sizes_of(ctx, x), 0, axis), f64);
  // Of a one-sided spectrum of k bins the transform has 2 (k - 1) elements.
  const bool mirrored = inverse && onesided;
  Expr n = count      ? ctx.cast(count, f64)
           : mirrored ? ctx.mul(ctx.sub(given, number(1)), number(2))
                      : given;
  Expr half = ctx.add(ctx.call("floor", {ctx.div(n, number(2))}), number(1));
  // Longer signals are cut, shorter ones continued by zeros, which the matrix simply lacks.
  Expr used = ctx.call("minimum", {given, mirrored ? half : n});
  auto as_sizes = [&](const Expr& e) {
    return ctx.reshape(ctx.cast(e, DType::Int(64)), std::vector<int64_t>{1});
  };
  Expr signal = open_slice(ctx, x, ctx.ints({0}), as_sizes(used), ctx.ints({1}), {axis});
  Expr t = open_range(ctx, number(0), used);
  Expr k = open_range(ctx, number(0), onesided && !inverse ? half : n);
  Expr turns = ctx.mul(ctx.expand_dims(t, 1), ctx.expand_dims(k, 0));
  turns = ctx.sub(turns, ctx.mul(ctx.call("floor", {ctx.div(turns, n)}), n));
  Expr angle = ctx.div(ctx.mul(turns, number(2 * std::numbers::pi)), n);
  Expr cosines = ctx.call("cos", {angle}), sines = ctx.call("sin", {angle});
  if (inverse) {
    Expr scale = ctx.div(number(1), n);
    if (mirrored) {
      // Each bin but the first, and the last of an even length, stands for its mirror image, too.
      Expr first = ctx.call("equal", {t, number(0)});
      Expr middle = ctx.call("equal", {ctx.mul(t, number(2)), n});
      Expr weight =
          ctx.call("where", {ctx.call("logical_or", {first, middle}), number(1), number(2)});
      scale = ctx.expand_dims(ctx.mul(weight, scale), 1);
    }
    cosines = ctx.mul(cosines, scale);
    sines = ctx.call("negative", {ctx.mul(sines, scale)});
  }
  DType dtype = NodeContext::dtype_of(x);
  cosines = ctx.cast(cosines, dtype);
  sines = ctx.cast(sines, dtype);
  auto product = [&](const Expr& e, const Expr& matrix) { return ctx.matmul(e, matrix); };
  Expr re = ctx.select(signal, rank - 1, 0), im;
  if (parts == 2) im = ctx.select(signal, rank - 1, 1);
  // (re + i im)(cos - i sin)
  Expr out_re = product(re, cosines);
  if (im) out_re = ctx.add(out_re, product(im, sines));
  if (mirrored) return ctx.expand_dims(out_re, rank - 1);
  Expr out_im = ctx.call("negative", {product(re, sines)});
  if (im) out_im = ctx.add(out_im, product(im, cosines));
  return ctx.concat({ctx.expand_dims(out_re, rank - 1), ctx.expand_dims(out_im, rank - 1)},
                    rank - 1);
}

Values dft_open(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr x = ctx.in(0);
  const int64_t rank = NodeContext::rank_of(x);
  auto parts = rank < 2 ? std::nullopt : as_const(NodeContext::shape_of(x).back());
  if (parts != 1 && parts != 2) {
    ctx.fail(codes::type_shape, "the last axis must hold real, or real and imaginary parts",
             "1 or 2", to_string(x->type));
  }
  Expr count = ctx.has(1) ? one_number(ctx, 1, i64) : nullptr;
  const bool inverse = ctx.attr("inverse", 0) != 0, onesided = ctx.attr("onesided", 0) != 0;
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
  Expr y =
      transformed(ctx, ctx.call("dyn.transpose", {x, order}), *parts, count, inverse, onesided);
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

// Overlapping pieces of the signal, each times the window and transformed.
Values convert_stft(NodeContext& ctx) {
  const DType i64 = DType::Int(64);
  Expr x = ctx.in(0), step = one_number(ctx, 1, i64);
  auto parts = NodeContext::rank_of(x) == 3 ? as_const(NodeContext::shape_of(x)[2]) : std::nullopt;
  if (parts != 1 && parts != 2) {
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
  Expr whole = ctx.select(sizes_of(ctx, x), 0, 1), zero = ctx.scalar(0, i64);
  Expr count =
      ctx.add(ctx.call("floor_divide", {ctx.sub(whole, length), step}), ctx.scalar(1, i64));
  Expr begins = ctx.mul(open_range(ctx, zero, count), step);
  Expr places =
      ctx.add(ctx.expand_dims(begins, 1), ctx.expand_dims(open_range(ctx, zero, length), 0));
  Expr frames = ctx.call("take", {x, places}, {{"axis", int64_t{1}}});
  if (ctx.has(2)) frames = ctx.mul(frames, ctx.expand_dims(ctx.in(2), 1));
  return {value_of(transformed(ctx, frames, *parts, nullptr, false, ctx.attr("onesided", 1) != 0))};
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
      {kOnnx, "MelWeightMatrix", 17, convert_mel_weight_matrix},
      {kOnnx, "NegativeLogLikelihoodLoss", 12, convert_nll_loss, kInFloat32},
      {kOnnx, "STFT", 17, convert_stft},
      {kOnnx, "SoftmaxCrossEntropyLoss", 12, convert_softmax_cross_entropy, kInFloat32},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
