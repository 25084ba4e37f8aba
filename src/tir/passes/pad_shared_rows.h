// Rows of shared memory of a group begin in different banks.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// Shared memory has 32 banks of 4 bytes, which items access side by side. Rows of a multiple of 32 bytes get 16 bytes
// more, so that 16 bytes of each of eight rows lie in different banks, and vectors of 16 bytes stay aligned.
//
//   before:  allocate tile: float32[16, 128] in shared
//   after:   allocate tile: float32[16, 132] in shared
//
// Always legal.
PrimFunc pad_shared_rows(const PrimFunc& f);

// The bytes of such a row.
int64_t padded_row_bytes(int64_t elements, int64_t element_bytes);

}  // namespace relay::tir
