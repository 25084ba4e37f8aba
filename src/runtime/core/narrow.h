// Element types that are narrower than what processors compute with: floats of 8 and 4 bits, integers
// of 4 and 2. Each element has a byte of its own; its unused bits are ignored, and written as the sign
// of integers, else as zero.
//
//   const NarrowFormat& f = narrow_format(DType::kFloat8E4M3FN);
//   narrow_to_double(f, 0x38);       // 1.0
//   double_to_narrow(f, 1000, true);  // 0x7E: 448, the greatest
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/core/dtype.h"

namespace relay::runtime {

// A float is sign, exponent and mantissa from the highest bit down; e8m0 is an exponent alone. An
// integer has its value in the lowest bits.
struct NarrowFormat {
  std::string_view name;
  bool is_float = true;
  bool is_signed = true;
  int bits = 8;
  int mantissa = 0;  // bits
  int bias = 0;      // of the exponent
  // Bits below the sign of the greatest finite float, of infinity and of NaN; -1 where there is none.
  int greatest = 0, infinity = -1, nan = -1;
  // NaN is what would be minus zero; there is no minus zero.
  bool nan_is_minus_zero = false;

  bool only_exponent() const { return is_float && !is_signed; }
};

// `code` is a narrow one.
const NarrowFormat& narrow_format(DType::Code code);

double narrow_to_double(const NarrowFormat& f, uint8_t stored);
// The nearest, ties to even. What is too large becomes the greatest when `saturate` is set or there is
// nothing else, otherwise infinity or NaN. Integers are cut off towards zero and wrap.
uint8_t double_to_narrow(const NarrowFormat& f, double value, bool saturate);

}  // namespace relay::runtime
