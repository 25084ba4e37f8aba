// Sums of products of integers, pools, means and resizing.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Expr number(const Builder& build, int64_t v, DType dtype = kInt) {
  return build.scalar(static_cast<double>(v), dtype);
}

// The factors of sums of products: one, or one for each channel. The kernels of one factor round the product of the
// scales to float32.
std::vector<Multiplier> factors(float x, const std::vector<float>& w, float y, bool in_double) {
  std::vector<Multiplier> out;
  for (float scale : w) {
    const double product = in_double ? static_cast<double>(x) * static_cast<double>(scale)
                                     : static_cast<double>(x * scale);
    out.push_back(multiplier_of(product / static_cast<double>(y)));
  }
  return out;
}

// The scales of weights: one, or one for each channel of the result along `axis`, without zero points then.
Quantization weight_quantization(NodeContext& ctx, size_t i, int64_t axis) {
  const Quantization q = ctx.in_quantization(i);
  Expr w = ctx.in(i);
  if (Builder::dtype_of(w).bits != 8) ctx.unsupported("weights of more than 8 bits");
  if (!q.per_axis()) return q;
  if (ctx.axis(q.axis, Builder::rank_of(w)) != axis)
    ctx.unsupported("weights with scales along another axis than the channels of the result");
  if (std::ranges::any_of(q.zero, [](int64_t z) { return z != 0; }))
    ctx.unsupported("weights with a scale for each channel and zero points other than 0");
  const int64_t channels = ctx.const_dim(w, axis, "the number of channels");
  const auto scales = static_cast<int64_t>(q.scale.size());
  if (scales != channels) {
    bad_tensor(ctx.span(), "the weight does not have as many scales as channels",
               std::to_string(channels), std::to_string(scales));
  }
  return q;
}

// The same of weights that floats are multiplied by.
Quantization hybrid_quantization(NodeContext& ctx, size_t i, int64_t axis) {
  Quantization q = weight_quantization(ctx, i, axis);
  if (ctx.in_dtype(i) != DType::Int(8)) ctx.unsupported("floats multiplied by weights of uint8");
  if (q.zero[0] != 0) ctx.unsupported("floats multiplied by weights with a zero point");
  return q;
}

// Whether sums of products of these weights with int16 fit 32 bits; weights of a last axis of channels or a first one.
bool fits_narrow(const Tensor& w) {
  if (!w) return false;
  int64_t all = 0;
  for (int64_t i = 0; i < w.num_elements(); ++i) all = std::max(all, std::abs(w.get_as_int(i)));
  // Every product is at most 2^15 * all; a channel has no more of them than the weights have places.
  const int64_t places =
      w.num_elements() /
      std::max<int64_t>(1, std::min(w.dim(0), w.dim(static_cast<int>(w.rank()) - 1)));
  return all * places < (int64_t{1} << 15);
}

// The bias, whose dtype decides how sums of int16 are scaled, added; scaled, and stored as the result.
Expr finished(NodeContext& ctx, Expr sum, size_t bias, const std::vector<Multiplier>& m,
              schema::FusedActivation activation, Rounding rounding = Rounding::Twice) {
  const Quantization q = ctx.out_quantization();
  const DType dtype = ctx.out_dtype();
  const Range range = range_of(ctx, activation, q, dtype);
  const bool wide = dtype.bits == 16 && !(ctx.has(bias) && ctx.in_dtype(bias) == kInt);
  if (wide) sum = ctx.cast(sum, kWide);
  if (ctx.has(bias)) sum = ctx.add(sum, ctx.cast(ctx.in(bias), Builder::dtype_of(sum)));
  Expr y = scaled_lines(ctx, sum, m, rounding);
  return stored(ctx, y, q.zero[0], range, dtype);
}

// Zero points and scales as the quantised dialect takes them; scales do not matter for the sum.
std::vector<Expr> dialect_arguments(const Builder& build, int64_t x_zero, int64_t w_zero) {
  return {number(build, x_zero), number(build, w_zero), build.scalar(1, kFloat),
          build.scalar(1, kFloat)};
}

}  // namespace

// ---- Sums of products --------------------------------------------------------------------------

