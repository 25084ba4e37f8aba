// Sums of products: what their register tiles compute, at every kind of edge, on each target.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

void expect_tiled(const Case& c) { expect_right(c, "sum:"); }

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// relu(x [m, k] times w [n, k] + bias), the weights in panels of `panel` columns (0: as [k, n]).
Case dense(int64_t m, int64_t n, int64_t k, int64_t panel, bool epilogue) {
  Tensor x = placeholder("x", f32, {index(m), index(k)});
  Tensor w = panel == 0
                 ? placeholder("w", f32, {index(k), index(n)})
                 : placeholder("w", f32, {index((n + panel - 1) / panel), index(k), index(panel)});
  Tensor bias = placeholder("bias", f32, {index(n)});
  Tensor product = compute("product", {index(m), index(n)}, [&](const Indices& i) {
    return sum({index(k)}, [&](const Indices& r) {
      PrimExpr weight = panel == 0
                            ? w(r[0], i[1])
                            : w(floor_div(i[1], index(panel)), r[0], floor_mod(i[1], index(panel)));
      return x(i[0], r[0]) * weight;
    });
  });
  Tensor y = compute("y", product->shape(), [&](const Indices& i) {
    return max(product(i) + bias(i[1]), imm_float(f32, 0));
  });
  size_t columns = static_cast<size_t>(panel == 0 ? n : round_up(n, panel));
  Case c;
  c.inputs = {random_floats(static_cast<size_t>(m * k), 1),
              random_floats(columns * static_cast<size_t>(k), 2)};
  std::vector<Tensor> inputs{x, w};
  if (epilogue) {
    inputs.push_back(bias);
    c.inputs.push_back(random_floats(static_cast<size_t>(n), 3));
  }
  c.func = create_prim_func("dense", inputs, {epilogue ? y : product});
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < n; ++col) {
      double total = 0;
      for (int64_t r = 0; r < k; ++r) {
        int64_t at = panel == 0 ? r * n + col : (col / panel * k + r) * panel + col % panel;
        total += static_cast<double>(c.inputs[0][static_cast<size_t>(row * k + r)]) *
                 c.inputs[1][static_cast<size_t>(at)];
      }
      if (epilogue) total = std::max(0.0, total + c.inputs[2][static_cast<size_t>(col)]);
      c.expected.push_back(static_cast<float>(total));
    }
  }
  return c;
}

struct Image {
  int64_t height, width, channels, outputs, kernel, stride, pad, dilation = 1;
};

