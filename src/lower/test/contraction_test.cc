// Sums of products: what their register tiles compute, at every kind of edge, on each target.
#include <sstream>

#include "lower/test/kernel_case.h"
#include "target/dot_products.h"
#include "tir/arith/analyzer.h"
#include "tir/interpret.h"
#include "tir/schedule/loop_tree.h"

namespace relay::lower_test {
namespace {

using tir::Tensor;

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

// Tiles of 16 registers leave some of them free, of 32 registers they need not.
TEST(contraction, accumulators_stay_in_registers) {
  const Target target = parse_target("x86-64-v3 -num-threads=1");
  auto tile = [](const Case& c, const Target& t) {
    const std::string rule = tir::report_of(*scheduled(c.func, t)).sentence;
    const size_t end = rule.find(" register tile");
    return rule.substr(rule.rfind(' ', end - 1) + 1, end - rule.rfind(' ', end - 1) - 1);
  };
  for (auto [columns, expected] : {std::pair<int64_t, const char*>{8, "8x8"},
                                   {24, "3x24"},
                                   {40, "6x16"},
                                   {48, "6x16"},
                                   {72, "3x24"}}) {
    const Case c = dense(126, columns, 768, 0, false);
    EXPECT_EQ(tile(c, target), expected);
    const std::string code = backend_of(target).text(
        CodeText::Assembly, {lower_loops(scheduled(c.func, target))}, target);
    EXPECT_NE(code.find("\tvfmadd"), std::string::npos);
    std::istringstream lines(code);
    for (std::string line; std::getline(lines, line);) {
      const bool vector = line.find("%ymm") != std::string::npos;
      EXPECT_FALSE(vector && line.find("(%rsp)") != std::string::npos) << line;
    }
  }
  const Target wide = parse_target("x86-64-v4 -num-threads=1");
  EXPECT_EQ(tile(dense(120, 16, 768, 0, false), wide), "30x16");
  EXPECT_EQ(tile(dense(120, 48, 768, 0, false), wide), "6x48");
}

TEST(contraction, columns_in_blocks_whose_weights_stay_in_l2) {
  // Half of 512 KB are 512 columns of 128 elements: two blocks, and one with a rest that fills no tile.
  for (int64_t columns : {1024, 700}) {
    for (bool epilogue : {false, true}) {
      Case c = dense(530, columns, 128, 32, epilogue);
      EXPECT_TRUE(rule_of(c.func).ends_with("columns in blocks of 512")) << rule_of(c.func);
      expect_tiled(c);
    }
  }
  // Neither where all weights or all rows stay there, nor where the rows of a tile do not stay in L1.
  for (const Case& c : {dense(530, 500, 128, 32, true), dense(500, 1024, 128, 32, true),
                        dense(100, 400, 1024, 32, true)}) {
    EXPECT_FALSE(rule_of(c.func).ends_with("columns in blocks of 512")) << rule_of(c.func);
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
    EXPECT_EQ(to_string(scheduled(c.func, codegen_test::text_target())).find("allocate pad"),
              std::string::npos);
  }
}

// The gradient of a convolution's weight: y[i, r, s, o] = the sum over h, v of x[i, r + h, s + v] * d[h, v, o].
Case correlation(int64_t channels, int64_t height, int64_t width, int64_t window, int64_t outputs) {
  Tensor x = placeholder("x", f32,
                         {index(channels), index(height + window - 1), index(width + window - 1)});
  Tensor d = placeholder("d", f32, {index(height), index(width), index(outputs)});
  Tensor y = compute("y", {index(channels), index(window), index(window), index(outputs)},
                     [&](const Indices& i) {
                       return sum({index(height), index(width)}, [&](const Indices& r) {
                         return x(i[0], i[1] + r[0], i[2] + r[1]) * d(r[0], r[1], i[3]);
                       });
                     });
  const int64_t lines = height + window - 1, line = width + window - 1;
  Case c{create_prim_func("correlation", {x, d}, {y}),
         {random_floats(static_cast<size_t>(channels * lines * line), 5),
          random_floats(static_cast<size_t>(height * width * outputs), 6)},
         {}};
  for (int64_t at = 0; at < channels * window * window * outputs; ++at) {
    const int64_t o = at % outputs, q = at / outputs % window, p = at / outputs / window % window,
                  i = at / outputs / window / window;
    double total = 0;
    for (int64_t h = 0; h < height; ++h) {
      for (int64_t v = 0; v < width; ++v) {
        total += static_cast<double>(
                     c.inputs[0][static_cast<size_t>((i * lines + p + h) * line + q + v)]) *
                 c.inputs[1][static_cast<size_t>((h * width + v) * outputs + o)];
      }
    }
    c.expected.push_back(static_cast<float>(total));
  }
  return c;
}

// A step of the sum reads the elements of the rows beside those of the step before: of several steps they would stay in
// registers, and drive the results out of 16.
TEST(contraction, steps_that_share_elements_are_single_where_registers_are_few) {
  const Target few = parse_target("x86-64-v3 -num-threads=1"),
               many = parse_target("x86-64-v4 -num-threads=1");
  auto turns = [](const Case& c, const Target& t) {
    const std::string text = to_string(scheduled(c.func, t));
    size_t found = 0;
    for (size_t at = 0; (at = text.find("# unroll = ", at)) != std::string::npos; ++at) ++found;
    return found;
  };
  for (const Case& c : {correlation(2, 9, 13, 3, 16), correlation(3, 5, 8, 2, 24)}) {
    expect_tiled(c);
  }
  // Of nine rows six are a tile, and three have registers to spare.
  EXPECT_EQ(turns(correlation(2, 9, 13, 3, 16), few), 1u);
  EXPECT_GE(turns(correlation(2, 9, 13, 3, 16), many), 1u);
  EXPECT_EQ(turns(correlation(2, 9, 13, 2, 24), many), 1u);
  // Nor where nothing is shared.
  EXPECT_EQ(turns(dense(6, 16, 64, 0, false), few), 1u);
}

// y[m, n] = x[m, k] times w[k, n] where z[m, n] is above 0, else 0.
Case selected(int64_t m, int64_t n, int64_t k) {
  Case c = dense(m, n, k, 0, false);
  Tensor x = placeholder("x", f32, {index(m), index(k)}),
         w = placeholder("w", f32, {index(k), index(n)}),
         z = placeholder("z", f32, {index(m), index(n)});
  Tensor product = compute("product", {index(m), index(n)}, [&](const Indices& i) {
    return sum({index(k)}, [&](const Indices& r) { return x(i[0], r[0]) * w(r[0], i[1]); });
  });
  Tensor y = compute("y", product->shape(), [&](const Indices& i) {
    return select(gt(z(i), imm_float(f32, 0)), product(i), imm_float(f32, 0));
  });
  c.func = create_prim_func("selected", {x, w, z}, {y});
  c.inputs.push_back(random_floats(static_cast<size_t>(m * n), 9));
  for (size_t i = 0; i < c.expected.size(); ++i) {
    if (!(c.inputs[2][i] > 0)) c.expected[i] = 0;
  }
  return c;
}

// As of the gradient of a rectifier: what is selected is read from registers, as a whole.
TEST(contraction, sums_that_a_condition_selects_stay_in_registers) {
  expect_tiled(selected(27, 16, 40));
  expect_tiled(selected(13, 21, 9));
  const Target target = parse_target("x86-64-v3 -num-threads=1");
  const PrimFunc f = lower_loops(scheduled(selected(28, 16, 64).func, target));
  auto code = [&](CodeText kind) { return backend_of(target).text(kind, {f}, target); };
  EXPECT_EQ(code(CodeText::Intermediate).find("alloca ["), std::string::npos);
  std::istringstream lines(code(CodeText::Assembly));
  for (std::string line; std::getline(lines, line);) {
    const bool vector = line.find("%ymm") != std::string::npos;
    EXPECT_FALSE(vector && line.find("(%rsp)") != std::string::npos) << line;
  }
}

// y[h, v, o] = the sum over c of x[h, v, c] * w[c, o], where p[o, h, v] is above 0, else 0.
Case selected_across(int64_t height, int64_t width, int64_t channels, int64_t outputs) {
  Tensor x = placeholder("x", f32, {index(height), index(width), index(channels)});
  Tensor w = placeholder("w", f32, {index(channels), index(outputs)});
  Tensor p = placeholder("p", f32, {index(outputs), index(height), index(width)});
  Tensor conv =
      compute("conv", {index(height), index(width), index(outputs)}, [&](const Indices& i) {
        return sum({index(channels)},
                   [&](const Indices& r) { return x(i[0], i[1], r[0]) * w(r[0], i[2]); });
      });
  Tensor y = compute("y", conv->shape(), [&](const Indices& i) {
    return select(gt(p(i[2], i[0], i[1]), imm_float(f32, 0)), conv(i), imm_float(f32, 0));
  });
  const int64_t places = height * width;
  Case c{create_prim_func("selected", {x, w, p}, {y}),
         {random_floats(static_cast<size_t>(places * channels), 5),
          random_floats(static_cast<size_t>(channels * outputs), 6),
          random_floats(static_cast<size_t>(places * outputs), 7)},
         {}};
  for (int64_t at = 0; at < places * outputs; ++at) {
    const int64_t o = at % outputs, place = at / outputs;
    double total = 0;
    for (int64_t r = 0; r < channels; ++r) {
      total += static_cast<double>(c.inputs[0][static_cast<size_t>(place * channels + r)]) *
               c.inputs[1][static_cast<size_t>(r * outputs + o)];
    }
    const bool chosen = c.inputs[2][static_cast<size_t>(o * places + place)] > 0;
    c.expected.push_back(chosen ? static_cast<float>(total) : 0);
  }
  return c;
}

// What lies across and comes from memory is turned before.
TEST(contraction, far_operands_that_lie_across_are_copied) {
  const Target target = parse_target("x86-64-v3");
  auto sentence = [&](const Case& c) {
    return tir::report_of(*scheduled(c.func, target)).sentence;
  };
  // 1.3 MB of 512 KB of L2, and as much in rows that fill no blocks.
  for (const Case& c : {selected_across(72, 72, 3, 64), selected_across(71, 73, 3, 65)}) {
    expect_tiled(c);
    EXPECT_NE(sentence(c).find("p_read transposed"), std::string::npos) << sentence(c);
  }
  EXPECT_EQ(sentence(selected_across(32, 32, 3, 64)).find("p_read"), std::string::npos);
}

TEST(contraction, a_wide_border_is_copied) {
  // Taps far apart: each line at the border would be code of its own.
  Case c = convolution({24, 24, 16, 0, 3, 1, 12, 12});
  expect_tiled(c);
  EXPECT_NE(to_string(scheduled(c.func, codegen_test::text_target())).find("allocate pad"),
            std::string::npos);
}

// The same product, of which a run says how many rows, columns and elements of a sum there are where it is asked for.
struct OpenSizes {
  bool rows = false, columns = false, sums = false;
  int64_t panel = 0;  // of packed weights, as in `dense`
};
Case open_dense(int64_t m, int64_t n, int64_t k, const OpenSizes& open) {
  Case c = dense(m, n, k, open.panel, true);
  std::vector<tir::Var> dims;
  auto size = [&](bool is_open, const char* name, int64_t value) -> PrimExpr {
    if (!is_open) return index(value);
    dims.push_back(tir::var(name));
    c.dims.push_back(value);
    return dims.back();
  };
  PrimExpr rows = size(open.rows, "m", m), columns = size(open.columns, "n", n),
           sums = size(open.sums, "k", k);
  std::vector<PrimExpr> weights{sums, columns};
  PrimExpr panel = index(open.panel);
  if (open.panel > 0) weights = {index(round_up(n, open.panel) / open.panel), sums, panel};
  Tensor x = placeholder("x", f32, {rows, sums}), w = placeholder("w", f32, weights),
         bias = placeholder("bias", f32, {columns});
  Tensor product = compute("product", {rows, columns}, [&](const Indices& i) {
    return sum({sums}, [&](const Indices& r) {
      return x(i[0], r[0]) * (open.panel > 0
                                  ? w(floor_div(i[1], panel), r[0], floor_mod(i[1], panel))
                                  : w(r[0], i[1]));
    });
  });
  Tensor y = compute("y", product->shape(), [&](const Indices& i) {
    return max(product(i) + bias(i[1]), imm_float(f32, 0));
  });
  c.func = create_prim_func("dense", {x, w, bias}, {y}, dims);
  return c;
}

TEST(contraction, threads_share_the_axis_that_has_whole_tiles_for_them) {
  auto shares = [](const Case& c, const std::string& outside) {
    const std::string text = rule_of(c.func);
    EXPECT_NE(text.find(outside + " outside, threads over tiles"), std::string::npos) << text;
  };
  // 16 rows are a tile for each thread, but in tiles that have the least work by themselves, of 9 rows and of 7.
  const Case step = dense(16, 128, 512, 0, false);
  shares(step, "rows");
  expect_right(step, "sum");
  // 9 rows are one tile, and its columns are shared.
  shares(dense(9, 128, 512, 0, false), "columns");
  // So are so many columns, though their weights then come by for every row of tiles.
  shares(dense(256, 36, 4096, 0, false), "rows");
  // Rows that are whole tiles for both threads are read once.
  shares(dense(256, 128, 64, 0, false), "rows");
  // The gradient of a weight is a sum over a batch of any size.
  shares(open_dense(32, 64, 300, {.sums = true}), "columns");
  EXPECT_EQ(rule_of(open_dense(4, 8, 300, {.sums = true}).func).find("threads"), std::string::npos);
}

TEST(contraction, open_rows_by_tiles_and_smaller_ones) {
  for (int64_t m : {1, 2, 7, 14, 27, 43}) expect_tiled(open_dense(m, 40, 5, {.rows = true}));
  expect_tiled(open_dense(29, 96, 9, {.rows = true, .sums = true}));
}

// Weights that come from far are asked for ahead, behind the end of the last panel too, and a tile holds fewer rows by more
// columns.
TEST(contraction, packed_weights_of_open_rows_are_prefetched) {
  for (int64_t m : {0, 1, 5, 6, 7, 11, 13, 26}) {
    expect_tiled(open_dense(m, 128, 40, {.rows = true, .panel = 32}));
  }
  expect_tiled(open_dense(9, 70, 3, {.rows = true, .sums = true, .panel = 32}));
  Case c = open_dense(9, 128, 40, {.rows = true, .panel = 32});
  EXPECT_NE(rule_of(c.func).find("weights prefetched"), std::string::npos) << rule_of(c.func);
  for (const Target& target : codegen_test::runnable_targets()) {
    std::string text = to_string(lower_loops(scheduled(c.func, target)));
    EXPECT_NE(text.find("prefetch(w["), std::string::npos) << text;
    EXPECT_EQ(text.find("prefetch(x["), std::string::npos) << text;
  }
  c = open_dense(9, 128, 40, {.rows = true});
  EXPECT_EQ(rule_of(c.func).find("prefetched"), std::string::npos) << rule_of(c.func);
}

// From many rows blocks are taken first, in tiles of the least work, which threads share.
TEST(contraction, blocks_of_open_rows_are_shared) {
  for (int64_t m : {0, 1, 13, 55, 56, 57, 130, 300}) {
    expect_tiled(open_dense(m, 144, 20, {.rows = true, .panel = 32}));
    expect_tiled(open_dense(m, 144, 20, {.rows = true}));
  }
  auto has = [](int64_t columns, int64_t sums, int64_t panel, const std::string& part) {
    const std::string text =
        rule_of(open_dense(9, columns, sums, {.rows = true, .panel = panel}).func);
    return text.find(part) != std::string::npos;
  };
  const std::string blocks = " register tiles, then ";
  EXPECT_TRUE(has(144, 256, 32, "56 rows by 14x32" + blocks));
  EXPECT_TRUE(has(144, 256, 0, blocks));  // three tiles of 48 columns for two threads
  EXPECT_FALSE(has(96, 256, 0, blocks));
  // Weights that do not stay in half of L2 pass by once, but where one thread has most of the columns.
  EXPECT_FALSE(has(1024, 1000, 32, blocks));
  EXPECT_TRUE(has(96, 4000, 32, blocks));
  // Of one tile's columns threads share rows.
  EXPECT_TRUE(has(16, 256, 16, "threads over rows"));
}

// The number of a tile's columns is known where there is one tile, so that its sums are in registers.
TEST(contraction, rows_of_one_tile_stay_in_registers) {
  const Target target = parse_target("x86-64-v4 -num-threads=2");
  const PrimFunc f = lower_loops(scheduled(open_dense(9, 16, 32, {.rows = true}).func, target));
  const std::string code = backend_of(target).text(CodeText::Intermediate, {f}, target);
  EXPECT_EQ(code.find("alloca ["), std::string::npos) << code;
}

// A product with rows along two axes, of which a run says how long they are, and what follows it: another tensor is added,
// of all rows or (`positions`) of the second axis only.
Case rows_of_two_axes(int64_t batch, int64_t length, bool known_length, bool positions) {
  constexpr int64_t n = 40, k = 5;
  Case c;
  tir::Var b = tir::var("b"), s = tir::var("s");
  c.dims = {batch};
  std::vector<tir::Var> dims{b};
  PrimExpr rows = index(length);
  if (!known_length) {
    rows = s;
    dims.push_back(s);
    c.dims.push_back(length);
  }
  std::vector<PrimExpr> added{b, rows, index(n)};
  if (positions) added.erase(added.begin());
  Tensor x = placeholder("x", f32, {b, rows, index(k)}),
         w = placeholder("w", f32, {index(k), index(n)}), r = placeholder("r", f32, added);
  using enum ContractionRole;
  Tensor product = contract(
      "product", {b, rows, index(n)}, {index(k)}, {Row, Row, Column, Reduced},
      [&](const Indices& i, const Indices& j) { return x(i[0], i[1], j[0]) * w(j[0], i[2]); });
  Tensor y = compute("y", product->shape(), [&](const Indices& i) {
    return product(i) + (positions ? r(i[1], i[2]) : r(i));
  });
  c.func = create_prim_func("rows", {x, w, r}, {y}, dims);
  c.inputs = {random_floats(static_cast<size_t>(batch * length * k), 1),
              random_floats(static_cast<size_t>(k * n), 2),
              random_floats(static_cast<size_t>((positions ? 1 : batch) * length * n), 3)};
  for (int64_t row = 0; row < batch * length; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = c.inputs[2][static_cast<size_t>((positions ? row % length : row) * n + column)];
      for (int64_t j = 0; j < k; ++j) {
        sum += static_cast<double>(c.inputs[0][static_cast<size_t>(row * k + j)]) *
               c.inputs[1][static_cast<size_t>(j * n + column)];
      }
      c.expected.push_back(static_cast<float>(sum));
    }
  }
  return c;
}

TEST(contraction, rows_along_two_open_axes_are_one) {
  for (int64_t batch : {0, 1, 3, 7}) expect_tiled(rows_of_two_axes(batch, 5, false, false));
  // As the elements of a sequence that come one at a time.
  Case one = rows_of_two_axes(33, 1, true, false);
  expect_tiled(one);
  EXPECT_NE(rule_of(one.func).find("open rows by "), std::string::npos) << rule_of(one.func);
  std::string text = to_string(scheduled(one.func, codegen_test::text_target()));
  EXPECT_NE(text.find("x: float32[b, 5]"), std::string::npos) << text;
}

// As the patches of n images: tiles of their number leave no rows over.
TEST(contraction, open_rows_that_are_a_multiple_of_a_tile) {
  for (int64_t batch : {0, 1, 3}) {
    for (int64_t patches : {4, 12}) {
      Case c = rows_of_two_axes(batch, patches, true, false);
      expect_tiled(c);
      EXPECT_NE(rule_of(c.func).find("open rows by "), std::string::npos) << rule_of(c.func);
    }
  }
}

TEST(contraction, rows_that_something_tells_apart_stay_two_axes) {
  Case c = rows_of_two_axes(3, 21, false, true);
  expect_tiled(c);
  std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
  EXPECT_NE(text.find("x: float32[b, s, 5]"), std::string::npos) << text;
  // Long enough for tiles.
  c = rows_of_two_axes(3, 64, true, false);
  text = to_string(scheduled(c.func, codegen_test::text_target()));
  EXPECT_NE(text.find("x: float32[b, 64, 5]"), std::string::npos) << text;
}

TEST(contraction, open_columns_by_vectors_and_lanes) {
  for (int64_t n : {1, 15, 16, 33, 100}) {
    expect_tiled(open_dense(3, n, 5, {.columns = true}));
    expect_tiled(open_dense(17, n, 6, {.rows = true, .columns = true}));
  }
}

// Where every instruction may have a mask, the columns that fill no vector are lanes of one, and nothing asks whether there
// are any.
TEST(contraction, the_end_of_open_columns_is_a_masked_vector) {
  for (int64_t n : {3, 77}) expect_tiled(open_dense(13, n, 64, {.rows = true, .columns = true}));
  Case c = open_dense(13, 77, 64, {.rows = true, .columns = true});
  for (const char* level : {"x86-64-v3", "x86-64-v4"}) {
    const bool masks = std::string_view(level) == "x86-64-v4";
    PrimFunc by_rule = scheduled(c.func, parse_target(std::string(level) + " -num-threads=1"));
    std::string text = to_string(lower_loops(by_rule));
    EXPECT_EQ(text.find("16 and a mask") != std::string::npos, masks) << text;
    EXPECT_EQ(text.find(":1:x16 if ") != std::string::npos, masks) << text;
    EXPECT_EQ(text.find("reduce_or("), std::string::npos) << text;
  }
}

TEST(contraction, whole_tiles_of_open_rows_test_nothing) {
  Case c = open_dense(43, 64, 5, {.rows = true});
  std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
  EXPECT_EQ(text.find("where"), std::string::npos) << text;
  EXPECT_NE(rule_of(c.func).find("open rows by "), std::string::npos) << rule_of(c.func);
}

TEST(contraction, lanes_are_those_of_the_dtype) {
  auto product = [](DType d, int64_t rows) {
    Tensor x = placeholder("x", d, {index(rows), index(8)}),
           w = placeholder("w", d, {index(8), index(512)});
    Tensor y = compute("y", {index(rows), index(512)}, [&](const Indices& i) {
      return sum({index(8)}, [&](const Indices& r) { return x(i[0], r[0]) * w(r[0], i[1]); });
    });
    return rule_of(create_prim_func("product", {x, w}, {y}));
  };
  auto columns = [&](DType d) {
    std::string text = product(d, 40);
    EXPECT_TRUE(text.starts_with("sum: " + d.to_string() + " by ")) << text;
    size_t at = text.find('x', text.find(','));
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + 1));
  };
  EXPECT_GT(columns(DType::Float(64)), 0);
  EXPECT_EQ(columns(DType::Float(32)), 2 * columns(DType::Float(64)));
  EXPECT_EQ(columns(DType::Float(32)), columns(DType::Int(32)));
}

