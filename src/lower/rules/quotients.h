// Eliminates quotients that the sizes of axes decide.
#pragma once

#include "tir/stmt.h"

namespace relay {

// Simplifies quotients and remainders while a block's iterations are whole: after a reshape (n*h, m) to (n, h, m)
//   x[((i*h + j)*m + k) // m // h, ...]   becomes   x[i, ...]
// as k is below m. By open sizes, every lane would divide once the iterations are split, as only a mask says so then; by
// constants, no rule would see along which axes the tensor is read. Those by constants stay unless nothing is divided any more.
tir::PrimFunc without_quotients(const tir::PrimFunc& f);

}  // namespace relay
