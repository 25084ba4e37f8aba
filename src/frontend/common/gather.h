// Elements read and written at computed places.
//
// Places are values of the model, since those that are known are checked while the program is built (E0504) and cost a run
// nothing; the others are checked by the run. Negative ones count from the end.
#pragma once

#include <string>
#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// Whether places are known and lie inside: entry i is an index into a dimension of `sizes[i % sizes.size()]`. E0504 for one
// that is known to be outside.
bool known_inside(const Builder& build, const ValuePtr& places, const std::vector<Dim>& sizes);

// The parts of `data` along an axis at these places; the axis becomes those of the places.
Expr take_along(const Builder& build, const Expr& data, const ValuePtr& places, int64_t axis);
// An element for each place, which differs from line to line: places are shaped as the result.
Expr gather_elements(const Builder& build, const Expr& data, const ValuePtr& places, int64_t axis);
// Parts at coordinates, which are along the last axis of the places. Both have the first `batch_dims` axes in common.
Expr gather_nd(const Builder& build, const Expr& data, const ValuePtr& places, int64_t batch_dims);

// What becomes of an element that is written to.
enum class Scatter { Update, Add, Mul, Min, Max };
// `data` with the updates at their places, which are shaped as the updates.
Expr scatter_elements(const Builder& build, const Expr& data, const ValuePtr& places,
                      const Expr& updates, int64_t axis, Scatter how);
// `data` with parts at coordinates, which are along the last axis of the places.
Expr scatter_nd(const Builder& build, const Expr& data, const ValuePtr& places, const Expr& updates,
                Scatter how);

// `on` at these places along a new axis of `depth` elements, and `off` elsewhere; both are scalars, and `axis` is in
// [0, rank]. Of a depth that only a run knows, as an int64 scalar, the other form.
Expr one_hot(const Builder& build, const Expr& places, int64_t depth, const Expr& on,
             const Expr& off, int64_t axis);
Expr one_hot_at_run_time(const Builder& build, const Expr& places, const Expr& depth,
                         const Expr& on, const Expr& off, int64_t axis);

}  // namespace relay::frontend
