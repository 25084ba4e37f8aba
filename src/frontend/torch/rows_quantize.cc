// Quantised tensors as PT2E writes them: integers with scales and zero points as arguments.
#include "base/codes/frontend.h"
#include "frontend/common/quantized.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// A number or a tensor of one element.
Expr number(NodeContext& ctx, const char* name, DType dtype) {
  const Argument* a = ctx.find(name);
  if (a == nullptr)
    ctx.fail(codes::frontend_graph, std::string("argument '") + name + "' is missing");
  Expr e = a->name() != nullptr ? ctx.cast(ctx.tensor(name), dtype)
                                : ctx.number_as(*ctx.number(name), dtype);
  return Builder::rank_of(e) == 0 ? e : ctx.reshape(e, std::vector<int64_t>{});
}

struct Grid {
  Expr scale, zero;  // scalars, or an entry for each line of an axis
  int64_t axis = 0;
};

Grid grid_of(NodeContext& ctx, const Expr& x, DType quantized, bool by_channel) {
  Grid out;
  if (by_channel) {
    out.axis = ctx.axis_of("axis", Builder::rank_of(x), std::nullopt);
    out.scale = ctx.cast(ctx.tensor("scales"), DType::Float(32));
    Expr zero = ctx.tensor_or_null("zero_points");
    if (zero) out.zero = ctx.cast(zero, quantized);
  } else {
    out.scale = number(ctx, "scale", DType::Float(32));
    out.zero = number(ctx, "zero_point", quantized);
  }
  return out;
}

bool has_all_values(NodeContext& ctx, DType dtype) {
  const int64_t least = ctx.integer("quant_min"), greatest = ctx.integer("quant_max");
  if (dtype == DType::Int(8)) return least == -128 && greatest == 127;
  if (dtype == DType::UInt(8)) return least == 0 && greatest == 255;
  return false;
}

template <bool kByChannel>
Values quantize(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.tensor("input"), DType::Float(32));
  const DType to = *ctx.dtype();
  const bool whole = has_all_values(ctx, to);
  if (whole) {
    const Grid g = grid_of(ctx, x, to, kByChannel);
    return {value_of(
        quantize_linear(ctx, x, g.scale, g.zero ? value_of(g.zero) : nullptr, g.axis, 0, to))};
  }
  // Clamped to fewer values than the type has.
  const Grid g = grid_of(ctx, x, DType::Float(32), kByChannel);
  Expr level = ctx.call("round", {ctx.div(x, along_axis(ctx, g.scale, x, g.axis, 0))});
  if (g.zero) level = ctx.add(level, along_axis(ctx, g.zero, x, g.axis, 0));
  Expr y = ctx.call("clip", {level},
                    {{"a_min", static_cast<double>(ctx.integer("quant_min"))},
                     {"a_max", static_cast<double>(ctx.integer("quant_max"))}});
  return {value_of(ctx.cast(y, to))};
}

template <bool kByChannel>
Values dequantize(NodeContext& ctx) {
  Expr x = ctx.tensor("input");
  for (const char* name : {"quant_min", "quant_max", "dtype", "out_dtype"}) ctx.find(name);
  const Grid g = grid_of(ctx, x, Builder::dtype_of(x), kByChannel);
  Expr y = dequantize_linear(ctx, x, g.scale, g.zero ? value_of(g.zero) : nullptr, g.axis, 0);
  return {value_of(ctx.cast(y, ctx.out_dtype()))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Quantize>() {
  static constexpr Row kRows[] = {
      {"quantized_decomposed.quantize_per_tensor.default", quantize<false>},
      {"quantized_decomposed.quantize_per_tensor.tensor", quantize<false>},
      {"quantized_decomposed.quantize_per_channel.default", quantize<true>},
      {"quantized_decomposed.dequantize_per_tensor.default", dequantize<false>},
      {"quantized_decomposed.dequantize_per_tensor.tensor", dequantize<false>},
      {"quantized_decomposed.dequantize_per_channel.default", dequantize<true>},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
