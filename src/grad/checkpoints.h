// Values that a program marks with annotation.checkpoint, as calls of functions that are computed again.
//
//   add(annotation.checkpoint(exp(sin(%x))), %y)
//     add(@checkpoint(%x), %y), with def @checkpoint(%p, checkpoint=1) { exp(sin(%p)) }
//
// What is marked is the expression, down to names, to other marks, and to what is not an operator on tensors.
// A part of it that is used outside, too, is computed there as well. Where sizes are names, the mark
// changes nothing.
#pragma once

#include "ir/module.h"

namespace relay {

inline constexpr const char* kCheckpointMark = "annotation.checkpoint";

struct Checkpoints {
  Module module;  // with the functions that were made
  Function function;
};

// Of a function beside the module and of the module's own.
Checkpoints with_checkpoints(const Module& mod, const Function& f);

}  // namespace relay
