// EliminateCommonSubexpr: computes equal expressions once.
//
// before                                   after
//   %0 = exp(%x);                            %0 = exp(%x);
//   %1 = exp(%x);                            add(%0, %0)
//   add(%0, %1)
//
// Calls, tuples and projections are equal when operator and attributes are and their operands are
// equal in turn; variables bound to equal values count as equal, and so do constants of the same
// bits (large ones only when they are the same memory). Of equal expressions one stays and the
// others refer to it, if it is in a scope around them: what is computed in both branches of an If,
// or in two closures, stays there, so that nothing is computed which was not before.
// Legal for pure calls (purity.h): two references made alike are two, a value read twice may
// differ. Loses when two kernels would have computed a cheap value in registers and now read it
// from memory. Does not look into functions (two equal closures stay two) or across functions of
// the module.
#pragma once

#include <functional>

#include "passes/pass.h"

namespace relay {

extern const Pass kEliminateCommonSubexpr;

// The same, where each call for which `keeps` holds stays and stands for no other.
Module eliminate_common_subexpr(const Module& mod, const std::function<bool(const Expr&)>& keeps);

}  // namespace relay
