// Quantised operators.
#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/packed_weights.h"
#include "frontend/common/quantized.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/window.h"

namespace relay::frontend::onnx {
namespace {

const DType kFloat = DType::Float(32);
const DType kInt = DType::Int(32);

Values convert_quantize_linear(NodeContext& ctx) {
  DType to = ctx.has(2) ? NodeContext::dtype_of(ctx.in(2))
                        : ctx.attr_dtype("output_dtype", DType::UInt(8));
  return {value_of(quantize_linear(ctx, ctx.in(0), ctx.in(1), ctx.given(2), ctx.attr("axis", 1),
                                   ctx.attr("block_size", 0), to))};
}

Values convert_dequantize_linear(NodeContext& ctx) {
  return {value_of(dequantize_linear(ctx, ctx.in(0), ctx.in(1), ctx.given(2), ctx.attr("axis", 1),
                                     ctx.attr("block_size", 0)))};
}

Values convert_dynamic_quantize_linear(NodeContext& ctx) {
  Expr x = ctx.in(0);
  auto [scale, zero] = dynamic_levels(ctx, x);
  Expr zero_point = ctx.cast(zero, DType::UInt(8));
  Expr y = to_levels(ctx, ctx.div(x, scale), zero_point, DType::UInt(8));
  return {value_of(y), value_of(scale), value_of(zero_point)};
}

// A quantised input with its scale and zero point.
QuantizedOperand operand(NodeContext& ctx, size_t value, size_t scale, size_t zero) {
  return {ctx.in(value), ctx.in(scale), ctx.given(zero)};
}

Values convert_matmul_integer(NodeContext& ctx) {
  return {value_of(integer_product(ctx, {ctx.in(0), nullptr, ctx.given(2)},
                                   {ctx.in(1), nullptr, ctx.given(3)}))};
}

Values convert_conv_integer(NodeContext& ctx) {
  Expr x = ctx.in(0), w = ctx.in(1);
  const auto [window, groups] = convolution_spec(ctx, x, w);
  return {value_of(integer_convolution(ctx, {x, nullptr, ctx.given(2)}, {w, nullptr, ctx.given(3)},
                                       window, groups))};
}

Values convert_qlinear_matmul(NodeContext& ctx) {
  return {value_of(
      quantized_product(ctx, operand(ctx, 0, 1, 2), operand(ctx, 3, 4, 5), ctx.in(6), ctx.in(7)))};
}

// Of com.microsoft the images may have their channels last; weights are the same.
Values convert_qlinear_conv(NodeContext& ctx) {
  const bool turned = ctx.attr("channels_last", 0) != 0;
  QuantizedOperand x = operand(ctx, 0, 1, 2), w = operand(ctx, 3, 4, 5);
  if (turned) x.x = channels_first(ctx, x.x);
  const auto [window, groups] = convolution_spec(ctx, x.x, w.x);
  Expr y =
      quantized_convolution(ctx, x, w, window, groups, ctx.in_if_given(8), ctx.in(6), ctx.in(7));
  return {value_of(turned ? channels_last(ctx, y) : y)};
}

// ---- com.microsoft: operators on quantised tensors, which onnxruntime.quantization writes

Expr floats_of(NodeContext& ctx, size_t value, size_t scale, size_t zero) {
  return in_floats(ctx, operand(ctx, value, scale, zero));
}

// Floats as the node's result: with the scale and zero point of these inputs, in the dtype of input 0 without one.
Values quantized_result(NodeContext& ctx, const Expr& y, size_t scale, size_t zero) {
  DType to = NodeContext::dtype_of(ctx.in(ctx.has(zero) ? zero : 0));
  return {value_of(in_levels(ctx, y, ctx.in(scale), ctx.given(zero), to))};
}

// (a, scale, zero, b, scale, zero, result's scale, zero)
// Scales are those of the operands in units of the result's, as in ONNX Runtime: nothing is divided in the run.
Values convert_qlinear_binary(NodeContext& ctx) {
  const bool adds = ctx.op_type() == "QLinearAdd";
  QuantizedOperand a = operand(ctx, 0, 1, 2), b = operand(ctx, 3, 4, 5);
  a.scale = ctx.div(a.scale, ctx.in(6));
  if (adds) b.scale = ctx.div(b.scale, ctx.in(6));
  Expr y = ctx.call(adds ? "add" : "multiply", {in_floats(ctx, a), in_floats(ctx, b)});
  DType to = NodeContext::dtype_of(ctx.in(ctx.has(7) ? 7 : 0));
  return {value_of(in_levels(ctx, y, ctx.scalar_like(1, a.scale), ctx.given(7), to))};
}

// (x, scale, zero, result's scale, zero)
Values convert_qlinear_unary(NodeContext& ctx) {
  Expr x = floats_of(ctx, 0, 1, 2), y;
  if (ctx.op_type() == "QLinearLeakyRelu") {
    y = ctx.call("nn.leaky_relu", {x}, {{"alpha", ctx.attr_float("alpha", 0.01)}});
  } else if (ctx.op_type() == "QLinearSoftmax") {
    int64_t rank = NodeContext::rank_of(x), axis = ctx.axis(ctx.attr("axis", -1), rank);
    // Before version 13 all axes from this one on are one.
    if (ctx.attr("opset", 13) < 13 && axis != rank - 1) ctx.unsupported("softmax of joined axes");
    y = ctx.call("nn.softmax", {x}, {{"axis", axis}});
  } else {
    y = ctx.call("sigmoid", {x});
  }
  return quantized_result(ctx, y, 3, 4);
}

Values convert_qlinear_average_pool(NodeContext& ctx) {
  const bool turned = ctx.attr("channels_last", 0) != 0;
  Expr x = floats_of(ctx, 0, 1, 2), y;
  const int64_t rank = NodeContext::rank_of(x);
  if (ctx.op_type() == "QLinearAveragePool") {
    y = pooled(ctx, PoolKind::Average, turned ? channels_first(ctx, x) : x);
    if (turned) y = channels_last(ctx, y);
  } else {
    std::vector<int64_t> axes;
    for (int64_t a = 2; a < rank; ++a) axes.push_back(turned ? a - 1 : a);
    y = ctx.reduce("mean", x, axes, true);
  }
  return quantized_result(ctx, y, 3, 4);
}

// (condition, x, scale, zero, y, scale, zero, result's scale, zero)
Values convert_qlinear_where(NodeContext& ctx) {
  Expr y = ctx.call("where", {ctx.in(0), floats_of(ctx, 1, 2, 3), floats_of(ctx, 4, 5, 6)});
  DType to = NodeContext::dtype_of(ctx.in(ctx.has(8) ? 8 : 1));
  return {value_of(in_levels(ctx, y, ctx.in(7), ctx.given(8), to))};
}

Values convert_qlinear_reduce_mean(NodeContext& ctx) {
  Expr x = floats_of(ctx, 0, 1, 2);
  const std::vector<int64_t> axes = ctx.attr_axes(NodeContext::rank_of(x));
  return quantized_result(ctx, ctx.reduce("mean", x, axes, ctx.attr("keepdims", 1) != 0), 3, 4);
}

Values convert_reduce_sum_integer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  DType wide = NodeContext::dtype_of(x).is_uint() ? DType::UInt(32) : kInt;
  const std::vector<int64_t> axes = ctx.attr_axes(NodeContext::rank_of(x));
  return {value_of(ctx.reduce("sum", ctx.cast(x, wide), axes, ctx.attr("keepdims", 1) != 0))};
}

// (a, zero, b, zero): integers multiplied element by element.
Values convert_mul_integer(NodeContext& ctx) {
  return {value_of(ctx.mul(without_zero(ctx, ctx.in(0), ctx.given(1), 0),
                           without_zero(ctx, ctx.in(2), ctx.given(3), 0)))};
}

// (a, b, b's scale, zero, bias): floats, rounded to 256 levels of their own, by integers.
Values convert_dynamic_quantize_matmul(NodeContext& ctx) {
  Expr a = ctx.in(0);
  auto [scale, zero] = dynamic_levels(ctx, a);
  Expr bytes = to_levels(ctx, ctx.div(a, scale), zero, DType::UInt(8));
  Expr b = ctx.in(1), offset = ctx.cast(zero, kInt);
  Expr sum = byte_product(ctx, {bytes, nullptr, value_of(offset)}, {b, nullptr, ctx.given(3)});
  if (!sum) {
    sum = ctx.matmul(ctx.sub(ctx.cast(bytes, kInt), offset),
                     without_zero(ctx, b, ctx.given(3), NodeContext::rank_of(b) - 1));
  }
  Expr y = ctx.mul(ctx.cast(sum, kFloat), scale);
  y = ctx.mul(y, along_axis(ctx, ctx.in(2), y, NodeContext::rank_of(y) - 1, 0));
  return {value_of(ctx.has(4) ? ctx.add(y, ctx.in(4)) : y)};
}

// (result's scale, zero, then value, scale, zero of each part)
Values convert_qlinear_concat(NodeContext& ctx) {
  std::vector<Expr> parts;
  for (size_t i = 2; i + 2 < ctx.num_inputs(); i += 3)
    parts.push_back(floats_of(ctx, i, i + 1, i + 2));
  if (parts.empty())
    ctx.fail(codes::type_rank, "there is nothing to join", "a value, a scale and a zero point");
  Expr y = ctx.concat(parts, ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(parts[0])));
  return quantized_result(ctx, y, 0, 1);
}