// Rows of [m, groups * inputs] by a matrix for each group, a panel of `each` columns each.
Case grouped(int64_t m, int64_t groups, int64_t inputs, int64_t each) {
  Tensor x = placeholder("x", f32, {index(m), index(groups * inputs)});
  Tensor w = placeholder("w", f32, {index(groups), index(inputs), index(each)});
  Tensor y = compute("y", {index(m), index(groups * each)}, [&](const Indices& i) {
    PrimExpr group = floor_div(i[1], index(each));
    return sum({index(inputs)}, [&](const Indices& r) {
      return x(i[0], group * inputs + r[0]) * w(group, r[0], floor_mod(i[1], index(each)));
    });
  });
  Case c{create_prim_func("grouped", {x, w}, {y}),
         {random_floats(static_cast<size_t>(m * groups * inputs), 7),
          random_floats(static_cast<size_t>(groups * inputs * each), 8)},
         {}};
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < groups * each; ++col) {
      double total = 0;
      int64_t group = col / each;
      for (int64_t r = 0; r < inputs; ++r) {
        total += static_cast<double>(
                     c.inputs[0][static_cast<size_t>((row * groups + group) * inputs + r)]) *
                 c.inputs[1][static_cast<size_t>((group * inputs + r) * each + col % each)];
      }
      c.expected.push_back(static_cast<float>(total));
    }
  }
  return c;
}

