// Arguments that are tensors when the model runs: axes, sizes, borders and places that kernels read.
//
// Such an argument is one number, or a vector. Where its length gives the rank of the result, it has to be known; where
// the rank of the data says how long it is, or it names some of the axes of the data, it may be open. What an operator with them as attributes cannot be told is put together of operators that
// take them as tensors (dyn.reshape, dyn.strided_slice, ...); the sizes of the result are `?` then.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "frontend/common/operands.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend {

// Whether the errors say only that something is known in a run alone (E0505).
bool are_open(const UserError& error);

// What `known` makes of the operator, or, where it refuses because something is known only in a run
// (E0505), what `open` makes of it.
template <class Site, class Known, class Open>
auto known_or_open(Site& site, const Known& known, const Open& open) -> decltype(known(site)) {
  try {
    return known(site);
  } catch (const UserError& e) {
    if (!are_open(e)) throw;
  }
  return open(site);
}

// ---- Reading arguments

// Entries of a list that says something about each axis; pads say two things.
inline constexpr int64_t kMaxPerAxis = 2 * kMaxRank;

// An input as a vector of int64; E0505 when its length is open, for that decides a rank, and E0506 when it has more than
// `most` entries. `what` is "the list of axes".
Expr int_vector(const Operands& build, size_t input, const char* what, int64_t most = kMaxPerAxis);
// The same with exactly `length` entries, E0504 otherwise; a run checks a length that is open.
Expr int_vector_of(const Operands& build, size_t input, const char* what, int64_t length);
Expr float_vector_of(const Operands& build, size_t input, const char* what, int64_t length);
// The same with any number of entries, which may be open.
Expr int_list(const Operands& build, size_t input, const char* what);
bool has_open_length(const Expr& vector);
// An input of one element as a scalar of the dtype.
Expr one_number(const Operands& build, size_t input, DType dtype);
int64_t length_of_vector(const Expr& vector);

// ---- Vectors of integers, computed when the model runs

// The sizes of a tensor.
Expr sizes_of(const Builder& build, const Expr& x);

// Indices into the data, negative ones counted from the end, with a check when the model runs: all of them into axis
// `first`, or those along the first axis of the indices into `count` axes from there, one after the other.
Expr checked_index(const Builder& build, Expr indices, const Expr& data, int64_t first,
                   std::optional<int64_t> count = std::nullopt);
// Places below `size` as int64, negative ones counted from the front.
Expr places_from_front(const Builder& build, const Expr& places, const Expr& size);
// The number of elements of a vector, as a vector of one element.
Expr length_at_run_time(const Builder& build, const Expr& vector);
// A 1 for each entry of a vector.
Expr ones_for(const Builder& build, const Expr& vector);
// `values` with as many entries as `like`, which a run checks.
Expr as_long_as(const Builder& build, const Expr& values, const Expr& like);
// 0, 1, ... n - 1
Expr numbers_below(const Builder& build, int64_t n);
// 0, 1, ... below a size of a tensor.
Expr places_along(const Builder& build, const Expr& x, int64_t axis);
// Axes counted from the front. What is out of range stays so; all that reads axes refuses it.
Expr axes_from_front(const Builder& build, const Expr& axes, int64_t rank);
// `otherwise`, with the entries at `axes` replaced; there are as many values as axes. A run refuses axes that are out of
// range.
Expr spread(const Builder& build, const Expr& otherwise, const Expr& axes, const Expr& values);
// The axes that are not among `axes`, in order; both together are all.
Expr other_axes(const Builder& build, const Expr& axes, int64_t rank);

// ---- Tensors moved as such vectors say

// The same tensor with this size of an axis, which a run checks where it is open.
Expr with_size(const Builder& build, const Expr& x, int64_t axis, const Dim& size);

// The entries [begin, end) of a vector.
Expr entries(const Builder& build, const Expr& vector, int64_t begin, int64_t end);
// What `along` makes of the last axis, for one axis that a run tells. The result has the sizes of `x`
// but for that axis, and those of `x` altogether when `keeps_size` is set.
Expr along_open_axis(const Builder& build, const Expr& x, const Expr& axis, bool keeps_size,
                     const std::function<Expr(const Expr&)>& along);
Expr open_reshape(const Builder& build, const Expr& x, const Expr& sizes);
// Elements begin, begin + step, ... up to end of the axes, as Slice counts.
Expr open_slice(const Builder& build, const Expr& x, const Expr& begin, const Expr& end,
                const Expr& steps, const std::vector<int64_t>& axes, bool strict = false);
// first, first + 1, ... up to end, which is left out.
Expr open_range(const Builder& build, const Expr& first, const Expr& end);

}  // namespace relay::frontend
