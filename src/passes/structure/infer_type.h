// InferType: completes the types of a program.
//
// before                                   after
//   fn (%x: Tensor[(2, 3), float32]) {       every expression carries its type
//     nn.relu(%x) }
//
// What front ends give is typed already and stays the same program; passes keep types, so this is
// for programs that were put together by hand. Throws what type inference throws (E02xx).
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kInferType;

}  // namespace relay
