#include "frontend/tflite/quantized.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/codes/frontend.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend::tflite {
namespace {

Level input_level(NodeContext& ctx, size_t i) { return level_of(ctx, ctx.in_quantization(i)); }
Level output_level(NodeContext& ctx) { return level_of(ctx, ctx.out_quantization()); }

schema::FusedActivation fused_of(NodeContext& ctx) {
  return ctx.options<schema::Activated>().activation();
}

Expr stored_result(NodeContext& ctx, const Expr& y, schema::FusedActivation activation) {
  const Quantization q = ctx.out_quantization();
  const DType dtype = ctx.out_dtype();
  return stored(ctx, y, level_of(ctx, q).zero, range_of(ctx, activation, q, dtype), dtype);
}

Range whole_range(DType dtype) {
  const int64_t n = int64_t{1} << (dtype.bits - (dtype.is_int() ? 1 : 0));
  return {dtype.is_int() ? -n : 0, n - 1};
}

}  // namespace

Level level_of(NodeContext& ctx, const Quantization& q) {
  if (q.per_axis()) ctx.unsupported("a scale for each line of a tensor that is no weight");
  return {q.scale[0], q.zero[0]};
}

Levels levels_of(const Builder& build, const Quantization& q, int64_t rank) {
  if (!q.per_axis())
    return {build.scalar(q.scale[0], kFloat), build.scalar(static_cast<double>(q.zero[0]), kInt)};
  const int64_t behind = rank - build.axis(q.axis, rank) - 1;
  return {build.expand_dims(build.constant(float_vector(q.scale)), 1, behind),
          build.expand_dims(build.ints(q.zero, kInt), 1, behind)};
}

Expr rounded_away(const Builder& build, const Expr& x) {
  // Adding a half first would round numbers just below one up.
  Expr whole = build.call("trunc", {x}), rest = build.sub(x, whole);
  Expr half = build.call("greater_equal", {build.call("abs", {rest}), build.scalar_like(0.5, x)});
  return build.add(whole, build.where(half, build.call("sign", {x}), build.scalar_like(0, x)));
}

Expr centred(const Builder& build, const Expr& x, int64_t zero) {
  Expr wide = build.cast(x, kInt);
  return zero == 0 ? wide : build.sub(wide, build.scalar(static_cast<double>(zero), kInt));
}

namespace {

std::string word(Rounding rounding) { return rounding == Rounding::Once ? "ONCE" : "TWICE"; }

}  // namespace

Expr scaled(const Builder& build, const Expr& x, Multiplier m, Rounding rounding) {
  if (m.value == 0) return build.call("zeros_like", {x});
  return build.call("fixed_point_multiply", {x},
                    {{"multiplier", int64_t{m.value}},
                     {"shift", int64_t{m.shift}},
                     {"rounding", word(rounding)}});
}