TEST(contraction, groups_that_fill_no_whole_vectors_are_tiles) {
  for (int64_t each : {12, 24, 40}) {
    Case c = grouped(9, 3, 5, each);
    expect_tiled(c);
    EXPECT_NE(rule_of(c.func).find("x" + std::to_string(each) + " register tile"),
              std::string::npos)
        << rule_of(c.func);
  }
}

// Bytes of [m, k] by signed ones of [n / 32, k / 4, 32, 4].
TEST(contraction, bytes_by_dot_products) {
  constexpr int64_t kRows = 17, kColumns = 40, kSum = 24, kPanel = 32;
  const DType u8 = DType::UInt(8), i8 = DType::Int(8), i32 = DType::Int(32);
  Tensor x = placeholder("x", u8, {index(kRows), index(kSum)});
  Tensor w = placeholder("w", i8, {index(2), index(kSum / 4), index(kPanel), index(4)});
  Tensor y = compute("y", {index(kRows), index(kColumns)}, [&](const Indices& i) {
    return sum({index(kSum)}, [&](const Indices& r) {
      PrimExpr weight = w(floor_div(i[1], index(kPanel)), floor_div(r[0], index(4)),
                          floor_mod(i[1], index(kPanel)), floor_mod(r[0], index(4)));
      return cast(i32, x(i[0], r[0])) * cast(i32, weight);
    });
  });
  PrimFunc f = create_prim_func("bytes", {x, w}, {y});
  std::vector<uint8_t> data(kRows * kSum);
  std::vector<int8_t> weight(2 * kSum * kPanel);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<uint8_t>(i * 37 % 256);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<int8_t>(i * 91 % 256);
  std::vector<int32_t> expected;
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t n = 0; n < kColumns; ++n) {
      int32_t total = 0;
      for (int64_t k = 0; k < kSum; ++k) {
        int64_t at = ((n / kPanel * (kSum / 4) + k / 4) * kPanel + n % kPanel) * 4 + k % 4;
        total += data[static_cast<size_t>(m * kSum + k)] * weight[static_cast<size_t>(at)];
      }
      expected.push_back(total);
    }
  }
  for (const Target& target : codegen_test::runnable_targets()) {
    PrimFunc by_rule = scheduled(f, target);
    bool dots =
        tir::report_of(*by_rule).sentence.starts_with("sum: int32 by dot products of four bytes");
    EXPECT_EQ(dots, has_byte_dot(target)) << tir::report_of(*by_rule).sentence;
    if (!dots) continue;
    PrimFunc lowered = lower_loops(by_rule);
    EXPECT_NE(to_string(lowered).find("byte_dot"), std::string::npos) << to_string(lowered);
    LoadedKernels jit = load_kernels({lowered}, target);
    for (auto side : {GuardedMemory::Side::Left, GuardedMemory::Side::Right}) {
      GuardedMemory a(data.size(), side), b(weight.size(), side), out(expected.size() * 4, side);
      std::memcpy(a.data(), data.data(), data.size());
      std::memcpy(b.data(), weight.data(), weight.size());
      void* buffers[] = {a.data(), b.data(), out.data()};
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers, nullptr), 0);
      std::vector<int32_t> got(expected.size());
      std::memcpy(got.data(), out.data(), got.size() * 4);
      EXPECT_EQ(got, expected) << target.name;
    }
    // The intrinsics have a model that every machine runs.
    runtime::Tensor a = runtime::Tensor::empty(u8, {kRows, kSum}),
                    b = runtime::Tensor::empty(i8, {2, kSum / 4, kPanel, 4}),
                    out = runtime::Tensor::empty(i32, {kRows, kColumns});
    std::memcpy(a.data<uint8_t>(), data.data(), data.size());
    std::memcpy(b.data<int8_t>(), weight.data(), weight.size());
    ASSERT_EQ(interpret(lowered, {a, b, out}, {}), 0);
    EXPECT_EQ(std::vector<int32_t>(out.data<int32_t>(), out.data<int32_t>() + expected.size()),
              expected)
        << target.name;
  }
}

