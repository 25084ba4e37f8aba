// AnnotateTarget: which external code generator computes which operator.
//
// before, for the targets ["dnnl"], which supports nn.relu          after
//   exp(nn.relu(%x))      %0 = compiler_end(nn.relu(compiler_begin(%x, "dnnl")), "dnnl")
//                         compiler_end(exp(compiler_begin(%0, "default")), "default")
//
// Calls of operators and of composite functions are marked, each by itself: with the first of the targets that supports it,
// otherwise with "default". Marks of other targets stay, "default" is decided again. Operators with effects stay Relay's.
// Only tensors cross a border: the fields of a tuple argument do it one by one, and so do those of a result. Without
// include_non_call_ops, calls that give or take tuples are "default".
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kAnnotateTarget;

}  // namespace relay
