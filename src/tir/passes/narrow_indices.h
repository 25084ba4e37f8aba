// Index arithmetic in 32 bits, for targets whose index width that is.
//
//   before: for i in 0..n:
//             a[i * 4 + 3] = b[i]
//   after:  check(n <= 2147483647); check(n * 4 - 1 <= 2147483647)
//           let n_32 = int32(n)
//           for i_32 in int32 0..n_32:
//             a[int64(i_32 * 4 + 3)] = b[int64(i_32)]
//
// Takes lowered functions (tir/lower_loops.h). The sizes that a caller passes stay 64 bits wide and are converted at the
// entry, and an access widens its finished index to an address. An expression is narrowed when constants bound it within 32
// bits, or when sizes do: the function then begins with a check that ends it with RELAY_KERNEL_INDEX_WIDTH. What neither
// bounds, as an index that is data, is computed in 64 bits as before. A nest that becomes instructions of a matrix unit or
// shuffles (tir/matrix_nest.h, tir/transposed_nest.h) is narrowed as a whole, or stays as it is where one of its indices
// needs 64 bits.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

PrimFunc narrow_indices(const PrimFunc& f);

// A buffer of constant size that 32-bit indices do not reach.
struct LargeBuffer {
  Buffer buffer;
  int64_t elements;
};
// The first parameter or allocation of more elements than indices of so many bits count, or of more bytes than addresses do;
// nullopt when there is none.
std::optional<LargeBuffer> buffer_beyond(const PrimFunc& f, int index_bits, int pointer_bits);

}  // namespace relay::tir