Expr quantized_convolution(NodeContext& ctx, const ConvolutionParts& parts,
                           schema::FusedActivation activation) {
  const Level x_level = level_of(ctx, ctx.in_quantization(parts.input)),
              y_level = level_of(ctx, ctx.out_quantization());
  const Quantization wq = weight_quantization(ctx, parts.weight, parts.channel_axis);
  Expr x = ctx.in(parts.input), w = ctx.in(parts.weight);
  const DType from = Builder::dtype_of(x);
  const bool bytes = from.bits == 8;
  Expr weights = ctx.transpose(w, parts.order), sum;
  if (parts.is_transposed || Builder::rank_of(x) != 4 || !bytes) {
    const DType dtype = bytes || fits_narrow(ctx.constant_data(parts.weight)) ? kInt : kWide;
    Expr xs = ctx.cast(centred(ctx, x, x_level.zero), dtype),
         ws = ctx.cast(centred(ctx, weights, wq.zero[0]), dtype);
    sum = parts.is_transposed
              ? transposed_convolution(ctx, xs, ws, parts.window, parts.extra, parts.groups)
              : convolution(ctx, xs, ws, parts.window, parts.groups, dtype);
  } else {
    sum = convolution(ctx, x, weights, parts.window, parts.groups, kInt,
                      dialect_arguments(ctx, x_level.zero, wq.zero[0]));
  }
  // uint8 has one factor, and so its kernels; int8 and int16 have a list of factors, which may all be equal.
  const bool in_double = from.is_int() && !parts.is_transposed;
  return finished(ctx, std::move(sum), parts.bias,
                  factors(x_level.scale, wq.scale, y_level.scale, in_double || wq.per_axis()),
                  activation);
}

Expr quantized_dense(NodeContext& ctx, const Expr& x, schema::FusedActivation activation) {
  const Level x_level = level_of(ctx, ctx.in_quantization(0)),
              y_level = level_of(ctx, ctx.out_quantization());
  const Quantization wq = weight_quantization(ctx, 1, 0);
  Expr w = ctx.in(1), sum;
  if (Builder::dtype_of(x).bits == 8) {
    std::vector<Expr> args = dialect_arguments(ctx, x_level.zero, wq.zero[0]);
    args.insert(args.begin(), {x, w});
    sum = ctx.call("qnn.dense", std::move(args), {{"out_dtype", to_value(kInt)}});
  } else {
    const DType dtype = fits_narrow(ctx.constant_data(1)) ? kInt : kWide;
    sum = ctx.call("nn.dense", {ctx.cast(centred(ctx, x, x_level.zero), dtype),
                                ctx.cast(centred(ctx, w, wq.zero[0]), dtype)});
  }
  // The only reference kernel that rounds once.
  return finished(ctx, std::move(sum), 2,
                  factors(x_level.scale, wq.scale, y_level.scale, wq.per_axis()), activation,
                  Rounding::Once);
}

Expr quantized_matmul(NodeContext& ctx, const Expr& a, const Expr& b) {
  const Level a_level = level_of(ctx, ctx.in_quantization(0)),
              b_level = level_of(ctx, ctx.in_quantization(1)),
              y_level = level_of(ctx, ctx.out_quantization());
  const DType dtype = Builder::dtype_of(a).bits == 8 ? kInt : kWide;
  Expr sum = ctx.matmul(ctx.cast(centred(ctx, a, a_level.zero), dtype),
                        ctx.cast(centred(ctx, b, b_level.zero), dtype));
  const size_t no_bias = ctx.num_inputs();
  return finished(ctx, std::move(sum), no_bias,
                  factors(a_level.scale, {b_level.scale}, y_level.scale, false),
                  schema::FusedActivation::none);
}

// ---- Floats by integer weights -----------------------------------------------------------------

