#include "runtime/opencl/group_size.h"

#include <algorithm>

namespace relay::runtime::opencl {
namespace {

// Groups that each unit has at least, so that units end at about the same time, unless these are shorter than a vector.
constexpr int64_t kGroupsOfUnit = 8, kVector = 16;
// Measured on Intel's driver for processors: longer groups of an elementwise kernel take no less time for each item.
constexpr int64_t kLongest = 4096;

}  // namespace

std::array<int64_t, 3> group_of(const std::array<int64_t, 3>& items, const GroupLimits& limits) {
  // The product may have more than 64 bits.
  double share = 1.0 / static_cast<double>(limits.units * kGroupsOfUnit);
  for (int64_t n : items) share *= static_cast<double>(n);
  int64_t most = kLongest;
  if (share < static_cast<double>(kLongest)) most = static_cast<int64_t>(share);
  most = std::min(std::max(most, kVector), limits.items);
  std::array<int64_t, 3> out{};
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = std::clamp<int64_t>(std::min(most, limits.axes[i]), 1, items[i]);
    while (items[i] % out[i] != 0) --out[i];
    most /= out[i];
  }
  return out;
}

}  // namespace relay::runtime::opencl