// ---- Matrix units. Targets are made of words, so that every machine tests all of them; code runs where it can.

Target with_matrix_unit() {
  return parse_target(
      "x86-64-v4 -num-threads=2 "
      "-mattr=+avx512vnni,+avx512bf16,+amx-tile,+amx-int8,+amx-bf16");
}

bool runs_here(const Target& target, const std::vector<PrimFunc>& kernels) {
  std::vector<std::string> needed = target.required_features();
  for (std::string& f : features_of(kernels)) needed.push_back(std::move(f));
  return runtime::missing_features(needed).empty();
}

// Rows by columns of small whole numbers, whose sums are exact in every order.
struct MatrixCase {
  DType a, b, sum;
  int64_t m, n, k;
  bool epilogue = false;
  bool open = false;  // rows, of which a run says that there are m
};

// [m, k] by [n / 32, k / word, 32, word]; with an epilogue, the sum doubled.
PrimFunc matrix_product(const MatrixCase& c) {
  constexpr int64_t kPanel = 32;
  const int64_t word = 32 / c.a.bits;
  const tir::Var m = tir::var("m");
  const PrimExpr rows = c.open ? PrimExpr(m) : index(c.m);
  Tensor x = placeholder("x", c.a, {rows, index(c.k)});
  Tensor w = placeholder(
      "w", c.b,
      {index((c.n + kPanel - 1) / kPanel), index(c.k / word), index(kPanel), index(word)});
  Tensor y = compute("y", {rows, index(c.n)}, [&](const Indices& i) {
    return sum({index(c.k)}, [&](const Indices& r) {
      PrimExpr weight = w(floor_div(i[1], index(kPanel)), floor_div(r[0], index(word)),
                          floor_mod(i[1], index(kPanel)), floor_mod(r[0], index(word)));
      return cast(c.sum, x(i[0], r[0])) * cast(c.sum, weight);
    });
  });
  Tensor z = compute("z", y->shape(), [&](const Indices& i) { return y(i) + y(i); });
  return create_prim_func("product", {x, w}, {c.epilogue ? z : y},
                          c.open ? std::vector<tir::Var>{m} : std::vector<tir::Var>{});
}

