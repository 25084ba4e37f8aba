#include "strategies/attention/rewrite.h"

#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

PassContext wide_context() {
  PassContext ctx;
  ctx.target.vector_bits = 512;
  return ctx;
}

void becomes(const std::string& before, const std::string& after) {
  expect_becomes(kFuseAttention, before, after, wide_context());
}
void unchanged(const std::string& text) { expect_unchanged(kFuseAttention, text, wide_context()); }

// Replaces what occurs once.
std::string with(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return text.replace(at, from.size(), to);
}

// As models from PyTorch have it: heads are cut out of the features, and joined for the products.
const std::string kHeads = R"(
def @main(%q: Tensor[(2, 20, 24), float32], %k: Tensor[(2, 30, 24), float32],
          %v: Tensor[(2, 30, 24), float32], %mask: Tensor[(2, 1, 1, 30), float32]) {
  %0 = transpose(reshape(%q, newshape=[2, 20, 3, 8]), axes=[0, 2, 1, 3]);
  %1 = transpose(reshape(%k, newshape=[2, 30, 3, 8]), axes=[0, 2, 3, 1]);
  %2 = nn.batch_matmul(reshape(%0, newshape=[6, 20, 8]), reshape(%1, newshape=[6, 8, 30]));
  %3 = multiply(reshape(%2, newshape=[2, 3, 20, 30]), 0.25f);
  %4 = nn.softmax(add(%3, %mask), axis=-1);
  %5 = transpose(reshape(%v, newshape=[2, 30, 3, 8]), axes=[0, 2, 1, 3]);
  %6 = nn.batch_matmul(reshape(%4, newshape=[6, 20, 30]), reshape(%5, newshape=[6, 30, 8]));
  %7 = transpose(reshape(%6, newshape=[2, 3, 20, 8]), axes=[0, 2, 1, 3]);
  reshape(%7, newshape=[2, 20, 24])
}
)";

const std::string kOfHeads = R"(
def @main(%q: Tensor[(2, 20, 24), float32], %k: Tensor[(2, 30, 24), float32],
          %v: Tensor[(2, 30, 24), float32], %mask: Tensor[(2, 1, 1, 30), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[2, 20, 3, 8]), reshape(%k, newshape=[2, 30, 3, 8]),
                    reshape(%v, newshape=[2, 30, 3, 8]), %mask, scale=0.25f, query_layout="BSHD",
                    key_layout="BSHD", value_layout="BSHD", out_layout="BSHD");
  reshape(%0, newshape=[2, 20, 24])
}
)";

// Three axes, nothing else.
const std::string kPlain = R"(
def @main(%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, 30, 8), float32],
          %v: Tensor[(3, 30, 8), float32]) {
  %0 = nn.batch_matmul(%q, %k, transpose_b=True);
  %1 = nn.softmax(%0, axis=2);
  nn.batch_matmul(%1, %v)
}
)";

TEST(fuse_attention, reads_and_writes_the_heads_where_they_are) { becomes(kHeads, kOfHeads); }

TEST(fuse_attention, divides_by_a_scale) {
  becomes(with(with(kHeads, "multiply(", "divide("), "0.25f", "4f"), kOfHeads);
}

// Queries that may see no key have weights of zero, not of NaN.
TEST(fuse_attention, weights_that_are_no_numbers_are_left_out_of_the_result) {
  const std::string softmax = "nn.softmax(add(%3, %mask), axis=-1);";
  std::string safe = with(kHeads, softmax, softmax + " %8 = where(isnan(%4), 0f, %4);");
  safe = with(safe, "reshape(%4, newshape=[6, 20, 30])", "reshape(%8, newshape=[6, 20, 30])");
  becomes(safe, with(kOfHeads, "reshape(%0, newshape=[2, 20, 24])",
                     "%1 = where(isnan(%0), 0f, %0); reshape(%1, newshape=[2, 20, 24])"));
  unchanged(with(safe, "0f, %4", "1f, %4"));
  unchanged(with(safe, "isnan(%4)", "isnan(%3)"));
}

// What one product reads as keys and the next as values is as long, where the program runs at all.
TEST(fuse_attention, lengths_of_other_names) {
  const std::string before = R"(
def @main[n: Dim, m: Dim](%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, n + 2, 8), float32],
                          %v: Tensor[(3, m + 2, 8), float32]) {
  %0 = nn.batch_matmul(%q, %k, transpose_b=True);
  %1 = nn.softmax(%0, axis=2);
  nn.batch_matmul(%1, %v)
}
)";
  std::string text = print_module(apply(kFuseAttention, parse(before), wide_context()));
  EXPECT_NE(text.find("nn.attention("), text.npos) << text;
}

