// Operators of two broadcast operands.
#include "frontend/common/power.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

schema::FusedActivation activation_of(NodeContext& ctx) {
  // The field has one place in the options of all of them.
  return ctx.options<schema::Activated>().activation();
}

Values plain(NodeContext& ctx) { return one(ctx.call(ctx.relay_op(), {ctx.in(0), ctx.in(1)})); }

Values add_or_subtract(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_sum(ctx));
  return one(ctx.activated(ctx.call(ctx.relay_op(), {ctx.in(0), ctx.in(1)}), activation_of(ctx)));
}

Values multiply(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_product(ctx));
  return one(ctx.activated(ctx.mul(ctx.in(0), ctx.in(1)), activation_of(ctx)));
}

Values divide(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_quotient(ctx));
  const bool integers = ctx.in_dtype(0).is_integer();
  return one(ctx.activated(ctx.call(integers ? "trunc_divide" : "divide", {ctx.in(0), ctx.in(1)}),
                           activation_of(ctx)));
}

Values squared_difference(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_squared_difference(ctx));
  Expr d = ctx.sub(ctx.in(0), ctx.in(1));
  return one(ctx.mul(d, d));
}

// Integers of one scale, which both operands have.
Values of_one_scale(NodeContext& ctx) {
  if (ctx.is_quantized() && ctx.is_quantized(1)) {
    const Quantization q = ctx.out_quantization();
    if (ctx.in_quantization(0) != q || ctx.in_quantization(1) != q)
      ctx.unsupported("quantised operands whose scales differ from the result's");
  }
  return plain(ctx);
}

Values angle(NodeContext& ctx) { return one(atan2(ctx, ctx.in(0), ctx.in(1))); }

Values sum_of_all(NodeContext& ctx) {
  Expr y = ctx.in(0);
  for (size_t i = 1; i < ctx.num_inputs(); ++i) y = ctx.add(y, ctx.in(i));
  return one(y);
}

}  // namespace

template <>
std::span<const Row> rows<Family::Arithmetic>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"ADD", add_or_subtract, O::add, "add"},
      {"ADD_N", sum_of_all, O::add_n},
      {"ATAN2", angle, O::atan2},
      {"BITWISE_XOR", plain, O::bitwise_xor, "bitwise_xor"},
      {"DIV", divide, O::div},
      {"FLOOR_DIV", plain, O::floor_div, "floor_divide"},
      {"FLOOR_MOD", plain, O::floor_mod, "floor_mod"},
      {"LOGICAL_AND", plain, O::logical_and, "logical_and"},
      {"LOGICAL_OR", plain, O::logical_or, "logical_or"},
      {"MAXIMUM", of_one_scale, O::maximum_minimum, "maximum"},
      {"MINIMUM", of_one_scale, O::maximum_minimum, "minimum"},
      {"MUL", multiply, O::mul},
      {"POW", plain, O::pow, "power"},
      {"RIGHT_SHIFT", plain, O::right_shift, "right_shift"},
      {"SQUARED_DIFFERENCE", squared_difference, O::squared_difference},
      {"STABLEHLO_ADD", plain, O::NONE, "add"},
      {"STABLEHLO_MAXIMUM", plain, O::NONE, "maximum"},
      {"STABLEHLO_MINIMUM", plain, O::NONE, "minimum"},
      {"STABLEHLO_MULTIPLY", plain, O::NONE, "multiply"},
      {"SUB", add_or_subtract, O::sub, "subtract"},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