// That the kernel, scheduled for a target, is summed by `means`, and right in the interpreter and as code for `machine`. Its
// parameters are two factors and the sums; `open` is the size of what is open.
void expect_summed(const PrimFunc& f, std::optional<int64_t> open, const Target& target,
                   const char* means, const Target& machine) {
  PrimFunc by_rule = schedule_kernel(f, target, 3);
  ASSERT_NE(tir::report_of(*by_rule).sentence.find(means), std::string::npos)
      << tir::report_of(*by_rule).sentence;
  PrimFunc lowered = lower_loops(by_rule);
  SCOPED_TRACE(to_string(lowered));
  auto size = [&](const PrimExpr& d) -> int64_t {
    if (auto n = as_int(d)) return *n;
    return *as_int(tir::Analyzer().simplify(
        tir::replace_vars(d, {{f->dims[0].get(), index(open.value_or(0))}})));
  };
  std::vector<runtime::Tensor> args;
  for (const Buffer& b : f->params) {
    std::vector<int64_t> shape;
    for (const PrimExpr& d : b->shape) shape.push_back(size(d));
    runtime::Tensor t = runtime::Tensor::empty(b->dtype, shape);
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      t.set_from_int(i, b->dtype.is_uint() ? i * 37 % 251 : i * 91 % 63 - 31);
    }
    args.push_back(t);
  }
  runtime::Tensor expected = args[2].copy(), got = args[2].copy();
  const std::vector<int64_t> dims(open ? 1 : 0, open.value_or(0));
  ASSERT_EQ(interpret(f, {args[0], args[1], expected}, dims), 0);
  // The nests are loops, which every machine runs.
  ASSERT_EQ(interpret(lowered, {args[0], args[1], got}, dims), 0);
  EXPECT_TRUE(bit_equal(got, expected));
  if (!runs_here(machine, {lowered})) return;
  LoadedKernels jit = load_kernels({lowered}, machine);
  for (auto side : {GuardedMemory::Side::Left, GuardedMemory::Side::Right}) {
    std::vector<std::unique_ptr<GuardedMemory>> memory;
    std::vector<void*> buffers;
    for (const runtime::Tensor& t : args) {
      memory.push_back(std::make_unique<GuardedMemory>(t.byte_size(), side));
      std::memcpy(memory.back()->data(), t.data(), t.byte_size());
      buffers.push_back(memory.back()->data());
    }
    TestContext context;
    ASSERT_EQ(context.run(jit.functions()[0], buffers.data(), dims.data()), 0);
    EXPECT_EQ(std::memcmp(buffers[2], expected.data(), expected.byte_size()), 0);
  }
}

void expect_summed(const MatrixCase& c, const Target& target, const char* means,
                   const Target& machine) {
  expect_summed(matrix_product(c), c.open ? std::optional(c.m) : std::nullopt, target, means,
                machine);
}

void expect_by_matrix_unit(const MatrixCase& c) {
  const Target target = with_matrix_unit();
  expect_summed(c, target, "by a matrix unit", target);
}

const DType bf16 = DType::BFloat16(), s8 = DType::Int(8), u8 = DType::UInt(8), i32 = DType::Int(32);