Expr scaled_lines(const Builder& build, const Expr& x, const std::vector<Multiplier>& m,
                  Rounding rounding) {
  const auto n = static_cast<int64_t>(m.size());
  const int64_t last = Builder::rank_of(x) - 1;
  if (Builder::dtype_of(x) == kWide && rounding == Rounding::Once) {
    // (x * factor + half) >> total. What is beyond 32 bits is beyond the range of the result.
    std::vector<int64_t> factors, halves, totals;
    for (const Multiplier& f : m) {
      if (f.value != 0 && f.shift < -15) build.unsupported("a factor of sums of int16 below 2^-16");
      factors.push_back(f.value);
      totals.push_back(std::max(31 - f.shift, 1));
      halves.push_back(int64_t{1} << (totals.back() - 1));
    }
    auto vector = [&](const std::vector<int64_t>& v) { return build.ints(v, kWide); };
    Expr y =
        build.add(build.mul(build.clip(x, INT32_MIN, INT32_MAX), vector(factors)), vector(halves));
    y = build.call("right_shift", {y, vector(totals)});
    return build.cast(build.clip(y, INT32_MIN, INT32_MAX), kInt);
  }
  if (Builder::dtype_of(x) == kWide) {
    // (x * reduced + half) >> total, by the upper 16 bits of the factor.
    std::vector<int64_t> factors, halves, totals;
    for (const Multiplier& f : m) {
      factors.push_back(f.value < 0x7FFF0000 ? (f.value + (1 << 15)) >> 16 : 0x7FFF);
      if (f.shift > 14) build.unsupported("a factor of sums of int16 above 2^14");
      totals.push_back(15 - f.shift);
      halves.push_back(int64_t{1} << (totals.back() - 1));
    }
    auto vector = [&](const std::vector<int64_t>& v) { return build.ints(v, kWide); };
    Expr y = build.add(build.mul(x, vector(factors)), vector(halves));
    return build.cast(build.call("right_shift", {y, vector(totals)}), kInt);
  }
  if (n == 1) return scaled(build, x, m[0], rounding);
  std::vector<int64_t> values, left, right;
  for (const Multiplier& f : m) {
    values.push_back(f.value);
    left.push_back(std::max(f.shift, 0));
    right.push_back(std::max(-f.shift, 0));
  }
  auto any = [](const std::vector<int64_t>& v) {
    return std::ranges::any_of(v, [](int64_t s) { return s != 0; });
  };
  return build.call("fixed_point_multiply_per_axis",
                    {x, build.ints(values, kInt), build.ints(left, kInt), build.ints(right, kInt)},
                    {{"is_lshift_required", any(left)},
                     {"is_rshift_required", any(right)},
                     {"axes", to_value({last})},
                     {"rounding", word(rounding)}});
}

Range range_of(NodeContext& ctx, schema::FusedActivation activation, const Quantization& q,
               DType dtype) {
  using F = schema::FusedActivation;
  Range r = whole_range(dtype);
  auto level = [&](float real) {
    return q.zero[0] + static_cast<int64_t>(std::clamp(std::round(real / q.scale[0]), -1e9f, 1e9f));
  };
  switch (activation) {
    case F::none:
      break;
    case F::relu:
      r.low = std::max(r.low, level(0));
      break;
    case F::relu6:
      r = {std::max(r.low, level(0)), std::min(r.high, level(6))};
      break;
    case F::relu_n1_to_1:
      r = {std::max(r.low, level(-1)), std::min(r.high, level(1))};
      break;
    default:
      ctx.unsupported("a fused activation of integers other than relu, relu6 and relu_n1_to_1");
  }
  return r;
}

Expr stored(const Builder& build, const Expr& x, int64_t zero, Range range, DType dtype) {
  Expr y =
      zero == 0 ? x : build.add(x, build.scalar(static_cast<double>(zero), Builder::dtype_of(x)));
  return build.cast(build.clip(y, static_cast<double>(range.low), static_cast<double>(range.high)),
                    dtype);
}

// ---- Numbers to integers and back --------------------------------------------------------------

Expr to_integers(NodeContext& ctx, const Expr& x, const Quantization& q, DType dtype) {
  const Range r = whole_range(dtype);
  const Levels levels = levels_of(ctx, q, Builder::rank_of(x));
  // What no integer of 32 bits holds is beyond the range of the result in either case.
  Expr level = ctx.clip(rounded_away(ctx, ctx.div(x, levels.scale)), -1e9, 1e9);
  Expr y = ctx.add(ctx.cast(level, kInt), levels.zero);
  return ctx.cast(ctx.clip(y, static_cast<double>(r.low), static_cast<double>(r.high)), dtype);
}

Expr to_floats(NodeContext& ctx, const Expr& x, const Quantization& q) {
  const Levels levels = levels_of(ctx, q, Builder::rank_of(x));
  Expr wide = q.per_axis() ? ctx.sub(ctx.cast(x, kInt), levels.zero) : centred(ctx, x, q.zero[0]);
  return ctx.mul(ctx.cast(wide, kFloat), levels.scale);
}

Expr requantized_input(NodeContext& ctx) {
  auto level = [&](const schema::Tensor& t) {
    return level_of(ctx, ctx.quantization(t, /*words=*/true));
  };
  const Level from = level(ctx.input_tensor(0)), to = level(ctx.output_tensor());
  const double factor = static_cast<double>(from.scale) / static_cast<double>(to.scale);
  Expr y = scaled(ctx, centred(ctx, ctx.in(0), from.zero), multiplier_of(factor));
  return stored(ctx, y, to.zero, whole_range(ctx.out_dtype()), ctx.out_dtype());
}

