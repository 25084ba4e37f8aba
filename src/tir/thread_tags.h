// What the loops of a device's kernel are bound to (ForNode::thread_tag).
//
//   globalIdx.*   the number of the work item over all groups: the driver chooses the groups
//   blockIdx.*    the number of the group
//   threadIdx.*   the number of the work item in its group
//
// Neighbours along x run at the same time, so what they access should be side by side. Loops over the items of a group stand
// inside those over groups, with what the group does once around them (tir/thread_nests.h).
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace relay::tir {

enum class ThreadLevel { Global, Group, Item };

using ThreadTags = std::array<std::string_view, 3>;
inline constexpr ThreadTags kGlobalTags = {"globalIdx.x", "globalIdx.y", "globalIdx.z"};
inline constexpr ThreadTags kGroupTags = {"blockIdx.x", "blockIdx.y", "blockIdx.z"};
inline constexpr ThreadTags kItemTags = {"threadIdx.x", "threadIdx.y", "threadIdx.z"};

struct ThreadAxis {
  ThreadLevel level = ThreadLevel::Global;
  size_t axis = 0;  // 0 for x
};

// Nothing for a text that is no tag.
inline std::optional<ThreadAxis> thread_axis(std::string_view tag) {
  for (const auto& [level, tags] :
       {std::pair(ThreadLevel::Global, kGlobalTags), std::pair(ThreadLevel::Group, kGroupTags),
        std::pair(ThreadLevel::Item, kItemTags)}) {
    for (size_t i = 0; i < tags.size(); ++i) {
      if (tags[i] == tag) return ThreadAxis{level, i};
    }
  }
  return std::nullopt;
}

}  // namespace relay::tir
