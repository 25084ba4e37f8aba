// DynamicToStatic: operators whose sizes are arguments, with sizes that are constants, become those
// whose sizes are attributes.
//
// before                                        after
//   dyn.reshape(%x, [2, 3])                       reshape(%x, newshape=[2, 3])
//   dyn.zeros([4], dtype="float32")               zeros(shape=[4], dtype="float32")
//
// Types become more precise: `?` becomes a number in all that operators, tuples and projections
// make of the result. Legal where nobody but these sees the difference; a function in which a
// branch, a call, a Let, data or a reference would have to change its type stays as it is, and so
// does one whose result would, when the module itself calls it. Never loses.
// FoldConstant first: it computes the sizes.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDynamicToStatic;

}  // namespace relay
