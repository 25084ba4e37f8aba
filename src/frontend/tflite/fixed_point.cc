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

}  // namespace relay::frontend::tflite
