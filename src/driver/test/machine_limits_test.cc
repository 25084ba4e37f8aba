// What bounds a kernel, on a machine that is made up, and that this machine can be measured.
#include "driver/machine_limits.h"

#include <gtest/gtest.h>

namespace relay {
namespace {

// 100 GFLOP/s; 64 KB at 400, 1 MB at 200, 16 MB at 50, memory at 10 GB/s.
MachineLimits machine() {
  return {1,
          100,
          {{"L1", 64 << 10, 400},
           {"L2", 1 << 20, 200},
           {"L3", 16 << 20, 50},
           {"memory", INT64_MAX, 10}}};
}

TEST(MachineLimits, arithmetic_bounds_what_computes_much_on_little) {
  Bound b = bound_of({1e6, 0, 1000}, 1000, machine());
  EXPECT_EQ(b.name, "compute");
  EXPECT_DOUBLE_EQ(b.seconds, 1e-5);
}

TEST(MachineLimits, data_come_from_the_nearest_place_that_holds_them) {
  for (auto [bytes, name, rate] : {std::tuple{6e4, "L1", 400.0},
                                   {5e5, "L2", 200.0},
                                   {8e6, "L3", 50.0},
                                   {1e8, "memory", 10.0}}) {
    Bound b = bound_of({1, 0, bytes}, 0, machine());
    EXPECT_EQ(b.name, name);
    EXPECT_DOUBLE_EQ(b.seconds, bytes / rate * 1e-9);
  }
}

TEST(MachineLimits, weights_come_from_where_a_whole_run_lies) {
  Bound alone = bound_of({1, 5e5, 1000}, 5e5, machine());
  EXPECT_EQ(alone.name, "L2");
  Bound in_a_model = bound_of({1, 5e5, 1000}, 1e8, machine());
  EXPECT_EQ(in_a_model.name, "memory");
  EXPECT_DOUBLE_EQ(in_a_model.seconds, 5e5 / 10 * 1e-9 + 1000 / 200.0 * 1e-9);
}

TEST(MachineLimits, unknown_work_has_no_bound) {
  EXPECT_EQ(bound_of({}, 1e6, machine()).name, "");
  EXPECT_EQ(bound_of({0, 0, 1e6}, 0, {}).name, "");
}

TEST(MachineLimits, this_machine_reads_faster_from_what_is_nearer) {
  MachineLimits limits = measure_limits(1);
  EXPECT_GT(limits.gflops, 1);
  ASSERT_GE(limits.levels.size(), 2U);
  EXPECT_EQ(limits.levels.front().name, "L1");
  EXPECT_EQ(limits.levels.back().name, "memory");
  EXPECT_GT(limits.levels.front().gbytes_per_second, limits.levels.back().gbytes_per_second);
}

}  // namespace
}  // namespace relay
