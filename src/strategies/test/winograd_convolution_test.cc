#include "strategies/winograd/rewrite.h"

#include <cmath>

#include "node/walk.h"
#include "passes/test/pass_test.h"
#include "strategies/test/convolution_case.h"

namespace relay::pass_test {
namespace {

struct WinogradCase {
  Ints data = {1, 14, 15, 64};
  Ints weight = {64, 64, 3, 3};
  std::string attrs = "padding=[1, 1]";
  std::string dtype = "float32";
};

// A convolution by constant weights, all of them zero but the first, channels last.
Module winograd_program(const WinogradCase& c, float first = 0) {
  Module mod = parse("def @main(%x: " + type_text(c.data, c.dtype) +
                     ", %w: " + type_text(c.weight, c.dtype) +
                     ") {\n  nn.conv2d(%x, %w, data_layout=\"NHWC\", " + c.attrs + ")\n}\n");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    auto dtype = as<TensorTypeNode>(f->params[1]->type)->dtype;
    Tensor weight = Tensor::zeros(dtype, c.weight);
    if (dtype.is_float(32)) weight.data<float>()[0] = first;
    NodeRef body = substitute(f->body, {{f->params[1].get(), constant(weight)}}, family::expr);
    return function({f->params[0]}, Expr::unchecked(body), f->ret_type);
  });
}

PassContext winograd_context() {
  PassContext ctx;
  ctx.target.vector_bits = 512;
  ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {};
  };
  return ctx;
}

TEST(winograd_convolution, transforms_the_weight_and_multiplies_fewer) {
  for (const WinogradCase& c : {
           WinogradCase{},
           WinogradCase{{1, 14, 14, 64}, {96, 64, 3, 3}, "padding=[0, 2, 1, 0]"},
           WinogradCase{{4, 5, 5, 64}, {64, 64, 3, 3}, "padding=[1, 1, 1, 1]"},
           WinogradCase{{1, 18, 18, 64}, {3, 3, 64, 64}, "kernel_layout=\"HWIO\""},
       }) {
    Module before = winograd_program(c);
    Module after = apply(kWinogradConvolution, before, winograd_context());
    std::string text = print_module(after);
    EXPECT_EQ(text.find("nn.conv2d("), text.npos) << text;
    EXPECT_NE(text.find("winograd_without_weight_transform("), text.npos) << text;
    EXPECT_TRUE(structural_equal(infer_types(before)->find("main")->type,
                                 infer_types(after)->find("main")->type))
        << text;
  }
}

TEST(winograd_convolution, leaves_what_it_cannot_do_or_does_not_pay) {
  for (const WinogradCase& c : {
           WinogradCase{{1, 14, 14, 16}, {64, 16, 3, 3}, "padding=[1, 1]"},  // channels
           WinogradCase{{1, 14, 14, 64}, {16, 64, 3, 3}, "padding=[1, 1]"},  // channels
           WinogradCase{{1, 14, 14, 72}, {64, 72, 3, 3}, "padding=[1, 1]"},  // no vectors
           WinogradCase{{1, 12, 12, 64}, {64, 64, 3, 3}, "padding=[1, 1]"},  // tiles
           WinogradCase{{1, 28, 28, 64}, {64, 64, 3, 3}, "padding=[1, 1], strides=[2, 2]"},   //
           WinogradCase{{1, 28, 28, 64}, {64, 64, 3, 3}, "padding=[1, 1], dilation=[2, 2]"},  //
           WinogradCase{{1, 28, 28, 128}, {128, 64, 3, 3}, "padding=[1, 1], groups=2"},       //
           WinogradCase{{1, 28, 28, 64}, {64, 64, 5, 5}, "padding=[2, 2]"},                   //
           WinogradCase{{1, 28, 28, 64}, {64, 64, 3, 3}, "padding=[1, 1]", "float64"},        //
       }) {
    Module mod = winograd_program(c);
    EXPECT_TRUE(apply(kWinogradConvolution, mod, winograd_context()) == mod) << c.attrs;
  }
  // A weight that is infinite: differences of it would be NaN in a whole tile.
  Module infinite = winograd_program({}, INFINITY);
  EXPECT_TRUE(apply(kWinogradConvolution, infinite, winograd_context()) == infinite);
  // Weights that only a run tells, and too few tiles for what their transform takes each time.
  expect_unchanged(
      kWinogradConvolution,
      "def @main(%x: Tensor[(1, 18, 18, 64), float32], %w: Tensor[(64, 64, 3, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, data_layout=\"NHWC\")\n}",
      winograd_context());
}

