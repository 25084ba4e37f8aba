// Arithmetic of 32-bit integers as gemmlowp rounds it: factors for programs, and functions for tables.
#pragma once

#include <cstdint>

namespace relay::frontend::tflite {

// A real factor as value * 2^(shift - 31), where the value is 0 or from 2^30 to 2^31 - 1.
struct Multiplier {
  int32_t value = 0;
  int shift = 0;
};
Multiplier multiplier_of(double real);

// a * b / 2^31, halves up, saturated.
int32_t doubling_high_mul(int32_t a, int32_t b);
// x / 2^n, halves away from zero.
int32_t divide_by_power(int32_t x, int n);

// The exponential of a fixed-point number of 0 or less with `integer_bits` bits before the point; the result has none.
int32_t exp_on_negative(int32_t a, int integer_bits);

// Functions of 16-bit fixed-point numbers with `integer_bits` bits before the point; the results have none.
int16_t logistic_16(int16_t a, int integer_bits);
int16_t tanh_16(int16_t a, int integer_bits);

}  // namespace relay::frontend::tflite
