// Convolutions of images whose number and sides only a run knows: what their register tiles compute, and in which order.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

using tir::Tensor;

struct Images {
  int64_t count, height, width, channels, outputs, kernel, stride;
  bool channels_first = false;  // as they are given
};

// A convolution of [n, h, w, channels] with a border of zeros that keeps the sides of the image.
Case convolution_of(const Images& p) {
  Case c;
  c.dims = {p.count, p.height, p.width};
  tir::Var n = tir::var("n"), h = tir::var("h"), w = tir::var("w");
  const int64_t pad = p.kernel / 2, k = p.kernel;
  PrimExpr channels = index(p.channels);
  Tensor x = placeholder("x", f32,
                         p.channels_first ? std::vector<PrimExpr>{n, channels, h, w}
                                          : std::vector<PrimExpr>{n, h, w, channels});
  auto at = [&](const PrimExpr& i, const PrimExpr& y, const PrimExpr& z, const PrimExpr& ch) {
    return p.channels_first ? x(i, ch, y, z) : x(i, y, z, ch);
  };
  Tensor source = x;
  if (pad > 0) {
    source = compute("pad", {n, h + 2 * pad, w + 2 * pad, channels}, [&](const Indices& i) {
      PrimExpr y = i[1] - pad, z = i[2] - pad;
      PrimExpr inside = logical_and(logical_and(ge(y, index(0)), lt(y, h)),
                                    logical_and(ge(z, index(0)), lt(z, w)));
      return select(inside, at(i[0], y, z, i[3]), imm_float(f32, 0));
    });
  }
  Tensor weights = placeholder("weights", f32, {index(k), index(k), channels, index(p.outputs)});
  auto side = [&](const PrimExpr& of) {
    return p.stride == 1 ? of : floor_div(of - 1, index(p.stride)) + 1;
  };
  using enum ContractionRole;
  Tensor y = contract(
      "conv", {n, side(h), side(w), index(p.outputs)}, {index(k), index(k), channels},
      {Row, Row, Row, Column, Window, Window, Reduced}, [&](const Indices& i, const Indices& r) {
        return source(i[0], i[1] * p.stride + r[0], i[2] * p.stride + r[1], r[2]) *
               weights(r[0], r[1], r[2], i[3]);
      });
  Tensor out =
      compute("out", y->shape(), [&](const Indices& i) { return max(y(i), imm_float(f32, -0.5)); });
  c.func = create_prim_func("conv", {x, weights}, {out}, {n, h, w});
  c.inputs = {random_floats(static_cast<size_t>(p.count * p.height * p.width * p.channels), 5),
              random_floats(static_cast<size_t>(k * k * p.channels * p.outputs), 6)};
  auto element = [&](int64_t i, int64_t row, int64_t column, int64_t ch) {
    int64_t place = p.channels_first ? ((i * p.channels + ch) * p.height + row) * p.width + column
                                     : ((i * p.height + row) * p.width + column) * p.channels + ch;
    return static_cast<double>(c.inputs[0][static_cast<size_t>(place)]);
  };
  auto weight = [&](int64_t r, int64_t s, int64_t ch, int64_t o) {
    return c.inputs[1][static_cast<size_t>(((r * k + s) * p.channels + ch) * p.outputs + o)];
  };
  for (int64_t i = 0; i < p.count; ++i) {
    for (int64_t row = -pad; row < p.height - pad; row += p.stride) {
      for (int64_t column = -pad; column < p.width - pad; column += p.stride) {
        for (int64_t o = 0; o < p.outputs; ++o) {
          double total = 0;
          for (int64_t r = std::max<int64_t>(0, -row); r < std::min(k, p.height - row); ++r) {
            for (int64_t s = std::max<int64_t>(0, -column); s < std::min(k, p.width - column);
                 ++s) {
              for (int64_t ch = 0; ch < p.channels; ++ch)
                total += element(i, row + r, column + s, ch) * weight(r, s, ch, o);
            }
          }
          c.expected.push_back(static_cast<float>(std::max(-0.5, total)));
        }
      }
    }
  }
  return c;
}

std::string loops_of(const Case& c) {
  return to_string(scheduled(c.func, codegen_test::text_target()));
}

