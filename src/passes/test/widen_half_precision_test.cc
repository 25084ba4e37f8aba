#include "passes/widen_half_precision.h"

#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

TEST(WidenHalfPrecision, contractions_are_computed_in_float32) {
  for (std::string half : {"float16", "bfloat16"}) {
    expect_becomes(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), " + half + "], %w: Tensor[(4, 5), " + half +
                       "]) { nn.relu(nn.dense(%x, %w)) }",
                   "def @main(%x: Tensor[(3, 5), " + half + "], %w: Tensor[(4, 5), " + half +
                       "]) {\n"
                       "  nn.relu(cast(nn.dense(cast(%x, dtype=\"float32\"), cast(%w, "
                       "dtype=\"float32\"), out_dtype=\"float32\"), dtype=\"" +
                       half + "\"))\n}");
  }
}

TEST(WidenHalfPrecision, operands_in_a_tuple) {
  expect_becomes(kWidenHalfPrecision,
                 "def @main(%x: Tensor[(3, 5), float16], %y: Tensor[(5, 2), float16]) {\n"
                 "  einsum((%x, %y), equation=\"ij,jk->ik\")\n}",
                 "def @main(%x: Tensor[(3, 5), float16], %y: Tensor[(5, 2), float16]) {\n"
                 "  cast(einsum((cast(%x, dtype=\"float32\"), cast(%y, dtype=\"float32\")), "
                 "equation=\"ij,jk->ik\"), dtype=\"float16\")\n}");
}

TEST(WidenHalfPrecision, a_sum_that_is_asked_for_in_float32_is_not_rounded) {
  expect_becomes(kWidenHalfPrecision,
                 "def @main(%x: Tensor[(3, 5), float16], %w: Tensor[(4, 5), float16]) {\n"
                 "  nn.dense(%x, %w, out_dtype=\"float32\")\n}",
                 "def @main(%x: Tensor[(3, 5), float16], %w: Tensor[(4, 5), float16]) {\n"
                 "  nn.dense(cast(%x, dtype=\"float32\"), cast(%w, dtype=\"float32\"), "
                 "out_dtype=\"float32\")\n}");
}

TEST(WidenHalfPrecision, other_dtypes_and_operators_stay) {
  expect_unchanged(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), float32], %w: Tensor[(4, 5), float32]) {\n"
                   "  nn.dense(%x, %w)\n}");
  expect_unchanged(kWidenHalfPrecision,
                   "def @main(%x: Tensor[(3, 5), float16]) { nn.softmax(add(%x, %x)) }");
}

}  // namespace
}  // namespace relay::pass_test
