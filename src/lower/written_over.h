// Kernels that write over one of their inputs.
//
//   out = data              (a copy)             for i: out[index[i]] = update[i]
//   for i: out[index[i]] = update[i]        ->
//
// A kernel that begins with a copy of an input, and then writes over a part of it, needs no copy
// where the output is in the memory of that input: what is not written is there already. So a cache
// is updated in the time that its new lines take.
#pragma once

#include <optional>

#include "lower/compose.h"

namespace relay {

// Whether a store writes the element of `from` at the same indices: to[i] = from[i].
bool copies_element(const tir::StoreNode& s, const tir::BufferNode* from,
                    const tir::BufferNode* to);

// The kernel for an output in the memory of the input, by its place among func->params, as its
// ComposedKernel::in_place then says: without the copies, under its name with "_in_place" behind it.
// nullopt where the kernel reads the input for anything else, so that the order would matter.
std::optional<ComposedKernel> written_over(const ComposedKernel& kernel, size_t input);

}  // namespace relay
