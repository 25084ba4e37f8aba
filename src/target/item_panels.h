// Columns that lie side by side in packed weights for work items, and neighbouring items that compute them: a vector of float32 of
// the widest processors.
#pragma once

#include <cstdint>

namespace relay {

inline constexpr int64_t kItemPanel = 16;

}  // namespace relay
