// Functions of one element.
#include "base/codes/frontend.h"
#include "frontend/tflite/bits.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values plain(NodeContext& ctx) {
  if (ctx.is_quantized()) return one(quantized_unary(ctx));
  return one(ctx.call(ctx.relay_op(), {ctx.in(0)}));
}

// LiteRT negates the stored integers and ignores the zero point.
Values negative(NodeContext& ctx) { return one(ctx.call("negative", {ctx.in(0)})); }

Values square(NodeContext& ctx) { return one(ctx.mul(ctx.in(0), ctx.in(0))); }

// Of complex numbers the real part, and real numbers as complex ones.
Values cast(NodeContext& ctx) {
  if (ctx.output_tensor().type() == schema::ElementType::complex64) {
    if (is_complex(ctx.value(0))) return {ctx.value(0)};
    Expr re = ctx.cast(ctx.in(0), DType::Float(32));
    return {frontend::list_of(Values{value_of(re), value_of(ctx.call("zeros_like", {re}))})};
  }
  if (is_complex(ctx.value(0))) return one(ctx.cast(ctx.complex_in(0).first, ctx.out_dtype()));
  const DType from = ctx.in_dtype(0), to = ctx.out_dtype();
  if (from.is_string() || to.is_string()) ctx.unsupported_dtype(DType::String());
  return one(ctx.cast(ctx.in(0), to));
}

// The bits as elements of another type; the sizes differ in the last axis.
Values bitcast(NodeContext& ctx) {
  const DType to = ctx.out_dtype();
  for (DType dtype : {ctx.in_dtype(0), to})
    if (dtype.is_string() || dtype.is_bool() || dtype.bits % 8 != 0) ctx.unsupported_dtype(dtype);
  return one(with_bits_of(ctx, ctx.in(0), to));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Unary>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"ABS", plain, O::abs, "abs"},
      {"BITCAST", bitcast, O::bitcast},
      {"CAST", cast, O::cast},
      {"CEIL", plain, O::NONE, "ceil"},
      {"COS", plain, O::cos, "cos"},
      {"EXP", plain, O::exp, "exp"},
      {"FLOOR", plain, O::NONE, "floor"},
      {"LOG", plain, O::NONE, "log"},
      {"LOGICAL_NOT", plain, O::logical_not, "logical_not"},
      {"NEG", negative, O::neg},
      {"ROUND", plain, O::NONE, "round"},
      {"RSQRT", plain, O::NONE, "rsqrt"},
      {"SIGN", plain, O::sign, "sign"},
      {"SIN", plain, O::NONE, "sin"},
      {"SQRT", plain, O::NONE, "sqrt"},
      {"SQUARE", square, O::square},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
