#include "runtime/core/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace relay::runtime {

const NarrowFormat& narrow_format(DType::Code code) {
  static constexpr NarrowFormat formats[] = {
      {.name = "float8_e4m3fn", .mantissa = 3, .bias = 7, .greatest = 0x7E, .nan = 0x7F},
      {.name = "float8_e4m3fnuz",
       .mantissa = 3,
       .bias = 8,
       .greatest = 0x7F,
       .nan_is_minus_zero = true},
      {.name = "float8_e5m2",
       .mantissa = 2,
       .bias = 15,
       .greatest = 0x7B,
       .infinity = 0x7C,
       .nan = 0x7E},
      {.name = "float8_e5m2fnuz",
       .mantissa = 2,
       .bias = 16,
       .greatest = 0x7F,
       .nan_is_minus_zero = true},
      {.name = "float8_e8m0fnu",
       .is_signed = false,
       .mantissa = 0,
       .bias = 127,
       .greatest = 0xFE,
       .nan = 0xFF},
      {.name = "float4_e2m1fn", .bits = 4, .mantissa = 1, .bias = 1, .greatest = 0x7},
      {.name = "int4", .is_float = false, .bits = 4},
      {.name = "uint4", .is_float = false, .is_signed = false, .bits = 4},
      {.name = "int2", .is_float = false, .bits = 2},
      {.name = "uint2", .is_float = false, .is_signed = false, .bits = 2},
      {.name = "float6_e2m3fn", .bits = 6, .mantissa = 3, .bias = 1, .greatest = 0x1F},
      {.name = "float6_e3m2fn", .bits = 6, .mantissa = 2, .bias = 3, .greatest = 0x1F},
  };
  return formats[std::ranges::find(DType::kNarrow, code) - std::begin(DType::kNarrow)];
}

double narrow_to_double(const NarrowFormat& f, uint8_t stored) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  int low = stored & ((1 << f.bits) - 1);
  if (!f.is_float) return f.is_signed && (low >> (f.bits - 1)) != 0 ? low - (1 << f.bits) : low;
  if (f.only_exponent()) return low == f.nan ? kNan : std::ldexp(1.0, low - f.bias);
  int sign = low >> (f.bits - 1), magnitude = low & ((1 << (f.bits - 1)) - 1);
  double value = 0;
  if (f.nan_is_minus_zero && sign != 0 && magnitude == 0) return kNan;
  if (magnitude > f.greatest) {
    value = magnitude == f.infinity ? std::numeric_limits<double>::infinity() : kNan;
  } else {
    int exponent = magnitude >> f.mantissa, fraction = magnitude & ((1 << f.mantissa) - 1);
    if (exponent > 0) fraction += 1 << f.mantissa;
    value = std::ldexp(fraction, std::max(exponent, 1) - f.bias - f.mantissa);
  }
  return sign != 0 ? -value : value;
}

uint8_t double_to_narrow(const NarrowFormat& f, double value, bool saturate) {
  if (!f.is_float) {
    double whole = std::isfinite(value) ? std::fmod(std::trunc(value), 256) : 0;
    int low = static_cast<int>(whole) & ((1 << f.bits) - 1);
    bool negative = f.is_signed && (low >> (f.bits - 1)) != 0;
    return static_cast<uint8_t>(negative ? low - (1 << f.bits) : low);
  }
  const int sign = std::signbit(value) ? 1 << (f.bits - 1) : 0;
  if (f.only_exponent()) {
    if (std::isnan(value) || value < 0) return static_cast<uint8_t>(f.nan);
    int exponent = 0;
    double fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    int code = exponent - 1 + f.bias + (fraction >= 0.75 ? 1 : 0);
    if (value == 0) code = 0;
    if (std::isinf(value)) code = f.greatest + 1;
    if (code > f.greatest) code = saturate ? f.greatest : f.nan;
    return static_cast<uint8_t>(std::max(code, 0));
  }
  if (std::isnan(value)) {
    return static_cast<uint8_t>(f.nan_is_minus_zero ? 1 << (f.bits - 1)
                                : f.nan < 0         ? 0
                                                    : f.nan | sign);
  }
  // Beyond 2^60 all that follows is the same.
  double size = std::min(std::fabs(value), 0x1p60);
  int exponent = size == 0 ? 1 - f.bias : std::max(std::ilogb(size), 1 - f.bias);
  // Units of the last place; one too many carries into the exponent.
  auto units = static_cast<int>(std::nearbyint(std::ldexp(size, f.mantissa - exponent)));
  int code = ((exponent + f.bias - 1) << f.mantissa) + units;
  if (code > f.greatest) {
    if (saturate || (f.infinity < 0 && f.nan < 0 && !f.nan_is_minus_zero)) {
      code = f.greatest;
    } else if (f.nan_is_minus_zero) {
      return static_cast<uint8_t>(1 << (f.bits - 1));
    } else {
      code = f.infinity >= 0 ? f.infinity : f.nan;
    }
  }
  if (f.nan_is_minus_zero && code == 0) return 0;
  return static_cast<uint8_t>(code | sign);
}

}  // namespace relay::runtime
