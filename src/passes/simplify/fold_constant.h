// FoldConstant: computes at compile time what depends on constants and known sizes only.
//
// before                                    after
//   %x * (const(2f) + const(3f))              %x * const(5f)
//   let %c = const(1f); add(%x, %c)           add(%x, const(1f))
//   if (True) { %a } else { %b }              %a
//   (%a, %b).0                                %a
//   cumsum(ones(shape=[300, 700]), axis=1)    const
//   take(shape_of(%x), const(1))              const(3), where %x: Tensor[(n, 3), float32]
//   match (Some(%a)) { Some(%x) => %x, ... }  let %x = %a; %x
//
// Legal for pure operators whose arguments are all constants (or tuples of them), and for small
// integer tensors of which every element follows from sizes (known_values.h). Large intermediate
// tensors are not kept (evaluate_constants.h).
// Loses when the result is much larger than what it is made of: results above
// `relay.FoldConstant.max_bytes` (default 1 GiB), or above 64 KiB and more than 16 times the bytes
// of the arguments (zeros, arange, broadcast_to), are left to run time. What such fills lead to is
// computed where the chain ends: at a result that is small again, or at a reduction, a scan or a
// contraction of at most 16 MiB. Until layouts are chosen the
// pipeline keeps the transposes of large weights (`relay.FoldConstant.keep_transposes`): packing a
// weight moves each element once more, and both moves are one when they are computed together.
// Does not fold through function calls; PartialEvaluate does. An If whose condition is computed
// here is for the next run to choose from.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kFoldConstant;

}  // namespace relay
