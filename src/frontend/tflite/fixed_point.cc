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

// (a + b) / 2, halves away from zero.
int32_t half_sum(int32_t a, int32_t b) {
  const int64_t sum = int64_t{a} + b;
  return static_cast<int32_t>((sum + (sum >= 0 ? 1 : -1)) / 2);
}

// 2 / (1 + a) - 1 or 1 / (1 + a), by three steps of Newton's method from 48/17 - 32/17 * (1 + a) / 2; two bits stand
// before the point.
int32_t inverse_of_half(int32_t a) {
  const int32_t half = half_sum(a, kMax);
  int32_t x = 1515870810 + doubling_high_mul(half, -1010580540);
  for (int i = 0; i < 3; ++i) {
    const int32_t rest = (1 << 29) - doubling_high_mul(half, x);
    x += times_power(doubling_high_mul(x, rest), 2);
  }
  return x;
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

int32_t multiply(int32_t x, Multiplier m) {
  const int left = std::max(m.shift, 0), right = std::max(-m.shift, 0);
  const auto wide = static_cast<int32_t>(static_cast<uint32_t>(x) << left);
  return divide_by_power(doubling_high_mul(wide, m.value), right);
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

int32_t one_over_one_plus(int32_t a) { return times_power(inverse_of_half(a), 1); }

int32_t logistic(int32_t a, int integer_bits) {
  if (a == 0) return 1 << 30;
  const int32_t on_positive = one_over_one_plus(exp_on_negative(a > 0 ? -a : a, integer_bits));
  return a > 0 ? on_positive : kMax - on_positive;
}

int32_t tanh(int32_t a, int integer_bits) {
  if (a == 0) return 0;
  // (1 - e) / (1 + e) = 2 / (1 + e) - 1, where e = exp(-2 |a|) has a bit more before the point.
  const int32_t e = exp_on_negative(a > 0 ? -a : a, integer_bits + 1);
  const int32_t on_positive = times_power(inverse_of_half(e) - (1 << 29), 2);
  return a > 0 ? on_positive : -on_positive;
}

}  // namespace relay::frontend::tflite
