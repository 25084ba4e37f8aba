// Numbers as functions on strings take them (runtime/core/string_functions.h).
#pragma once

#include "ops/common.h"
#include "runtime/core/print.h"

namespace relay::ops {

inline PrimExpr text_word(int64_t v) { return tir::imm(runtime::DType::Int(64), v); }
inline PrimExpr text_number_of(runtime::DType t) {
  return text_word(static_cast<int64_t>(*runtime::text_number(t)));
}

// The word of a number: an int64 or a float64.
inline PrimExpr number_word(const PrimExpr& x) {
  const bool is_float = x->dtype.is_floating();
  return tir::cast(is_float ? runtime::DType::Float(64) : runtime::DType::Int(64), x);
}

}  // namespace relay::ops
