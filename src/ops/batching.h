// What the batching rules of operators are made of: calls of operators, as expressions.
//
// A rule stands beside its operator's row (column `batching`). The lanes are along axis 0; an axis of one
// lane is one further, unless it is counted from the end.
#pragma once

#include <string>

#include "analysis/lanes.h"
#include "ops/expressions.h"

namespace relay::ops {

// An axis of one lane, in all lanes.
inline int64_t behind_lanes(int64_t axis) { return axis < 0 ? axis : axis + 1; }
Ints behind_lanes(Ints axes);

// Whether a tensor of an argument that is a tuple has lanes.
bool field_has_lanes(const BatchingContext& ctx, size_t arg, size_t field);
// An argument with lanes, repeated in them where it is the same; of a tuple, each field.
Expr in_lanes(const BatchingContext& ctx, size_t arg);
// All arguments with lanes.
std::vector<Expr> all_in_lanes(const BatchingContext& ctx);
// Whether no argument has lanes but the first.
bool only_first(const BatchingContext& ctx);
// The result's sizes, the lanes before them.
std::vector<Dim> shape_in_lanes(const BatchingContext& ctx);
// The values of one lane's vectors along an axis of one lane's tensor: (lanes, 1, .., n, .., 1).
Expr lanes_along(const Expr& vectors, int64_t axis, int64_t rank);
// The call on other arguments.
Expr same_call(const BatchingContext& ctx, std::vector<Expr> args);

// ---- Rules

// The operator itself, on arguments that all have lanes.
Expr batch_as_it_is(const BatchingContext& ctx);
// The same, with the axis that attribute `axis` names one further; of several axes all of them; None and
// an empty list mean all axes of a lane.
Expr batch_axis(const BatchingContext& ctx);
Expr batch_axes(const BatchingContext& ctx);
// Lanes are more rows along the first axis of all arguments and of the result.
Expr batch_rows(const BatchingContext& ctx);
// The same where only the first argument may have lanes, and those of the others are in the way.
Expr batch_rows_of_first(const BatchingContext& ctx);
// The same where the attribute says that the layout begins with the rows.
Expr batch_rows_by_layout(const BatchingContext& ctx);
// The elements of the first argument in another shape.
Expr batch_reshape(const BatchingContext& ctx);
// The result is the first argument's, whatever the others are.
Expr batch_first(const BatchingContext& ctx);

}  // namespace relay::ops