TEST(fuse_attention, takes_products_of_three_axes) {
  becomes(kPlain, R"(
def @main(%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, 30, 8), float32],
          %v: Tensor[(3, 30, 8), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[1, 3, 20, 8]), reshape(%k, newshape=[1, 3, 30, 8]),
                    reshape(%v, newshape=[1, 3, 30, 8]), 0f);
  reshape(%0, newshape=[3, 20, 8])
}
)");
}

TEST(fuse_attention, scales_of_queries_and_keys_are_one) {
  becomes(with(kPlain, "nn.batch_matmul(%q, %k,",
               "nn.batch_matmul(multiply(%q, 0.5f), multiply(0.25f, %k),"),
          R"(
def @main(%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, 30, 8), float32],
          %v: Tensor[(3, 30, 8), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[1, 3, 20, 8]), reshape(%k, newshape=[1, 3, 30, 8]),
                    reshape(%v, newshape=[1, 3, 30, 8]), 0f, scale=0.125f);
  reshape(%0, newshape=[3, 20, 8])
}
)");
}

TEST(fuse_attention, sequence_before_the_heads) {
  // As nn.MultiheadAttention has it: (sequence, batch and heads, depth).
  becomes(R"(
def @main(%q: Tensor[(20, 3, 8), float32], %k: Tensor[(30, 3, 8), float32],
          %v: Tensor[(30, 3, 8), float32]) {
  %0 = transpose(%q, axes=[1, 0, 2]);
  %1 = transpose(%k, axes=[1, 2, 0]);
  %2 = nn.softmax(nn.batch_matmul(%0, %1), axis=-1);
  transpose(nn.batch_matmul(%2, transpose(%v, axes=[1, 0, 2])), axes=[1, 0, 2])
}
)",
          R"(
def @main(%q: Tensor[(20, 3, 8), float32], %k: Tensor[(30, 3, 8), float32],
          %v: Tensor[(30, 3, 8), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[20, 1, 3, 8]), reshape(%k, newshape=[30, 1, 3, 8]),
                    reshape(%v, newshape=[30, 1, 3, 8]), 0f, query_layout="SBHD",
                    key_layout="SBHD", value_layout="SBHD", out_layout="SBHD");
  reshape(%0, newshape=[20, 3, 8])
}
)");
}

TEST(fuse_attention, a_condition_masks) {
  std::string masked = with(with(kPlain, "%v: Tensor[(3, 30, 8), float32]",
                                 "%v: Tensor[(3, 30, 8), float32], %c: Tensor[(20, 30), bool]"),
                            "nn.softmax(%0,", "nn.softmax(where(%c, %0, -inff),");
  becomes(masked, R"(
def @main(%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, 30, 8), float32],
          %v: Tensor[(3, 30, 8), float32], %c: Tensor[(20, 30), bool]) {
  %0 = nn.attention(reshape(%q, newshape=[1, 3, 20, 8]), reshape(%k, newshape=[1, 3, 30, 8]),
                    reshape(%v, newshape=[1, 3, 30, 8]), transpose(where(%c, 0f, -inff), axes=[1, 0]), transpose_mask=True);
  reshape(%0, newshape=[3, 20, 8])
}
)");
  // A product can make a difference to it.
  unchanged(with(masked, "-inff", "-10000f"));
}

TEST(fuse_attention, mask_of_each_head) {
  becomes(with(with(kPlain, "%v: Tensor[(3, 30, 8), float32]",
                    "%v: Tensor[(3, 30, 8), float32], %m: Tensor[(3, 20, 30), float32]"),
               "nn.softmax(%0,", "nn.softmax(add(%m, %0),"),
          R"(
def @main(%q: Tensor[(3, 20, 8), float32], %k: Tensor[(3, 30, 8), float32],
          %v: Tensor[(3, 30, 8), float32], %m: Tensor[(3, 20, 30), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[1, 3, 20, 8]), reshape(%k, newshape=[1, 3, 30, 8]),
                    reshape(%v, newshape=[1, 3, 30, 8]), transpose(reshape(%m, newshape=[1, 3, 20, 30]), axes=[0, 1, 3, 2]),
                    transpose_mask=True);
  reshape(%0, newshape=[3, 20, 8])
}
)");
}

TEST(fuse_attention, values_that_are_turned_stay_so) {
  // The depth would not be last.
  unchanged(with(with(kPlain, "%v: Tensor[(3, 30, 8), float32]", "%v: Tensor[(3, 8, 30), float32]"),
                 "nn.batch_matmul(%1, %v)", "nn.batch_matmul(%1, %v, transpose_b=True)"));
}

TEST(fuse_attention, not_when_the_scores_are_used) {
  unchanged(with(kPlain, "nn.batch_matmul(%1, %v)", "(nn.batch_matmul(%1, %v), %0)"));
  unchanged(with(kPlain, "nn.batch_matmul(%1, %v)", "(nn.batch_matmul(%1, %v), %1)"));
}

