// Host code (hostcode/code.h) to machine code with LLVM.
//
// A body becomes an internal function of the convention `tailcc`: the context, then a word for each argument; it returns
// a relay_native_result. Locals become values in SSA form by LLVM's own passes. Counting, the forms of immediates, tags
// and fields are inline; what is rare, allocates or frees is a helper of the context (runtime/core/native_abi.h). The
// module exports one object, the descriptor of its entries, and refers to no name outside, so an artifact still needs the
// C library alone.
#pragma once

#include <string>

#include "codegen/backend.h"
#include "hostcode/code.h"

namespace relay::codegen {

// See Backend.
std::optional<size_t> most_host_params(const Target& target);

// One object file; the same for the same input. What `cache` (may be null) holds is taken from there.
ObjectCode generate_host_object(const hostcode::Program& program, const Target& target,
                                KernelCache* cache);

std::string host_code_text(const hostcode::Program& program, const Target& target);

}  // namespace relay::codegen
