// The sizes of minimal filtering F(4x4, 3x3).
#pragma once

#include <cstdint>

namespace relay::winograd {

inline constexpr int64_t kTile = 4;  // sides of a tile of results
inline constexpr int64_t kKernel = 3;
inline constexpr int64_t kPoints =
    kTile + kKernel - 1;  // sides of a tile of elements, and of products

}  // namespace relay::winograd
