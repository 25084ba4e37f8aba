#include <gtest/gtest.h>

#include "ir/type.h"
#include "ir/whole_parts.h"

namespace relay {
namespace {

TEST(Dim, a_size_is_less_than_that_of_whole_parts) {
  const Dim n = dim(type_var("n", Kind::Dim));
  const Dim whole = ceil_div(n, dim(32)) * dim(32), other = ceil_div(n, dim(32)) * dim(16);
  EXPECT_TRUE(dim_equal(min(n, whole), n));
  EXPECT_TRUE(dim_equal(min(whole, n), n));
  EXPECT_FALSE(dim_equal(min(n, other), n));
  EXPECT_FALSE(dim_equal(min(n + dim(1), whole), n + dim(1)));
  const Dim more = n + dim(1);
  EXPECT_TRUE(dim_equal(min(more, ceil_div(more, dim(8)) * dim(8)), more));
}

TEST(Dim, a_size_is_no_less_than_its_whole_parts) {
  const Dim n = dim(type_var("n", Kind::Dim));
  const Dim whole = floor_div(n, dim(4)) * dim(4), other = floor_div(n, dim(4)) * dim(5);
  const Dim half = floor_div(n, dim(2)), halves = floor_div(n, dim(4)) * dim(2);
  EXPECT_TRUE(dim_equal(min(half, halves), halves));
  EXPECT_TRUE(dim_equal(max(halves + dim(2), half + dim(3)), half + dim(3)));
  EXPECT_FALSE(as_const(min(half, whole) - whole));
  for (const Dim& more : {n, n + dim(2)}) {
    EXPECT_TRUE(dim_equal(min(more, whole), whole));
    EXPECT_TRUE(dim_equal(min(whole, more), whole));
    EXPECT_TRUE(dim_equal(max(whole, more), more));
    EXPECT_TRUE(dim_equal(max(more, whole), more));
  }
  EXPECT_TRUE(dim_equal(min(n + dim(2), whole + dim(2)), whole + dim(2)));
  // It may be either of them.
  EXPECT_FALSE(as_const(min(n, whole + dim(1)) - n));
  EXPECT_FALSE(as_const(min(n, whole + dim(1)) - whole));
  EXPECT_FALSE(as_const(min(n, other) - n));
  EXPECT_FALSE(as_const(min(n, other) - other));
}

TEST(Dim, the_parts_of_a_size) {
  const Dim n = dim(type_var("n", Kind::Dim));
  const auto [parts, part] = whole_parts(ceil_div(n, dim(32)) * dim(32));
  EXPECT_TRUE(parts && dim_equal(parts, ceil_div(n, dim(32))));
  EXPECT_EQ(part, 32);
  for (const Dim& d : {n, dim(32), n * dim(32), ceil_div(n, dim(32)), ceil_div(n, dim(32)) * dim(8),
                       ceil_div(n, n) * n}) {
    EXPECT_FALSE(whole_parts(d).first) << to_string(d);
    EXPECT_EQ(whole_parts(d).second, 1);
  }
}

}  // namespace
TEST(Dim, never_negative) {
  const Dim n = dim(type_var("n", Kind::Dim)), m = dim(type_var("m", Kind::Dim));
  for (const Dim& d : {n, n + dim(2), n * m, floor_div(n - dim(1), dim(2)) + dim(1),
                       ceil_div(n - dim(1), dim(2)) * m, max(n - dim(4), dim(0)),
                       mod(n - m, dim(8)), floor_div(n, m), min(n, m + dim(1))}) {
    EXPECT_TRUE(never_negative(d)) << to_string(d);
  }
  for (const Dim& d : {n - dim(1), n - m, floor_div(n - dim(3), dim(2)) + dim(1), dim(-1),
                       dim_any(), min(n, m - dim(1)), n * (m - dim(1)), n * dim(-1)}) {
    EXPECT_FALSE(never_negative(d)) << to_string(d);
  }
}

}  // namespace relay