TEST(contraction, matrix_units_take_rows_and_columns_of_any_number) {
  for (int64_t m : {1, 7, 16, 33, 100}) {
    for (int64_t n : {16, 24, 40, 104}) {
      expect_by_matrix_unit({bf16, bf16, f32, m, n, 32, m % 2 == 0});
      expect_by_matrix_unit({s8, s8, i32, m, n, 64, m % 2 == 1});
    }
  }
}

// Without the instruction, code computes what it stands for.
TEST(contraction, bfloat16_by_dot_products) {
  for (int64_t m : {1, 9, 40}) {
    for (const char* text : {"armv8.6-a", "armv8.6-a +sve256", "x86-64-v4 -mattr=+avx512bf16"}) {
      expect_summed({bf16, bf16, f32, m, 40, 6, m == 9, m == 40}, parse_target(text),
                    "by dot products of two bfloat16", least_target());
    }
  }
}

// [batch, m, k] by [batch, k, n], or by [batch, n, k] with its columns as rows; without a batch as nn.dense. A run says how many
// rows there are where m is 0, and how many times 32 columns or terms where n or k is 0.
PrimFunc product_of_inputs(int64_t batch, int64_t m, int64_t n, int64_t k, bool columns_last) {
  using enum ContractionRole;
  const bool one = batch == 0;
  const tir::Var open = tir::var("m");
  const PrimExpr rows = m == 0 ? PrimExpr(open) : index(m);
  const PrimExpr columns = n == 0 ? PrimExpr(open) * 32 : index(n);
  const PrimExpr terms = k == 0 ? PrimExpr(open) * 32 : index(k);
  auto shape = [&](const PrimExpr& a, const PrimExpr& b) {
    return one ? std::vector<PrimExpr>{a, b} : std::vector<PrimExpr>{index(batch), a, b};
  };
  Tensor x = placeholder("x", bf16, shape(rows, terms));
  Tensor w = placeholder("w", bf16, columns_last ? shape(terms, columns) : shape(columns, terms));
  auto roles = one ? std::vector{Row, Column, Reduced} : std::vector{Batch, Row, Column, Reduced};
  Tensor y = tir::contract("y", shape(rows, columns), {terms}, roles,
                           [&](const Indices& i, const Indices& r) {
                             Indices left(i.begin(), i.end() - 2), right = left;
                             left.insert(left.end(), {i[i.size() - 2], r[0]});
                             right.push_back(columns_last ? r[0] : i.back());
                             right.push_back(columns_last ? i.back() : r[0]);
                             return cast(f32, x(left)) * cast(f32, w(right));
                           });
  return create_prim_func("product", {x, w}, {y},
                          m * n * k == 0 ? std::vector<tir::Var>{open} : std::vector<tir::Var>{});
}

// Columns that fill no block are copied by elements, and rows that fill no tile are tiles of their own.
TEST(contraction, panels_of_bfloat16_inputs_are_written_as_pairs) {
  const Target target = parse_target("x86-64-v4 -num-threads=1 -mattr=+avx512bf16");
  const char* words = "columns written as pairs a tile at a time";
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 160, 64}, {9, 150, 70}}) {
    expect_summed(product_of_inputs(0, m, n, k, false), {}, target, words, target);
  }
  for (int64_t rows : {1, 33}) {
    expect_summed(product_of_inputs(0, 0, 150, 64, false), rows, target, words, target);
  }
  for (bool columns_last : {false, true}) {
    for (auto [m, n, k] : {std::array<int64_t, 3>{20, 64, 34}, {8, 37, 64}, {15, 16, 32}}) {
      expect_summed(product_of_inputs(3, m, n, k, columns_last), {}, target, words, target);
    }
  }
  for (bool columns_last : {false, true}) {
    for (int64_t open : {0, 1, 3}) {
      expect_summed(product_of_inputs(2, 17, 0, 64, columns_last), open, target, words, target);
      expect_summed(product_of_inputs(2, 0, 0, 34, columns_last), open, target, words, target);
    }
    expect_summed(product_of_inputs(2, 0, 40, 64, columns_last), 19, target, words, target);
    for (int64_t open : {0, 1, 3}) {
      expect_summed(product_of_inputs(2, 17, 40, 0, columns_last), open, target, words, target);
      expect_summed(product_of_inputs(2, 0, 0, 0, columns_last), open, target, words, target);
    }
  }
  for (const char* text : {"armv8.6-a -num-threads=1", "armv8.6-a +sve256 -num-threads=1"}) {
    const Target other = parse_target(text);
    expect_summed(product_of_inputs(0, 9, 150, 70, false), {}, other, words, least_target());
    expect_summed(product_of_inputs(3, 20, 37, 34, true), {}, other, words, least_target());
    expect_summed(product_of_inputs(2, 0, 0, 34, true), 3, other, words, least_target());
    expect_summed(product_of_inputs(2, 0, 20, 0, true), 2, other, words, least_target());
  }
}

// The same as words of a matrix unit: also of rows that are as far apart as only a run knows, and into such.
TEST(contraction, panels_of_bfloat16_inputs_are_words_of_a_matrix_unit) {
  const Target target =
      parse_target("x86-64-v4 -num-threads=1 -mattr=+avx512bf16,+avx512fp16,+amx-tile,+amx-bf16");
  const char* means = "by a matrix unit";
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 160, 64}, {9, 150, 44}, {33, 144, 96}}) {
    expect_summed(product_of_inputs(0, m, n, k, false), {}, target, means, target);
  }
  for (int64_t rows : {1, 8, 37}) {
    expect_summed(product_of_inputs(0, 0, 150, 64, false), rows, target, means, target);
  }
  for (bool columns_last : {false, true}) {
    for (auto [m, n, k] :
         {std::array<int64_t, 3>{20, 64, 64}, {8, 37, 44}, {33, 16, 32}, {70, 100, 210}}) {
      expect_summed(product_of_inputs(3, m, n, k, columns_last), {}, target, means, target);
    }
    expect_summed(product_of_inputs(2, 0, 40, 64, columns_last), 51, target, means, target);
    for (int64_t open : {0, 1, 3}) {
      expect_summed(product_of_inputs(2, 17, 0, 64, columns_last), open, target, means, target);
      expect_summed(product_of_inputs(2, 0, 0, 64, columns_last), open, target, means, target);
      expect_summed(product_of_inputs(2, 37, 40, 0, columns_last), open, target, means, target);
      expect_summed(product_of_inputs(2, 0, 0, 0, columns_last), open, target, means, target);
    }
  }
  // No instructions take as many each of 37 words.
  const std::string odd =
      tir::report_of(*schedule_kernel(product_of_inputs(3, 20, 64, 74, true), target, 3)).sentence;
  EXPECT_EQ(odd.find(means), std::string::npos) << odd;
}

