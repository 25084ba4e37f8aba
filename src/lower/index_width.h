// Lowered kernels in integers of the width that the target counts elements with.
#pragma once

#include "base/source.h"
#include "target/target.h"
#include "tir/stmt.h"

namespace relay {

// The kernel with index arithmetic in the target's width: the same for 64 bits, else narrowed (tir/passes/narrow_indices.h).
// Throws UserError E0408 at `span` for a tensor that needs wider indices or addresses.
tir::PrimFunc with_index_width(const tir::PrimFunc& lowered, const Target& target,
                               const Span& span);

// Throws UserError E0408 when the target's addresses do not reach so many bytes of `what`.
void check_pointer_width(const std::string& what, int64_t bytes, const Target& target);

}  // namespace relay
