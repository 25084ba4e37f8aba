#include "passes/simplify/fold_explicit_padding.h"

#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

const char* const kImage = "%x: Tensor[(1, 2, 5, 6), float32]";
const char* const kWeight = "%w: Tensor[(3, 2, 3, 3), float32]";

std::string padded_program(const std::string& params, const std::string& body) {
  return "def @main(" + params + ") { " + body + " }";
}
std::string conv(const std::string& body) {
  return padded_program(std::string(kImage) + ", " + kWeight, body);
}
std::string pool(const std::string& body) { return padded_program(kImage, body); }

struct PaddingRow {
  std::string before;
  std::string after;
};

const std::vector<PaddingRow>& folds() {
  static const std::vector<PaddingRow> rows{
      {conv("nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [3, 4]]), %w, "
            "padding=[1, 0])"),
       conv("nn.conv2d(%x, %w, padding=[2, 3, 3, 4])")},
      // Channels last, and a layout in which the width comes first.
      {padded_program("%x: Tensor[(1, 5, 6, 2), float32], " + std::string(kWeight),
                      "nn.conv2d(nn.pad(%x, -0f, pad_width=[[0, 0], [1, 0], [0, 2], [0, 0]]), %w, "
                      "data_layout=\"NHWC\")"),
       padded_program("%x: Tensor[(1, 5, 6, 2), float32], " + std::string(kWeight),
                      "nn.conv2d(%x, %w, padding=[1, 0, 0, 2], data_layout=\"NHWC\")")},
      {padded_program("%x: Tensor[(1, 6, 5, 2), float32], " + std::string(kWeight),
                      "nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [1, 0], [0, 2], [0, 0]]), %w, "
                      "data_layout=\"NWHC\")"),
       padded_program("%x: Tensor[(1, 6, 5, 2), float32], " + std::string(kWeight),
                      "nn.conv2d(%x, %w, padding=[0, 1, 2, 0], data_layout=\"NWHC\")")},
      {padded_program(
           "%x: Tensor[(1, 2, 9), float32], %w: Tensor[(3, 2, 3), float32]",
           "nn.conv1d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [2, 1]]), %w, padding=[1])"),
       padded_program("%x: Tensor[(1, 2, 9), float32], %w: Tensor[(3, 2, 3), float32]",
                      "nn.conv1d(%x, %w, padding=[3, 2])")},
      {pool("nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]]), "
            "pool_size=[3, 3], strides=[2, 2], ceil_mode=True)"),
       pool("nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 0, 0, 1], "
            "ceil_mode=True)")},
      {padded_program(
           "%x: Tensor[(1, 2, 5, 6), int8]",
           "nn.max_pool2d(nn.pad(%x, -128i8, pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]]), "
           "pool_size=[2, 2])"),
       padded_program("%x: Tensor[(1, 2, 5, 6), int8]",
                      "nn.max_pool2d(%x, pool_size=[2, 2], padding=[1, 0, 0, 1])")},
      {pool("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), "
            "pool_size=[3, 3], strides=[2, 2])"),
       pool("nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], "
            "count_include_pad=True)")},
      {pool("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]), "
            "pool_size=[3, 3], strides=[2, 2], padding=[0, 1], ceil_mode=True, "
            "count_include_pad=True)"),
       pool("nn.avg_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 2], "
            "ceil_mode=True, count_include_pad=True)")},
  };
  return rows;
}

TEST(FoldExplicitPadding, moves_a_border_into_the_windows) {
  for (const PaddingRow& row : folds()) expect_becomes(kFoldExplicitPadding, row.before, row.after);
}

TEST(FoldExplicitPadding, computes_the_same) {
  for (const PaddingRow& row : folds()) {
    SCOPED_TRACE(row.before);
    Module before = parse(row.before);
    EXPECT_TRUE(bit_equal(results(before)[0], results(apply(kFoldExplicitPadding, before))[0]));
  }
}

TEST(FoldExplicitPadding, keeps_other_borders) {
  for (const std::string& text : {
           // Another value than the operator's own.
           conv("nn.conv2d(nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)"),
           pool("nn.max_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), "
                "pool_size=[3, 3])"),
           // Not known.
           padded_program(
               std::string(kImage) + ", " + kWeight + ", %v: float32",
               "nn.conv2d(nn.pad(%x, %v, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), %w)"),
           // Not a constant border.
           conv("nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]], "
                "pad_mode=\"reflect\"), %w)"),
           // A cut, and more channels.
           conv("nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [-1, 1], [1, 1]]), %w)"),
           padded_program(
               "%x: Tensor[(1, 1, 5, 6), float32], " + std::string(kWeight),
               "nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 1], [1, 1], [1, 1]]), %w)"),
           // A window of nothing but border.
           pool("nn.max_pool2d(nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [2, 0], [0, 0]]), "
                "pool_size=[2, 2])"),
           // The average counts the explicit zeros and not its own.
           pool("nn.avg_pool2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]), "
                "pool_size=[3, 3], padding=[1, 1])"),
           // A transposed convolution's padding cuts.
           padded_program(
               std::string(kImage) + ", %w: Tensor[(2, 3, 3, 3), float32]",
               "nn.conv2d_transpose(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]),"
               " %w, kernel_size=[3, 3])"),
       }) {
    expect_unchanged(kFoldExplicitPadding, text);
  }
}

}  // namespace
}  // namespace relay::pass_test