// Rows that would be counted from a size that may be negative: tiles of them ask for each row.
TEST(contraction, matrix_units_leave_rows_whose_number_may_be_negative) {
  const tir::Var m = tir::var("m");
  for (const auto& [bytes, most] : {std::pair{false, 1}, {false, 2}, {true, 2}}) {
    const DType a = bytes ? u8 : bf16, b = bytes ? s8 : bf16, of = bytes ? i32 : f32;
    const int64_t word = 32 / a.bits, less = 2;
    Tensor x = placeholder("x", a, {m, index(64)});
    Tensor w = placeholder("w", b, {index(2), index(64 / word), index(32), index(word)});
    const PrimExpr rows = most == 1 ? PrimExpr(m) : m - less;
    Tensor y = compute("y", {rows, index(64)}, [&](const Indices& i) {
      return sum({index(64)}, [&](const Indices& r) {
        PrimExpr weight = w(floor_div(i[1], index(32)), floor_div(r[0], index(word)),
                            floor_mod(i[1], index(32)), floor_mod(r[0], index(word)));
        return cast(of, x(i[0] + (most == 1 ? 0 : less), r[0])) * cast(of, weight);
      });
    });
    const PrimFunc f = create_prim_func("product", {x, w}, {y}, {m});
    const std::string said = tir::report_of(*schedule_kernel(f, with_matrix_unit(), 3)).sentence;
    EXPECT_EQ(said.find("by a matrix unit") != said.npos, most == 1) << said;
  }
}

// Columns whose weights stay in a cache while all rows pass by.
TEST(contraction, matrix_units_take_large_weights_in_parts) {
  Target target =
      parse_target("x86-64-v4 -num-threads=2 -mattr=+avx512bf16,+avx512fp16,+amx-tile,+amx-bf16");
  target.l2_bytes = int64_t{64} << 10;
  for (bool epilogue : {false, true}) {
    const MatrixCase c{bf16, bf16, f32, 200, 256, 128, epilogue};
    expect_summed(c, target, "tiles of columns at once", target);
    expect_summed({bf16, bf16, f32, 72, 256, 128, epilogue, true}, target,
                  "tiles of columns at once", target);
  }
}

// Rows of several lines, all of one open length: the ends of their tiles have guards.
TEST(contraction, panels_of_bfloat16_inputs_by_lines_of_open_rows) {
  constexpr int64_t kLines = 4, kColumns = 384, kSum = 128;
  const tir::Var open = tir::var("m");
  Tensor x = placeholder("x", bf16, {index(kLines), open, index(kSum)});
  Tensor w = placeholder("w", bf16, {index(kColumns), index(kSum)});
  using enum ContractionRole;
  Tensor y = tir::contract("y", {index(kLines), open, index(kColumns)}, {index(kSum)},
                           {Row, Row, Column, Reduced}, [&](const Indices& i, const Indices& r) {
                             return cast(f32, x({i[0], i[1], r[0]})) * cast(f32, w({i[2], r[0]}));
                           });
  const PrimFunc f = create_prim_func("product", {x, w}, {y}, std::vector<tir::Var>{open});
  const Target target = parse_target("x86-64-v4 -num-threads=1 -mattr=+avx512bf16");
  const std::string said = tir::report_of(*schedule_kernel(f, target, 3)).sentence;
  EXPECT_NE(said.find("columns written as pairs a tile at a time"), std::string::npos) << said;
}

TEST(contraction, no_pairs_of_odd_sums_or_without_the_instruction) {
  auto sentence = [](const PrimFunc& f, const char* target) {
    return tir::report_of(*schedule_kernel(f, parse_target(target), 3)).sentence;
  };
  const char* with = "x86-64-v4 -num-threads=1 -mattr=+avx512bf16";
  for (const auto& [f, target] :
       {std::pair{product_of_inputs(3, 20, 64, 33, true), with},
        {product_of_inputs(3, 20, 0, 33, true), with},
        {product_of_inputs(0, 40, 160, 65, false), with},
        {product_of_inputs(3, 20, 64, 34, true), "x86-64-v4 -num-threads=1"},
        {product_of_inputs(3, 0, 0, 34, true), "x86-64-v4 -num-threads=1"},
        {product_of_inputs(0, 40, 160, 64, false), "x86-64-v4 -num-threads=1"}}) {
    EXPECT_EQ(sentence(f, target).find("bfloat16"), std::string::npos) << sentence(f, target);
  }
}

// A sum over blocks of such sums, on a target without the instruction: it would be shifts there.
TEST(contraction, bfloat16_in_blocks_without_dot_products) {
  constexpr int64_t kRows = 8, kColumns = 32, kBlocks = 4, kBlock = 16, kWord = 2;
  Tensor x = placeholder("x", bf16, {index(kRows), index(kBlocks), index(kBlock)});
  Tensor w = placeholder(
      "w", bf16, {index(1), index(kBlocks), index(kBlock / kWord), index(kColumns), index(kWord)});
  Tensor scale = placeholder("scale", f32, {index(kBlocks), index(kColumns)});
  using enum ContractionRole;
  Tensor terms = tir::contract(
      "terms", {index(kBlocks), index(kRows), index(kColumns)}, {index(kBlock)},
      {Batch, Row, Column, Reduced}, [&](const Indices& i, const Indices& r) {
        PrimExpr weight = w(floor_div(i[2], index(kColumns)), i[0], floor_div(r[0], index(kWord)),
                            floor_mod(i[2], index(kColumns)), floor_mod(r[0], index(kWord)));
        return cast(f32, x(i[1], i[0], r[0])) * cast(f32, weight);
      });
  Tensor y = tir::contract("y", {index(kRows), index(kColumns)}, {index(kBlocks)},
                           {Row, Column, Reduced}, [&](const Indices& i, const Indices& b) {
                             return scale(b[0], i[1]) * terms(b[0], i[0], i[1]);
                           });
  PrimFunc f = create_prim_func("blocks", {x, w, scale}, {y});
  PrimFunc by_rule = schedule_kernel(f, with_matrix_unit(), 3);
  EXPECT_NE(tir::report_of(*by_rule).sentence.find("weights widened in registers"),
            std::string::npos)
      << tir::report_of(*by_rule).sentence;
  const std::string text = to_string(lower_loops(by_rule));
  EXPECT_EQ(text.find("bfloat16_dot"), std::string::npos) << text;
}

