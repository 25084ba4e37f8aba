// Comparisons.
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

Values compare(NodeContext& ctx) {
  if (ctx.is_quantized() && ctx.is_quantized(1)) return one(quantized_comparison(ctx));
  return one(ctx.call(ctx.relay_op(), {ctx.in(0), ctx.in(1)}));
}

// Of int16 the reference kernels order the integers themselves, whatever their scales.
Values order(NodeContext& ctx) {
  if (ctx.in_dtype(0) != DType::Int(16)) return compare(ctx);
  return one(ctx.call(ctx.relay_op(), {ctx.in(0), ctx.in(1)}));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Compare>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"EQUAL", compare, O::equal, "equal"},
      {"GREATER", order, O::greater, "greater"},
      {"GREATER_EQUAL", order, O::greater_equal, "greater_equal"},
      {"LESS", order, O::less, "less"},
      {"LESS_EQUAL", order, O::less_equal, "less_equal"},
      {"NOT_EQUAL", compare, O::not_equal, "not_equal"},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