TEST(fuse_attention, not_along_the_queries) { unchanged(with(kPlain, "axis=2", "axis=1")); }

TEST(fuse_attention, not_when_a_view_mixes_the_keys) {
  unchanged(with(with(kPlain, "nn.softmax(%0, axis=2)",
                      "nn.softmax(reshape(%0, newshape=[3, 40, 15]), axis=2)"),
                 "nn.batch_matmul(%1, %v)",
                 "nn.batch_matmul(reshape(%1, newshape=[3, 20, 30]), %v)"));
}

TEST(fuse_attention, not_when_the_mask_is_scaled) {
  unchanged(with(with(kHeads, "%3 = multiply(reshape(%2, newshape=[2, 3, 20, 30]), 0.25f)",
                      "%3 = reshape(%2, newshape=[2, 3, 20, 30])"),
                 "add(%3, %mask)", "multiply(add(%3, %mask), 0.25f)"));
}

TEST(fuse_attention, not_for_other_dtypes_or_unknown_sizes) {
  std::string wide = kPlain;
  for (size_t at; (at = wide.find("float32")) != wide.npos;) wide.replace(at, 7, "float64");
  unchanged(wide);
  unchanged(with(kPlain, "(3, 20, 8)", "(3, ?, 8)"));
  unchanged(with(with(kPlain, "(3, 30, 8)", "(3, 1, 8)"), "(3, 30, 8)", "(3, 1, 8)"));
}

TEST(fuse_attention, one_query_of_a_decoder_and_what_is_kept) {
  becomes(R"(
def @main[past: Dim](%q: Tensor[(1, 3, 1, 8), float32], %k: Tensor[(1, 3, 1, 8), float32],
                     %kept: Tensor[(1, 3, past, 8), float32]) {
  %0 = concatenate((%kept, %k), axis=2);
  %1 = reshape(transpose(%0, axes=[0, 1, 3, 2]), newshape=[3, 8, past + 1]);
  %2 = nn.batch_matmul(reshape(%q, newshape=[3, 1, 8]), %1);
  %3 = nn.softmax(multiply(reshape(%2, newshape=[1, 3, 1, past + 1]), 0.25f), axis=3);
  %4 = nn.batch_matmul(reshape(%3, newshape=[3, 1, past + 1]), reshape(%0, newshape=[3, past + 1, 8]));
  (reshape(%4, newshape=[1, 1, 24]), %0)
}
)",
          R"(
def @main[past: Dim](%q: Tensor[(1, 3, 1, 8), float32], %k: Tensor[(1, 3, 1, 8), float32],
                     %kept: Tensor[(1, 3, past, 8), float32]) {
  %0 = concatenate((%kept, %k), axis=2);
  %1 = nn.attention(%q, %0, %0, 0f, scale=0.25f);
  (reshape(reshape(%1, newshape=[3, 1, 8]), newshape=[1, 1, 24]), %0)
}
)");
}

// Grouped queries: each head of keys and values is that of two heads of queries.
TEST(fuse_attention, heads_that_queries_share) {
  const std::string before = R"(
def @main[b: Dim, n: Dim](%q: Tensor[(b, 6, n, 8), float32], %k: Tensor[(b, 3, n, 8), float32]) {
  %0 = broadcast_to(expand_dims(%k, axis=2), shape=[b, 3, 2, n, 8]);
  %1 = reshape(transpose(reshape(%0, newshape=[b, 6, n, 8]), axes=[0, 1, 3, 2]), newshape=[6 * b, 8, n]);
  %2 = nn.batch_matmul(reshape(%q, newshape=[6 * b, n, 8]), %1);
  %3 = nn.softmax(reshape(%2, newshape=[b, 6, n, n]), axis=3);
  %4 = nn.batch_matmul(reshape(%3, newshape=[6 * b, n, n]), reshape(%0, newshape=[6 * b, n, 8]));
  reshape(%4, newshape=[b, 6, n, 8])
}
)";
  becomes(before, R"(
def @main[b: Dim, n: Dim](%q: Tensor[(b, 6, n, 8), float32], %k: Tensor[(b, 3, n, 8), float32]) {
  %0 = expand_dims(%k, axis=2);
  %1 = nn.attention(%q, reshape(%0, newshape=[b, 3, n, 8]), reshape(%0, newshape=[b, 3, n, 8]), 0f);
  reshape(reshape(%1, newshape=[6 * b, n, 8]), newshape=[b, 6, n, 8])
}
)");
  // Heads that follow one another after all have been are others.
  std::string apart = with(before, "expand_dims(%k, axis=2)", "expand_dims(%k, axis=1)");
  apart = with(apart, "shape=[b, 3, 2, n, 8]", "shape=[b, 2, 3, n, 8]");
  std::string text = print_module(apply(kFuseAttention, parse(apart), wide_context()));
  EXPECT_NE(text.find("broadcast_to"), text.npos) << text;
}

