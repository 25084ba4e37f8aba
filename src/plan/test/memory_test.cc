#include "plan/memory.h"

#include <gtest/gtest.h>

#include <random>

namespace relay::plan {
namespace {

bool overlap_in_time(const BufferLifetime& a, const BufferLifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

TEST(ArenaLayout, a_chain_needs_its_two_neighbours_only) {
  std::vector<BufferLifetime> chain;
  for (int64_t i = 0; i < 10; ++i) chain.push_back({1024, i, i + 1});
  ArenaLayout layout = lay_out(chain);
  EXPECT_EQ(layout.arena_bytes, 2048);
  EXPECT_EQ(layout.lower_bound, 2048);
}

TEST(ArenaLayout, buffers_alive_together_never_overlap) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::vector<BufferLifetime> buffers;
    for (int i = 0; i < 60; ++i) {
      int64_t first = random() % 40;
      buffers.push_back({static_cast<int64_t>(random() % 5000), first,
                         first + static_cast<int64_t>(random() % 10)});
    }
    ArenaLayout layout = lay_out(buffers);
    EXPECT_GE(layout.arena_bytes, layout.lower_bound);
    for (size_t i = 0; i < buffers.size(); ++i) {
      EXPECT_EQ(layout.offsets[i] % 64, 0);
      EXPECT_LE(layout.offsets[i] + buffers[i].bytes, layout.arena_bytes);
      for (size_t j = 0; j < i; ++j) {
        if (!overlap_in_time(buffers[i], buffers[j])) continue;
        bool apart = layout.offsets[i] + buffers[i].bytes <= layout.offsets[j] ||
                     layout.offsets[j] + buffers[j].bytes <= layout.offsets[i];
        EXPECT_TRUE(apart) << i << " and " << j;
      }
    }
  }
}

}  // namespace
}  // namespace relay::plan
