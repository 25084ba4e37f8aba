// DynamicToStatic: operators whose sizes are arguments, with sizes that are known as numbers or as
// terms over named dimensions (analysis/known_values.h), become those whose sizes are attributes.
//
// before                                        after
//   dyn.reshape(%x, [2, 3])                       reshape(%x, newshape=[2, 3])
//   dyn.zeros([4], dtype="float32")               zeros(shape=[4], dtype="float32")
//   dyn.tile(%x, shape_of(%y))                    tile(%x, reps=[n, 3])
//                                                   with %y: Tensor[(n, 3), float32]
//
// Types become more precise: `?` becomes a size in all that operators, tuples and projections
// make of the result. Legal where only these see the difference; a function in which a
// branch, a call, a Let, data or a reference would have to change its type stays as it is, and so
// does one whose result would, when the module itself calls it. Never loses.
// FoldConstant first: it computes what only the operators themselves can.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDynamicToStatic;

}  // namespace relay
