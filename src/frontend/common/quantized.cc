#include "frontend/common/quantized.h"

#include <cmath>

#include "base/codes/types.h"
#include "runtime/core/narrow.h"

namespace relay::frontend {
namespace {

struct Range {
  double low, high;
};

bool is_narrow_float(DType dtype) {
  return dtype.is_narrow() && runtime::narrow_format(dtype.code).is_float;
}

Range range_of(const Builder& build, DType dtype) {
  const bool narrow = dtype.is_narrow() && !runtime::narrow_format(dtype.code).is_float;
  if (!narrow && (!dtype.is_integer() || dtype.bits > 16)) {
    build.fail(codes::type_dtype, "the quantised type is not supported",
               "an integer type of at most 16 bits, or a float of at most 8", dtype.to_string());
  }
  int bits = narrow ? runtime::narrow_format(dtype.code).bits : dtype.bits;
  double n = std::ldexp(1.0, bits);
  return dtype.storage().is_int() ? Range{-n / 2, n / 2 - 1} : Range{0, n - 1};
}

const DType kFloat = DType::Float(32);
const DType kInt = DType::Int(32);

// What the dialect's operators take: numbers of 8 or 16 bits, with scales in float32.
bool is_quantized(DType dtype) {
  return dtype.is_integer() && (dtype.bits == 8 || dtype.bits == 16);
}
bool is_byte(const Expr& e) {
  DType dtype = Builder::dtype_of(e);
  return dtype.is_integer() && dtype.bits == 8;
}
bool is_scale(const Expr& e) { return Builder::dtype_of(e) == kFloat && Builder::rank_of(e) <= 1; }
// The axis for the dialect: any one for one number, and for data without axes.
int64_t dialect_axis(const Builder& build, const Expr& scale, int64_t axis, const Expr& x) {
  if (is_one_number(scale) || Builder::rank_of(x) == 0) return -1;
  return build.axis(axis, Builder::rank_of(x));
}

}  // namespace

bool is_one_number(const Expr& e) {
  return Builder::rank_of(e) == 0 ||
         (Builder::rank_of(e) == 1 && as_const(Builder::shape_of(e)[0]) == 1);
}

Expr zero_point(const Builder& build, const ValuePtr& zero) {
  return zero ? build.cast(build.expr_of(zero), kInt) : constant(0, kInt);
}

Expr along_axis(const Builder& build, Expr p, const Expr& x, int64_t axis, int64_t block) {
  int64_t rank = Builder::rank_of(x);
  int64_t own = Builder::rank_of(p);
  if (own == 0) return p;
  if (own == 1) {
    if (as_const(Builder::shape_of(p)[0]) == 1) return build.reshape(p, std::vector<int64_t>{});
    axis = build.axis(axis, rank);
    return build.expand_dims(p, 1, rank - axis - 1);
  }
  if (own != rank || block < 1) {
    build.fail(codes::type_rank, "a scale has an unsuitable rank", "rank 0, 1, or blocks",
               to_string(p->type));
  }
  axis = build.axis(axis, rank);
  Expr wide = build.call("repeat", {p}, {{"repeats", block}, {"axis", axis}});
  int64_t size = build.const_dim(x, axis, "the size of a blocked axis");
  return build.slice(wide, axis, 0, size);
}

Expr to_levels(const Builder& build, const Expr& scaled, const Expr& zero, DType to) {
  DType dtype = Builder::dtype_of(scaled);
  // The zero point of floats is zero.
  if (is_narrow_float(to)) return build.cast(scaled, to);
  Range r = range_of(build, to);
  Expr q = build.call("round", {scaled});
  if (zero) q = build.add(q, build.cast(zero, dtype));
  return build.cast(build.call("clip", {q}, {{"a_min", r.low}, {"a_max", r.high}}), to);
}

Expr without_zero(const Builder& build, const Expr& x, const ValuePtr& zero, int64_t axis) {
  Expr wide = build.cast(x, kInt);
  if (!zero) return wide;
  if (const auto& k = zero->known; k && k->is_constant()) {
    bool none = true;
    for (int64_t i = 0; i < k->size(); ++i) none &= k->int_at(i) == 0;
    if (none) return wide;
  }
  return build.sub(wide, along_axis(build, build.cast(build.expr_of(zero), kInt), x, axis, 0));
}

Expr quantize_linear(const Builder& build, Expr x, Expr scale, const ValuePtr& zero, int64_t axis,
                     int64_t block, DType to) {
  if (Builder::dtype_of(x) == kFloat && is_quantized(to) && is_scale(scale)) {
    return build.call("qnn.quantize", {x, scale, zero_point(build, zero)},
                      {{"axis", dialect_axis(build, scale, axis, x)}, {"out_dtype", to_value(to)}});
  }
  if (!Builder::dtype_of(x).is_floating()) x = build.cast(x, Builder::dtype_of(scale));
  scale = build.cast(scale, Builder::dtype_of(x));
  Expr offset = zero ? along_axis(build, build.expr_of(zero), x, axis, block) : nullptr;
  return to_levels(build, build.div(x, along_axis(build, scale, x, axis, block)), offset, to);
}

Expr dequantize_linear(const Builder& build, const Expr& x, const Expr& scale, const ValuePtr& zero,
                       int64_t axis, int64_t block) {
  DType from = Builder::dtype_of(x);
  if ((is_quantized(from) || from == kInt) && is_scale(scale)) {
    return build.call("qnn.dequantize", {x, scale, zero_point(build, zero)},
                      {{"axis", dialect_axis(build, scale, axis, x)}});
  }
  DType dtype = Builder::dtype_of(scale);
  if (is_narrow_float(from)) {
    return build.mul(build.cast(x, dtype), along_axis(build, scale, x, axis, block));
  }
  if (!from.is_integer() && !from.is_narrow()) {
    build.fail(codes::type_dtype, "the quantised type is not supported",
               "an integer type, or a float of at most 8 bits", from.to_string());
  }
  Expr wide = build.cast(x, kInt);
  if (zero) {
    wide =
        build.sub(wide, along_axis(build, build.cast(build.expr_of(zero), kInt), x, axis, block));
  }
  return build.mul(build.cast(wide, dtype), along_axis(build, scale, x, axis, block));
}

Levels dynamic_levels(const Builder& build, const Expr& x) {
  const std::vector<int64_t> axes = Builder::all_axes(Builder::rank_of(x));
  auto c = [&](double v) { return build.scalar_like(v, x); };
  // The range always holds zero.
  Expr low = build.call("minimum", {build.reduce("min", x, axes, false), c(0)});
  Expr high = build.call("maximum", {build.reduce("max", x, axes, false), c(0)});
  Expr scale = build.div(build.sub(high, low), c(255));
  Expr empty = build.call("equal", {scale, c(0)});
  scale = build.call("where", {empty, c(1), scale});
  Expr zero =
      build.call("clip", {build.call("round", {build.div(build.call("negative", {low}), scale)})},
                 {{"a_min", 0.0}, {"a_max", 255.0}});
  return {scale, zero};
}

Expr in_floats(const Builder& build, const QuantizedOperand& q) {
  return build.call("qnn.dequantize", {q.x, q.scale, zero_point(build, q.zero)},
                    {{"axis", int64_t{-1}}});
}

Expr in_levels(const Builder& build, const Expr& y, const Expr& scale, const ValuePtr& zero,
               DType to) {
  return build.call("qnn.quantize", {y, scale, zero_point(build, zero)},
                    {{"axis", int64_t{-1}}, {"out_dtype", to_value(to)}});
}

namespace {

// What qnn.dense and qnn.conv take beside data and weights: both zero points and both scales. Empty where they do not take
// such data: bytes with one zero point and scale, weights with one or one for each column.
std::vector<Expr> byte_parameters(const Builder& build, const QuantizedOperand& x,
                                  const QuantizedOperand& w) {
  Expr xz = zero_point(build, x.zero), wz = zero_point(build, w.zero), one = constant(1, kFloat);
  Expr xs = x.scale ? x.scale : one, ws = w.scale ? w.scale : one;
  const bool fits = is_byte(x.x) && is_byte(w.x) && is_one_number(xz) && is_one_number(xs) &&
                    Builder::rank_of(wz) <= 1 && is_scale(ws);
  return fits ? std::vector<Expr>{xz, wz, xs, ws} : std::vector<Expr>{};
}

// The product where the dialect does not take the operands.
Expr spelt_out_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b) {
  return build.matmul(without_zero(build, a.x, a.zero, Builder::rank_of(a.x) - 2),
                      without_zero(build, b.x, b.zero, Builder::rank_of(b.x) - 1));
}

// The scale of a product: of numbers and vectors along one axis.
Expr product_scale(const Builder& build, Expr a, Expr b) {
  for (Expr* e : {&a, &b}) {
    *e = build.cast(*e, kFloat);
    if (is_one_number(*e)) *e = build.reshape(*e, std::vector<int64_t>{});
  }
  return build.mul(a, b);
}

}  // namespace

