// Functions of elements of 8 bits, as tables of 256 results, and softmax.
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

void check_byte(NodeContext& ctx) {
  if (ctx.in_dtype(0).bits != 8) ctx.unsupported_dtype(ctx.in_dtype(0));
}

// A function of real numbers, rounded once, halves away from zero.
Expr by_floats(NodeContext& ctx, const std::function<float(float)>& f) {
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
  if (op == "LOGISTIC") return by_floats(ctx, [](float x) { return 1 / (1 + std::exp(-x)); });
  if (op == "TANH") return by_floats(ctx, [](float x) { return std::tanh(x); });
  if (op == "ABS") return abs_of(ctx);
  if (op == "EXP") return by_floats(ctx, [](float x) { return std::exp(x); });
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

Expr quantized_softmax(NodeContext& ctx, double beta) {
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
  Expr log = ctx.call("floor", {ctx.call("log2", {ctx.cast(sum, DType::Float(64))})});
  Expr headroom = ctx.sub(fixed.number(31), ctx.cast(log, kInt));
  Expr rest = ctx.sub(ctx.call("left_shift", {fixed.wide(sum), fixed.wide(headroom)}),
                      fixed.number(int64_t{1} << 31, kWide));
  Expr inverse = fixed.one_over_one_plus(ctx.cast(rest, kInt));
  Expr shift = ctx.sub(fixed.number(kSumBits + 31 - 8), headroom);
  Expr y = fixed.divide_by_power(fixed.high_mul(inverse, exps), shift);
  const int64_t low = dtype.is_int() ? -128 : 0;
  return stored(ctx, y, low, {low, low + 255}, dtype);
}

}  // namespace relay::frontend::tflite