namespace {

// Floats rounded to int8, by lines along the axes: integers, scales, and zero points (null for 0).
struct Lines {
  Expr integers, scale, zero;
};

Lines symmetric_lines(const Builder& build, const Expr& x, const std::vector<int64_t>& axes) {
  auto c = [&](double v) { return build.scalar(v, kFloat); };
  Expr range = build.reduce("max", build.call("abs", {x}), axes, true);
  Expr none = build.call("equal", {range, c(0)});
  Expr scale = build.where(none, c(1), build.div(range, c(127)));
  Expr inverse = build.where(none, c(0), build.div(c(127), range));
  Expr level = build.clip(rounded_away(build, build.mul(x, inverse)), -127, 127);
  return {build.cast(level, DType::Int(8)), scale, nullptr};
}

Lines asymmetric_lines(const Builder& build, const Expr& x, const std::vector<int64_t>& axes) {
  const DType f64 = DType::Float(64);
  auto c = [&](double v) { return build.scalar(v, f64); };
  Expr low = build.minimum(build.cast(build.reduce("min", x, axes, true), f64), c(0));
  Expr high = build.maximum(build.cast(build.reduce("max", x, axes, true), f64), c(0));
  Expr none = build.call("equal", {low, high});
  Expr scale = build.where(none, c(1), build.div(build.sub(high, low), c(255)));
  Expr from_low = build.sub(c(-128), build.div(low, scale)),
       from_high = build.sub(c(127), build.div(high, scale));
  auto magnitude = [&](const Expr& e) { return build.call("abs", {e}); };
  Expr low_error = build.add(c(128), magnitude(build.div(low, scale)));
  Expr high_error = build.add(c(127), magnitude(build.div(high, scale)));
  Expr zero = build.where(build.call("less", {low_error, high_error}), from_low, from_high);
  zero = build.where(none, c(0), build.clip(rounded_away(build, zero), -128, 127));
  Expr narrow = build.cast(scale, kFloat);
  Expr inverse = build.div(build.scalar(1, kFloat), narrow);
  Expr level = rounded_away(build, build.add(build.cast(zero, kFloat), build.mul(x, inverse)));
  return {build.cast(build.clip(level, -128, 127), DType::Int(8)), narrow, build.cast(zero, kInt)};
}

// A sum of products of these lines by weights as floats; the channels are along its last axis.
Expr hybrid_result(const Builder& build, const Expr& sum, const Lines& lines,
                   const std::vector<float>& scales) {
  Expr scale =
      scales.size() > 1 ? build.constant(float_vector(scales)) : build.scalar(scales[0], kFloat);
  return build.mul(build.cast(sum, kFloat), build.mul(lines.scale, scale));
}

}  // namespace

Expr hybrid_product(const Builder& build, const Expr& x, const Expr& w,
                    const std::vector<float>& scales, bool asymmetric) {
  const Lines l = asymmetric ? asymmetric_lines(build, x, {1}) : symmetric_lines(build, x, {1});
  std::vector<Expr> args = dialect_arguments(build, 0, 0);
  args.insert(args.begin(), {l.integers, w});
  Expr sum = build.call("qnn.dense", std::move(args), {{"out_dtype", to_value(kInt)}});
  if (l.zero) {
    Expr of_rows = build.reduce("sum", build.cast(w, kInt), {1}, false);
    sum = build.sub(sum, build.mul(l.zero, of_rows));
  }
  return hybrid_result(build, sum, l, scales);
}

Expr hybrid_dense(NodeContext& ctx, const Expr& x, bool asymmetric) {
  return hybrid_product(ctx, x, ctx.in(1), hybrid_quantization(ctx, 1, 0).scale, asymmetric);
}

Expr hybrid_convolution(NodeContext& ctx, const ConvolutionParts& parts) {
  const Quantization wq = hybrid_quantization(ctx, parts.weight, parts.channel_axis);
  Expr x = ctx.in(parts.input);
  if (Builder::rank_of(x) != 4) ctx.unsupported("a convolution of volumes by integer weights");
  const Lines l = asymmetric_lines(ctx, x, {1, 2, 3});
  Expr weights = ctx.transpose(ctx.in(parts.weight), parts.order);
  // The border has the zero point, so the integers are centred before they are padded.
  Expr sum = convolution(ctx, ctx.sub(ctx.cast(l.integers, kInt), l.zero), ctx.cast(weights, kInt),
                         parts.window, parts.groups, kInt);
  return hybrid_result(ctx, sum, l, wq.scale);
}

// ---- Pools and means ---------------------------------------------------------------------------

