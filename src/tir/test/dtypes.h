// The dtypes of most tests.
#pragma once

#include "runtime/core/dtype.h"

namespace relay::tir {

inline const runtime::DType f32 = runtime::DType::Float(32);
inline const runtime::DType f64 = runtime::DType::Float(64);
inline const runtime::DType i64 = runtime::DType::Int(64);

}  // namespace relay::tir
