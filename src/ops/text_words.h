// Numbers as functions on strings take them (runtime/core/string_functions.h).
#pragma once

#include <optional>

#include "ops/common.h"
#include "runtime/core/string_functions.h"

namespace relay::ops {

// The kind of number; nothing for what is none.
inline std::optional<runtime::TextNumber> text_number(runtime::DType t) {
  using runtime::TextNumber;
  if (t.is_bool()) return TextNumber::Bool;
  if (t.is_int()) return TextNumber::Int;
  if (t.is_uint()) return TextNumber::UInt;
  if (t.is_bfloat16()) return TextNumber::BFloat16;
  if (!t.is_floating()) return std::nullopt;
  return t.bits == 16   ? TextNumber::Float16
         : t.bits == 32 ? TextNumber::Float32
                        : TextNumber::Float64;
}

inline PrimExpr text_word(int64_t v) { return tir::imm(runtime::DType::Int(64), v); }
inline PrimExpr text_number_of(runtime::DType t) {
  return text_word(static_cast<int64_t>(*text_number(t)));
}

// The word of a number: an int64 or a float64.
inline PrimExpr number_word(const PrimExpr& x) {
  const bool is_float = x->dtype.is_floating();
  return tir::cast(is_float ? runtime::DType::Float(64) : runtime::DType::Int(64), x);
}

}  // namespace relay::ops