Expr byte_product(const Builder& build, const QuantizedOperand& x, const QuantizedOperand& w) {
  std::vector<Expr> args = byte_parameters(build, x, w);
  if (args.empty() || Builder::rank_of(x.x) < 2 || Builder::rank_of(w.x) != 2) return nullptr;
  args.insert(args.begin(), {x.x, build.transpose(w.x, {1, 0})});
  return build.call("qnn.dense", std::move(args), {{"out_dtype", to_value(kInt)}});
}

Expr integer_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b) {
  Expr sum = byte_product(build, a, b);
  return sum ? sum : spelt_out_product(build, a, b);
}

Expr scaled_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b) {
  Expr sum =
      build.cast(integer_product(build, {a.x, nullptr, a.zero}, {b.x, nullptr, b.zero}), kFloat);
  const int64_t rank = Builder::rank_of(sum);
  return build.mul(sum, build.mul(along_axis(build, a.scale, sum, rank - 2, 0),
                                  along_axis(build, b.scale, sum, rank - 1, 0)));
}

Expr quantized_product(const Builder& build, const QuantizedOperand& a, const QuantizedOperand& b,
                       const Expr& out_scale, const Expr& zero) {
  if (Expr sum = byte_product(build, a, b)) {
    return requantize(build, sum, product_scale(build, a.scale, b.scale), Builder::rank_of(sum) - 1,
                      out_scale, zero);
  }
  Expr sum = spelt_out_product(build, a, b);
  const int64_t rank = Builder::rank_of(sum);
  Expr scale = build.mul(along_axis(build, build.cast(a.scale, kFloat), sum, rank - 2, 0),
                         along_axis(build, build.cast(b.scale, kFloat), sum, rank - 1, 0));
  return requantize(build, sum, scale, 1, out_scale, zero);
}