// A convolution of a [1, h, w, c] image with a border of zeros; depthwise if outputs is 0.
Case convolution(const Image& p) {
  bool depthwise = p.outputs == 0;
  int64_t outputs = depthwise ? p.channels : p.outputs;
  int64_t oh = (p.height + 2 * p.pad - (p.kernel - 1) * p.dilation - 1) / p.stride + 1;
  int64_t ow = (p.width + 2 * p.pad - (p.kernel - 1) * p.dilation - 1) / p.stride + 1;
  Tensor x = placeholder("x", f32, {index(1), index(p.height), index(p.width), index(p.channels)});
  Tensor w = placeholder(
      "w", f32,
      {index(p.kernel), index(p.kernel), index(depthwise ? 1 : p.channels), index(outputs)});
  Tensor padded = x;
  if (p.pad > 0) {
    padded = compute(
        "pad",
        {index(1), index(p.height + 2 * p.pad), index(p.width + 2 * p.pad), index(p.channels)},
        [&](const Indices& i) {
          PrimExpr h = i[1] - p.pad, v = i[2] - p.pad;
          PrimExpr inside = logical_and(logical_and(ge(h, index(0)), lt(h, index(p.height))),
                                        logical_and(ge(v, index(0)), lt(v, index(p.width))));
          return select(inside, x(i[0], h, v, i[3]), imm_float(f32, 0));
        });
  }
  Tensor y =
      compute("conv", {index(1), index(oh), index(ow), index(outputs)}, [&](const Indices& i) {
        return sum({index(p.kernel), index(p.kernel), index(depthwise ? 1 : p.channels)},
                   [&](const Indices& r) {
                     PrimExpr channel = depthwise ? i[3] + r[2] : r[2];
                     return padded(i[0], i[1] * p.stride + r[0] * p.dilation,
                                   i[2] * p.stride + r[1] * p.dilation, channel) *
                            w(r[0], r[1], r[2], i[3]);
                   });
      });
  Tensor out =
      compute("out", y->shape(), [&](const Indices& i) { return max(y(i), imm_float(f32, -0.5)); });
  int64_t inner = depthwise ? 1 : p.channels;
  Case c{create_prim_func("conv", {x, w}, {out}),
         {random_floats(static_cast<size_t>(p.height * p.width * p.channels), 5),
          random_floats(static_cast<size_t>(p.kernel * p.kernel * inner * outputs), 6)},
         {}};
  for (int64_t row = 0; row < oh; ++row) {
    for (int64_t col = 0; col < ow; ++col) {
      for (int64_t o = 0; o < outputs; ++o) {
        double total = 0;
        for (int64_t r = 0; r < p.kernel; ++r) {
          for (int64_t s = 0; s < p.kernel; ++s) {
            int64_t h = row * p.stride + r * p.dilation - p.pad,
                    v = col * p.stride + s * p.dilation - p.pad;
            if (h < 0 || h >= p.height || v < 0 || v >= p.width) continue;
            for (int64_t t = 0; t < inner; ++t) {
              int64_t channel = depthwise ? o : t;
              total +=
                  static_cast<double>(
                      c.inputs[0][static_cast<size_t>((h * p.width + v) * p.channels + channel)]) *
                  c.inputs[1][static_cast<size_t>(((r * p.kernel + s) * inner + t) * outputs + o)];
            }
          }
        }
        c.expected.push_back(static_cast<float>(std::max(-0.5, total)));
      }
    }
  }
  return c;
}

TEST(contraction, rows_and_columns_of_any_number) {
  for (int64_t m : {1, 13, 15, 43}) {
    for (int64_t n : {2, 17, 33, 100}) expect_tiled(dense(m, n, 5, 0, m % 2 == 0));
  }
}

TEST(contraction, weights_in_panels) {
  for (int64_t m : {1, 7, 20}) {
    for (int64_t n : {16, 40, 96, 200}) expect_tiled(dense(m, n, 9, 32, true));
  }
}

TEST(contraction, convolutions_and_their_borders) {
  expect_tiled(convolution({7, 7, 3, 20, 3, 1, 1}));
  expect_tiled(convolution({9, 30, 4, 32, 3, 2, 1}));
  expect_tiled(convolution({5, 5, 6, 8, 1, 1, 0}));
  expect_tiled(convolution({17, 16, 2, 24, 5, 1, 2}));
}

TEST(contraction, depthwise_convolutions_read_no_copy) {
  for (const Image& p : {Image{7, 7, 40, 0, 3, 1, 1}, Image{33, 30, 17, 0, 3, 2, 1},
                         Image{16, 57, 16, 0, 3, 1, 1}, Image{2, 2, 5, 0, 3, 1, 1}}) {
    Case c = convolution(p);
    expect_tiled(c);
    EXPECT_EQ(
        to_string(scheduled(c.func, codegen_test::runnable_targets().back())).find("allocate pad"),
        std::string::npos);
  }
}

TEST(contraction, a_wide_border_is_copied) {
  // Taps far apart: each line at the border would be code of its own.
  Case c = convolution({24, 24, 16, 0, 3, 1, 12, 12});
  expect_tiled(c);
  EXPECT_NE(
      to_string(scheduled(c.func, codegen_test::runnable_targets().back())).find("allocate pad"),
      std::string::npos);
}

TEST(contraction, one_column_is_no_tile) {
  Case c = dense(16, 1, 8, 0, false);
  EXPECT_FALSE(rule_of(c.func).starts_with("sum:"));
}

}  // namespace
}  // namespace relay::lower_test
