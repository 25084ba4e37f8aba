// The text form of the tensor IR, for reading and for golden tests.
//
//   def s(a: float32[4, 8]) -> (s: float32[4]):
//     for i in range(4):
//       for r in range(8):
//         block s(i = i_1, r: reduce = r_1):
//           reads a[i, r]
//           writes s[i]
//           init:
//             s[i] = 0f
//           s[i] = s[i] + a[i, r]
//
// Variables that share a name are distinguished by a suffix. Integers are int64 unless they say
// otherwise (`int32(3)`), floats with an f float32. `//` and `%%` round towards minus infinity, `/`
// and `%` towards zero. A vector index is `base:stride:xLANES` or `xLANES(value)`.
#pragma once

#include <string>

#include "tir/stmt.h"

namespace relay::tir {

// Expressions, statements, functions, regions, buffers; anything of the tensor IR.
std::string text_of(const NodeRef& node);

}  // namespace relay::tir
