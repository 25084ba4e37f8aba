#include "runtime/cuda/geometry.h"

#include <algorithm>
#include <bit>

#include "base/codes/runtime.h"

namespace relay::runtime::cuda {
namespace {

constexpr std::array<int64_t, 3> kMostThreads{1024, 1024, 64};
// Blocks of a launch without groups for each that the device holds at once: as many even out blocks of unequal length.
constexpr int64_t kRounds = 16;
// Few items are spread over the multiprocessors: threads of a block are halved down to these, for as many blocks.
constexpr int64_t kFewestThreads = 32, kBlocksOfEach = 2;

[[noreturn]] void refuse_groups(const DeviceLaunch& launch, const std::string& device,
                                const std::string& found, const std::string& expected) {
  throw RuntimeError(
      Diagnostic(codes::run_device_code, {}, device + " does not run kernel " + launch.name)
          .expected(expected)
          .found(found)
          .help("compile for this device: -arch in the target names its architecture"));
}

Geometry with_groups(const DeviceLaunch& launch, const LaunchSize& size,
                     const FunctionLimits& limits, const std::string& device) {
  Geometry out;
  int64_t threads = 1;
  for (size_t i = 0; i < 3; ++i) {
    const int64_t group = size.group[i];
    threads *= group;
    RELAY_CHECK(size.items[i] % group == 0, "work items that are not whole groups");
    // Along y and z, groups of a smaller grid take several indices.
    const int64_t all = size.items[i] / group,
                  blocks = i == 0 ? all : std::min(all, kMostBlocks[i]);
    if (group > kMostThreads[i] || threads > int64_t{limits.threads}) {
      refuse_groups(launch, device, "groups of " + std::to_string(threads) + " work items",
                    std::to_string(limits.threads) + " at most");
    }
    if (blocks > kMostBlocks[i]) {
      refuse_groups(launch, device,
                    std::to_string(blocks) + " groups along axis " + std::to_string(i),
                    std::to_string(kMostBlocks[i]) + " at most");
    }
    out.block[i] = static_cast<uint32_t>(group);
    out.grid[i] = static_cast<uint32_t>(blocks);
  }
  return out;
}

Geometry without_groups(const std::array<int64_t, 3>& items, const FunctionLimits& limits) {
  Geometry out;
  int64_t threads = std::bit_floor(std::min(kThreads, limits.threads));
  const double total =
      static_cast<double>(items[0]) * static_cast<double>(items[1]) * static_cast<double>(items[2]);
  const auto enough = static_cast<double>(kBlocksOfEach * limits.multiprocessors);
  while (threads > kFewestThreads && total < enough * static_cast<double>(threads)) threads /= 2;
  int64_t blocks = int64_t{limits.resident_blocks} * kRounds;
  for (size_t i = 0; i < 3; ++i) {
    const auto needed =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::min(items[i], threads))));
    const int64_t block = std::min({needed, threads, kMostThreads[i]});
    threads /= block;
    const int64_t grid =
        std::min({(items[i] + block - 1) / block, kMostBlocks[i], std::max<int64_t>(blocks, 1)});
    blocks /= grid;
    out.block[i] = static_cast<uint32_t>(block);
    out.grid[i] = static_cast<uint32_t>(grid);
  }
  return out;
}

}  // namespace

std::optional<Geometry> geometry_of(const DeviceLaunch& launch, std::span<const int64_t> dims,
                                    const FunctionLimits& limits, const std::string& device) {
  const std::optional<LaunchSize> size = size_of(launch, dims);
  if (!size) return std::nullopt;
  return size->has_groups ? with_groups(launch, *size, limits, device)
                          : without_groups(size->items, limits);
}

}  // namespace relay::runtime::cuda
