// One index for each access.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Row-major offsets in elements take the place of multi-dimensional indices; the buffers keep
// their shapes, which say how large they are.
//
//   before:  out[i, j] = a[j, i]      (8 columns)
//   after:   out[i * 8 + j] = a[j * 4 + i]
//
// Registers of a group (tir/thread_nests.h) keep their indices: those in front name an item, and the rest an element of it.
// Always legal.
PrimFunc flatten_buffers(const PrimFunc& f);

}  // namespace relay::tir
