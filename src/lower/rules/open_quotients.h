// Eliminates quotients of axes of open sizes.
#pragma once

#include "tir/stmt.h"

namespace relay {

// Simplifies quotients and remainders by open sizes while a block's iterations are whole: after a reshape (n*h, m) to (n, h, m)
//   x[((i*h + j)*m + k) // m // h, ...]   becomes   x[i, ...]
// as k is below m. Once the iterations are split, only a mask says so, and every lane would divide.
tir::PrimFunc without_open_quotients(const tir::PrimFunc& f);

}  // namespace relay
