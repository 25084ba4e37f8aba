// Kernels that write over some of their inputs.
//
//   out = data              (a copy)             for i: out[index[i]] = update[i]
//   for i: out[index[i]] = update[i]        ->
//
// A kernel that begins with a copy of an input, and then writes over a part of it, needs no copy
// where the output is in the memory of that input: what is not written is there already. So a cache
// is updated in the time that its new lines take.
#pragma once

#include <optional>
#include <span>

#include "lower/compose.h"

namespace relay {

// Whether a store writes the element of `from` at the same indices: to[i] = from[i].
bool copies_element(const tir::StoreNode& s, const tir::BufferNode* from,
                    const tir::BufferNode* to);

// The kernel for outputs in the memory of inputs, as its ComposedKernel::in_place then says: without the
// copies, under its name with "_in_place" behind it. Each output is in the memory of one input, and no
// two of one. nullopt where the kernel reads such an input for anything else, so that the order would matter.
std::optional<ComposedKernel> written_over(const ComposedKernel& kernel,
                                           std::span<const InPlace> pairs);

}  // namespace relay
