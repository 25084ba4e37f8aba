// Quantised operators.
#include <cmath>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
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

// The integer convolution of images that the dialect has; null where it has none.
Expr byte_convolution(NodeContext& ctx, const Expr& x, const Expr& w, size_t x_zero, size_t w_zero,
                      const Expr& x_scale, const Expr& w_scale) {
  std::vector<Expr> parameters =
      byte_parameters(ctx, x, w, ctx.given(x_zero), ctx.given(w_zero), x_scale, w_scale);
  if (parameters.empty() || NodeContext::rank_of(x) != 4) return nullptr;
  return convolution(ctx, x, w, kInt, std::move(parameters));
}

Values convert_matmul_integer(NodeContext& ctx) {
  if (Expr sum =
          byte_product(ctx, ctx.in(0), ctx.in(1), ctx.given(2), ctx.given(3), nullptr, nullptr)) {
    return {value_of(sum)};
  }
  // A zero point per row of the left and per column of the right operand.
  Expr a = without_zero(ctx, ctx.in(0), ctx.given(2), NodeContext::rank_of(ctx.in(0)) - 2);
  Expr b = without_zero(ctx, ctx.in(1), ctx.given(3), NodeContext::rank_of(ctx.in(1)) - 1);
  return {value_of(ctx.matmul(a, b))};
}

Values convert_conv_integer(NodeContext& ctx) {
  if (Expr sum = byte_convolution(ctx, ctx.in(0), ctx.in(1), 2, 3, nullptr, nullptr)) {
    return {value_of(sum)};
  }
  Expr x = without_zero(ctx, ctx.in(0), ctx.given(2), 1),
       w = without_zero(ctx, ctx.in(1), ctx.given(3), 0);
  return {value_of(convolution(ctx, x, w, kInt))};
}

Values convert_qlinear_matmul(NodeContext& ctx) {
  Expr scale_a = ctx.in(1), scale_b = ctx.in(4);
  if (Expr sum =
          byte_product(ctx, ctx.in(0), ctx.in(3), ctx.given(2), ctx.given(5), scale_a, scale_b)) {
    return {value_of(requantize(ctx, sum, product_scale(ctx, scale_a, scale_b),
                                NodeContext::rank_of(sum) - 1, ctx.in(6), ctx.in(7)))};
  }
  Expr a = without_zero(ctx, ctx.in(0), ctx.given(2), NodeContext::rank_of(ctx.in(0)) - 2);
  Expr b = without_zero(ctx, ctx.in(3), ctx.given(5), NodeContext::rank_of(ctx.in(3)) - 1);
  Expr sum = ctx.matmul(a, b);
  int64_t rank = NodeContext::rank_of(sum);
  Expr scale = ctx.mul(along_axis(ctx, ctx.cast(scale_a, kFloat), sum, rank - 2, 0),
                       along_axis(ctx, ctx.cast(scale_b, kFloat), sum, rank - 1, 0));
  return {value_of(requantize(ctx, sum, scale, 1, ctx.in(6), ctx.in(7)))};
}

// Of com.microsoft the images may have their channels last; weights are the same.
Values convert_qlinear_conv(NodeContext& ctx) {
  const bool turned = ctx.attr("channels_last", 0) != 0;
  Expr scale_x = ctx.in(1), scale_w = ctx.in(4);
  Expr x = turned ? channels_first(ctx, ctx.in(0)) : ctx.in(0);
  Expr sum = byte_convolution(ctx, x, ctx.in(3), 2, 5, scale_x, scale_w);
  if (!sum)
    sum = convolution(ctx, without_zero(ctx, x, ctx.given(2), 1),
                      without_zero(ctx, ctx.in(3), ctx.given(5), 0), kInt);
  if (ctx.has(8)) sum = ctx.call("nn.bias_add", {sum, ctx.in(8)}, {{"axis", int64_t{1}}});
  Expr y = requantize(ctx, sum, product_scale(ctx, scale_x, scale_w), 1, ctx.in(6), ctx.in(7));
  return {value_of(turned ? channels_last(ctx, y) : y)};
}

// ---- com.microsoft: operators on quantised tensors, which onnxruntime.quantization writes

// A quantised input with its scale and zero point, as floats.
Expr floats_of(NodeContext& ctx, size_t value, size_t scale, size_t zero) {
  return ctx.call("qnn.dequantize",
                  {ctx.in(value), ctx.in(scale), zero_point(ctx, ctx.given(zero))},
                  {{"axis", int64_t{-1}}});
}