TEST(open_convolution, pixels_of_windows_of_one_are_rows_of_one_axis) {
  for (int64_t width : {1, 5, 23}) expect_tiled(convolution_of({2, 3, width, 7, 40, 1, 1}));
  expect_tiled(convolution_of({0, 3, 4, 7, 40, 1, 1}));
  std::string text = loops_of(convolution_of({2, 3, 5, 7, 40, 1, 1}));
  EXPECT_NE(text.find("x: float32[n * h * w, 7]"), std::string::npos) << text;
  EXPECT_EQ(text.find("reduce window"), std::string::npos) << text;
  // Every second pixel lies apart.
  expect_tiled(convolution_of({2, 3, 5, 7, 40, 1, 2}));
  text = loops_of(convolution_of({2, 3, 5, 7, 40, 1, 2}));
  EXPECT_NE(text.find("x: float32[n, h, w, 7]"), std::string::npos) << text;
}

// Weights of more than half of L2 pass by once for all lines.
TEST(open_convolution, tiles_of_columns_stand_outside_of_lines_when_there_are_many_weights) {
  for (int64_t width : {3, 8}) expect_tiled(convolution_of({2, 2, width, 64, 192, 3, 1}));
  // Threads share all of these loops: the innermost is what the rest by its extent is.
  auto columns_are_inside = [](int64_t channels) {
    std::string text = loops_of(convolution_of({2, 2, 3, channels, 192, 3, 1}));
    EXPECT_NE(text.find("in parallel(n * h * 4):"), std::string::npos) << text;
    return text.find(" %% 4 * ") != std::string::npos;
  };
  EXPECT_TRUE(columns_are_inside(8));
  EXPECT_FALSE(columns_are_inside(64));
}

// An image of few colours, one behind the other: the copy with the border has lanes along its lines.
TEST(open_convolution, border_of_few_channels_is_copied_line_by_line) {
  for (int64_t width : {2, 17, 40}) expect_tiled(convolution_of({2, 5, width, 3, 16, 3, 2, true}));
  std::string text = loops_of(convolution_of({2, 5, 17, 3, 16, 3, 2, true}));
  EXPECT_NE(text.find("allocate pad: float32[n, h + 2, 3, w + 2]"), std::string::npos) << text;
  // Lines of channels are copied as they are.
  text = loops_of(convolution_of({2, 5, 17, 3, 16, 3, 2, false}));
  EXPECT_NE(text.find("allocate pad: float32[n, h + 2, w + 2, 3]"), std::string::npos) << text;
}

// A sum beside a block without loops: a number that each element is multiplied by.
TEST(open_convolution, a_number_that_the_sum_reads_has_no_axes) {
  Tensor x = placeholder("x", f32, {index(5), index(7)});
  Tensor weights = placeholder("weights", f32, {index(7), index(33)}),
         a = placeholder("a", f32, {});
  Tensor factor = compute("factor", {}, [&](const Indices&) { return call("exp", f32, {a({})}); });
  using enum ContractionRole;
  Tensor y = contract("y", {index(5), index(33)}, {index(7)}, {Row, Column, Reduced},
                      [&](const Indices& i, const Indices& k) {
                        return x(i[0], k[0]) * factor({}) * weights(k[0], i[1]);
                      });
  Case c{create_prim_func("scaled", {x, weights, a}, {y}),
         {random_floats(35, 1), random_floats(231, 2), {0.5F}},
         {}};
  for (size_t row = 0; row < 5; ++row) {
    for (size_t column = 0; column < 33; ++column) {
      double total = 0;
      for (size_t k = 0; k < 7; ++k)
        total += c.inputs[0][row * 7 + k] * std::exp(0.5) * c.inputs[1][k * 33 + column];
      c.expected.push_back(static_cast<float>(total));
    }
  }
  expect_tiled(c);
}

// Sums of windows that overlap, of an image whose sides are open, are tiles too: no row of its own for each window.
TEST(open_convolution, windows_of_open_lines_are_tiles) {
  for (int64_t width : {3, 18, 40}) {
    constexpr int64_t height = 7;
    tir::Var h = tir::var("h"), w = tir::var("w");
    Tensor x = placeholder("x", f32, {h, w});
    Tensor y = compute("y", {h - 2, w - 2}, [&](const Indices& i) {
      return sum({index(3), index(3)},
                 [&](const Indices& k) { return x(i[0] + k[0], i[1] + k[1]); });
    });
    Case c{create_prim_func("windows", {x}, {y}, {h, w}),
           {random_floats(static_cast<size_t>(height * width), 4)},
           {},
           {height, width}};
    for (int64_t row = 0; row + 2 < height; ++row) {
      for (int64_t column = 0; column + 2 < width; ++column) {
        double total = 0;
        for (int64_t k = 0; k < 9; ++k)
          total += c.inputs[0][static_cast<size_t>((row + k / 3) * width + column + k % 3)];
        c.expected.push_back(static_cast<float>(total));
      }
    }
    expect_tiled(c);
  }
}

}  // namespace
}  // namespace relay::lower_test
