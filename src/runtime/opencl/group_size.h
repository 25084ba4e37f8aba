// The groups of a launch whose items do not share memory, on a processor. Its driver runs the items of a group as loops around
// vectors, and starts each group for some tens of nanoseconds, which groups of a few vectors do not repay.
#pragma once

#include <array>
#include <cstdint>

namespace relay::runtime::opencl {

struct GroupLimits {
  int64_t units = 1;                     // groups that run at a time
  int64_t items = 1;                     // of a group
  std::array<int64_t, 3> axes{1, 1, 1};  // of a group, along each axis
  friend bool operator==(const GroupLimits&, const GroupLimits&) = default;
};

// The items of a group along each axis, which divide `items`, the positive numbers of items of the launch: as many as leave
// each unit several groups, along the first axis before the others, because its items are lanes of vectors.
std::array<int64_t, 3> group_of(const std::array<int64_t, 3>& items, const GroupLimits& limits);

}  // namespace relay::runtime::opencl