namespace {

// How many elements of the image each window has, (height, width, 1).
Tensor elements_of_windows(const Window& w, const std::vector<int64_t>& sizes,
                           const std::vector<int64_t>& results) {
  std::vector<std::vector<int64_t>> along(2);
  for (size_t a = 0; a < 2; ++a) {
    for (int64_t i = 0; i < results[a]; ++i) {
      const int64_t begin = i * w.strides[a] - w.begin[a];
      along[a].push_back(std::min(begin + w.kernel[a], sizes[a]) - std::max<int64_t>(begin, 0));
    }
  }
  Tensor t = Tensor::empty(kInt, {results[0], results[1], 1});
  int64_t at = 0;
  for (int64_t h : along[0])
    for (int64_t v : along[1]) t.set_from_int(at++, std::max<int64_t>(h * v, 1));
  return t;
}

// A sum divided by a count, halves away from zero.
Expr mean_of_sum(const Builder& build, const Expr& sum, const Expr& count) {
  Expr half = build.call("right_shift", {count, number(build, 1)});
  Expr positive = build.call("greater", {sum, number(build, 0)});
  Expr moved = build.where(positive, build.add(sum, half), build.sub(sum, half));
  return build.call("trunc_divide", {moved, count});
}

}  // namespace

Expr quantized_pool(NodeContext& ctx, PoolKind kind, const Window& window,
                    schema::FusedActivation activation) {
  const Quantization q = ctx.out_quantization();
  const DType dtype = ctx.out_dtype();
  const Range range = range_of(ctx, activation, q, dtype);
  if (ctx.in_dtype(0) != dtype) ctx.unsupported("a pool whose input and result differ in dtype");
  Expr x = ctx.in(0);
  if (kind == PoolKind::Max) {
    Expr y = pool(ctx, kind, x, {.window = window}).y;
    return ctx.clip(y, static_cast<double>(range.low), static_cast<double>(range.high));
  }
  const int64_t area = window.kernel[0] * window.kernel[1];
  const int magnitude = dtype.bits - (dtype.is_int() ? 1 : 0);
  if (area > int64_t{1} << (31 - magnitude)) ctx.unsupported("a window whose sum exceeds 32 bits");
  const std::vector<int64_t> sizes{ctx.const_dim(x, 1, "the height"),
                                   ctx.const_dim(x, 2, "the width")};
  if (!window.padded() && window.kernel == sizes) {
    Expr sum = ctx.reduce("sum", ctx.cast(x, kInt), {1, 2}, true);
    Expr y = mean_of_sum(ctx, sum, number(ctx, area));
    return stored(ctx, y, 0, range, dtype);
  }
  // The sum of a window is exact in floats as long as it has 22 bits.
  const bool exact = area < int64_t{1} << (23 - dtype.bits);
  const DType real = exact ? kFloat : DType::Float(64);
  Expr mean = pool(ctx, kind, ctx.cast(x, real), {.window = window, .count_padding = true}).y;
  Expr sum = ctx.cast(
      ctx.call("round", {ctx.mul(mean, ctx.scalar(static_cast<double>(area), real))}), kInt);
  const std::vector<int64_t> results{ctx.const_dim(sum, 1, "the height"),
                                     ctx.const_dim(sum, 2, "the width")};
  ctx.charge_bytes(results[0] * results[1], kInt);
  Expr count = window.padded() ? ctx.constant(elements_of_windows(window, sizes, results))
                               : number(ctx, area);
  return stored(ctx, mean_of_sum(ctx, sum, count), 0, range, dtype);
}

Expr quantized_mean_or_sum(NodeContext& ctx, const std::vector<int64_t>& axes, bool keep_dims,
                           bool mean) {
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  Expr x = ctx.in(0);
  int64_t count = 1;
  for (int64_t a : axes) {
    const int64_t size = ctx.const_dim(x, a, "a size that is reduced");
    if (__builtin_mul_overflow(count, size, &count) || count > INT32_MAX)
      ctx.unsupported("a reduction of more than 2^31 elements");
  }
  Multiplier m = multiplier_of(static_cast<double>(from.scale) / static_cast<double>(to.scale));
  if (mean && count > 0) {
    // The factor takes in the division by the number of elements.
    int shift = 63 - __builtin_clzll(static_cast<uint64_t>(count));
    shift = std::min({shift, 32, 31 + m.shift});
    m.value = static_cast<int32_t>((int64_t{m.value} << shift) / count);
    m.shift -= shift;
  }
  Expr sum = ctx.reduce("sum", ctx.cast(x, kInt), axes, keep_dims);
  if (from.zero != 0) sum = ctx.sub(sum, number(ctx, from.zero * count));
  const DType dtype = ctx.out_dtype();
  const Range range = range_of(ctx, schema::FusedActivation::none, ctx.out_quantization(), dtype);
  return stored(ctx, scaled(ctx, sum, m), to.zero, range, dtype);
}

