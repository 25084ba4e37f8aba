// Reading a tensor between its elements: what resizing and grid sampling share.
#pragma once

#include <string>
#include <vector>

#include "ir/layout.h"
#include "ops/common.h"

namespace relay::ops {

// A layout of N, C and `dims` spatial axes in any order, without blocks; fails in `ctx`.
std::optional<Layout> sampling_layout(RelationContext& ctx, const std::string& text, size_t dims,
                                      const TensorTypeNode& x);

// Whether the text is one of `list`; fails in `ctx` naming the attribute.
bool one_of(RelationContext& ctx, const char* attribute, const std::string& text,
            std::initializer_list<const char*> list);

// Whether `size` can be the spatial size of a result: `dims` sizes from 1 to 2^30, so that positions
// are computed without overflow.
bool check_target(RelationContext& ctx, const char* attribute, const std::vector<Dim>& size,
                  size_t dims);
bool check_target(RelationContext& ctx, const char* attribute, const Ints& size, size_t dims);

// The role of a tensor that is worth keeping: it is not computed again at each use, cheap or not.
inline tir::BlockRole kept(const char* part) { return {"keep", part}; }

// The dtype that interpolation is computed in.
DType sampling_dtype(DType data);
// A result in its dtype: whole numbers are rounded to the nearest, halves to even.
PrimExpr from_sampling(DType out, const PrimExpr& value);

// The weights of the elements at low and low + 1 of a position `part` behind low.
std::vector<PrimExpr> linear_weights(const PrimExpr& part);
// The weights of the elements at low - 1 to low + 2 (Keys, Cubic convolution interpolation for
// digital image processing, 1981; `alpha` is the slope at 1), times unit^3 for a position of
// part / unit.
std::vector<PrimExpr> cubic_weights(const PrimExpr& part, const PrimExpr& unit, double alpha);

inline PrimExpr clamp_index(const PrimExpr& i, const PrimExpr& size) {
  return tir::min(tir::max(i, tir::index(0)), size - 1);
}
inline PrimExpr is_inside(const PrimExpr& i, const PrimExpr& size) {
  return tir::logical_and(tir::ge(i, tir::index(0)), tir::lt(i, size));
}

}  // namespace relay::ops
