// Numbers to integers with a scale and back.
#include <cmath>

#include "base/codes/frontend.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values quantize(NodeContext& ctx) {
  if (!ctx.in_dtype(0).is_floating()) return one(requantized_input(ctx));
  return one(to_integers(ctx, ctx.in(0), ctx.out_quantization(), ctx.out_dtype()));
}

Values dequantize(NodeContext& ctx) {
  if (ctx.in_dtype(0).is_floating()) return one(ctx.cast(ctx.in(0), ctx.out_dtype()));
  return one(to_floats(ctx, ctx.in(0), ctx.in_quantization(0)));
}

// Sparse weights are dense from the reader on.
Values densify(NodeContext& ctx) { return {ctx.value(0)}; }

// The nearest of 2^bits levels, of which 0 is one.
Values fake_quant(NodeContext& ctx) {
  const auto& o = ctx.options<schema::FakeQuant>();
  if (o.bits() < 2 || o.bits() > 16 || !(o.min() < o.max()))
    ctx.fail(codes::frontend_attribute, "the levels are out of range", "2 to 16 bits, min < max");
  const auto least = static_cast<float>(o.narrow_range() ? 1 : 0);
  const auto greatest = static_cast<float>((1 << o.bits()) - 1);
  const float scale = (o.max() - o.min()) / (greatest - least);
  const float zero_real = least - o.min() / scale;
  const float zero = zero_real < least      ? least
                     : zero_real > greatest ? greatest
                                            : std::round(zero_real);
  const float low = (least - zero) * scale, high = (greatest - zero) * scale;
  auto number = [&](float v) { return ctx.scalar(v, DType::Float(32)); };
  Expr x = ctx.minimum(ctx.maximum(ctx.in(0), number(low)), number(high));
  const float inverse = 1.0f / scale;
  Expr level =
      ctx.call("floor", {ctx.add(ctx.mul(ctx.sub(x, number(low)), number(inverse)), number(0.5f))});
  return one(ctx.add(ctx.mul(level, number(scale)), number(low)));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Quantize>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"DENSIFY", densify, O::densify},
      {"DEQUANTIZE", dequantize, O::dequantize},
      {"FAKE_QUANT", fake_quant, O::fake_quant},
      {"QUANTIZE", quantize, O::quantize},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
