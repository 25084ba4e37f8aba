// Names for sizes that are `?`.
//
//   with_sizes_named((Tensor[(?, 4), float32], Tensor[(?,), int32]), name)
//     (Tensor[(d0, 4), float32], Tensor[(d1,), int32])       name(0, 0) is d0, name(1, 0) is d1
//
// A data-dependent size is one number when the program runs. What operators say of named sizes
// (ir/op.h, DimAssumption) then holds for it as well.
#pragma once

#include <functional>

#include "ir/type.h"

namespace relay {

// The type of a tensor, or of a tuple of tensors, with `name(tensor, axis)` for each size that is
// `?`. Other types stay what they are.
Type with_sizes_named(const Type& type, const std::function<Dim(size_t tensor, size_t axis)>& name);

}  // namespace relay
