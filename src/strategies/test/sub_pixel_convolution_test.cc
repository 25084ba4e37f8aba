#include "strategies/sub_pixel/rewrite.h"

#include <algorithm>

#include "analysis/calls.h"
#include "eval/evaluator.h"
#include "node/walk.h"
#include "passes/test/pass_test.h"
#include "strategies/test/convolution_case.h"

namespace relay::pass_test {
namespace {

using runtime::Value;

struct Case {
  Ints data;
  Ints weight;  // I, O, then the axes of the image
  std::string attrs;
};

// A transposed convolution by constant weights; `open`: images and their number have any size.
Module program(const Case& c, float step = 0.7f, bool open = false) {
  size_t dims = c.data.size() - 2;
  std::string names, type = "Tensor[(";
  for (size_t d = 0; open && d <= dims; ++d) {
    const std::string name = "n" + std::to_string(d);
    names += (d == 0 ? "" : ", ") + name + ": Dim";
    type += name + ", ";
  }
  type = open ? type + std::to_string(c.data.back()) + "), float32]" : type_text(c.data);
  if (open) names = "[" + names + "]";
  std::string layout = dims == 1 ? "NWC" : dims == 2 ? "NHWC" : "NDHWC";
  Module mod = parse("def @main" + names + "(%x: " + type + ", %w: " + type_text(c.weight) +
                     ") {\n" + "  nn.conv" + std::to_string(dims) +
                     "d_transpose(%x, %w, data_layout=\"" + layout + "\", " + c.attrs + ")\n}\n");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    NodeRef body =
        substitute(f->body, {{f->params[1].get(), constant(filled(c.weight, step))}}, family::expr);
    return function({f->params[0]}, Expr::unchecked(body), f->ret_type, f->type_params);
  });
}

PassContext evaluating_context() {
  PassContext ctx;
  ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {};
  };
  return ctx;
}

// Of a device whose neighbouring work items are lanes.
PassContext of_items() {
  PassContext ctx = evaluating_context();
  ctx.target.has_blocked_kernels = false;
  ctx.config["relay.ConvertLayout.channels_last"] = AttrValue(true);
  return ctx;
}

Tensor run(const Module& mod, const Ints& shape) {
  return Evaluator(mod).call("main", {filled(shape, 0.3f)}).tensor();
}

