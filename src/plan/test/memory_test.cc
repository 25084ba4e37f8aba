#include "plan/memory.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// As in the gradient of a chain: what the n-th step makes is needed by the n-th from the end.
TEST(ArenaLayout, thousands_of_buffers_alive_together_are_placed_in_the_order_of_time) {
  constexpr int64_t kCount = 20000;
  std::vector<BufferLifetime> tape;
  std::mt19937 random(0);
  for (int64_t i = 0; i < kCount; ++i) {
    tape.push_back({static_cast<int64_t>(64 + random() % 4096), i, 2 * kCount - i});
    tape.push_back({100, kCount + i, kCount + i + 2});
  }
  ArenaLayout layout = lay_out(tape);
  EXPECT_LE(layout.arena_bytes, layout.lower_bound + 1024);
  // Those alive at a step do not overlap: looked at where all are, and when half are gone.
  for (int64_t step : {kCount, kCount + kCount / 2}) {
    std::vector<std::pair<int64_t, int64_t>> busy;
    for (size_t i = 0; i < tape.size(); ++i) {
      if (tape[i].first <= step && step <= tape[i].last)
        busy.emplace_back(layout.offsets[i], layout.offsets[i] + tape[i].bytes);
    }
    ASSERT_GE(busy.size(), size_t{kCount / 2});
    std::sort(busy.begin(), busy.end());
    for (size_t i = 1; i < busy.size(); ++i) EXPECT_LE(busy[i - 1].second, busy[i].first);
  }
}

}  // namespace
}  // namespace relay::plan
