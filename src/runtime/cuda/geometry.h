// How many blocks of how many threads a launch has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/cuda/work_list.h"

namespace relay::runtime::cuda {

// What a device runs of a function at most.
struct FunctionLimits {
  uint32_t multiprocessors = 1;
  uint32_t threads = 1;          // of a block
  uint32_t resident_blocks = 1;  // of kThreads threads, on all multiprocessors at once
};

// Threads of a block of a launch without groups, where the function takes as many and the items suffice for all
// multiprocessors.
inline constexpr uint32_t kThreads = 256;

// Blocks along the axes of a grid, at most.
inline constexpr std::array<int64_t, 3> kMostBlocks{(int64_t{1} << 31) - 1, 65535, 65535};

// Nothing where no item runs. A launch with groups has a block for each group, and at most kMostBlocks along y and z, of which
// each takes every n-th group; without, each thread takes every n-th item
// along each axis, and there are a few times as many blocks as the device holds at most. Throws RuntimeError E0621 for
// groups that the device does not run.
std::optional<Geometry> geometry_of(const DeviceLaunch& launch, std::span<const int64_t> dims,
                                    const FunctionLimits& limits, const std::string& device);

}  // namespace relay::runtime::cuda
