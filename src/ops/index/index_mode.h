// How an index is read: the one place that says which element of an axis an index names.
//
//   mode      below -size         -size ... -1         0 ... size - 1   size and above
//   clip      0                   0                    itself           size - 1
//   wrap      modulo size         index + size         itself           modulo size
//   fast      0                   index + size         itself           size - 1
//   checked   the run ends        index + size         itself           the run ends (E0605)
//
// An operator that reads or writes by indices, its adjoint, its tangent, its batching rule and the
// evaluator all call `place_of`, so that an adjoint goes to the element that was read. Slices are no
// indices: their bounds are clipped (ops/move/slice.cc).
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ops/expressions.h"

namespace relay::ops {

enum class IndexMode { Clip, Wrap, Fast, Checked };

// The mode of an attribute `mode`: "clip", "wrap" or "fast"; nullopt for other words.
std::optional<IndexMode> index_mode(std::string_view word);

// The place, as int64, that an index of any integer dtype names in an axis of `size` elements. Checked gives
// a place outside of the axis for an index outside of it: the kernel has to look (`check_index`).
PrimExpr place_of(const PrimExpr& index, const PrimExpr& size, IndexMode mode);
// The place of an index that has to be one of the axis, from the end where it is negative. Where it is not, the kernel
// ends (E0605), and the error names the index, the size and `source`, a place such as "model.py:12" or nothing.
PrimExpr index_in(const PrimExpr& index, const PrimExpr& size, const std::string& source);
// Ends the kernel, with the same error, where the place of an index that has to be one of the axis is outside.
tir::Stmt check_place(const PrimExpr& place, const PrimExpr& index, const PrimExpr& size);
// The same of numbers.
int64_t place_of(int64_t index, int64_t size, IndexMode mode);
// The same in a program, element by element. `size` is an int64 scalar; Checked is the operator
// `checked_index`.
Expr place_of(const Expr& index, const Expr& size, IndexMode mode);
// The places that indices name in an axis of `data`.
Expr places_in(const Expr& data, int64_t axis, const Expr& indices, IndexMode mode);

}  // namespace relay::ops