// What masks has a name of its own for the keys; that it is as many, or one, is checked when it runs.
TEST(fuse_attention, a_mask_of_other_names) {
  becomes(R"(
def @main[n: Dim, m: Dim, all: Dim](%q: Tensor[(3, n, 8), float32], %k: Tensor[(3, m, 8), float32],
                                    %mask: Tensor[(1, 1, all), float32]) {
  %0 = nn.batch_matmul(%q, %k, transpose_b=True);
  nn.batch_matmul(nn.softmax(add(%0, %mask), axis=2), %k)
}
)",
          R"(
def @main[n: Dim, m: Dim, all: Dim](%q: Tensor[(3, n, 8), float32], %k: Tensor[(3, m, 8), float32],
                                    %mask: Tensor[(1, 1, all), float32]) {
  %0 = nn.attention(reshape(%q, newshape=[1, 3, n, 8]), reshape(%k, newshape=[1, 3, m, 8]),
                    reshape(%k, newshape=[1, 3, m, 8]), %mask);
  reshape(%0, newshape=[3, n, 8])
}
)");
  // Of the queries nothing else says how many there are.
  unchanged(R"(
def @main[n: Dim, m: Dim, all: Dim](%q: Tensor[(3, n, 8), float32], %k: Tensor[(3, m, 8), float32],
                                    %mask: Tensor[(1, all, 1), float32]) {
  %0 = nn.batch_matmul(%q, %k, transpose_b=True);
  nn.batch_matmul(nn.softmax(add(%0, %mask), axis=2), %k)
}
)");
}

TEST(fuse_attention, open_lengths_and_a_condition_for_each_query) {
  becomes(R"(
def @main[b: Dim, n: Dim, m: Dim](%q: Tensor[(b, n, 24), float32], %k: Tensor[(b, m, 24), float32],
                                  %may: Tensor[(1, 1, n, m), bool]) {
  %0 = transpose(reshape(%q, newshape=[b, n, 3, 8]), axes=[0, 2, 1, 3]);
  %1 = transpose(reshape(%k, newshape=[b, m, 3, 8]), axes=[0, 2, 3, 1]);
  %2 = nn.batch_matmul(reshape(%0, newshape=[3 * b, n, 8]), reshape(%1, newshape=[3 * b, 8, m]));
  %3 = where(%may, multiply(reshape(%2, newshape=[b, 3, n, m]), 0.25f), -1e38f);
  %4 = nn.softmax(%3, axis=-1);
  %5 = transpose(reshape(%k, newshape=[b, m, 3, 8]), axes=[0, 2, 1, 3]);
  %6 = nn.batch_matmul(reshape(%4, newshape=[3 * b, n, m]), reshape(%5, newshape=[3 * b, m, 8]));
  %7 = transpose(reshape(%6, newshape=[b, 3, n, 8]), axes=[0, 2, 1, 3]);
  reshape(%7, newshape=[b, n, 24])
}
)",
          R"(
def @main[b: Dim, n: Dim, m: Dim](%q: Tensor[(b, n, 24), float32], %k: Tensor[(b, m, 24), float32],
                                  %may: Tensor[(1, 1, n, m), bool]) {
  %0 = transpose(where(%may, 0f, -1e38f), axes=[0, 1, 3, 2]);
  %1 = nn.attention(reshape(%q, newshape=[b, n, 3, 8]), reshape(%k, newshape=[b, m, 3, 8]),
                    reshape(%k, newshape=[b, m, 3, 8]), %0, scale=0.25f, query_layout="BSHD",
                    key_layout="BSHD", value_layout="BSHD", out_layout="BSHD", transpose_mask=True);
  reshape(%1, newshape=[b, n, 24])
}
)");
}

TEST(fuse_attention, one_after_another) {
  Module out = apply(kFuseAttention, parse(R"(
def @main(%x: Tensor[(3, 20, 20), float32]) {
  %0 = nn.batch_matmul(nn.softmax(nn.batch_matmul(%x, %x), axis=-1), %x);
  nn.batch_matmul(nn.softmax(nn.batch_matmul(%0, %0), axis=-1), %0)
}
)"),
                     wide_context());
  std::string text = print_module(out);
  size_t first = text.find("nn.attention");
  ASSERT_NE(first, text.npos);
  EXPECT_NE(text.find("nn.attention", first + 1), text.npos) << text;
  EXPECT_EQ(text.find("nn.softmax"), text.npos) << text;
}

}  // namespace
}  // namespace relay::pass_test
