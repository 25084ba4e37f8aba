// RecomputeValues: a cheap value that several kernels read is computed in each of them instead of being kept in memory.
//
// before                                        after
//   %0 = fn (%p) { add(erf(%p), 1f) }(%h);        fn (%p) { nn.relu(add(erf(%p), 1f)) }(%h);
//   fn (%p) { nn.relu(%p) }(%0);                  fn (%p, %q) { multiply(%q, add(erf(%p), 1f)) }(%h, %g)
//   fn (%p, %q) { multiply(%q, %p) }(%0, %g)
//
// (kernels of operators that are fused already.) So an activation that the backward pass needs is not kept beside what it
// was computed from.
// Legal for kernels of element-wise operators, read by such and by reductions only, all in one scope; the same numbers.
// Pays when reading and writing the value takes longer than its operators: where it does not fit into L2, and the kernels
// that compute it again read less than they did.
// A value that kernels cut into parts, as queries, keys and values of one product, is computed in parts where these together are
// at most as large as it: nothing is computed twice. Legal for operators that take one element of each operand, too, as transpose.
// Does not recompute sums, nor for kernels that read an element more than once.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kRecomputeValues;

}  // namespace relay