// ---- Resizing ----------------------------------------------------------------------------------

namespace {

// A size of the input, which has a place at least.
int64_t image_size(NodeContext& ctx, const Expr& x, int64_t axis) {
  const int64_t size = ctx.const_dim(x, axis, "a size of the image");
  if (size < 1) ctx.fail(codes::frontend_attribute, "the image has no elements");
  return size;
}

// Along an axis: the neighbours of each place of the result, and the weights of both in 1/1024.
struct Neighbours {
  std::vector<int64_t> low, high, low_weight, high_weight;
};

Neighbours neighbours(int64_t in, int64_t out, bool align_corners, bool half_pixel) {
  constexpr int64_t kOne = 1024;
  int64_t scale = (kOne * in + out / 2) / out;
  if (align_corners && out > 1) scale = (kOne * (in - 1) + (out - 1) / 2) / (out - 1);
  Neighbours n;
  for (int64_t i = 0; i < out; ++i) {
    int64_t at = i * scale;
    if (half_pixel) at += scale / 2 - kOne / 2;
    const int64_t low = std::max<int64_t>(at / kOne, 0);
    n.low.push_back(std::min(low, in - 1));
    n.high.push_back(std::min((at + kOne - 1) / kOne, in - 1));
    n.high_weight.push_back(at - kOne * low);
    n.low_weight.push_back(kOne - n.high_weight.back());
  }
  for (int64_t& h : n.high) h = std::max<int64_t>(h, 0);
  return n;
}

Expr interpolated(const Builder& build, const Expr& x, int64_t axis, const Neighbours& n) {
  const DType dtype = Builder::dtype_of(x);
  auto part = [&](const std::vector<int64_t>& places, const std::vector<int64_t>& weights) {
    Expr taken = build.call("take", {x, build.ints(places)},
                            {{"axis", axis}, {"mode", std::string("fast")}});
    Expr w = build.expand_dims(build.ints(weights, dtype), 1, 3 - axis);
    return build.mul(taken, w);
  };
  return build.add(part(n.low, n.low_weight), part(n.high, n.high_weight));
}

// The same in floats: the neighbours of each place, and the weight of the greater one.
struct FloatNeighbours {
  std::vector<int64_t> low, high;
  std::vector<float> weight;
};

FloatNeighbours float_neighbours(int64_t in, int64_t out, bool align_corners, bool half_pixel) {
  float scale = static_cast<float>(in) / static_cast<float>(out);
  if (align_corners && out > 1) scale = static_cast<float>(in - 1) / static_cast<float>(out - 1);
  FloatNeighbours n;
  for (int64_t i = 0; i < out; ++i) {
    const auto place = static_cast<float>(i);
    const float at = half_pixel ? (place + 0.5f) * scale - 0.5f : place * scale;
    auto within = [&](float v) { return std::clamp<int64_t>(static_cast<int64_t>(v), 0, in - 1); };
    n.low.push_back(within(std::floor(at)));
    n.high.push_back(within(std::ceil(at)));
    n.weight.push_back(at - static_cast<float>(n.low.back()));
  }
  return n;
}

// uint8: the sum of four corners, each weighted along the height and then along the width, plus a half, truncated.
Expr resized_by_floats(NodeContext& ctx, const std::vector<int64_t>& size, bool align_corners,
                       bool half_pixel) {
  Expr x = ctx.cast(ctx.in(0), kFloat);
  FloatNeighbours along[2];
  for (int64_t axis : {0, 1}) {
    along[axis] = float_neighbours(image_size(ctx, x, axis + 1), size[static_cast<size_t>(axis)],
                                   align_corners, half_pixel);
  }
  auto weights = [&](int64_t axis, bool high) {
    std::vector<float> w = along[axis].weight;
    if (!high)
      for (float& v : w) v = 1 - v;
    return ctx.expand_dims(ctx.constant(float_vector(w)), 1, 2 - axis);
  };
  auto corner = [&](bool high_y, bool high_x) {
    Expr e = x;
    for (int64_t axis : {0, 1}) {
      const bool high = axis == 0 ? high_y : high_x;
      e = ctx.call("take", {e, ctx.ints(high ? along[axis].high : along[axis].low)},
                   {{"axis", axis + 1}, {"mode", std::string("fast")}});
    }
    return ctx.mul(ctx.mul(e, weights(0, high_y)), weights(1, high_x));
  };
  Expr y = ctx.add(corner(false, false), corner(true, false));
  y = ctx.add(ctx.add(y, corner(false, true)), corner(true, true));
  return ctx.cast(ctx.add(y, ctx.scalar(0.5, kFloat)), DType::UInt(8));
}

}  // namespace

