#include "passes/combine/combine_parallel.h"

#include "passes/layout/alter_op_layout.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

struct Row {
  const Pass* pass;
  std::string params;
  std::string before;
  std::string after;

  std::string program(const std::string& body) const {
    return "def @main(" + params + ") {\n" + body + "\n}";
  }
};

// At least two branches, whatever it costs.
PassContext any_two() {
  PassContext ctx;
  for (const char* pass :
       {"CombineParallelConv2D", "CombineParallelDense", "CombineParallelBatchMatmul"}) {
    ctx.config["relay." + std::string(pass) + ".min_num_branches"] = AttrValue(int64_t{2});
  }
  return ctx;
}

const std::vector<Row>& combinations() {
  static const std::vector<Row> rows{
      {&kCombineParallelDense,
       "%x: Tensor[(2, 5), float32], %v: Tensor[(4, 5), float32], %w: Tensor[(3, 5), float32]",
       "(nn.dense(%x, %v), tanh(nn.dense(%x, %w, units=3)))",
       "%0 = nn.dense(%x, concatenate((%v, %w)), units=7);\n"
       "(strided_slice(%0, begin=[0], end=[4], axes=[1]),\n"
       " tanh(strided_slice(%0, begin=[4], end=[7], axes=[1])))"},
      // A row for each branch, a factor for all, and an operator without operands.
      {&kCombineParallelDense,
       "%x: Tensor[(2, 5), float32], %v: Tensor[(4, 5), float32], %w: Tensor[(3, 5), float32], "
       "%a: Tensor[(4), float32], %b: Tensor[(3), float32], %s: Tensor[(2, 1), float32]",
       "(tanh(multiply(%s, add(nn.dense(%x, %v), %a))),\n"
       " tanh(multiply(%s, add(nn.dense(%x, %w), %b))))",
       "%0 = tanh(multiply(%s, add(nn.dense(%x, concatenate((%v, %w)), units=7),\n"
       "                           concatenate((%a, %b)))));\n"
       "(strided_slice(%0, begin=[0], end=[4], axes=[1]),\n"
       " strided_slice(%0, begin=[4], end=[7], axes=[1]))"},
      // One column each: what looks like a factor is a row for each branch.
      {&kCombineParallelDense,
       "%x: Tensor[(2, 5), float32], %v: Tensor[(1, 5), float32], %w: Tensor[(1, 5), float32], "
       "%a: Tensor[(1), float32], %b: Tensor[(1), float32]",
       "(add(nn.dense(%x, %v), %a), add(nn.dense(%x, %w), %b))",
       "%0 = add(nn.dense(%x, concatenate((%v, %w)), units=2), concatenate((%a, %b)));\n"
       "(strided_slice(%0, begin=[0], end=[1], axes=[1]),\n"
       " strided_slice(%0, begin=[1], end=[2], axes=[1]))"},
      {&kCombineParallelDense,
       "%x: Tensor[(2, 5), float32], %v: Tensor[(5, 4), float32], %w: Tensor[(5, 3), float32]",
       "(nn.matmul(%x, %v), nn.matmul(%x, %w))",
       "%0 = nn.matmul(%x, concatenate((%v, %w), axis=1), units=7);\n"
       "(strided_slice(%0, begin=[0], end=[4], axes=[1]),\n"
       " strided_slice(%0, begin=[4], end=[7], axes=[1]))"},
      {&kCombineParallelConv2D,
       "%x: Tensor[(1, 2, 5, 6), float32], %v: Tensor[(4, 2, 3, 3), float32], "
       "%w: Tensor[(2, 2, 3, 3), float32], %a: Tensor[(4), float32], %b: Tensor[(2), float32]",
       "(nn.relu(nn.bias_add(nn.conv2d(%x, %v, padding=[1, 1]), %a)),\n"
       " nn.relu(nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1], channels=2), %b)))",
       "%0 = nn.relu(nn.bias_add(nn.conv2d(%x, concatenate((%v, %w)), padding=[1, 1],\n"
       "                                   channels=6), concatenate((%a, %b))));\n"
       "(strided_slice(%0, begin=[0], end=[4], axes=[1]),\n"
       " strided_slice(%0, begin=[4], end=[6], axes=[1]))"},
      {&kCombineParallelConv2D,
       "%x: Tensor[(1, 5, 6, 2), float32], %v: Tensor[(1, 1, 2, 4), float32], "
       "%w: Tensor[(1, 1, 2, 2), float32]",
       "(nn.conv2d(%x, %v, data_layout=\"NHWC\", kernel_layout=\"HWIO\"),\n"
       " nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\"))",
       "%0 = nn.conv2d(%x, concatenate((%v, %w), axis=3), channels=6, data_layout=\"NHWC\",\n"
       "               kernel_layout=\"HWIO\");\n"
       "(strided_slice(%0, begin=[0], end=[4], axes=[3]),\n"
       " strided_slice(%0, begin=[4], end=[6], axes=[3]))"},
      {&kCombineParallelBatchMatmul,
       "%x: Tensor[(2, 4, 5), float32], %v: Tensor[(2, 3, 5), float32], "
       "%w: Tensor[(2, 2, 5), float32]",
       "(nn.batch_matmul(%x, %v, transpose_b=True), nn.batch_matmul(%x, %w, transpose_b=True))",
       "%0 = nn.batch_matmul(%x, concatenate((%v, %w), axis=1), transpose_b=True);\n"
       "(strided_slice(%0, begin=[0], end=[3], axes=[2]),\n"
       " strided_slice(%0, begin=[3], end=[5], axes=[2]))"},
  };
  return rows;
}

