// Sizes that a program was traced with, of the dimensions that it leaves open.
//
//   def @main[n: Dim](%x: Tensor[(n, 4), float32], typical_sizes=[["n", 224]])
//
// They change no result and make no versions of kernels: a pass asks them whether an algorithm pays that needs many
// elements. Passes keep them as they keep every attribute of a function of the module.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ir/expr.h"
#include "ir/type_params.h"

namespace relay {

namespace attr {
inline constexpr const char* kTypicalSizes = "typical_sizes";
}

// The value of each of the function's dimensions that has a typical one; of the others, the first likely one of the
// function's size hints. Values are clamped to [0, 2^31], since a model may hold any. A malformed attribute, which only a
// program's text can hold, gives none.
TypeParams typical_sizes(const FunctionNode& f);
Function with_typical_sizes(const Function& f,
                            const std::vector<std::pair<std::string, int64_t>>& sizes);

}  // namespace relay
