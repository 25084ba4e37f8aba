// What the loops of a device's kernel are bound to (ForNode::thread_tag).
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace relay::tir {

// The number of the work item along each axis, over all groups: the driver chooses the groups. Neighbours along x run at the
// same time, so what they access should be side by side.
inline constexpr std::array<std::string_view, 3> kGlobalTags = {"globalIdx.x", "globalIdx.y",
                                                                "globalIdx.z"};

// The axis of a tag: 0 for x. Nothing for a text that is no tag.
inline std::optional<size_t> axis_of_tag(std::string_view tag) {
  for (size_t i = 0; i < kGlobalTags.size(); ++i) {
    if (kGlobalTags[i] == tag) return i;
  }
  return std::nullopt;
}

}  // namespace relay::tir