// Floats as the node's result: with the scale and zero point of these inputs, in the dtype of input 0 without one.
Values quantized_result(NodeContext& ctx, const Expr& y, size_t scale, size_t zero) {
  DType to = NodeContext::dtype_of(ctx.in(ctx.has(zero) ? zero : 0));
  return {value_of(ctx.call("qnn.quantize", {y, ctx.in(scale), zero_point(ctx, ctx.given(zero))},
                            {{"axis", int64_t{-1}}, {"out_dtype", to_value(to)}}))};
}

// (a, scale, zero, b, scale, zero, result's scale, zero)
Values convert_qlinear_binary(NodeContext& ctx) {
  const char* op = ctx.op_type() == "QLinearAdd" ? "add" : "multiply";
  return quantized_result(ctx, ctx.call(op, {floats_of(ctx, 0, 1, 2), floats_of(ctx, 3, 4, 5)}), 6,
                          7);
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
    y = pooled(ctx, turned ? channels_first(ctx, x) : x, true);
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
  return {value_of(ctx.call("qnn.quantize", {y, ctx.in(7), zero_point(ctx, ctx.given(8))},
                            {{"axis", int64_t{-1}}, {"out_dtype", to_value(to)}}))};
}

// The axes of attribute 'axes'; all without it.
std::vector<int64_t> reduced_axes(NodeContext& ctx, int64_t rank) {
  std::vector<int64_t> axes = ctx.axes(ctx.attr_ints("axes"), rank);
  for (int64_t a = 0; axes.empty() && a < rank; ++a) axes.push_back(a);
  if (!ctx.has_attr("axes")) {
    for (int64_t a = 1; a < rank; ++a) axes.push_back(a);
  }
  return axes;
}

Values convert_qlinear_reduce_mean(NodeContext& ctx) {
  Expr x = floats_of(ctx, 0, 1, 2);
  std::vector<int64_t> axes = reduced_axes(ctx, NodeContext::rank_of(x));
  return quantized_result(ctx, ctx.reduce("mean", x, axes, ctx.attr("keepdims", 1) != 0), 3, 4);
}

Values convert_reduce_sum_integer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  DType wide = NodeContext::dtype_of(x).is_uint() ? DType::UInt(32) : kInt;
  std::vector<int64_t> axes = reduced_axes(ctx, NodeContext::rank_of(x));
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
  Expr sum = byte_product(ctx, bytes, b, value_of(offset), ctx.given(3), nullptr, nullptr);
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
  Expr y =
      scaled_product(ctx, {ctx.in(0), ctx.in(1), ctx.in(2), ctx.in(3), ctx.given(4), ctx.given(5)});
  return {value_of(ctx.has(6) ? ctx.add(y, ctx.in(6)) : y)};
}

// The words, scales and zero points of nn.contrib_dense_bits, where a block is whole words of 32 bits.
Expr packed_product(NodeContext& ctx, const Expr& data, const Tensor& packed, const Tensor& scales,
                    const Tensor& zeros) {
  const int64_t k = ctx.attr("K", 0), n = ctx.attr("N", 0), bits = ctx.attr("bits", 4),
                block = ctx.attr("block_size", 0), blocks = (k + block - 1) / block;
  constexpr int64_t kWord = 32, kByte = 8;
  // Bytes one after the other are words, the first as the lowest bits.
  Tensor words = Tensor::empty(kInt, {n, blocks * block * bits / kWord});
  const auto* bytes = static_cast<const uint8_t*>(packed.data());
  for (int64_t i = 0; i < words.num_elements(); ++i) {
    uint32_t word = 0;
    for (int64_t b = 0; b < kWord / kByte; ++b) {
      word |= static_cast<uint32_t>(bytes[i * (kWord / kByte) + b]) << (b * kByte);
    }
    words.set_from_int(i, static_cast<int32_t>(word));
  }
  Tensor factors = Tensor::empty(kFloat, {n, blocks});
  for (int64_t i = 0; i < n * blocks; ++i) factors.set_from_double(i, scales.get_as_double(i));
  Tensor offsets = Tensor::empty(DType::UInt(kByte), {});
  if (!zeros) {
    offsets.set_from_int(0, int64_t{1} << (bits - 1));
  } else if (zeros.dtype() == DType::UInt(kByte)) {
    const int64_t per_byte = kByte / bits, of_row = (blocks + per_byte - 1) / per_byte;
    const auto* from = static_cast<const uint8_t*>(zeros.data());
    offsets = Tensor::empty(DType::UInt(kByte), {n, blocks});
    for (int64_t i = 0; i < n * blocks; ++i) {
      const int64_t b = i % blocks;
      offsets.set_from_int(
          i, from[i / blocks * of_row + b / per_byte] >> (b % per_byte * bits) & ((1 << bits) - 1));
    }
  } else {
    offsets = Tensor::empty(kFloat, {n, blocks});
    for (int64_t i = 0; i < n * blocks; ++i) offsets.set_from_double(i, zeros.get_as_double(i));
  }
  Expr x = ctx.cast(data, kFloat);
  if (const int64_t more = blocks * block - k; more > 0) {
    ValueList widths(static_cast<size_t>(NodeContext::rank_of(x)),
                     to_value(std::vector<int64_t>{0, 0}));
    widths.back() = to_value(std::vector<int64_t>{0, more});
    x = ctx.call("nn.pad", {x, constant(0, kFloat)}, {{"pad_width", AttrValue(std::move(widths))}});
  }
  Expr y =
      ctx.call("nn.contrib_dense_bits",
               {x, ctx.constant(words), ctx.constant(factors), ctx.constant(offsets)},
               {{"bits", bits}, {"units", n}, {"accuracy_level", ctx.attr("accuracy_level", 0)}});
  return ctx.cast(y, NodeContext::dtype_of(data));
}