Expr joined_part(NodeContext& ctx, size_t input) {
  const Level from = input_level(ctx, input), to = output_level(ctx);
  if (from.scale == to.scale && from.zero == to.zero) return ctx.in(input);
  if (ctx.out_dtype() != DType::UInt(8))
    ctx.unsupported("parts whose scales differ from the result's");
  // In floats, the inverse of the scale rounded.
  const float scale = from.scale * (1.0f / to.scale);
  const float bias = -static_cast<float>(from.zero) * scale;
  Expr x = ctx.cast(ctx.in(input), kFloat);
  Expr y =
      rounded_away(ctx, ctx.add(ctx.mul(x, ctx.scalar(scale, kFloat)), ctx.scalar(bias, kFloat)));
  return stored(ctx, ctx.cast(y, kInt), to.zero, whole_range(ctx.out_dtype()), ctx.out_dtype());
}

// ---- Operators of two operands -----------------------------------------------------------------

namespace {

// An operand in units of `unit` / 2^bits, which leaves room for the fractions of both operands.
Expr aligned_operand(NodeContext& ctx, size_t i, int bits, double unit) {
  const Level level = input_level(ctx, i);
  Expr x = ctx.call("left_shift", {centred(ctx, ctx.in(i), level.zero), ctx.scalar(bits, kInt)});
  return scaled(ctx, x, multiplier_of(static_cast<double>(level.scale) / unit));
}

// Twice the greater scale of both operands.
double twice_scale(NodeContext& ctx) {
  return 2 * static_cast<double>(std::max(input_level(ctx, 0).scale, input_level(ctx, 1).scale));
}

// The exponent n where `scale` is 2^n up to rounding; nullopt for another scale.
std::optional<int> power_of(float scale) {
  const float log = std::log(scale) * (1.0f / std::log(2.0f)), nearest = std::round(log);
  if (!(std::abs(log - nearest) < 1e-3f)) return std::nullopt;
  return static_cast<int>(nearest);
}

// x / 2^n, halves away from zero, in int32.
Expr divided_by_power(NodeContext& ctx, const Expr& x, int n) {
  if (n == 0) return x;
  auto number = [&](double v) { return ctx.scalar(v, kInt); };
  Expr is_negative = ctx.call("less", {x, number(0)}), size = ctx.call("abs", {x});
  size = ctx.call("right_shift", {ctx.add(size, number(std::ldexp(1.0, n - 1))), number(n)});
  return ctx.where(is_negative, ctx.call("negative", {size}), size);
}

// A sum of int16 whose scales are powers of two: one operand has the scale of the result and the other a smaller one. Null
// for other sums.
Expr sum_by_shifts(NodeContext& ctx) {
  if (ctx.out_dtype() != DType::Int(16) || !ctx.options<schema::AddSub>().pot_scale_int16())
    return nullptr;
  const auto a = power_of(input_level(ctx, 0).scale), b = power_of(input_level(ctx, 1).scale),
             y = power_of(output_level(ctx).scale);
  if (!a || !b || !y) return nullptr;
  const int shift_a = *y - *a, shift_b = *y - *b;
  if (shift_a < 0 || shift_b < 0 || (shift_a != 0 && shift_b != 0) || shift_a + shift_b > 30) {
    ctx.unsupported(std::string(ctx.name()) +
                    " of int16 with power-of-two scales: one operand must have the scale of the "
                    "result, and the "
                    "other a smaller one");
  }
  Expr sum = ctx.call(ctx.relay_op(), {divided_by_power(ctx, ctx.cast(ctx.in(0), kInt), shift_a),
                                       divided_by_power(ctx, ctx.cast(ctx.in(1), kInt), shift_b)});
  const Range r = range_of(ctx, fused_of(ctx), ctx.out_quantization(), ctx.out_dtype());
  return stored(ctx, sum, 0, r, ctx.out_dtype());
}

}  // namespace