Expr quantized_reduce_product(NodeContext& ctx, const std::vector<int64_t>& axes, bool keep_dims) {
  constexpr int64_t kMostFactors = 256;
  Expr x = ctx.in(0);
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  const std::vector<Dim> sizes = Builder::shape_of(x);
  std::vector<int64_t> order;
  std::vector<Dim> kept, shape;
  int64_t count = 1;
  for (int64_t a = 0; a < static_cast<int64_t>(sizes.size()); ++a) {
    const Dim& size = sizes[static_cast<size_t>(a)];
    if (std::ranges::binary_search(axes, a)) {
      count *= ctx.const_dim(x, a, "a size of the product");
      if (keep_dims) shape.push_back(dim(1));
      if (count < 1 || count > kMostFactors)
        ctx.unsupported("a product of no, or of more than " + std::to_string(kMostFactors) +
                        " quantised elements");
      continue;
    }
    order.push_back(a);
    kept.push_back(size);
    shape.push_back(size);
  }
  order.insert(order.end(), axes.begin(), axes.end());
  kept.push_back(dim(count));
  Expr lines = ctx.reshape(ctx.transpose(centred(ctx, x, from.zero), order), kept);
  const double scale = static_cast<double>(from.scale) /
                       std::pow(static_cast<double>(to.scale), 1.0 / static_cast<double>(count));
  const std::vector<Multiplier> factor{multiplier_of(scale)};
  const auto last = static_cast<int64_t>(kept.size()) - 1;
  Expr y = ctx.select(lines, last, 0);
  auto rescaled = [&](const Expr& wide) { return scaled_lines(ctx, wide, factor); };
  for (int64_t i = 1; i < count; ++i) {
    Expr next = ctx.cast(ctx.select(lines, last, i), kWide);
    y = rescaled(ctx.mul(ctx.cast(y, kWide), next));
  }
  y = ctx.reshape(rescaled(ctx.cast(y, kWide)), shape);
  const Range range =
      range_of(ctx, schema::FusedActivation::none, ctx.out_quantization(), ctx.out_dtype());
  return stored(ctx, y, to.zero, range, ctx.out_dtype());
}

Expr quantized_resize_bilinear(NodeContext& ctx, bool align_corners, bool half_pixel) {
  Expr x = ctx.in(0);
  if (Builder::rank_of(x) != 4)
    ctx.fail(codes::type_rank, "the input must be a batch of images", "rank 4", to_string(x->type));
  const DType dtype = ctx.out_dtype(), sums = dtype.bits == 8 ? kInt : kWide;
  const std::vector<int64_t> size = ctx.const_ints(1, "the size");
  auto fits = [](int64_t n) { return n >= 1 && n <= INT32_MAX; };
  if (size.size() != 2 || !fits(size[0]) || !fits(size[1])) {
    ctx.fail(codes::frontend_attribute, "the size must be two numbers", "1 to 2^31 - 1");
  }
  ctx.charge_bytes(8 * (size[0] + size[1]), kWide);
  if (dtype == DType::UInt(8)) return resized_by_floats(ctx, size, align_corners, half_pixel);
  Expr y = ctx.cast(x, sums);
  for (int64_t axis : {1, 2}) {
    const int64_t in = image_size(ctx, x, axis), out = size[static_cast<size_t>(axis) - 1];
    y = interpolated(ctx, y, axis, neighbours(in, out, align_corners, half_pixel));
  }
  // Divided by 2^20, halves away from zero.
  Expr magnitude =
      ctx.call("right_shift",
               {ctx.add(ctx.call("abs", {y}), number(ctx, 1 << 19, sums)), number(ctx, 20, sums)});
  Expr positive = ctx.call("greater", {y, number(ctx, 0, sums)});
  return ctx.cast(ctx.where(positive, magnitude, ctx.call("negative", {magnitude})), dtype);
}

}  // namespace relay::frontend::tflite
