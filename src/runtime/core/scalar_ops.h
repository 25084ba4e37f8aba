// Operations on scalars in registers: the arithmetic that needs no kernel.
#pragma once

#include <cstdint>

#include "runtime/core/dtype.h"

namespace relay::runtime {

// Integer operations. Add, subtract and multiply wrap; floor_div and floor_mod round towards minus
// infinity, div and mod towards zero; they fail on a zero divisor. Shifts are by the second
// operand's low six bits, to the right with the sign.
enum class IntOp : uint8_t {
  add,
  sub,
  mul,
  floor_div,
  floor_mod,
  min,
  max,
  eq,
  ne,
  lt,
  le,
  both,
  either,
  div,
  mod,
  bit_and,
  bit_or,
  bit_xor,
  shift_left,
  shift_right,
};
inline constexpr int kIntOpCount = static_cast<int>(IntOp::shift_right) + 1;

// Operations on floats, as IEEE 754 says; comparisons give 0 or 1.
enum class FloatOp : uint8_t { add, sub, mul, div, eq, ne, lt, le };
inline constexpr int kFloatOpCount = static_cast<int>(FloatOp::le) + 1;

// From an integer or bool to a float, and between the floats.
enum class ScalarConversion : uint8_t {
  int_to_float32,
  int_to_float64,
  float32_to_float64,
  float64_to_float32
};
inline constexpr int kScalarConversionCount =
    static_cast<int>(ScalarConversion::float64_to_float32) + 1;

// The operations as text.
constexpr const char* text_of(IntOp op) {
  constexpr const char* texts[kIntOpCount] = {"+",   "-",  "*", "//", "%",   "min", "max",
                                              "==",  "!=", "<", "<=", "and", "or",  "div",
                                              "mod", "&",  "|", "^",  "<<",  ">>"};
  return texts[static_cast<int>(op)];
}
constexpr const char* text_of(FloatOp op) {
  constexpr const char* texts[kFloatOpCount] = {"+", "-", "*", "/", "==", "!=", "<", "<="};
  return texts[static_cast<int>(op)];
}
constexpr const char* text_of(ScalarConversion conversion) {
  constexpr const char* texts[kScalarConversionCount] = {
      "int to float32", "int to float64", "float32 to float64", "float64 to float32"};
  return texts[static_cast<int>(conversion)];
}

// The dtypes that a scalar in an integer register may have.
constexpr bool is_scalar_dtype(DType t) {
  return t == DType::Bool() || t == DType::Int(32) || t == DType::Int(64) ||
         t == DType::Float(32) || t == DType::Float(64);
}

}  // namespace relay::runtime
