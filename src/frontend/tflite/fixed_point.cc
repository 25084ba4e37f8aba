#include "frontend/tflite/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace relay::frontend::tflite {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
constexpr int32_t kMin = std::numeric_limits<int32_t>::min();

int32_t saturated(int64_t v) { return static_cast<int32_t>(std::clamp<int64_t>(v, kMin, kMax)); }

// a * 2^n, saturated.
int32_t times_power(int32_t a, int n) { return saturated(int64_t{a} << n); }

// exp(a) for a in [-1/4, 0), both without integer bits: a Taylor polynomial around -1/8.
int32_t exp_on_quarter(int32_t a) {
  constexpr int32_t kExpOfMinusEighth = 1895147668, kThird = 715827883;
  const int32_t x = a + (1 << 28);
  const int32_t x2 = doubling_high_mul(x, x), x3 = doubling_high_mul(x2, x);
  const int32_t x4 = doubling_high_mul(x2, x2);
  const int32_t higher = doubling_high_mul(divide_by_power(x4, 2) + x3, kThird) + x2;
  return kExpOfMinusEighth + doubling_high_mul(kExpOfMinusEighth, x + divide_by_power(higher, 1));
}

}  // namespace

Multiplier multiplier_of(double real) {
  if (!(real > 0)) return {};
  real = std::min(real, std::ldexp(1.0, 30));  // what is beyond saturates in any case
  Multiplier m;
  const double fraction = std::frexp(real, &m.shift);
  auto fixed = static_cast<int64_t>(std::round(fraction * std::ldexp(1.0, 31)));
  if (fixed == int64_t{1} << 31) {
    fixed /= 2;
    ++m.shift;
  }
  if (m.shift < -31) return {};
  m.value = static_cast<int32_t>(fixed);
  return m;
}

int32_t doubling_high_mul(int32_t a, int32_t b) {
  if (a == kMin && b == kMin) return kMax;
  return static_cast<int32_t>((int64_t{a} * b + (int64_t{1} << 30)) >> 31);
}

int32_t divide_by_power(int32_t x, int n) {
  const auto mask = static_cast<int32_t>((int64_t{1} << n) - 1);
  const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
  return (x >> n) + ((x & mask) > threshold ? 1 : 0);
}

int32_t exp_on_negative(int32_t a, int integer_bits) {
  if (a == 0) return kMax;
  const int fraction = 31 - integer_bits;
  const int32_t quarter = 1 << (fraction - 2);
  const int32_t modulo = (a & (quarter - 1)) - quarter;
  int32_t result = exp_on_quarter(times_power(modulo, integer_bits));
  const int32_t remainder = modulo - a;
  // exp(-2^k) for k from -2 on.
  constexpr int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308,
                                  39332535,   720401,     242};
  for (int k = -2; k < 5 && k < integer_bits; ++k) {
    if (remainder & (int32_t{1} << (fraction + k)))
      result = doubling_high_mul(result, kFactors[k + 2]);
  }
  return result;
}

// ---- 16 bits
//
// A number with n integer bits is its value times 2^(15 - n). Sums wrap where their range is known to fit, and saturate
// elsewhere, as gemmlowp's do.

namespace {

constexpr int32_t kMax16 = std::numeric_limits<int16_t>::max();
constexpr int32_t kMin16 = std::numeric_limits<int16_t>::min();

int16_t saturated_16(int32_t v) { return static_cast<int16_t>(std::clamp(v, kMin16, kMax16)); }

// a * b / 2^15, halves up, saturated.
int16_t high_mul_16(int16_t a, int16_t b) {
  return saturated_16((int32_t{a} * b + (1 << 14)) >> 15);
}

// a * 2^n, saturated; a / 2^-n, halves away from zero, for a negative n.
int16_t by_power_16(int16_t a, int n) {
  return n >= 0 ? saturated_16(int32_t{a} * (1 << n))
                : static_cast<int16_t>(divide_by_power(a, -n));
}

// The upper half of a constant of 32 bits, rounded.
int16_t upper_16(int32_t v) { return static_cast<int16_t>(divide_by_power(v, 16)); }

// exp(a) for a in [-1/4, 0), both without integer bits.
int16_t exp_on_quarter_16(int16_t a) {
  const int16_t constant = upper_16(1895147668), third = upper_16(715827883);
  const auto x = static_cast<int16_t>(a + (1 << 12));
  const int16_t x2 = high_mul_16(x, x), x3 = high_mul_16(x2, x), x4 = high_mul_16(x2, x2);
  const auto sum = static_cast<int16_t>(by_power_16(x4, -2) + x3);
  const auto higher = static_cast<int16_t>(high_mul_16(sum, third) + x2);
  const auto rest = static_cast<int16_t>(x + by_power_16(higher, -1));
  return saturated_16(constant + high_mul_16(constant, rest));
}

// exp(a) for a of 0 or less.
int16_t exp_on_negative_16(int16_t a, int integer_bits) {
  if (a == 0) return static_cast<int16_t>(kMax16);
  const int fraction = 15 - integer_bits;
  const auto quarter = static_cast<int16_t>(1 << (fraction - 2));
  const auto modulo = static_cast<int16_t>((a & (quarter - 1)) - quarter);
  int16_t result = exp_on_quarter_16(by_power_16(modulo, integer_bits));
  const int32_t remainder = modulo - a;
  constexpr int32_t kFactors[] = {1672461947, 1302514674, 790015084, 290630308,
                                  39332535,   720401,     242};
  for (int k = -2; k < 5 && k < integer_bits; ++k) {
    if (remainder & (1 << (fraction + k))) result = high_mul_16(result, upper_16(kFactors[k + 2]));
  }
  if (integer_bits > 5 && a < -(1 << (fraction + 5))) return 0;
  return result;
}

// 2 / (1 + a) with two integer bits, for a in [0, 1]: Newton's method from 48/17 - 32/17 * (1 + a) / 2.
int16_t inverse_of_half_sum_16(int16_t a) {
  const int32_t sum = int32_t{a} + kMax16;
  const auto half = static_cast<int16_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
  auto x = static_cast<int16_t>(upper_16(1515870810) + high_mul_16(half, upper_16(-1010580540)));
  for (int i = 0; i < 3; ++i) {
    const auto rest = static_cast<int16_t>((1 << 13) - high_mul_16(half, x));
    x = static_cast<int16_t>(x + by_power_16(high_mul_16(x, rest), 2));
  }
  return x;
}

}  // namespace

int16_t logistic_16(int16_t a, int integer_bits) {
  if (a == 0) return 1 << 14;
  // The negative of the least number is itself.
  const auto below = static_cast<int16_t>(a > 0 ? -a : a);
  const int16_t of_positive =
      by_power_16(inverse_of_half_sum_16(exp_on_negative_16(below, integer_bits)), 1);
  return a > 0 ? of_positive : static_cast<int16_t>(kMax16 - of_positive);
}

int16_t tanh_16(int16_t a, int integer_bits) {
  if (a == 0) return 0;
  const auto below = static_cast<int16_t>(a > 0 ? -a : a);
  // (1 - e) / (1 + e) = 2 / (1 + e) - 1, of e = exp(-2 |a|).
  const int16_t e = exp_on_negative_16(below, integer_bits + 1);
  const int16_t y = by_power_16(static_cast<int16_t>(inverse_of_half_sum_16(e) - (1 << 13)), 2);
  return static_cast<int16_t>(a > 0 ? y : -y);
}

}  // namespace relay::frontend::tflite
