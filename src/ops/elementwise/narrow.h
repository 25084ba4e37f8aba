// Elements of narrow types (runtime/core/narrow.h) in kernels, where they are the bytes that they are
// stored in.
#pragma once

#include <string>

#include "ops/common.h"

namespace relay::ops {

// What the stored byte stands for: a float32, or an int8 or uint8.
PrimExpr widened(runtime::DType from, const PrimExpr& stored);

// The byte of the nearest element to a number; floats beyond the greatest as `saturate` says. Integers
// wrap, floats on their way to them are cut off towards zero. `round_mode` is that of float8_e8m0fnu:
// nearest (halves up), up or down.
PrimExpr narrowed(runtime::DType to, const PrimExpr& value, bool saturate,
                  const std::string& round_mode);

}  // namespace relay::ops
