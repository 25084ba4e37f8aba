#include "passes/combine/combine_summands.h"

#include <algorithm>

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

struct SummandRow {
  std::string params;
  std::string before;
  std::string after;
  std::string program(const std::string& body) const {
    return "def @main(" + params + ") {\n" + body + "\n}";
  }
};

const std::string kFactors =
    "%a: Tensor[(2, 9), float32], %b: Tensor[(3, 9), float32], %c: Tensor[(1, 9), float32], "
    "%x: Tensor[(2, 8), float32], %y: Tensor[(3, 8), float32], %z: Tensor[(1, 8), float32], "
    "%w: Tensor[(9, 8), float32]";

const std::vector<SummandRow>& sums() {
  static const std::vector<SummandRow> rows{
      // A sum of gradients of weights, with another term in between.
      {kFactors,
       "add(add(add(nn.matmul(%a, %x, transpose_a=True), %w), nn.matmul(%b, %y, "
       "transpose_a=True)),\n"
       "    nn.matmul(%c, %z, transpose_a=True))",
       "add(nn.matmul(concatenate((%a, %b, %c)), concatenate((%x, %y, %z)), transpose_a=True), "
       "%w)"},
      {"%a: Tensor[(9, 2), float32], %b: Tensor[(9, 1), float32], %x: Tensor[(8, 2), float32], "
       "%y: Tensor[(8, 1), float32]",
       "add(nn.dense(%a, %x), nn.dense(%b, %y))",
       "nn.dense(concatenate((%a, %b), axis=1), concatenate((%x, %y), axis=1))"},
      {"%x: Tensor[(1, 3), float32], %y: Tensor[(2, 3), float32]",
       "add(nn.pad(%y, 0f, pad_width=[[1, 0], [0, 0]]), nn.pad(%x, 0f, pad_width=[[0, 2], [0, "
       "0]]))",
       "concatenate((%x, %y))"},
      {"%x: Tensor[(1, 3), float32], %y: Tensor[(1, 3), float32]",
       "add(nn.pad(%y, 0f, pad_width=[[1, 3], [0, 0]]), nn.pad(%x, 0f, pad_width=[[3, 1], [0, "
       "0]]))",
       "concatenate((zeros(shape=[1, 3], dtype=\"float32\"), %y, zeros(shape=[1, 3], "
       "dtype=\"float32\"), %x, zeros(shape=[1, 3], dtype=\"float32\")))"},
  };
  return rows;
}

TEST(CombineSummands, joins_products_and_parts) {
  for (const SummandRow& row : sums()) {
    SCOPED_TRACE(row.before);
    expect_becomes(kCombineSummands, row.program(row.before), row.program(row.after),
                   PassContext());
  }
}

TEST(CombineSummands, computes_the_same) {
  for (const SummandRow& row : sums()) {
    SCOPED_TRACE(row.before);
    Module before = parse(row.program(row.before));
    std::vector<Tensor> want = results(before), got = results(apply(kCombineSummands, before));
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_TRUE(std::ranges::equal(want[i].shape(), got[i].shape()));
      for (int64_t k = 0; k < want[i].num_elements(); ++k)
        EXPECT_NEAR(want[i].get_as_double(k), got[i].get_as_double(k), 1e-4);
    }
  }
}

TEST(CombineSummands, leaves_other_sums_alone) {
  const std::vector<SummandRow> rows{
      // Something else needs a term.
      {kFactors,
       "%0 = nn.matmul(%a, %x, transpose_a=True);\n"
       "(add(%0, nn.matmul(%b, %y, transpose_a=True)), %0)",
       ""},
      // The operands are larger than the product.
      {"%a: Tensor[(2, 40), float32], %x: Tensor[(40, 3), float32], %b: Tensor[(2, 40), float32], "
       "%y: Tensor[(40, 3), float32]",
       "add(nn.matmul(%a, %x), nn.matmul(%b, %y))", ""},
      // They sum along different axes.
      {"%a: Tensor[(2, 9), float32], %x: Tensor[(2, 8), float32], %b: Tensor[(9, 2), float32]",
       "add(nn.matmul(%a, %x, transpose_a=True), nn.matmul(%b, %x))", ""},
      // Parts that overlap, and what is not filled with zeros.
      {"%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]",
       "add(nn.pad(%y, 0f, pad_width=[[1, 0], [0, 0]]), nn.pad(%x, 0f, pad_width=[[0, 1], [0, "
       "0]]))",
       ""},
      {"%x: Tensor[(1, 3), float32], %y: Tensor[(1, 3), float32]",
       "add(nn.pad(%y, 1f, pad_width=[[1, 0], [0, 0]]), nn.pad(%x, 0f, pad_width=[[0, 1], [0, "
       "0]]))",
       ""},
  };
  for (const SummandRow& row : rows) expect_unchanged(kCombineSummands, row.program(row.before));
}

}  // namespace
}  // namespace relay::pass_test