TEST(CombineParallel, puts_weights_side_by_side) {
  for (const Row& row : combinations()) {
    expect_becomes(*row.pass, row.program(row.before), row.program(row.after), any_two());
  }
}

TEST(CombineParallel, computes_the_same) {
  for (const Row& row : combinations()) {
    SCOPED_TRACE(row.before);
    Module before = parse(row.program(row.before));
    std::vector<Tensor> want = results(before), got = results(apply(*row.pass, before, any_two()));
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(bit_equal(want[i], got[i]));
  }
}

TEST(CombineParallel, keeps_branches_that_differ) {
  const char* two =
      "def @main(%x: Tensor[(2, 5), float32], %y: Tensor[(2, 5), float32],\n"
      "          %v: Tensor[(5, 5), float32], %w: Tensor[(5, 5), float32], %c: bool) {\n";
  for (const char* body : {
           // Another input, another result dtype, other attributes.
           "(nn.dense(%x, %v), nn.dense(%y, %w))",
           "(nn.dense(%x, %v), nn.dense(%x, %w, out_dtype=\"float64\"))",
           "(nn.matmul(%x, %v), nn.matmul(%x, %w, transpose_b=True))",
           // The second waits for the first.
           "%0 = nn.dense(%x, %v); (%0, nn.dense(%x, exp(%0)))",
           // Only one of them is computed.
           "if (%c) { nn.dense(%x, %v) } else { nn.dense(%x, %w) }",
       }) {
    expect_unchanged(kCombineParallelDense, two + std::string(body) + "\n}", any_two());
  }
  expect_unchanged(kCombineParallelConv2D,
                   "def @main(%x: Tensor[(1, 4, 5, 6), float32],\n"
                   "          %v: Tensor[(4, 2, 3, 3), float32],\n"
                   "          %w: Tensor[(4, 2, 3, 3), float32]) {\n"
                   "  (nn.conv2d(%x, %v, groups=2), nn.conv2d(%x, %w, groups=2))\n}",
                   any_two());
}

// A dense of constants with so many columns for each of three branches.
std::string constant_branches(int columns) {
  std::string n = std::to_string(columns);
  std::string out = "def @main(%x: Tensor[(2, 5), float32]) {\n  (";
  for (const char* value : {"1f", "2f", "3f"}) {
    out +=
        "nn.dense(%x, full(" + std::string(value) + ", shape=[" + n + ", 5], dtype=\"float32\")),";
  }
  return out + ")\n}";
}

TEST(CombineParallel, pays_where_branches_leave_vectors_empty) {
  PassContext ctx;
  ctx.target.vector_bits = 256;
  Module narrow = parse(constant_branches(2)), full = parse(constant_branches(8));
  Module out = apply(kCombineParallelDense, narrow, ctx);
  EXPECT_NE(print_module(out).find("units=6"), std::string::npos) << print_module(out);
  EXPECT_TRUE(apply(kCombineParallelDense, full, ctx) == full);
  // The weights side by side are a constant expression: they are packed like any others.
  PassContext folding = folding_context();
  folding.target = ctx.target;
  EXPECT_NE(print_module(apply(kAlterOpLayout, out, folding)).find("nn.contrib_dense_pack"),
            std::string::npos);
  // Weights that are no constants would be copied at every run.
  expect_unchanged(kCombineParallelDense,
                   "def @main(%x: Tensor[(2, 5), float32], %v: Tensor[(2, 5), float32],\n"
                   "          %w: Tensor[(2, 5), float32]) {\n"
                   "  (nn.dense(%x, %v), nn.dense(%x, %w))\n}",
                   ctx);
  ctx.config["relay.CombineParallelDense.min_num_branches"] = AttrValue(int64_t{4});
  EXPECT_TRUE(apply(kCombineParallelDense, narrow, ctx) == narrow);
}

}  // namespace
}  // namespace relay::pass_test