// alpha * a * b + c, (a, scale, zero, b, scale, zero, c, result's scale, zero); without those of the result floats.
Values convert_qgemm(NodeContext& ctx) {
  auto side = [&](size_t value, const char* turned) {
    Expr e = ctx.in(value);
    if (NodeContext::rank_of(e) != 2) {
      ctx.fail(codes::type_rank, "a matrix has the wrong rank", "rank 2", to_string(e->type));
    }
    return ctx.attr(turned, 0) != 0 ? ctx.transpose(e, {1, 0}) : e;
  };
  Expr a = ctx.sub(ctx.cast(side(0, "transA"), kInt), zero_point(ctx, ctx.given(2)));
  Expr b = ctx.cast(side(3, "transB"), kInt), zero = zero_point(ctx, ctx.given(5));
  b = ctx.sub(b, along_axis(ctx, zero, b, 1, 0));
  Expr sum = ctx.matmul(a, b);
  double alpha = ctx.attr_float("alpha", 1);
  // C has the scale alpha * a_scale * b_scale.
  if (ctx.has(6)) sum = ctx.add(sum, ctx.in(6));
  Expr scale = ctx.mul(ctx.cast(ctx.in(1), kFloat), along_axis(ctx, ctx.in(4), sum, 1, 0));
  Expr y = ctx.mul(ctx.cast(sum, kFloat), ctx.mul(scale, ctx.scalar(alpha, kFloat)));
  return ctx.has(7) ? quantized_result(ctx, y, 7, 8) : Values{value_of(y)};
}

