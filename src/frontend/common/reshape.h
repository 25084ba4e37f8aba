// Other shapes for the elements of a tensor, by sizes that are known or terms over open ones.
#pragma once

#include <vector>

#include "frontend/common/builder.h"

namespace relay::frontend {

// The shape in which a size of -1 stands for what the others leave over of `from`. E0203 for a shape that holds more or
// fewer elements, E0504 for other negative sizes, E0505 where open sizes do not say what is left over.
std::vector<Dim> inferred_shape(const Builder& build, const std::vector<Dim>& from,
                                std::vector<Dim> target);

// Broadcast to this shape and by it: a size of 1 keeps that of `x`.
Expr expand_to(const Builder& build, const Expr& x, std::vector<Dim> target);
// Repeated along each axis so many times.
Expr repeat_to(const Builder& build, const Expr& x, const std::vector<Dim>& counts);
// New axes of size 1, in the places that they have in the result; they may be negative. E0506 for too many.
Expr insert_axes(const Builder& build, Expr x, std::vector<int64_t> axes);

}  // namespace relay::frontend