TEST(sub_pixel_convolution, computes_the_same) {
  const std::vector<Case> cases{
      {{1, 7, 6, 5}, {5, 3, 4, 4}, "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]"},
      {{1, 7, 6, 5},
       {5, 3, 3, 3},
       "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1]"},
      {{1, 7, 6, 5}, {5, 2, 2, 3}, "kernel_size=[2, 3], strides=[3, 1], padding=[0, 2, 1, 0]"},
      {{2, 5, 7, 3}, {3, 4, 5, 5}, "kernel_size=[5, 5], strides=[1, 1], padding=[3, 0, 1, 4]"},
      {{210, 1, 1, 1}, {1, 2, 4, 4}, "kernel_size=[4, 4], strides=[1, 1], padding=[0, 0, 0, 0]"},
      {{1, 7, 6, 5}, {5, 1, 2, 2}, "kernel_size=[2, 2], strides=[2, 2], padding=[3, 3, 3, 3]"},
      // A convolution for each place, of equal and of different sizes.
      {{1, 4, 4, 32}, {32, 64, 4, 4}, "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]"},
      {{1, 5, 4, 32},
       {32, 64, 3, 3},
       "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], output_padding=[1, 1]"},
      {{1, 6, 6, 32}, {32, 64, 6, 5}, "kernel_size=[6, 5], strides=[3, 2], padding=[1, 2, 2, 1]"},
      // One convolution of 3x3.
      {{1, 16, 13, 32}, {32, 8, 4, 4}, "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]"},
      {{1, 16, 13, 32}, {32, 8, 4, 4}, "kernel_size=[4, 4], strides=[2, 2], padding=[2, 1, 1, 2]"},
      // One axis and three, at once and by place.
      {{2, 9, 5}, {5, 3, 16}, "kernel_size=[16], strides=[8], padding=[4, 4]"},
      {{1, 9, 32}, {32, 64, 4}, "kernel_size=[4], strides=[2], padding=[1]"},
      {{1, 7, 5}, {5, 3, 3}, "kernel_size=[3], strides=[2], padding=[0, 1], output_padding=[1]"},
      {{1, 3, 4, 5, 6},
       {6, 2, 4, 3, 2},
       "kernel_size=[4, 3, 2], strides=[2, 1, 2], padding=[1, 1, 0, 1, 0, 1]"},
      {{1, 3, 4, 3, 32},
       {32, 64, 4, 4, 4},
       "kernel_size=[4, 4, 4], strides=[2, 2, 2], padding=[1]"},
      // Groups: at once, by place, of one channel each and of several outputs of one.
      {{1, 7, 6, 6},
       {6, 2, 4, 3},
       "kernel_size=[4, 3], strides=[2, 3], padding=[1, 0, 1, 2], groups=3"},
      {{2, 5, 4, 32},
       {32, 16, 4, 4},
       "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1], groups=2"},
      {{1, 7, 6, 5},
       {5, 1, 4, 4},
       "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1], groups=5"},
      {{1, 7, 6, 5},
       {5, 1, 3, 3},
       "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], groups=5"},
      {{1, 6, 6, 4}, {4, 3, 2, 2}, "kernel_size=[2, 2], strides=[2, 2], groups=4"},
      {{1, 9, 12}, {12, 5, 4}, "kernel_size=[4], strides=[2], padding=[1], groups=3"},
      {{1, 3, 4, 5, 6},
       {6, 1, 4, 3, 2},
       "kernel_size=[4, 3, 2], strides=[2, 1, 2], padding=[1, 1, 0, 1, 0, 1], groups=6"},
  };
  for (const Case& c : cases) {
    // Open sizes take the same steps: what is quick to evaluate shows it.
    int64_t weights = 1;
    for (int64_t d : c.weight) weights *= d;
    for (bool open : {false, true}) {
      if (open && weights > 8200) continue;
      Module before = program(c, 0.7f, open);
      Ints shape = c.data;
      if (open) shape[1] = 4;
      const Tensor want = run(before, shape);
      for (const bool items : {false, true}) {
        if (items && weights > 1200) continue;
        PassContext ctx = evaluating_context();
        if (items) ctx = of_items();
        Module after = apply(kSubPixelConvolution, before, std::move(ctx));
        EXPECT_EQ(print_module(after).find("d_transpose("), std::string::npos)
            << print_module(after);
        Tensor got = run(after, shape);
        ASSERT_TRUE(std::ranges::equal(want.shape(), got.shape())) << c.attrs;
        for (int64_t i = 0; i < want.num_elements(); ++i) {
          ASSERT_NEAR(want.data<float>()[i], got.data<float>()[i], 2e-5)
              << c.attrs << " element " << i;
        }
      }
    }
  }
}

// The gradient of a convolution with strides: weights are an argument, and have no zeros put in.
TEST(sub_pixel_convolution, takes_weights_that_are_not_constant_by_place) {
  for (const auto& [c, convolutions] : {
           std::pair{Case{{2, 5, 4, 3},
                          {3, 4, 3, 3},
                          "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], "
                          "output_padding=[1, 1]"},
                     4},
           // The gradient of an image of odd sizes: the last pixel has one place.
           std::pair{Case{{2, 4, 3, 3},
                          {3, 4, 3, 3},
                          "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]"},
                     4},
           std::pair{Case{{1, 3, 4, 3},
                          {3, 2, 5, 4},
                          "kernel_size=[5, 4], strides=[3, 2], padding=[1, 0, 2, 1]"},
                     6},
           // Of a window of one pixel, one place in four has a weight.
           std::pair{Case{{2, 5, 4, 3},
                          {3, 4, 1, 1},
                          "kernel_size=[1, 1], strides=[2, 2], output_padding=[1, 1]"},
                     1},
       }) {
    Module before =
        parse("def @main(%x: " + type_text(c.data) + ", %w: " + type_text(c.weight) +
              ") { nn.conv2d_transpose(%x, %w, data_layout=\"NHWC\", " + c.attrs + ") }");
    Module after = apply(kSubPixelConvolution, before, evaluating_context());
    const std::string text = print_module(after);
    EXPECT_EQ(text.find("d_transpose("), std::string::npos) << text;
    EXPECT_EQ(text.find("nn.pad("), std::string::npos) << text;
    int found = 0;
    for (size_t at = text.find("nn.conv2d("); at != std::string::npos;
         at = text.find("nn.conv2d(", at + 1)) {
      ++found;
    }
    EXPECT_EQ(found, convolutions) << text;
    const std::vector<Value> args{filled(c.data, 0.3f), filled(c.weight, 0.7f)};
    Tensor want = Evaluator(before).call("main", args).tensor();
    Tensor got = Evaluator(after).call("main", args).tensor();
    ASSERT_EQ(want.num_elements(), got.num_elements());
    for (int64_t i = 0; i < want.num_elements(); ++i)
      ASSERT_NEAR(want.data<float>()[i], got.data<float>()[i], 2e-5) << c.attrs << " " << i;
  }
}

