#include "ops/elementwise/narrow.h"

#include <cmath>

#include "runtime/core/narrow.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using runtime::NarrowFormat;

constexpr DType kF32 = DType::Float(32), kI32 = DType::Int(32);
constexpr int kMantissa = 23, kBias = 127;  // of float32

PrimExpr i32(int64_t v) { return imm(kI32, v); }
PrimExpr f32(double v) { return imm_float(kF32, v); }
PrimExpr float_of(const PrimExpr& bits) { return tir::call("bitcast", kF32, {bits}); }
PrimExpr bits_of(const PrimExpr& value) { return tir::call("bitcast", kI32, {value}); }
PrimExpr low_bits(const PrimExpr& v, int count) {
  return binary(BinaryOp::BitAnd, v, i32((1 << count) - 1));
}
PrimExpr named_value(const char* name, const PrimExpr& value,
                     const std::function<PrimExpr(const PrimExpr&)>& body) {
  tir::Var v = var(name, value->dtype);
  return let(v, value, body(v));
}

// An integer of `bits` bits, the sign spread over the byte.
PrimExpr integer(const NarrowFormat& f, const PrimExpr& wide) {
  PrimExpr low = low_bits(tir::cast(kI32, wide), f.bits);
  if (!f.is_signed) return tir::cast(DType::UInt(8), low);
  PrimExpr whole = i32(1 << f.bits), half = i32(1 << (f.bits - 1));
  return tir::cast(DType::Int(8), select(ge(low, half), low - whole, low));
}

PrimExpr decoded(const NarrowFormat& f, const PrimExpr& stored) {
  PrimExpr low = low_bits(tir::cast(kI32, stored), f.bits);
  if (f.only_exponent()) {
    // 2^-127 is below the normal floats.
    PrimExpr value = select(eq(low, i32(0)), f32(0x1p-127),
                            float_of(binary(BinaryOp::Shl, low, i32(kMantissa))));
    return select(eq(low, i32(f.nan)), f32(NAN), value);
  }
  PrimExpr magnitude = low_bits(low, f.bits - 1);
  PrimExpr is_negative = ge(low, i32(1 << (f.bits - 1)));
  // Exponent and mantissa moved to where float32 has them, and the bias made up for.
  PrimExpr normal = float_of(binary(BinaryOp::Shl, magnitude, i32(kMantissa - f.mantissa)) +
                             i32((kBias - f.bias) << kMantissa));
  PrimExpr small = tir::cast(kF32, magnitude) * f32(std::ldexp(1.0, 1 - f.bias - f.mantissa));
  PrimExpr value = select(lt(magnitude, i32(1 << f.mantissa)), small, normal);
  if (f.nan >= 0) value = select(gt(magnitude, i32(f.greatest)), f32(NAN), value);
  if (f.infinity >= 0) value = select(eq(magnitude, i32(f.infinity)), f32(INFINITY), value);
  value = select(is_negative, f32(0) - value, value);
  // Zero less zero is not minus zero.
  value = select(logical_and(is_negative, eq(magnitude, i32(0))), f32(-0.0), value);
  if (f.nan_is_minus_zero) value = select(eq(low, i32(1 << (f.bits - 1))), f32(NAN), value);
  return value;
}

PrimExpr exponent_of(const NarrowFormat& f, const PrimExpr& value, bool saturate,
                     const std::string& mode) {
  return named_value("bits", bits_of(value), [&](const PrimExpr& bits) {
    PrimExpr code = binary(BinaryOp::Shr, bits, i32(kMantissa)), rest = low_bits(bits, kMantissa);
    if (mode == "up") code = code + tir::cast(kI32, gt(rest, i32(0)));
    if (mode == "nearest") code = code + tir::cast(kI32, ge(rest, i32(1 << (kMantissa - 1))));
    code = select(gt(code, i32(f.greatest)), i32(saturate ? f.greatest : f.nan), code);
    PrimExpr impossible = logical_or(ne(value, value), lt(value, f32(0)));
    return tir::cast(DType::UInt(8), select(impossible, i32(f.nan), code));
  });
}

PrimExpr encoded(const NarrowFormat& f, const PrimExpr& value, bool saturate) {
  const int sign_bit = 1 << (f.bits - 1);
  return named_value("bits", bits_of(value), [&](const PrimExpr& bits) {
    // Beyond 2^60 all that follows is the same.
    PrimExpr size = min(float_of(binary(BinaryOp::BitAnd, bits, i32(0x7FFFFFFF))), f32(0x1p60));
    PrimExpr code = named_value("size", size, [&](const PrimExpr& a) {
      PrimExpr exponent =
          max(binary(BinaryOp::Shr, bits_of(a), i32(kMantissa)) - i32(kBias), i32(1 - f.bias));
      return named_value("exponent", exponent, [&](const PrimExpr& e) {
        // One unit of the last place upside down; units too many carry into the exponent.
        PrimExpr per_unit =
            float_of(binary(BinaryOp::Shl, i32(kBias + f.mantissa) - e, i32(kMantissa)));
        PrimExpr units = tir::cast(kI32, tir::call("round", kF32, {a * per_unit}));
        return binary(BinaryOp::Shl, e + i32(f.bias - 1), i32(f.mantissa)) + units;
      });
    });
    return named_value("code", code, [&](const PrimExpr& c) {
      bool clamps = saturate || (f.infinity < 0 && f.nan < 0 && !f.nan_is_minus_zero);
      PrimExpr signed_bit = select(lt(bits, i32(0)), i32(sign_bit), i32(0));
      PrimExpr beyond = gt(c, i32(f.greatest));
      int too_large = clamps ? f.greatest : f.infinity >= 0 ? f.infinity : f.nan;
      PrimExpr magnitude = select(beyond, i32(too_large), c);
      PrimExpr out = binary(BinaryOp::BitOr, magnitude, signed_bit);
      if (f.nan_is_minus_zero) {
        out = select(eq(magnitude, i32(0)), i32(0), out);
        if (!clamps) out = select(beyond, i32(sign_bit), out);
      }
      int not_a_number = f.nan_is_minus_zero ? sign_bit : f.nan >= 0 ? f.nan : 0;
      return tir::cast(DType::UInt(8), select(ne(value, value), i32(not_a_number), out));
    });
  });
}

}  // namespace

PrimExpr widened(DType from, const PrimExpr& stored) {
  const NarrowFormat& f = runtime::narrow_format(from.code);
  return f.is_float ? decoded(f, stored) : integer(f, stored);
}

PrimExpr narrowed(DType to, const PrimExpr& value, bool saturate, const std::string& round_mode) {
  const NarrowFormat& f = runtime::narrow_format(to.code);
  if (!f.is_float) return integer(f, value);
  return named_value("value", tir::cast(kF32, value), [&](const PrimExpr& v) {
    return f.only_exponent() ? exponent_of(f, v, saturate, round_mode) : encoded(f, v, saturate);
  });
}

}  // namespace relay::ops