TEST(winograd_convolution, transforms_a_weight_that_a_run_tells_once_for_all_that_use_it) {
  expect_becomes(
      kWinogradConvolution,
      "def @main(%x: Tensor[(8, 28, 28, 64), float32], %w: Tensor[(3, 3, 64, 64), float32]) {\n"
      "  %0 = nn.conv2d(%x, %w, padding=[1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\");\n"
      "  nn.conv2d(%0, %w, padding=[1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}",
      "def @main(%x: Tensor[(8, 28, 28, 64), float32], %w: Tensor[(3, 3, 64, 64), float32]) {\n"
      "  %0 = layout_transform(%w, src_layout=\"HWIO\", dst_layout=\"OIHW\");\n"
      "  %1 = nn.contrib_conv2d_winograd_weight_transform(%0, tile_size=4);\n"
      "  %2 = nn.contrib_conv2d_winograd_without_weight_transform(%x, %1, tile_size=4, "
      "padding=[1, 1], channels=64, kernel_size=[3, 3], data_layout=\"NHWC\");\n"
      "  nn.contrib_conv2d_winograd_without_weight_transform(%2, %1, tile_size=4, "
      "padding=[1, 1], channels=64, kernel_size=[3, 3], data_layout=\"NHWC\")\n}",
      winograd_context());
}

// A convolution of images of open size by a weight of so many channels on both sides that a run tells.
std::string of_open_size(int64_t channels, const std::string& sizes) {
  const std::string c = std::to_string(channels);
  return "def @main[n: Dim, h: Dim, w: Dim](%x: Tensor[(n, h, w, " + c +
         "), float32], %w: Tensor[(" + c + ", " + c + ", 3, 3), float32]" + sizes +
         ") {\n  nn.conv2d(%x, %w, padding=[1, 1], data_layout=\"NHWC\")\n}";
}

TEST(winograd_convolution, asks_the_typical_sizes_where_those_of_images_are_open) {
  auto sizes = [](int64_t n, int64_t side) {
    const std::string s = std::to_string(side);
    return ", typical_sizes=[[\"n\", " + std::to_string(n) + "], [\"h\", " + s + "], [\"w\", " + s +
           "]]";
  };
  for (const std::string& text :
       {of_open_size(64, sizes(1, 24)), of_open_size(64, sizes(4, 12)), of_open_size(64, ""),
        of_open_size(64, ", size_hints=[[\"h\", 1, 99, [40, 4]], [\"w\", 1, 99, [40]]]")}) {
    const std::string after =
        print_module(apply(kWinogradConvolution, parse(text), winograd_context()));
    EXPECT_NE(after.find("winograd_without_weight_transform("), after.npos) << text;
  }
  for (const std::string& text :
       {of_open_size(64, sizes(1, 12)), of_open_size(256, ""),
        of_open_size(64, ", size_hints=[[\"h\", 1, 99, [4, 40]], [\"w\", 1, 99, [4]]]")}) {
    expect_unchanged(kWinogradConvolution, text, winograd_context());
  }
}

// Typical sizes change no result, whatever a model holds: they stand for the nearest of [0, 2^31].
TEST(winograd_convolution, clamps_typical_sizes) {
  auto text_of = [](const std::string& n, const std::string& h, const std::string& w) {
    return of_open_size(
        256, ", typical_sizes=[[\"n\", " + n + "], [\"h\", " + h + "], [\"w\", " + w + "]]");
  };
  const std::string most = "9223372036854775807";
  for (const std::string& text : {text_of(most, most, most), text_of("-1", most, "24"),
                                  text_of("1", "4611686018427387904", "4")}) {
    const std::string after =
        print_module(apply(kWinogradConvolution, parse(text), winograd_context()));
    const bool pays = text.find("-1") == text.npos;
    EXPECT_EQ(after.find("winograd_without_weight_transform(") != after.npos, pays) << text;
  }
  expect_unchanged(kWinogradConvolution, text_of("1", "-4", "99"), winograd_context());
  // A negative size does not discard the others.
  const std::string other =
      of_open_size(256, ", typical_sizes=[[\"n\", 1], [\"h\", 99], [\"w\", 99], [\"m\", -4]]");
  const std::string after =
      print_module(apply(kWinogradConvolution, parse(other), winograd_context()));
  EXPECT_NE(after.find("winograd_without_weight_transform("), after.npos);
}

TEST(winograd_convolution, leaves_a_convolution_without_output_channels) {
  for (const char* height : {"7", "h"}) {
    expect_unchanged(kWinogradConvolution,
                     std::string("def @main[h: Dim](%x: Tensor[(1, ") + height +
                         ", 9, 4), float32], %w: Tensor[(3, 3, 4, 0), float32]) {\n"
                         "  nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}",
                     winograd_context());
  }
}

}  // namespace
}  // namespace relay::pass_test
