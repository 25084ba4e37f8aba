#include "base/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace relay {
namespace {

TEST(for_each_parallel, does_everything_once) {
  for (int threads : {0, 1, 2, 5}) {
    for (size_t count : {0, 1, 3, 1000}) {
      std::vector<std::atomic<int>> seen(count);
      for_each_parallel(count, threads, [&](size_t i) { ++seen[i]; });
      for (auto& n : seen) ASSERT_EQ(n.load(), 1);
    }
  }
}

TEST(for_each_parallel, raises_the_first_failure_and_begins_nothing_more) {
  std::atomic<int> begun{0};
  EXPECT_THROW(for_each_parallel(100000, 2,
                                 [&](size_t i) {
                                   ++begun;
                                   if (i == 3) throw std::runtime_error("three");
                                 }),
               std::runtime_error);
  EXPECT_LT(begun.load(), 100000);
}

}  // namespace
}  // namespace relay
