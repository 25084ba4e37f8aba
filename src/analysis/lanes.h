// Tensors that hold the lanes of a batch along their first axis.
#pragma once

#include "ir/expr.h"

namespace relay {

// The value in all lanes of a tensor that is the same in them. Throws UserError E1105 where only the
// data tells its sizes and the number of lanes is a name.
Expr in_all_lanes(const Expr& e, const Dim& lanes);

// A tensor of lanes of fewer axes, as broadcasting to lanes of `rank` axes needs it: sizes of 1 behind
// the lanes.
Expr lanes_of_rank(const Expr& e, int64_t rank);

// The lanes become the outer part of an axis of one lane: (lanes, a, b, c) to (a, lanes * b, c). The
// sizes are known or named.
Expr fold_lanes(const Expr& e, size_t axis);
// The same undone; `lane` is the type of one lane.
Expr unfold_lanes(const Expr& e, size_t axis, const Dim& lanes, const Type& lane);

// An axis moved to another place.
Expr with_axis_moved(const Expr& e, size_t from, size_t to);

// Whether no size of the tensor is `?`.
bool has_named_sizes(const Expr& e);

}  // namespace relay
