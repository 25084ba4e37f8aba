#include "strategies/im2col/rewrite.h"

#include "analysis/calls.h"
#include "eval/evaluator.h"
#include "node/walk.h"
#include "passes/test/pass_test.h"
#include "strategies/test/convolution_case.h"

namespace relay::pass_test {
namespace {

using runtime::Value;

PassContext small_context() {
  PassContext ctx;
  ctx.target.vector_bits = 512;
  ctx.config["relay.Im2Col.least_bytes"] = AttrValue(int64_t{1});
  return ctx;
}

struct Im2ColCase {
  Ints data, weight;
  std::string attrs;
  std::string dtype = "float32";
};

// A convolution; `turned`: with its channels before its images, as the gradient of a weight is.
std::string im2col_program(const Im2ColCase& c, bool turned = false) {
  const std::string dims = std::to_string(c.data.size() - 2);
  std::string body = "nn.conv" + dims + "d(%x, %w" + (c.attrs.empty() ? "" : ", ") + c.attrs + ")";
  std::string axes = "1, 0";
  for (size_t d = 2; d < c.data.size(); ++d) axes += ", " + std::to_string(d);
  if (turned) body = "transpose(" + body + ", axes=[" + axes + "])";
  return "def @main(%x: " + type_text(c.data, c.dtype) + ", %w: " + type_text(c.weight, c.dtype) +
         ") {\n  " + body + " }";
}

// The operators of a program that this test is about, in their order.
std::string products(const Module& mod) {
  std::string out;
  post_order(
      mod->find("main"),
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        for (const char* name : {"nn.conv1d", "nn.conv2d", "nn.conv3d", "nn.matmul", "nn.dense"}) {
          if (call != nullptr && is_call_to(Expr(call), name)) out += std::string(name) + " ";
        }
      },
      family::expr);
  return out;
}

void expect_the_same(const Im2ColCase& c, bool turned, const std::string& product) {
  const Module before = parse(im2col_program(c, turned));
  const Module after = apply(kIm2Col, before, small_context());
  EXPECT_EQ(products(after), product) << print_module(after);
  const std::vector<Value> args{filled(c.data, 0.3f), filled(c.weight, 0.7f)};
  const Tensor want = Evaluator(before).call("main", args).tensor();
  const Tensor got = Evaluator(after).call("main", args).tensor();
  ASSERT_TRUE(std::ranges::equal(want.shape(), got.shape())) << print_module(after);
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    ASSERT_NEAR(want.data<float>()[i], got.data<float>()[i], 2e-5)
        << im2col_program(c, turned) << i;
  }
}

TEST(im2col, multiplies_windows_of_few_pixels_by_the_weight_as_it_is) {
  for (const Im2ColCase& c : {
           Im2ColCase{{1, 3, 4, 4}, {64, 3, 3, 3}, "padding=[1, 1]"},
           Im2ColCase{{2, 5, 6, 7}, {168, 5, 3, 2}, "padding=[0, 1, 2, 0], strides=[2, 1]"},
           Im2ColCase{{3, 2, 9, 9}, {72, 2, 3, 3}, "strides=[2, 3], dilation=[2, 2]"},
           Im2ColCase{{2, 3, 4, 4}, {128, 3, 1, 1}, ""},
           Im2ColCase{{2, 3, 20}, {160, 3, 4}, "padding=[1]"},
           Im2ColCase{{1, 2, 3, 3, 4}, {256, 2, 2, 2, 3}, "padding=[1, 1, 1]"},
       }) {
    expect_the_same(c, false, "nn.matmul ");
  }
}

// The window of a weight's gradient is a whole image, and its channels are the weight's.
TEST(im2col, multiplies_windows_of_gradients_by_rows) {
  for (const Im2ColCase& c : {
           Im2ColCase{{6, 2, 4, 4}, {40, 2, 4, 4}, "padding=[1, 1, 1, 1]"},
           Im2ColCase{{6, 2, 8, 7}, {40, 2, 4, 4}, "padding=[1, 1, 0, 0], dilation=[2, 2]"},
           Im2ColCase{{6, 3, 5}, {40, 3, 5}, "padding=[2]"},
           Im2ColCase{{3, 1, 3, 3, 4}, {40, 1, 3, 3, 4}, "padding=[1, 1, 1]"},
       }) {
    expect_the_same(c, true, "nn.dense ");
  }
}

TEST(im2col, leaves_what_it_cannot_do_or_does_not_pay) {
  for (const Im2ColCase& c : {
           Im2ColCase{{1, 3, 5, 4}, {64, 3, 3, 3}, "padding=[1, 1]"},        // pixels
           Im2ColCase{{1, 3, 3, 3}, {64, 3, 3, 3}, "padding=[1, 1]"},        // no vector of pixels
           Im2ColCase{{1, 3, 4, 4}, {64, 3, 6, 6}, "padding=[3, 3, 2, 2]"},  // places
           Im2ColCase{{1, 4, 4, 4}, {64, 2, 3, 3}, "padding=[1, 1], groups=2"},   //
           Im2ColCase{{1, 3, 4, 4}, {64, 3, 3, 3}, "padding=[1, 1]", "float16"},  //
           Im2ColCase{{1, 4, 4, 3}, {64, 3, 3, 3}, "padding=[1, 1], data_layout=\"NHWC\""},
       }) {
    expect_unchanged(kIm2Col, im2col_program(c), small_context());
  }
  // The gradient of a weight with fewer channels than sums, and one that is not turned.
  expect_unchanged(kIm2Col, im2col_program({{6, 2, 5, 5}, {40, 2, 5, 5}, "padding=[1, 1]"}, true),
                   small_context());
  expect_unchanged(kIm2Col, im2col_program({{6, 2, 4, 4}, {40, 2, 4, 4}, "padding=[1, 1]"}),
                   small_context());
  const std::string args = "%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(64, 3, 3, 3), float32]";
  // A weight in another order, which is made as the kernel of the convolution reads it.
  expect_unchanged(kIm2Col,
                   "def @main(" + args + ") { nn.conv2d(%x, reverse(%w, axis=2), padding=[1, 1]) }",
                   small_context());
  // Constants are packed once and for all.
  expect_unchanged(
      kIm2Col,
      "def @main(%x: Tensor[(1, 3, 4, 4), float32]) {\n"
      "  nn.conv2d(%x, ones(shape=[64, 3, 3, 3], dtype=\"float32\"), padding=[1, 1]) }",
      small_context());
  // Sizes that only a run knows.
  expect_unchanged(kIm2Col,
                   "def @main[n: Dim](%x: Tensor[(n, 3, 4, 4), float32], "
                   "%w: Tensor[(64, 3, 3, 3), float32]) { nn.conv2d(%x, %w, padding=[1, 1]) }",
                   small_context());
  // Weights that stay in L2.
  PassContext usual = small_context();
  usual.config.clear();
  expect_unchanged(kIm2Col, im2col_program({{1, 3, 4, 4}, {64, 3, 3, 3}, "padding=[1, 1]"}), usual);
  // Targets without kernels for blocks.
  PassContext items = small_context();
  items.target.has_blocked_kernels = false;
  expect_unchanged(kIm2Col, im2col_program({{1, 3, 4, 4}, {64, 3, 3, 3}, "padding=[1, 1]"}), items);
}

}  // namespace
}  // namespace relay::pass_test
