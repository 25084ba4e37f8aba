// Values of data types in messages.
//
//   Cons(1, Cons(2, Nil))       Node(Tensor[(2, 3), float32], _)
//
// The runtime has no types: the compiler lists the constructors of a matched type for it.
#pragma once

#include <string>
#include <string_view>

#include "runtime/core/object.h"

namespace relay::runtime {

// `constructors`: those of the type by tag, with their fields, separated by `;`. A field of the type itself is `*`, any
// other `_`: "Nil;Cons(_,*)". Tensors are shown by their number or type, other fields as `_`, what is deep as `...`.
// Empty if the value, which may be null, is no data or if its tag is not listed. Iterative.
std::string data_text(const Object* value, std::string_view constructors);

}  // namespace relay::runtime