// What a text has so often.
int64_t count(const std::string& text, const std::string& word) {
  int64_t n = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

// Whole tiles, then halves of what is left, each with registers of its height.
TEST(contraction, matrix_units_take_open_rows) {
  for (int64_t m : {0, 1, 15, 32, 63}) {
    expect_by_matrix_unit({bf16, bf16, f32, m, 40, 32, m % 2 == 0, true});
    expect_by_matrix_unit({s8, u8, i32, m, 64, 64, m % 2 == 1, true});
  }
  PrimFunc f = lower_loops(schedule_kernel(
      matrix_product({bf16, bf16, f32, 0, 64, 256, false, true}), with_matrix_unit(), 3));
  EXPECT_NE(tir::report_of(*f).sentence.find("open rows by 32, 16, 8, 4, 2, 1"), std::string::npos)
      << tir::report_of(*f).sentence;
  // Two by two registers, one by two for each smaller number.
  std::string text =
      backend_of(with_matrix_unit()).text(CodeText::Assembly, {f}, with_matrix_unit());
  EXPECT_EQ(count(text, "\ttdpbf16ps"), 4 + 5 * 2) << text;
}

TEST(contraction, matrix_units_take_sums_in_equal_steps) {
  for (int64_t k : {16, 48, 80, 96, 108}) {
    expect_by_matrix_unit({bf16, bf16, f32, 20, 40, k, true});
    expect_by_matrix_unit({s8, u8, i32, 20, 40, 2 * k, true});
  }
}

TEST(contraction, matrix_units_multiply_bytes_of_both_signs) {
  for (DType a : {u8, s8}) {
    for (DType b : {u8, s8}) {
      expect_by_matrix_unit({a, b, i32, 64, 64, 256, false});
      std::string name = std::string("tdpb") + (a.is_int() ? "s" : "u") + (b.is_int() ? "s" : "u");
      const Target target = with_matrix_unit();
      PrimFunc f =
          lower_loops(schedule_kernel(matrix_product({a, b, i32, 64, 64, 256}), target, 3));
      EXPECT_NE(backend_of(target).text(CodeText::Assembly, {f}, target).find(name + "d"),
                std::string::npos);
    }
  }
}

TEST(contraction, code_for_a_matrix_unit) {
  const Target target = with_matrix_unit();
  PrimFunc f =
      lower_loops(schedule_kernel(matrix_product({bf16, bf16, f32, 64, 64, 256}), target, 3));
  EXPECT_EQ(f->features, (std::vector<std::string>{"amx-tile", "amx-bf16"}));
  std::string text = backend_of(target).text(CodeText::Assembly, {f}, target);
  EXPECT_EQ(count(text, "\ttdpbf16ps"), 4) << to_string(f);
  EXPECT_EQ(count(text, "\ttileloadd"), 4) << text;
  EXPECT_EQ(count(text, "\ttilestored"), 4) << text;
  EXPECT_EQ(count(text, "\ttilezero"), 4) << text;
  // Once for all tiles: in its function no loop begins before it.
  EXPECT_EQ(count(text, "\tldtilecfg"), 1) << text;
  std::string ir = backend_of(target).text(CodeText::Intermediate, {f}, target);
  ir.resize(ir.find("call void @llvm.x86.ldtilecfg"));
  EXPECT_EQ(ir.find(" phi ", ir.rfind("\ndefine ")), std::string::npos) << ir;
  EXPECT_EQ(count(text, "\ttilerelease"), 1) << text;
}

TEST(contraction, what_passes_by_a_matrix_unit_does_not_stay_in_the_cache) {
  Target target = with_matrix_unit();
  target.l1_bytes = 48 << 10;
  target.l2_bytes = 2 << 20;
  auto streamed = [&](int64_t m, int64_t n, int64_t k) {
    PrimFunc f =
        lower_loops(schedule_kernel(matrix_product({bf16, bf16, f32, m, n, k}), target, 3));
    std::string text = to_string(f);
    EXPECT_EQ(count(backend_of(target).text(CodeText::Assembly, {f}, target), "\ttileloaddt1"),
              text.find("streamed") == std::string::npos ? 0 : 2)
        << text;
    return text.find("streamed = a") != std::string::npos   ? "rows"
           : text.find("streamed = b") != std::string::npos ? "weights"
                                                            : "neither";
  };
  // A panel of weights stays for all rows; rows stay where weights are read for each tile of them; one tile of rows reads
  // weights once; little stays whole.
  EXPECT_STREQ(streamed(128, 1024, 768), "rows");
  EXPECT_STREQ(streamed(128, 512, 512), "weights");
  EXPECT_STREQ(streamed(32, 768, 768), "weights");
  EXPECT_STREQ(streamed(64, 64, 256), "neither");
}

TEST(contraction, a_matrix_unit_is_used_where_its_rates_are_better) {
  Target both = with_matrix_unit(), none = both;
  none.features += ",-amx-tile";
  auto rule = [](const MatrixCase& c, const Target& t) {
    return tir::report_of(*schedule_kernel(matrix_product(c), t, 3)).sentence;
  };
  const std::string unit = "sum: int32 by a matrix unit", dots = "sum: int32 by dot products";
  EXPECT_TRUE(rule({u8, s8, i32, 64, 64, 256}, both).starts_with(unit));
  EXPECT_TRUE(rule({u8, s8, i32, 64, 64, 256}, none).starts_with(dots));
  // Too short a sum to fill the unit's words, and no whole number of them.
  EXPECT_TRUE(rule({u8, s8, i32, 64, 64, 8}, both).starts_with(dots));
  EXPECT_FALSE(rule({bf16, bf16, f32, 64, 64, 34}, both).starts_with("sum: float32 by a matrix"));
}

TEST(contraction, an_operand_without_axes_is_one_number_for_all) {
  Tensor x = placeholder("x", f32, {});
  Tensor y = compute("y", {index(4), index(16)}, [&](const Indices&) {
    return sum({index(3)}, [&](const Indices&) { return x(Indices{}) * x(Indices{}); });
  });
  EXPECT_NO_THROW(scheduled(create_prim_func("main", {x}, {y}), Target()));
}

TEST(contraction, one_column_is_no_tile) {
  Case c = dense(16, 1, 8, 0, false);
  EXPECT_FALSE(rule_of(c.func).starts_with("sum:"));
}

// Lanes of 16 bits are not gathered one by one; a place in a panel is no such thing.
TEST(contraction, lanes_of_16_bits_are_not_read_by_a_quotient) {
  auto rule = [](DType d, bool by_panels) {
    Tensor x = placeholder("x", d, {index(64), index(32)}),
           w = placeholder("w", d, {index(4), index(32), index(32)});
    Tensor y = compute("y", {index(64), index(120)}, [&](const Indices& i) {
      return sum({index(32)}, [&](const Indices& r) {
        PrimExpr weight = by_panels
                              ? w(floor_div(i[1], index(32)), r[0], floor_mod(i[1], index(32)))
                              : w(index(0), r[0], floor_div(i[1] + 1, index(4)));
        return cast(f32, x(i[0], r[0])) * cast(f32, weight);
      });
    });
    return rule_of(create_prim_func("product", {x, w}, {y}));
  };
  for (DType d : {DType::Float(16), DType::BFloat16()}) {
    EXPECT_TRUE(rule(d, true).starts_with("sum:")) << rule(d, true);
    EXPECT_FALSE(rule(d, false).starts_with("sum:")) << rule(d, false);
  }
  EXPECT_TRUE(rule(f32, true).starts_with("sum:"));
}

}  // namespace
}  // namespace relay::lower_test
