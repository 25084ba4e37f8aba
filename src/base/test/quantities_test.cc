#include "base/quantities.h"

#include <gtest/gtest.h>

namespace relay {
namespace {

TEST(Quantities, three_or_four_digits_and_a_unit) {
  EXPECT_EQ(format_seconds(2.4), "2.40 s");
  EXPECT_EQ(format_seconds(0.25), "250 ms");
  EXPECT_EQ(format_seconds(0.0125), "12.5 ms");
  EXPECT_EQ(format_seconds(0.0013), "1.30 ms");
  EXPECT_EQ(format_seconds(120e-6), "120 us");
  EXPECT_EQ(format_seconds(12e-6), "12.0 us");
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(1024), "1.0 KiB");
  EXPECT_EQ(format_bytes(98.2 * 1024 * 1024), "98.2 MiB");
  EXPECT_EQ(format_percent(0.00523, 2), "0.52 %");
}

TEST(Quantities, of_any_magnitude) {
  EXPECT_EQ(format_bytes(3.0 * (1LL << 50)), "3072.0 TiB");
  EXPECT_EQ(format_number(1e300, 0).size(), 301U);
}

TEST(Quantities, counts_agree_with_their_nouns) {
  EXPECT_EQ(counted(0, "axis"), "0 axes");
  EXPECT_EQ(counted(1, "axis"), "1 axis");
  EXPECT_EQ(counted(2, "index"), "2 indices");
  EXPECT_EQ(counted(1, "input"), "1 input");
  EXPECT_EQ(counted(3, "input"), "3 inputs");
}

}  // namespace

}  // namespace relay
