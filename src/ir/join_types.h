// The type of a value that is one of several.
#pragma once

#include "ir/type.h"

namespace relay {

// The type of what is of one type or of the other, as the branches of an `if` are: where they
// differ in a size, and one of the sizes is `?`, the size is `?`. This goes for tensors and for
// tensors in tuples; null for types that differ otherwise.
Type join_types(const Type& a, const Type& b);

}  // namespace relay
