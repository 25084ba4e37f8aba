// Where the vectors of a flattened function point: what GuardAccesses makes true and
// verify_accesses proves.
//
// A vector load or store under a mask touches no memory in lanes that are off, but its address
// counts all the same: with every lane off, one that points to a page that is not mapped takes
// several hundred times as long as any other. So addresses stay near their buffers.
#pragma once

#include "tir/arith/analyzer.h"
#include "tir/stmt.h"

namespace relay::tir {

// An access that is one machine instruction on neighbouring elements; others go lane by lane, and
// under a mask only for lanes that are on.
bool is_vector_access(const std::vector<PrimExpr>& indices);

// Whether a vector access begins at most one vector before its buffer, and at the buffer's end at
// the latest, for all values of the variables that the analyzer allows.
bool points_near(const Buffer& buffer, const PrimExpr& index, Analyzer& analyzer);

// Whether the access of one element is in its buffer for all those values.
bool lies_in(const Buffer& buffer, const PrimExpr& index, Analyzer& analyzer);

// The lanes of `mask` (null: all) in which `cond` is `taken`.
PrimExpr narrowed(const PrimExpr& mask, const PrimExpr& cond, bool taken);

// The lanes in which a load under `mask` reads: those where its own predicate holds as well. Null:
// all.
PrimExpr lanes_of_load(const LoadNode& l, const PrimExpr& mask);

// Whether any lane is on: a scalar.
PrimExpr any_lane(const PrimExpr& mask);

// Whether vectors of the statement may be under a mask. Few are; the others need no look.
bool may_mask(const StoreNode& s);

// Whether the first lane of a mask is on for all values that the analyzer allows: a vector of neighbours under it begins in
// its buffer.
bool first_lane_is_on(const PrimExpr& mask, Analyzer& analyzer);

// Whether a load stands anywhere in the expression.
bool has_loads(const PrimExpr& e);

}  // namespace relay::tir