Expr quantized_sum(NodeContext& ctx) {
  if (Expr y = sum_by_shifts(ctx)) return y;
  const int left = ctx.out_dtype() == DType::Int(16) ? 15 : 20;
  const double twice = twice_scale(ctx), scale = static_cast<double>(output_level(ctx).scale);
  Expr sum = ctx.call(ctx.relay_op(),
                      {aligned_operand(ctx, 0, left, twice), aligned_operand(ctx, 1, left, twice)});
  const double back = twice / (static_cast<double>(1 << left) * scale);
  return stored_result(ctx, scaled(ctx, sum, multiplier_of(back)), fused_of(ctx));
}

Expr quantized_product(NodeContext& ctx) {
  const Level a = input_level(ctx, 0), b = input_level(ctx, 1), y = output_level(ctx);
  // The factor is a float.
  const float factor = a.scale * b.scale / y.scale;
  Expr product = ctx.mul(centred(ctx, ctx.in(0), a.zero), centred(ctx, ctx.in(1), b.zero));
  return stored_result(ctx, scaled(ctx, product, multiplier_of(static_cast<double>(factor))),
                       fused_of(ctx));
}

Expr quantized_squared_difference(NodeContext& ctx) {
  constexpr int kLeft = 7;
  const double twice = twice_scale(ctx), scale = static_cast<double>(output_level(ctx).scale);
  Expr d = ctx.sub(aligned_operand(ctx, 0, kLeft, twice), aligned_operand(ctx, 1, kLeft, twice));
  const double back = twice * twice / (static_cast<double>(1 << (kLeft * 2)) * scale);
  return stored_result(ctx, scaled(ctx, ctx.mul(d, d), multiplier_of(back)),
                       schema::FusedActivation::none);
}

Expr quantized_comparison(NodeContext& ctx) {
  constexpr int kLeft = 8;
  return ctx.call(ctx.relay_op(),
                  {aligned_operand(ctx, 0, kLeft, 1), aligned_operand(ctx, 1, kLeft, 1)});
}

// ---- Operators of one operand ------------------------------------------------------------------

Expr quantized_relu(NodeContext& ctx, double low, double high) {
  const Level from = input_level(ctx, 0), to = output_level(ctx);
  const DType dtype = ctx.out_dtype();
  Range r = whole_range(dtype);
  auto level = [&](double real) {
    const float nearest = std::round(static_cast<float>(real) / to.scale);
    return to.zero + static_cast<int64_t>(std::clamp(nearest, -1e9f, 1e9f));
  };
  if (low > -1e30) r.low = std::max(r.low, level(low));
  if (high < 1e30) r.high = std::min(r.high, level(high));
  const double factor = static_cast<double>(from.scale / to.scale);
  Expr y = scaled(ctx, centred(ctx, ctx.in(0), from.zero), multiplier_of(factor));
  return stored(ctx, y, to.zero, r, dtype);
}

namespace {

// Positive numbers by one factor and negative ones, which may be multiplied before, by another.
Expr by_sign(NodeContext& ctx, const Expr& x, const Expr& negative, double up, double down) {
  Expr positive = ctx.call("greater_equal", {x, ctx.scalar(0, kInt)});
  Expr y = ctx.where(positive, scaled(ctx, x, multiplier_of(up)),
                     scaled(ctx, negative, multiplier_of(down)));
  return stored_result(ctx, y, schema::FusedActivation::none);
}

}  // namespace

Expr quantized_leaky_relu(NodeContext& ctx, double alpha) {
  if (!(alpha >= 0)) ctx.unsupported("a slope of integers below 0");
  const Level from = input_level(ctx, 0), to = output_level(ctx);
  Expr x = centred(ctx, ctx.in(0), from.zero);
  return by_sign(ctx, x, x, static_cast<double>(from.scale / to.scale),
                 static_cast<double>(from.scale * static_cast<float>(alpha) / to.scale));
}

Expr quantized_prelu(NodeContext& ctx) {
  const Level from = input_level(ctx, 0), slope = input_level(ctx, 1), to = output_level(ctx);
  Expr x = centred(ctx, ctx.in(0), from.zero), a = centred(ctx, ctx.in(1), slope.zero);
  return by_sign(ctx, x, ctx.mul(x, a), static_cast<double>(from.scale / to.scale),
                 static_cast<double>(from.scale * slope.scale / to.scale));
}

}  // namespace relay::frontend::tflite