// Weights of 2, 4 or 8 bits in blocks along the columns of a, each block with a scale of its own:
// (a, (n, blocks, bytes), scales, zero points, groups, bias).
Values convert_matmul_nbits(NodeContext& ctx) {
  const int64_t k = ctx.attr("K", 0), n = ctx.attr("N", 0), bits = ctx.attr("bits", 4),
                block = ctx.attr("block_size", 0);
  Tensor packed = ctx.constant_data(1), scales = ctx.constant_data(2);
  if (ctx.has(4)) ctx.unsupported("weights whose groups are out of order");
  if (!packed || !scales || (ctx.has(3) && !ctx.constant_data(3))) {
    ctx.unsupported("packed weights that are not constants");
  }
  constexpr int64_t kMost = int64_t{1} << 24;
  if ((bits != 2 && bits != 4 && bits != 8) || k < 1 || n < 1 || block < 1 || k > kMost ||
      n > kMost || block > kMost || block * bits % 8 != 0) {
    ctx.fail(codes::frontend_attribute, "the sizes of packed weights are out of range",
             "bits of 2, 4 or 8, and blocks of whole bytes");
  }
  const int64_t blocks = (k + block - 1) / block, bytes = block * bits / 8, per_byte = 8 / bits,
                zero_bytes = (blocks + per_byte - 1) / per_byte;
  Tensor zeros = ctx.has(3) ? ctx.constant_data(3) : Tensor();
  const bool packed_zeros = zeros && zeros.dtype() == DType::UInt(8);
  if (packed.dtype() != DType::UInt(8) || packed.num_elements() != n * blocks * bytes ||
      scales.num_elements() != n * blocks ||
      (zeros && zeros.num_elements() != n * (packed_zeros ? zero_bytes : blocks))) {
    ctx.fail(codes::type_shape, "the packed weights do not have the sizes that the attributes say",
             std::to_string(n * blocks * bytes) + " bytes and " + std::to_string(n * blocks) +
                 " scales");
  }
  if (block * bits % 32 == 0) {
    ctx.charge_bytes(packed.num_elements(), DType::UInt(8));
    Expr y =
        packed_product(ctx, ctx.in(0), packed, aligned(scales), zeros ? aligned(zeros) : Tensor());
    return {value_of(ctx.has(5) ? ctx.add(y, ctx.in(5)) : y)};
  }
  // Blocks of a few bytes: the weights as float32.
  ctx.charge_bytes(n * k, kFloat);
  const auto* data = static_cast<const uint8_t*>(packed.data());
  const auto* zero_data = packed_zeros ? static_cast<const uint8_t*>(zeros.data()) : nullptr;
  const int64_t mask = (1 << bits) - 1;
  auto element = [&](const uint8_t* bytes_of, int64_t i) {
    return static_cast<double>(bytes_of[i / per_byte] >> (i % per_byte * bits) & mask);
  };
  Tensor weight = Tensor::empty(kFloat, {n, k});
  Tensor factors = aligned(scales), offsets = zeros && !packed_zeros ? aligned(zeros) : Tensor();
  for (int64_t row = 0; row < n; ++row) {
    for (int64_t column = 0; column < k; ++column) {
      int64_t b = column / block, at = row * blocks + b;
      double zero = zero_data ? element(zero_data + row * zero_bytes, b)
                    : offsets ? offsets.get_as_double(at)
                              : std::ldexp(1.0, static_cast<int>(bits) - 1);
      double value = element(data + at * bytes, column % block);
      weight.set_from_double(row * k + column, (value - zero) * factors.get_as_double(at));
    }
  }
  Expr a = ctx.in(0);
  Expr y = ctx.call("nn.dense", {a, ctx.cast(ctx.constant(weight), NodeContext::dtype_of(a))});
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
