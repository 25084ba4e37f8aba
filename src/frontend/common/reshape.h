// Other shapes for the elements of a tensor, by sizes that are known, terms over open ones, or vectors that a run computes.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// The shape in which a size of -1 stands for what the others leave over of `from`. E0203 for a shape that holds more or
// fewer elements, E0504 for other negative sizes, E0505 where open sizes do not say what is left over.
std::vector<Dim> inferred_shape(const Builder& build, const std::vector<Dim>& from,
                                std::vector<Dim> target);

// What a size of 0 stands for in the shape for a reshape: no elements, or the size that the input has in that place.
enum class ZeroSize { Empty, Copies };
// The same elements in this shape, with a size of -1 as in inferred_shape. E0505 where an open size may be a 0 that copies.
Expr reshape_to(const Builder& build, const Expr& x, std::vector<Dim> target, ZeroSize zero);
// The same by a vector of known length; what is known of its entries tells the sizes of the result.
Expr reshape_at_run_time(const Builder& build, const Expr& x, const Expr& sizes, ZeroSize zero);

// Broadcast to this shape and by it: a size of 1 keeps that of `x`.
Expr expand_to(const Builder& build, const Expr& x, std::vector<Dim> target);
Expr expand_at_run_time(const Builder& build, const Expr& x, const Expr& sizes);
// Repeated along each axis so many times.
Expr repeat_to(const Builder& build, const Expr& x, const std::vector<Dim>& counts);
// New axes of size 1, in the places that they have in the result; they may be negative. E0506 for too many.
Expr insert_axes(const Builder& build, Expr x, std::vector<int64_t> axes);
Expr insert_axes_at_run_time(const Builder& build, const Expr& x, const Expr& axes);
// Without these axes of size 1, which may be negative; E0203 for one that has another size. And without all of them that are
// known to have it.
Expr remove_axes(const Builder& build, const Expr& x, std::vector<int64_t> axes);
Expr remove_single_axes(const Builder& build, const Expr& x);
Expr remove_axes_at_run_time(const Builder& build, const Expr& x, const Expr& axes);

}  // namespace relay::frontend