// (a, b, scale, scale, zero, zero, bias): integers multiplied, as floats.
Values convert_matmul_integer_to_float(NodeContext& ctx) {
  Expr y = scaled_product(ctx, operand(ctx, 0, 2, 4), operand(ctx, 1, 3, 5));
  return {value_of(ctx.has(6) ? ctx.add(y, ctx.in(6)) : y)};
}

// (a, (n, blocks, bytes), scales, zero points, groups, bias)
Values convert_matmul_nbits(NodeContext& ctx) {
  PackedWeights w{.packed = ctx.constant_data(1),
                  .scales = ctx.constant_data(2),
                  .zeros = ctx.constant_data(3),
                  .inputs = ctx.attr("K", 0),
                  .outputs = ctx.attr("N", 0),
                  .bits = ctx.attr("bits", 4),
                  .block = ctx.attr("block_size", 0),
                  .accuracy_level = ctx.attr("accuracy_level", 0)};
  if (ctx.has(4)) ctx.unsupported("weights whose groups are out of order");
  if (!w.packed || !w.scales || (ctx.has(3) && !w.zeros)) {
    ctx.unsupported("packed weights that are not constants");
  }
  Expr y = packed_product(ctx, ctx.in(0), w);
  return {value_of(ctx.has(5) ? ctx.add(y, ctx.in(5)) : y)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Quantize>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "ConvInteger", 10, convert_conv_integer},
      {kOnnx, "DequantizeLinear", 10, convert_dequantize_linear},
      {kOnnx, "DynamicQuantizeLinear", 11, convert_dynamic_quantize_linear},
      {kOnnx, "MatMulInteger", 10, convert_matmul_integer},
      {kOnnx, "QLinearConv", 10, convert_qlinear_conv},
      {kOnnx, "QLinearMatMul", 10, convert_qlinear_matmul},
      {kOnnx, "QuantizeLinear", 10, convert_quantize_linear},
      {kMicrosoft, "DequantizeLinear", 1, convert_dequantize_linear},
      {kMicrosoft, "DynamicQuantizeMatMul", 1, convert_dynamic_quantize_matmul},
      {kMicrosoft, "MatMulIntegerToFloat", 1, convert_matmul_integer_to_float},
      {kMicrosoft, "MatMulNBits", 1, convert_matmul_nbits},
      {kMicrosoft, "MulInteger", 1, convert_mul_integer},
      {kMicrosoft, "QGemm", 1, convert_qgemm},
      {kMicrosoft, "QLinearAdd", 1, convert_qlinear_binary},
      {kMicrosoft, "QLinearAveragePool", 1, convert_qlinear_average_pool},
      {kMicrosoft, "QLinearConcat", 1, convert_qlinear_concat},
      {kMicrosoft, "QLinearConv", 1, convert_qlinear_conv},
      {kMicrosoft, "QLinearGlobalAveragePool", 1, convert_qlinear_average_pool},
      {kMicrosoft, "QLinearLeakyRelu", 1, convert_qlinear_unary},
      {kMicrosoft, "QLinearMul", 1, convert_qlinear_binary},
      {kMicrosoft, "QLinearReduceMean", 1, convert_qlinear_reduce_mean},
      {kMicrosoft, "QLinearSigmoid", 1, convert_qlinear_unary},
      {kMicrosoft, "QLinearSoftmax", 1, convert_qlinear_unary},
      {kMicrosoft, "QLinearWhere", 1, convert_qlinear_where},
      {kMicrosoft, "QuantizeLinear", 1, convert_quantize_linear},
      {kMicrosoft, "ReduceSumInteger", 1, convert_reduce_sum_integer},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
