// Functions of elements of 8 bits, as tables of 256 results, of 16 bits, as tables of 65,536, and softmax.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/codes/frontend.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

// The results of all values of an 8-bit type, from the least on, looked up by the input.
Expr looked_up(NodeContext& ctx, const std::function<int64_t(int64_t)>& f) {
  Expr x = ctx.in(0);
  const DType from = Builder::dtype_of(x), to = ctx.out_dtype();
  const int64_t least = from.is_int() ? -128 : 0;
  const double low = to.is_int() ? -std::ldexp(1.0, to.bits - 1) : 0;
  const double high = low + std::ldexp(1.0, to.bits) - 1;
  Tensor table = Tensor::empty(to, {256});
  for (int64_t i = 0; i < 256; ++i) {
    table.set_from_int(
        i, std::clamp(f(i + least), static_cast<int64_t>(low), static_cast<int64_t>(high)));
  }
  Expr place = ctx.cast(x, kInt);
  if (least != 0) place = ctx.sub(place, ctx.scalar(static_cast<double>(least), kInt));
  return ctx.call("take", {ctx.constant(std::move(table)), place},
                  {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
}

// The same of int16, whose zero point is 0.
Expr looked_up_short(NodeContext& ctx, const std::function<int16_t(int16_t)>& f) {
  const DType dtype = DType::Int(16);
  if (ctx.out_dtype() != dtype)
    ctx.unsupported("a function of int16 with a result of another type");
  constexpr int64_t kEntries = 1 << 16;
  ctx.charge_bytes(kEntries, dtype);
  Tensor table = Tensor::empty(dtype, {kEntries});
  for (int64_t i = 0; i < kEntries; ++i)
    table.data<int16_t>()[i] = f(static_cast<int16_t>(i + INT16_MIN));
  Expr place = ctx.sub(ctx.cast(ctx.in(0), kInt), ctx.scalar(INT16_MIN, kInt));
  return ctx.call("take", {ctx.constant(std::move(table)), place},
                  {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
}

// The sigmoid at `place` / 24, in units of 2^-16. The sample is shifted by half of the error at the midpoint of its interval,
// which the second derivative gives.
int64_t sigmoid_at(int64_t place) {
  if (place >= 255) return 65535;
  const double y = 1 / (1 + std::exp(-static_cast<double>(place) / 24));
  const double bend = y * (1 - y) * (1 - 2 * y) / (24 * 24);
  return std::llround(65536 * (y - bend / 16));
}

// The sigmoid, or tanh(x) = 2 sigmoid(2 x) - 1, with 15 bits behind the point: interpolated between places.
Expr sigmoid_or_tanh(NodeContext& ctx, bool tanh) {
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  if (from.zero != 0 || to.zero != 0 || to.scale != std::ldexp(1.0f, -15))
    ctx.unsupported(
        "a function of int16 with a zero point, or a result of another scale than 2^-15");
  // Inputs in units of 1 / (3 * 2^12), by a factor of 16 bits and a shift; exact for the scales 2^-12 and 2^-11.
  int64_t factor = 3, shift = 0;
  if (tanh && from.scale == std::ldexp(1.0f, -11)) {
    factor = 6;
  } else if (from.scale != std::ldexp(1.0f, -12)) {
    double real = static_cast<double>(from.scale) * 4096.0 * 3.0;
    for (; real <= 32767.0 / 2.0 && shift <= 30; ++shift) real *= 2.0;
    factor = static_cast<int64_t>(std::min(real, static_cast<double>(INT32_MAX)));
  }
  const int64_t half = shift > 0 ? int64_t{1} << (shift - 1) : 0;
  const int bits = tanh ? 8 : 9;  // of an input between two places
  return looked_up_short(ctx, [&](int16_t x) {
    const int64_t input = (x * factor + half) >> shift, magnitude = std::abs(input);
    const int64_t place = magnitude >> bits, rest = magnitude & ((1 << bits) - 1);
    int64_t y;
    if (place >= 255) {
      y = tanh ? int64_t{0xFFFF} << 8 : int64_t{0x7FFF} << 10;
    } else {
      const int64_t low = sigmoid_at(place), high = sigmoid_at(place + 1);
      y = (low << bits) + rest * (high - low);
    }
    if (tanh) {
      y = input >= 0 ? y - (1 << 23) + (1 << 7) : (1 << 23) - y + (1 << 7) - 1;
      return static_cast<int16_t>(y >> 8);
    }
    y = input >= 0 ? y + (1 << 9) : (1 << 25) - y + (1 << 9) - 1;
    return static_cast<int16_t>(y >> 10);
  });
}

// Interpolates linearly between 513 samples; each sample is shifted by half of the error at the midpoint of its interval, as
// LiteRT does. In float32.
Expr by_lines(NodeContext& ctx, const std::function<float(float)>& f) {
  constexpr int kSteps = 512;
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  if (from.zero != 0 || to.zero != 0) ctx.unsupported("a function of int16 with a zero point");
  const float low = from.scale * INT16_MIN, step = (from.scale * INT16_MAX - low) / kSteps;
  const float inverse = 65536.0f / (to.scale * INT16_MAX - to.scale * INT16_MIN);
  auto place = [](float v) {
    return static_cast<int16_t>(std::isnan(v) ? 0.0f : std::clamp(v, -32768.0f, 32767.0f));
  };
  std::array<int16_t, kSteps + 1> at{};
  for (int i = 0; i < kSteps; ++i) {
    const float x = low + static_cast<float>(i) * step;
    const float own = std::round(f(x) * inverse);
    const float next = f(low + static_cast<float>(i + 1) * step) * inverse;
    const float off = std::round((next + own) / 2) - std::round(f(x + step / 2) * inverse);
    at[static_cast<size_t>(i)] = place(own - std::round(off / 2));
  }
  at[kSteps] = place(std::round(f(from.scale * INT16_MAX) * inverse));
  return looked_up_short(ctx, [&](int16_t x) {
    const auto i = static_cast<size_t>(256 + (x >> 7));
    const auto slope = static_cast<int16_t>(at[i + 1] - at[i]);
    return static_cast<int16_t>(at[i] + ((slope * (x & 127) + 64) >> 7));
  });
}

void check_byte(NodeContext& ctx) {
  if (ctx.in_dtype(0).bits != 8) ctx.unsupported_dtype(ctx.in_dtype(0));
}

// A function of real numbers: of 8 bits rounded once, halves away from zero, of 16 by lines.
Expr by_floats(NodeContext& ctx, const std::function<float(float)>& f) {
  if (ctx.in_dtype(0) == DType::Int(16)) return by_lines(ctx, f);
  check_byte(ctx);
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  const float inverse = 1.0f / to.scale;
  return looked_up(ctx, [&](int64_t x) {
    const float y = f(from.scale * static_cast<float>(x - from.zero)) * inverse;
    // NaN is the least level.
    const float bounded = std::isnan(y) ? -1e6f : std::clamp(std::round(y), -1e6f, 1e6f);
    return static_cast<int64_t>(bounded) + to.zero;
  });
}

Expr abs_of(NodeContext& ctx) {
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  const double factor = static_cast<double>(from.scale / to.scale);
  Expr x = ctx.call("abs", {centred(ctx, ctx.in(0), from.zero)});
  if (from.scale != to.scale) x = scaled(ctx, x, multiplier_of(factor));
  const auto bits = ctx.out_dtype().bits;
  const int64_t most = (int64_t{1} << (bits - 1)) - 1;
  return stored(ctx, x, to.zero, {-most - 1, most}, ctx.out_dtype());
}

float gelu_exact(float x) { return 0.5f * x * (1 + std::erf(x * static_cast<float>(M_SQRT1_2))); }
float gelu_of_tanh(float x) {
  constexpr float kFactor = 0.7978845608028654f;
  return 0.5f * x * (1 + std::tanh(kFactor * (x + 0.044715f * x * x * x)));
}

}  // namespace

Expr quantized_unary(NodeContext& ctx) {
  const std::string_view op = ctx.name();
  if ((op == "LOGISTIC" || op == "TANH") && ctx.in_dtype(0) == DType::Int(16))
    return sigmoid_or_tanh(ctx, op == "TANH");
  if (op == "LOGISTIC") return by_floats(ctx, [](float x) { return 1 / (1 + std::exp(-x)); });
  if (op == "TANH") return by_floats(ctx, [](float x) { return std::tanh(x); });
  if (op == "ABS") return abs_of(ctx);
  if (op == "EXP") return by_floats(ctx, [](float x) { return std::exp(x); });
  if (op == "LOG") {
    // LiteRT gives the least level for inputs of 0 or less, which have no logarithm.
    const Level to = level_of(ctx, ctx.out_quantization());
    const double bits = ctx.out_dtype().bits - 1;
    const float least = to.scale * static_cast<float>(-std::ldexp(1.0, static_cast<int>(bits)) -
                                                      static_cast<double>(to.zero));
    return by_floats(ctx, [least](float x) { return x > 0 ? std::log(x) : least; });
  }
  if (op == "ELU") return by_floats(ctx, [](float x) { return x < 0 ? std::expm1(x) : x; });
  if (op == "GELU") {
    const bool approximate = ctx.options<schema::Gelu>().approximate();
    return by_floats(ctx, approximate ? gelu_of_tanh : gelu_exact);
  }
  ctx.unsupported("the operator on integers that stand for real numbers", "dequantise its input");
}

Expr quantized_hard_swish(NodeContext& ctx) {
  check_byte(ctx);
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              to = level_of(ctx, ctx.out_quantization());
  // Numbers of 16 bits: the input with seven bits below the point, and the gate as a share of 2^15.
  const float high_scale = (1.0f / 128.0f) * from.scale;
  auto narrow = [](Multiplier m) {
    const auto rounded = (int64_t{m.value} + (1 << 15)) >> 16;
    return static_cast<int16_t>(std::min<int64_t>(rounded, 0x7FFF));
  };
  const Multiplier to_output = multiplier_of(static_cast<double>(high_scale / to.scale));
  const Multiplier to_gate = multiplier_of(static_cast<double>(high_scale / (3.0f / 32768.0f)));
  auto saturated = [](int64_t v) {
    return static_cast<int16_t>(std::clamp<int64_t>(v, INT16_MIN, INT16_MAX));
  };
  // Halves up, as the 16-bit doubling products round; with truncation for the last.
  auto high_mul = [&](int16_t a, int16_t b) {
    if (a == INT16_MIN && b == INT16_MIN) return static_cast<int16_t>(INT16_MAX);
    const int32_t product = int32_t{a} * b;
    const int32_t nudge = product >= 0 ? 1 << 14 : 1 - (1 << 14);
    return static_cast<int16_t>((product + nudge) / (1 << 15));
  };
  auto high_mul_down = [](int16_t a, int16_t b) {
    if (a == INT16_MIN && b == INT16_MIN) return static_cast<int16_t>(INT16_MAX);
    return static_cast<int16_t>((int32_t{a} * b) / (1 << 15));
  };
  return looked_up(ctx, [&](int64_t x) -> int64_t {
    const auto high = static_cast<int16_t>((x - from.zero) * 128);
    const int16_t on_output = high_mul(high, narrow(to_output));
    int16_t gate = high;
    if (to_gate.shift > 0) gate = saturated(int64_t{gate} << (to_gate.shift - 1));
    gate = high_mul(gate, narrow(to_gate));
    if (to_gate.shift > 0) gate = saturated(int64_t{gate} << 1);
    if (to_gate.shift < 0) gate = static_cast<int16_t>(divide_by_power(gate, -to_gate.shift));
    gate = static_cast<int16_t>((int32_t{gate} + (1 << 15)) >> 1);
    int16_t y = high_mul_down(gate, on_output);
    y = to_output.shift <= 0 ? static_cast<int16_t>(divide_by_power(y, -to_output.shift))
                             : saturated(int64_t{y} << to_output.shift);
    return int64_t{y} + to.zero;
  });
}

// ---- Softmax -----------------------------------------------------------------------------------

namespace {

// Fixed-point arithmetic on expressions of int32.
struct Fixed {
  const Builder& build;

  Expr number(int64_t v, DType dtype = kInt) const {
    return build.constant(Tensor::scalar(v, dtype));
  }
  Expr wide(const Expr& x) const { return build.cast(x, kWide); }
  Expr narrow(const Expr& x) const {
    return build.cast(build.call("maximum", {build.call("minimum", {x, number(INT32_MAX, kWide)}),
                                             number(INT32_MIN, kWide)}),
                      kInt);
  }
  Expr high_mul(const Expr& a, const Expr& b) const {
    Expr product = build.add(build.mul(wide(a), wide(b)), number(int64_t{1} << 30, kWide));
    return build.cast(build.call("right_shift", {product, number(31, kWide)}), kInt);
  }
  Expr times_power(const Expr& a, int n) const {
    return narrow(build.call("left_shift", {wide(a), number(n, kWide)}));
  }
  // floor(log2(x)) of an x of 1 or more: the exponent of the same number in float64, which holds every int32.
  Expr floor_log2(const Expr& x) const {
    Expr bits = build.call("reinterpret", {build.cast(x, kDouble)}, {{"dtype", to_value(kWide)}});
    Expr exponent = build.call("right_shift", {bits, number(52, kWide)});
    return build.cast(build.sub(exponent, number(1023, kWide)), kInt);
  }
  // 1 / (1 + a) by three steps of Newton's method from 48/17 - 32/17 * (1 + a) / 2, which has two bits before the point.
  Expr one_over_one_plus(const Expr& a) const {
    Expr sum = build.add(wide(a), number(int64_t{1} << 31, kWide));
    Expr half = build.cast(build.call("right_shift", {sum, number(1, kWide)}), kInt);
    Expr x = build.add(number(1515870810), high_mul(half, number(-1010580540)));
    for (int i = 0; i < 3; ++i) {
      Expr rest = build.sub(number(1 << 29), high_mul(half, x));
      x = build.add(x, times_power(high_mul(x, rest), 2));
    }
    return times_power(x, 1);
  }
  // x / 2^n, halves away from zero, for n of 1 or more, of an x of 0 or more.
  Expr divide_by_power(const Expr& x, const Expr& n) const {
    Expr half = build.call("left_shift", {number(1, kWide), build.sub(wide(n), number(1, kWide))});
    return build.cast(build.call("right_shift", {build.add(wide(x), half), wide(n)}), kInt);
  }
};

}  // namespace

namespace {

// The same samples of a function from `low` to `high`, in units of 2^-15 and computed in float64.
std::vector<int64_t> curve(double low, double high, const std::function<double(double)>& f) {
  constexpr int kSteps = 512;
  const double step = (high - low) / kSteps, unit = 65536.0 / 2.0;
  std::vector<int64_t> out;
  auto bounded = [](double v) {
    return static_cast<int64_t>(
        std::clamp(v, static_cast<double>(INT16_MIN), static_cast<double>(INT16_MAX)));
  };
  for (int i = 0; i < kSteps; ++i) {
    const double own = std::round(f(low + i * step) * unit);
    const double between = std::round((f(low + (i + 1) * step) * unit + own) / 2);
    const double middle = std::round(f(low + i * step + step / 2) * unit);
    out.push_back(bounded(own - std::round((between - middle) / 2)));
  }
  out.push_back(bounded(std::round(f(high) * unit)));
  return out;
}

// All values of a curve between its places, of int16 from the least on.
Expr curve_at(NodeContext& ctx, const std::vector<int64_t>& places, const Expr& x) {
  constexpr int64_t kEntries = 1 << 16;
  ctx.charge_bytes(kEntries, kInt);
  Tensor table = Tensor::empty(kInt, {kEntries});
  for (int64_t i = 0; i < kEntries; ++i) {
    const auto at = static_cast<size_t>(i >> 7);
    const int64_t slope = places[at + 1] - places[at];
    table.data<int32_t>()[i] = static_cast<int32_t>(places[at] + ((slope * (i & 127) + 64) >> 7));
  }
  Expr place = ctx.sub(x, ctx.scalar(INT16_MIN, kInt));
  return ctx.call("take", {ctx.constant(std::move(table)), place},
                  {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
}

// Exponentials from -10 to 0 and the inverse of their sum, by curves.
Expr softmax_of_shorts(NodeContext& ctx, double beta) {
  if (ctx.out_dtype() != DType::Int(16)) ctx.unsupported("a softmax of int16 with another result");
  const Fixed fixed{ctx};
  Expr x = ctx.in_of_rank(0, 1);
  const int64_t last = Builder::rank_of(x) - 1;
  const Level from = level_of(ctx, ctx.in_quantization(0));
  const double factor = static_cast<double>(from.scale) * beta / (10.0 / 65535.0);
  Expr wide = ctx.cast(x, kInt);
  Expr below = ctx.sub(wide, ctx.reduce("max", wide, {last}, true));
  Expr at = ctx.add(scaled(ctx, below, multiplier_of(factor)), fixed.number(INT16_MAX));
  Expr exps = curve_at(ctx, curve(-10.0, 0.0, [](double v) { return std::exp(v); }),
                       ctx.clip(at, INT16_MIN, INT16_MAX));
  Expr sum = ctx.reduce("sum", exps, {last}, true);
  // The sum as a number from 1 to 2 with 16 bits behind the point.
  Expr log = fixed.floor_log2(sum);
  Expr up = ctx.call("left_shift", {fixed.wide(sum), fixed.wide(ctx.sub(fixed.number(30), log))});
  Expr part =
      ctx.call("right_shift", {ctx.add(up, fixed.number(1 << 13, kWide)), fixed.number(14, kWide)});
  part = ctx.cast(ctx.sub(part, fixed.number((1 << 15) + (1 << 16), kWide)), kInt);
  Expr inverse = curve_at(ctx, curve(0.0, 1.0, [](double v) { return 1 / (1 + v); }),
                          ctx.clip(part, INT16_MIN, INT16_MAX));
  Expr y = fixed.divide_by_power(ctx.mul(exps, inverse), log);
  return stored(ctx, y, 0, {0, INT16_MAX}, DType::Int(16));
}

}  // namespace

// By the inverse of the divisor, which is scaled to a number from 1 to 2. Quotients that are less than a level by far are 0;
// LiteRT shifts them by more bits than they have.
Expr quantized_quotient(NodeContext& ctx) {
  const Fixed fixed{ctx};
  const Level from = level_of(ctx, ctx.in_quantization(0)),
              by = level_of(ctx, ctx.in_quantization(1)),
              to = level_of(ctx, ctx.out_quantization());
  const double factor = static_cast<double>(from.scale / (by.scale * to.scale));
  const Multiplier m = multiplier_of(factor);
  Expr divisor = centred(ctx, ctx.in(1), by.zero), x = centred(ctx, ctx.in(0), from.zero);
  x = ctx.mul(x, ctx.where(ctx.call("less", {divisor, fixed.number(0)}), fixed.number(-1),
                           fixed.number(1)));
  divisor = ctx.maximum(ctx.call("abs", {divisor}), fixed.number(1));
  Expr log = fixed.floor_log2(divisor);
  Expr rest = ctx.sub(
      ctx.call("left_shift", {fixed.wide(divisor), fixed.wide(ctx.sub(fixed.number(31), log))}),
      fixed.number(int64_t{1} << 31, kWide));
  Expr inverse = fixed.one_over_one_plus(ctx.cast(rest, kInt));
  // The bits in front of the dividend that its sign fills.
  Expr is_negative = ctx.call("less", {x, fixed.number(0)}), magnitude = ctx.call("abs", {x});
  Expr twice = ctx.sub(ctx.mul(magnitude, fixed.number(2)), fixed.number(1));
  Expr bits = ctx.add(
      fixed.floor_log2(ctx.maximum(ctx.where(is_negative, twice, magnitude), fixed.number(1))),
      ctx.where(is_negative, fixed.number(0), fixed.number(1)));
  bits = ctx.where(ctx.call("equal", {x, fixed.number(0)}), fixed.number(0), bits);
  Expr room = ctx.sub(fixed.number(31), bits);
  Expr up = ctx.cast(ctx.call("left_shift", {fixed.wide(x), fixed.wide(room)}), kInt);
  Expr y = fixed.high_mul(fixed.high_mul(up, inverse), fixed.number(m.value));
  Expr down = ctx.clip(ctx.add(ctx.add(log, room), fixed.number(-m.shift)), 0, 40);
  Expr half = ctx.call(
      "right_shift",
      {ctx.call("left_shift", {fixed.number(1, kWide), fixed.wide(down)}), fixed.number(1, kWide)});
  Expr size =
      ctx.call("right_shift", {ctx.add(fixed.wide(ctx.call("abs", {y})), half), fixed.wide(down)});
  Expr signed_size =
      ctx.where(ctx.call("less", {y, fixed.number(0)}), ctx.call("negative", {size}), size);
  const Quantization q = ctx.out_quantization();
  return stored(ctx, ctx.cast(signed_size, kInt), to.zero,
                range_of(ctx, ctx.options<schema::Activated>().activation(), q, ctx.out_dtype()),
                ctx.out_dtype());
}

Expr quantized_softmax(NodeContext& ctx, double beta) {
  if (ctx.in_dtype(0) == DType::Int(16)) return softmax_of_shorts(ctx, beta);
  constexpr int kIntegerBits = 5, kSumBits = 12;
  check_byte(ctx);
  Expr x = ctx.in_of_rank(0, 1);
  const DType dtype = ctx.out_dtype();
  if (dtype.bits != 8) ctx.unsupported("a softmax of 8 bits with a result of 16");
  const Level from = level_of(ctx, ctx.in_quantization(0));
  const double factor =
      std::min(beta * static_cast<double>(from.scale) * std::ldexp(1.0, 31 - kIntegerBits),
               std::ldexp(1.0, 31) - 1);
  const Multiplier m = multiplier_of(factor);
  const double least =
      -std::floor(((1 << kIntegerBits) - 1) * std::ldexp(1.0, 31 - kIntegerBits - m.shift));
  // The exponential of every difference to the greatest element, from -255 to 0.
  Tensor table = Tensor::zeros(kInt, {256});
  for (int32_t d = -255; d <= 0; ++d) {
    if (d < least) continue;
    const auto wide = static_cast<int32_t>(static_cast<uint32_t>(d) << std::max(m.shift, 0));
    table.data<int32_t>()[d + 255] =
        exp_on_negative(doubling_high_mul(wide, m.value), kIntegerBits);
  }
  const Fixed fixed{ctx};
  const int64_t last = Builder::rank_of(x) - 1;
  Expr wide = ctx.cast(x, kInt);
  Expr place = ctx.add(ctx.sub(wide, ctx.reduce("max", wide, {last}, true)), fixed.number(255));
  Expr exps = ctx.call("take", {ctx.constant(std::move(table)), place},
                       {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
  Expr sum = ctx.reduce("sum", fixed.divide_by_power(exps, fixed.number(kSumBits)), {last}, true);
  Expr headroom = ctx.sub(fixed.number(31), fixed.floor_log2(sum));
  Expr rest = ctx.sub(ctx.call("left_shift", {fixed.wide(sum), fixed.wide(headroom)}),
                      fixed.number(int64_t{1} << 31, kWide));
  Expr inverse = fixed.one_over_one_plus(ctx.cast(rest, kInt));
  Expr shift = ctx.sub(fixed.number(kSumBits + 31 - 8), headroom);
  Expr y = fixed.divide_by_power(fixed.high_mul(inverse, exps), shift);
  const int64_t low = dtype.is_int() ? -128 : 0;
  return stored(ctx, y, low, {low, low + 255}, dtype);
}

}  // namespace relay::frontend::tflite