// The convolutions of the result, by the size of their kernels.
std::string convolutions(const Case& c, bool minimal = true) {
  PassContext ctx = evaluating_context();
  ctx.target.vector_bits = 512;
  if (!minimal) ctx.disabled_pass.insert("WinogradConvolution");
  Module after = apply(kSubPixelConvolution, program(c), std::move(ctx));
  std::string out;
  post_order(
      after->find("main"),
      [&](const Node& n) {
        auto* call = as<CallNode>(&n);
        if (call == nullptr || !is_call_to(Expr(call), "nn.conv2d")) return;
        Ints size = *ints_attr(*call, "kernel_size");
        out += std::to_string(size[0]) + "x" + std::to_string(size[1]) + " ";
      },
      family::expr);
  return out;
}

TEST(sub_pixel_convolution, takes_the_form_with_the_least_work) {
  const std::string four = "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1]";
  // At 5x5 pixels the window of all places has a quarter of its work at the cut border.
  EXPECT_EQ(convolutions({{1, 4, 4, 512}, {512, 256, 4, 4}, four}), "2x2 2x2 2x2 2x2 ");
  // Three outputs alone would leave most lanes empty.
  EXPECT_EQ(convolutions({{1, 32, 32, 64}, {64, 3, 4, 4}, four}), "2x2 ");
  Case large{{1, 16, 16, 128}, {128, 64, 4, 4}, four};
  EXPECT_EQ(convolutions(large), "3x3 ");
  EXPECT_EQ(convolutions(large, false), "2x2 2x2 2x2 2x2 ");
  EXPECT_EQ(convolutions({{1, 16, 16, 128},
                          {128, 64, 3, 3},
                          "kernel_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], "
                          "output_padding=[1, 1]"},
                         false),
            "1x1 1x2 2x1 2x2 ");
}

TEST(sub_pixel_convolution, groups_of_one_channel_stay_so) {
  const std::string four = "kernel_size=[4, 4], strides=[2, 2], padding=[1, 1, 1, 1], groups=";
  EXPECT_EQ(convolutions({{1, 28, 28, 64}, {64, 1, 4, 4}, four + "64"}), "2x2 2x2 2x2 2x2 ");
  EXPECT_EQ(convolutions({{1, 28, 28, 64}, {64, 16, 4, 4}, four + "4"}), "2x2 2x2 2x2 2x2 ");
  // The places of a group's four outputs fill a vector together.
  EXPECT_EQ(convolutions({{1, 28, 28, 64}, {64, 4, 4, 4}, four + "4"}), "2x2 ");
}

TEST(sub_pixel_convolution, leaves_what_it_cannot_do) {
  // Weights that are not a constant, where the places would have to cut the image.
  expect_unchanged(
      kSubPixelConvolution,
      "def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(2, 3, 2, 2), float32]) {\n"
      "  nn.conv2d_transpose(%x, %w, kernel_size=[2, 2], strides=[2, 2], padding=[3, 3, 3, 3],\n"
      "                      data_layout=\"NHWC\")\n}",
      evaluating_context());
  for (const Case& c : {
           Case{{1, 7, 6, 5}, {5, 3, 2, 2}, "kernel_size=[2, 2], strides=[2, 2], dilation=[2, 2]"},
           // One tap at each place of each pixel: it is a product by pixel already.
           Case{{1, 7, 6, 5}, {5, 3, 1, 1}, "kernel_size=[1, 1], strides=[1, 1]"},
       }) {
    Module mod = program(c);
    EXPECT_TRUE(apply(kSubPixelConvolution, mod, evaluating_context()) == mod) << c.attrs;
  }
  // A device that leaves layouts as the model has them.
  PassContext device = evaluating_context();
  device.target.has_blocked_kernels = false;
  const Module left = program({{1, 7, 6, 5}, {5, 3, 2, 2}, "kernel_size=[2, 2], strides=[2, 2]"});
  EXPECT_TRUE(apply(kSubPixelConvolution, left, std::move(device)) == left);
  // Weights that are not finite: what is NaN is for the operator's definition to say.
  Case even{{1, 7, 6, 5}, {5, 3, 2, 2}, "kernel_size=[2, 2], strides=[2, 2]"};
  Module finite = program(even), infinite = program(even, INFINITY);
  EXPECT_FALSE(apply(kSubPixelConvolution, finite, evaluating_context()) == finite);
  EXPECT_TRUE(apply(kSubPixelConvolution, infinite, evaluating_context()) == infinite);
}

}  // namespace
}  // namespace relay::pass_test