Expr integer_convolution(const Builder& build, const QuantizedOperand& x, const QuantizedOperand& w,
                         const Window& window, int64_t groups) {
  std::vector<Expr> parameters = byte_parameters(build, x, w);
  if (!parameters.empty() && Builder::rank_of(x.x) == 4) {
    return convolution(build, x.x, w.x, window, groups, kInt, std::move(parameters));
  }
  return convolution(build, without_zero(build, x.x, x.zero, 1),
                     without_zero(build, w.x, w.zero, 0), window, groups, kInt);
}

Expr quantized_convolution(const Builder& build, const QuantizedOperand& x,
                           const QuantizedOperand& w, const Window& window, int64_t groups,
                           const Expr& bias, const Expr& scale, const Expr& zero) {
  Expr sum = with_channel_bias(build, integer_convolution(build, x, w, window, groups), bias);
  return requantize(build, sum, product_scale(build, x.scale, w.scale), 1, scale, zero);
}

Expr requantize(const Builder& build, const Expr& sum, const Expr& scale, int64_t axis,
                const Expr& out_scale, const Expr& zero) {
  Expr to_scale = build.cast(out_scale, kFloat);
  DType to = Builder::dtype_of(zero);
  if (Builder::rank_of(scale) <= 1 && is_scale(to_scale) && is_quantized(to)) {
    return build.call(
        "qnn.requantize", {sum, scale, constant(0, kInt), to_scale, build.cast(zero, kInt)},
        {{"axis", axis}, {"rounding", std::string("TONEAREST_EVEN")}, {"out_dtype", to_value(to)}});
  }
  Expr y = build.mul(build.cast(sum, kFloat), scale);
  return to_levels(build, build.div(y, along_axis(build, to_scale, y, axis, 0)),
                   along_axis(build, zero, y, axis, 0), to);
}

Expr dynamically_quantized(const Builder& build, const Expr& x) {
  auto [scale, zero] = dynamic_levels(build, x);
  Expr level = build.add(build.call("round", {build.div(x, scale)}), zero);
  Expr kept = build.call("clip", {level}, {{"a_min", 0.0}, {"a_max", 255.0}});
  return build.mul(build.sub(kept, zero), scale);
}

}  // namespace relay::frontend
