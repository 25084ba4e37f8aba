// Quantised operators: those of the quantised dialect, and what it does not have (blocks, scales of rows,
// narrow types) spelt out in exact integer arithmetic and float scales.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/types.h"
#include "frontend/onnx/converters.h"
#include "runtime/core/narrow.h"

namespace relay::importer {
namespace {

struct Range {
  double low, high;
};

bool is_narrow_float(DType dtype) {
  return dtype.is_narrow() && runtime::narrow_format(dtype.code).is_float;
}

Range range_of(NodeContext& ctx, DType dtype) {
  const bool narrow = dtype.is_narrow() && !runtime::narrow_format(dtype.code).is_float;
  if (!narrow && (!dtype.is_integer() || dtype.bits > 16)) {
    ctx.fail(codes::type_dtype, "the quantised type is not supported",
             "an integer type of at most 16 bits, or a float of at most 8", dtype.to_string());
  }
  int bits = narrow ? runtime::narrow_format(dtype.code).bits : dtype.bits;
  double n = std::ldexp(1.0, bits);
  return dtype.storage().is_int() ? Range{-n / 2, n / 2 - 1} : Range{0, n - 1};
}

// A scale or zero point with one entry per line of `axis`, shaped to broadcast against `x`. One
// number broadcasts as it is; blocks are repeated.
Expr along(NodeContext& ctx, Expr p, const Expr& x, int64_t axis, int64_t block) {
  int64_t rank = NodeContext::rank_of(x);
  int64_t own = NodeContext::rank_of(p);
  if (own == 0) return p;
  if (own == 1) {
    if (as_const(NodeContext::shape_of(p)[0]) == 1) return ctx.reshape(p, std::vector<int64_t>{});
    axis = ctx.axis(axis, rank);
    return ctx.expand_dims(p, 1, rank - axis - 1);
  }
  if (own != rank || block < 1) {
    ctx.fail(codes::type_rank, "a scale has an unsuitable rank", "rank 0, 1, or blocks",
             to_string(p->type));
  }
  axis = ctx.axis(axis, rank);
  Expr wide = ctx.call("repeat", {p}, {{"repeats", block}, {"axis", axis}});
  int64_t size = ctx.const_dim(x, axis, "the size of a blocked axis");
  return ctx.slice(wide, axis, 0, size);
}

Expr quantize(NodeContext& ctx, const Expr& scaled, const Expr& zero, DType to) {
  DType dtype = NodeContext::dtype_of(scaled);
  // The zero point of floats is zero.
  if (is_narrow_float(to)) return ctx.cast(scaled, to);
  Range r = range_of(ctx, to);
  Expr q = ctx.call("round", {scaled});
  if (zero) q = ctx.add(q, ctx.cast(zero, dtype));
  return ctx.cast(ctx.call("clip", {q}, {{"a_min", r.low}, {"a_max", r.high}}), to);
}

// Integers less their zero point, in int32.
Expr centred(NodeContext& ctx, size_t value, size_t zero, int64_t axis) {
  Expr x = ctx.in(value);
  DType i32 = DType::Int(32);
  Expr wide = ctx.cast(x, i32);
  if (!ctx.has(zero)) return wide;
  if (auto k = ctx.known(zero); k && k->is_constant()) {
    bool none = true;
    for (int64_t i = 0; i < k->size(); ++i) none &= k->int_at(i) == 0;
    if (none) return wide;
  }
  return ctx.sub(wide, along(ctx, ctx.cast(ctx.in(zero), i32), x, axis, 0));
}

const DType kFloat = DType::Float(32);
const DType kInt = DType::Int(32);

// The dialect's operators take these: numbers of 8 or 16 bits with scales in float32.
bool is_quantized(DType dtype) {
  return dtype.is_integer() && (dtype.bits == 8 || dtype.bits == 16);
}
bool is_byte(const Expr& e) {
  DType dtype = NodeContext::dtype_of(e);
  return dtype.is_integer() && dtype.bits == 8;
}
bool is_scale(const Expr& e) {
  return NodeContext::dtype_of(e) == kFloat && NodeContext::rank_of(e) <= 1;
}
bool is_number(const Expr& e) {
  return NodeContext::rank_of(e) == 0 ||
         (NodeContext::rank_of(e) == 1 && as_const(NodeContext::shape_of(e)[0]) == 1);
}
// A zero point as the dialect takes it: int32, 0 where the model has none.
Expr zero_point(NodeContext& ctx, size_t input) {
  return ctx.has(input) ? ctx.cast(ctx.in(input), kInt) : constant(0, kInt);
}
// The axis for the dialect: any one for data without axes.
int64_t parameter_axis(NodeContext& ctx, int64_t axis, const Expr& x) {
  return NodeContext::rank_of(x) == 0 ? -1 : ctx.axis(axis, NodeContext::rank_of(x));
}

Values convert_quantize_linear(NodeContext& ctx) {
  Expr x = ctx.in(0), scale = ctx.in(1);
  int64_t axis = ctx.attr("axis", 1), block = ctx.attr("block_size", 0);
  DType to = ctx.has(2) ? NodeContext::dtype_of(ctx.in(2))
                        : ctx.attr_dtype("output_dtype", DType::UInt(8));
  if (NodeContext::dtype_of(x) == kFloat && is_quantized(to) && is_scale(scale)) {
    int64_t along = is_number(scale) ? -1 : parameter_axis(ctx, axis, x);
    return {value_of(ctx.call("qnn.quantize", {x, scale, zero_point(ctx, 2)},
                              {{"axis", along}, {"out_dtype", to_value(to)}}))};
  }
  if (!NodeContext::dtype_of(x).is_floating()) x = ctx.cast(x, NodeContext::dtype_of(scale));
  scale = ctx.cast(scale, NodeContext::dtype_of(x));
  Expr zero = ctx.has(2) ? along(ctx, ctx.in(2), x, axis, block) : nullptr;
  return {value_of(quantize(ctx, ctx.div(x, along(ctx, scale, x, axis, block)), zero, to))};
}

Values convert_dequantize_linear(NodeContext& ctx) {
  Expr x = ctx.in(0), scale = ctx.in(1);
  int64_t axis = ctx.attr("axis", 1), block = ctx.attr("block_size", 0);
  DType from = NodeContext::dtype_of(x);
  if ((is_quantized(from) || from == kInt) && is_scale(scale)) {
    int64_t along = is_number(scale) ? -1 : parameter_axis(ctx, axis, x);
    return {
        value_of(ctx.call("qnn.dequantize", {x, scale, zero_point(ctx, 2)}, {{"axis", along}}))};
  }
  DType dtype = NodeContext::dtype_of(scale);
  DType stored = NodeContext::dtype_of(x);
  if (is_narrow_float(stored)) {
    return {value_of(ctx.mul(ctx.cast(x, dtype), along(ctx, scale, x, axis, block)))};
  }
  if (!stored.is_integer() && !stored.is_narrow()) {
    ctx.fail(codes::type_dtype, "the quantised type is not supported",
             "an integer type, or a float of at most 8 bits", stored.to_string());
  }
  Expr wide = ctx.cast(x, DType::Int(32));
  if (ctx.has(2)) {
    wide = ctx.sub(wide, along(ctx, ctx.cast(ctx.in(2), DType::Int(32)), x, axis, block));
  }
  return {value_of(ctx.mul(ctx.cast(wide, dtype), along(ctx, scale, x, axis, block)))};
}

Values convert_dynamic_quantize_linear(NodeContext& ctx) {
  Expr x = ctx.in(0);
  std::vector<int64_t> axes;
  for (int64_t a = 0; a < NodeContext::rank_of(x); ++a) axes.push_back(a);
  auto c = [&](double v) { return ctx.scalar_like(v, x); };
  // The range always holds zero.
  Expr low = ctx.call("minimum", {ctx.reduce("min", x, axes, false), c(0)});
  Expr high = ctx.call("maximum", {ctx.reduce("max", x, axes, false), c(0)});
  Expr scale = ctx.div(ctx.sub(high, low), c(255));
  Expr empty = ctx.call("equal", {scale, c(0)});
  scale = ctx.call("where", {empty, c(1), scale});
  Expr zero = ctx.call("clip", {ctx.call("round", {ctx.div(ctx.call("negative", {low}), scale)})},
                       {{"a_min", 0.0}, {"a_max", 255.0}});
  Expr zero_point = ctx.cast(zero, DType::UInt(8));
  Expr y = quantize(ctx, ctx.div(x, scale), zero_point, DType::UInt(8));
  return {value_of(y), value_of(scale), value_of(zero_point)};
}

// A product of bytes by a matrix, where the left operand has one zero point and the right one one for
// all or for each column; null otherwise. The scales may be null.
Expr byte_product(NodeContext& ctx, const Expr& x, const Expr& w, size_t x_zero, size_t w_zero,
                  const Expr& x_scale, const Expr& w_scale) {
  Expr xz = zero_point(ctx, x_zero), wz = zero_point(ctx, w_zero), one = constant(1, kFloat);
  Expr xs = x_scale ? x_scale : one, ws = w_scale ? w_scale : one;
  if (!is_byte(x) || !is_byte(w) || NodeContext::rank_of(x) < 2 || NodeContext::rank_of(w) != 2 ||
      !is_number(xz) || !is_number(xs) || NodeContext::rank_of(wz) > 1 || !is_scale(ws))
    return nullptr;
  return ctx.call("qnn.dense", {x, ctx.transpose(w, {1, 0}), xz, wz, xs, ws},
                  {{"out_dtype", to_value(kInt)}});
}

// The same of a convolution over images, with zero points of output channels.
Expr byte_convolution(NodeContext& ctx, const Expr& x, const Expr& w, size_t x_zero, size_t w_zero,
                      const Expr& x_scale, const Expr& w_scale) {
  Expr xz = zero_point(ctx, x_zero), wz = zero_point(ctx, w_zero), one = constant(1, kFloat);
  Expr xs = x_scale ? x_scale : one, ws = w_scale ? w_scale : one;
  if (!is_byte(x) || !is_byte(w) || NodeContext::rank_of(x) != 4 || !is_number(xz) ||
      !is_number(xs) || NodeContext::rank_of(wz) > 1 || !is_scale(ws))
    return nullptr;
  return convolution(ctx, x, w, kInt, {xz, wz, xs, ws});
}

Values convert_matmul_integer(NodeContext& ctx) {
  if (Expr sum = byte_product(ctx, ctx.in(0), ctx.in(1), 2, 3, nullptr, nullptr)) {
    return {value_of(sum)};
  }
  // A zero point per row of the left and per column of the right operand.
  Expr a = centred(ctx, 0, 2, NodeContext::rank_of(ctx.in(0)) - 2);
  Expr b = centred(ctx, 1, 3, NodeContext::rank_of(ctx.in(1)) - 1);
  return {value_of(ctx.matmul(a, b))};
}

Values convert_conv_integer(NodeContext& ctx) {
  if (Expr sum = byte_convolution(ctx, ctx.in(0), ctx.in(1), 2, 3, nullptr, nullptr)) {
    return {value_of(sum)};
  }
  Expr x = centred(ctx, 0, 2, 1), w = centred(ctx, 1, 3, 0);
  return {value_of(convolution(ctx, x, w, kInt))};
}

// A sum that stands for sum * scale, with the scale and zero point of the result.
Expr requantize(NodeContext& ctx, const Expr& sum, const Expr& scale, int64_t axis,
                size_t out_scale, size_t out_zero) {
  Expr to_scale = ctx.cast(ctx.in(out_scale), kFloat), zero = ctx.in(out_zero);
  DType to = NodeContext::dtype_of(zero);
  if (NodeContext::rank_of(scale) <= 1 && is_scale(to_scale) && is_quantized(to)) {
    return ctx.call(
        "qnn.requantize", {sum, scale, constant(0, kInt), to_scale, ctx.cast(zero, kInt)},
        {{"axis", axis}, {"rounding", std::string("TONEAREST_EVEN")}, {"out_dtype", to_value(to)}});
  }
  Expr y = ctx.mul(ctx.cast(sum, kFloat), scale);
  return quantize(ctx, ctx.div(y, along(ctx, to_scale, y, axis, 0)), along(ctx, zero, y, axis, 0),
                  to);
}

// The scale of a product: of numbers and vectors along one axis.
Expr product_scale(NodeContext& ctx, Expr a, Expr b) {
  for (Expr* e : {&a, &b}) {
    *e = ctx.cast(*e, kFloat);
    if (is_number(*e)) *e = ctx.reshape(*e, std::vector<int64_t>{});
  }
  return ctx.mul(a, b);
}

Values convert_qlinear_matmul(NodeContext& ctx) {
  Expr scale_a = ctx.in(1), scale_b = ctx.in(4);
  if (Expr sum = byte_product(ctx, ctx.in(0), ctx.in(3), 2, 5, scale_a, scale_b)) {
    return {value_of(requantize(ctx, sum, product_scale(ctx, scale_a, scale_b),
                                NodeContext::rank_of(sum) - 1, 6, 7))};
  }
  Expr a = centred(ctx, 0, 2, NodeContext::rank_of(ctx.in(0)) - 2);
  Expr b = centred(ctx, 3, 5, NodeContext::rank_of(ctx.in(3)) - 1);
  Expr sum = ctx.matmul(a, b);
  int64_t rank = NodeContext::rank_of(sum);
  Expr scale = ctx.mul(along(ctx, ctx.cast(scale_a, kFloat), sum, rank - 2, 0),
                       along(ctx, ctx.cast(scale_b, kFloat), sum, rank - 1, 0));
  return {value_of(requantize(ctx, sum, scale, 1, 6, 7))};
}

Values convert_qlinear_conv(NodeContext& ctx) {
  Expr scale_x = ctx.in(1), scale_w = ctx.in(4);
  Expr sum = byte_convolution(ctx, ctx.in(0), ctx.in(3), 2, 5, scale_x, scale_w);
  if (!sum) sum = convolution(ctx, centred(ctx, 0, 2, 1), centred(ctx, 3, 5, 0), kInt);
  if (ctx.has(8)) sum = ctx.call("nn.bias_add", {sum, ctx.in(8)}, {{"axis", int64_t{1}}});
  return {value_of(requantize(ctx, sum, product_scale(ctx, scale_x, scale_w), 1, 6, 7))};
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
      {kMicrosoft, "QuantizeLinear", 1, convert_quantize_linear},
  };
  return rows;
}

}  // namespace relay::importer
