// Known bounds of the sizes that a function leaves open.
//
//   def @main[n: Dim](%x: Tensor[(n, 4), float32], size_hints=[["n", 1, 512, [1, 128]]])
//     n is from 1 to 512, which a run checks, and often 1 or 128: kernels have versions for these
//
// Hints change no result. Passes keep them as they keep every attribute of a function of the module.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/expr.h"
#include "ir/type_params.h"

namespace relay {

namespace attr {
inline constexpr const char* kSizeHints = "size_hints";
}

struct SizeHint {
  std::string name;  // of a parameter of the function, of kind Dim
  int64_t low = 0;
  int64_t high = std::numeric_limits<int64_t>::max();
  std::vector<int64_t> likely;

  bool has_range() const { return low > 0 || high < std::numeric_limits<int64_t>::max(); }
};

// Combinations of likely sizes that a function may have: as many versions a kernel has at most.
inline constexpr int64_t kMaxVersions = 8;

// The function's hints; a malformed attribute, which only a program's text can hold, gives none.
std::vector<SizeHint> size_hints(const FunctionNode& f);
Function with_size_hints(const Function& f, const std::vector<SizeHint>& hints);

// The greatest value of a named dimension by the function's hints; nullopt where none is known, or for another size.
std::optional<int64_t> greatest_size(const FunctionNode& f, const Dim& size);

// The least value of a size by the function's hints; 0 where it is not one of the function's parameters.
int64_t least_size(const FunctionNode& f, const TypeVar& size);

// The function with these values of named dimensions, which are no parameters of it any longer. Types are deduced again.
Function for_sizes(const Function& f, const TypeParams& sizes);

// Sizes of named dimensions.
using KnownSizes = std::vector<std::pair<TypeVar, int64_t>>;
// "n = 1, m = 128".
std::string to_string(const KnownSizes& sizes);

// The named dimensions in the types of `part`'s parameters: those of the function, in its order, and then others.
std::vector<TypeVar> open_dimensions(const FunctionNode& f, const FunctionNode& part);

// Each combination of the function's likely sizes, of the dimensions that stand in `part` only, in the order of its parameters
// and hints; none where `part` has none of them.
std::vector<KnownSizes> likely_sizes(const FunctionNode& f, const FunctionNode& part);

}  // namespace relay
