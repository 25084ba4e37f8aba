// No access far from its buffer.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

// A vector load that is masked by the Selects around it or by a predicate, and a vector store with
// a predicate, are done only when a lane is on, unless they provably point near their buffer
// (tir/access.h): then the lanes that are on are in the buffer, and so the address is near it. The load of one element for
// all lanes is done only when a lane is on, unless it provably is in the buffer. A
// Select that chooses for all lanes at once becomes a branch where that helps.
//
//   before:  pad[j * 64 + k:1:x16] = select(x16(j >= 2), a[(j - 2) * 64 + k:1:x16], x16(0f))
//   after:   pad[j * 64 + k:1:x16] = select(j >= 2, a[(j - 2) * 64 + k:1:x16], x16(0f))
//
// Always legal: a load without lanes gives zeros, a store without lanes does nothing. It costs a
// branch where the bounds could not be proved. Accesses have one index, and nothing may move loads
// out of Selects afterwards: it is the last of the lowering passes.
PrimFunc guard_accesses(const PrimFunc& f);

}  // namespace relay::tir
