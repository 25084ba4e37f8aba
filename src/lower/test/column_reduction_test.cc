// Kernels over columns: what their schedule computes, on each target, against plain loops.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

void expect_columns(const Case& c) { expect_right(c, "columns:"); }

// Windows of `size` x `size` over [1, height, width, channels], with the border not counted.
Case pool(bool average, int64_t height, int64_t width, int64_t channels, int64_t size,
          int64_t stride, int64_t pad) {
  Tensor x = placeholder("x", f32, {index(1), index(height), index(width), index(channels)});
  int64_t oh = (height + 2 * pad - size) / stride + 1, ow = (width + 2 * pad - size) / stride + 1;
  std::vector<PrimExpr> shape{index(1), index(oh), index(ow), index(channels)};
  auto inside = [&](const PrimExpr& at, int64_t n) {
    return logical_and(ge(at, index(0)), lt(at, index(n)));
  };
  double none = average ? 0 : -std::numeric_limits<double>::infinity();
  Tensor r = compute("r", shape, [&](const Indices& i) {
    Combiner c = average ? Combiner::Sum : Combiner::Max;
    return reduce(c, {index(size), index(size)}, [&](const Indices& k) {
      PrimExpr h = i[1] * stride + k[0] - pad, w = i[2] * stride + k[1] - pad;
      PrimExpr v = x(i[0], h, w, i[3]);
      if (pad == 0) return v;
      return select(logical_and(inside(h, height), inside(w, width)), v, imm_float(f32, none));
    });
  });
  Tensor y = compute("y", shape, [&](const Indices& i) {
    auto covered = [&](const PrimExpr& at, int64_t n) {
      PrimExpr begin = at * stride - pad;
      return min(begin + size, index(n)) - max(begin, index(0));
    };
    return div(r(i), cast(f32, covered(i[1], height) * covered(i[2], width)));
  });
  Case c{create_prim_func("pool", {x}, {average ? y : r}),
         {random_floats(static_cast<size_t>(height * width * channels), 9)},
         {}};
  for (int64_t i = 0; i < oh; ++i) {
    for (int64_t j = 0; j < ow; ++j) {
      for (int64_t ch = 0; ch < channels; ++ch) {
        double v = none, count = 0;
        for (int64_t h = i * stride - pad; h < i * stride - pad + size; ++h) {
          for (int64_t w = j * stride - pad; w < j * stride - pad + size; ++w) {
            if (h < 0 || h >= height || w < 0 || w >= width) continue;
            double e = c.inputs[0][static_cast<size_t>((h * width + w) * channels + ch)];
            v = average ? v + e : std::max(v, e);
            count += 1;
          }
        }
        c.expected.push_back(static_cast<float>(average ? v / count : v));
      }
    }
  }
  return c;
}

// Means over the first `rows` of [items, rows, channels]; with `subtract`, what is left without.
Case means(int64_t items, int64_t rows, int64_t channels, bool subtract) {
  Tensor x = placeholder("x", f32, {index(items), index(rows), index(channels)});
  Tensor sum = compute("sum", {index(items), index(channels)}, [&](const Indices& i) {
    return tir::sum({index(rows)}, [&](const Indices& k) { return x(i[0], k[0], i[1]); });
  });
  Tensor mean = compute("mean", sum->shape(), [&](const Indices& i) {
    return div(sum(i), imm_float(f32, static_cast<double>(rows)));
  });
  Tensor rest =
      compute("rest", x->shape(), [&](const Indices& i) { return x(i) - mean(i[0], i[2]); });
  Case c{create_prim_func("means", {x}, {subtract ? rest : mean}),
         {random_floats(static_cast<size_t>(items * rows * channels), 11)},
         {}};
  std::vector<double> m(static_cast<size_t>(items * channels));
  auto at = [&](int64_t n, int64_t r, int64_t ch) {
    return static_cast<double>(c.inputs[0][static_cast<size_t>((n * rows + r) * channels + ch)]);
  };
  for (int64_t n = 0; n < items; ++n) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t ch = 0; ch < channels; ++ch)
        m[static_cast<size_t>(n * channels + ch)] += at(n, r, ch) / static_cast<double>(rows);
    }
  }
  if (!subtract) {
    c.expected.assign(m.begin(), m.end());
    return c;
  }
  for (int64_t n = 0; n < items; ++n) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t ch = 0; ch < channels; ++ch)
        c.expected.push_back(
            static_cast<float>(at(n, r, ch) - m[static_cast<size_t>(n * channels + ch)]));
    }
  }
  return c;
}

constexpr int64_t kChannels[] = {3, 16, 20, 100, 320};

TEST(ColumnReduction, windows_with_and_without_a_border) {
  for (bool average : {false, true}) {
    for (int64_t channels : kChannels) {
      SCOPED_TRACE(channels);
      expect_columns(pool(average, 9, 7, channels, 3, 2, 1));
      expect_columns(pool(average, 6, 6, channels, 2, 2, 0));
    }
    expect_columns(pool(average, 12, 11, 20, 5, 1, 2));
    expect_columns(pool(average, 3, 3, 20, 3, 1, 1));  // no window without a border
    expect_columns(pool(average, 40, 40, 32, 3, 2, 1));
  }
}

TEST(ColumnReduction, means_over_leading_axes) {
  for (int64_t channels : kChannels) {
    SCOPED_TRACE(channels);
    expect_columns(means(1, 49, channels, false));
    expect_columns(means(3, 5, channels, false));
    expect_columns(means(2, 21, channels, true));
  }
  expect_columns(means(1, 1000, 300, false));
}

TEST(ColumnReduction, short_columns_of_two_axes_are_those_of_one) {
  constexpr int64_t kRows = 19, kOuter = 21, kInner = 3;
  auto reduced = [](int64_t inner) {
    Tensor x = placeholder("x", f32, {index(kRows), index(kOuter), index(inner)});
    return create_prim_func("maxima", {x},
                            {compute("y", {index(kOuter), index(inner)}, [&](const Indices& i) {
                              return reduce(Combiner::Max, {index(kRows)},
                                            [&](const Indices& k) { return x(k[0], i[0], i[1]); });
                            })});
  };
  Case c{reduced(kInner), {random_floats(kRows * kOuter * kInner, 3)}, Floats(kOuter * kInner)};
  for (int64_t i = 0; i < kOuter * kInner; ++i) {
    float most = -INFINITY;
    for (int64_t k = 0; k < kRows; ++k) {
      most = std::max(most, c.inputs[0][static_cast<size_t>(k * kOuter * kInner + i)]);
    }
    c.expected[static_cast<size_t>(i)] = most;
  }
  expect_columns(c);
  auto shape_of_result = [&](int64_t inner) {
    return scheduled(reduced(inner), codegen_test::text_target())->params.back()->shape.size();
  };
  EXPECT_EQ(shape_of_result(kInner), 1U);
  EXPECT_EQ(shape_of_result(64), 2U);  // fills registers as it is
}

TEST(ColumnReduction, windows_test_no_border) {
  Target target = codegen_test::text_target();
  Case c = pool(false, 40, 40, 32, 3, 2, 1);
  std::string text = to_string(lower_loops(scheduled(c.func, target)));
  EXPECT_EQ(text.find("select"), std::string::npos) << text;
  EXPECT_EQ(text.find("if "), std::string::npos) << text;
}

// The sum over the rows of g[r, c] * (x[r, c] / d[r]), as the gradient of a normalisation's scale.
Case scale_gradient(int64_t rows, int64_t channels) {
  Tensor g = placeholder("g", f32, {index(rows), index(channels)});
  Tensor x = placeholder("x", f32, {index(rows), index(channels)});
  Tensor d = placeholder("d", f32, {index(rows)});
  Tensor quotient = compute("quotient", x->shape(), [&](const Indices& i) {
    return div(x(i), d(i[0]) + imm_float(f32, 3));
  });
  Tensor y = compute("y", {index(channels)}, [&](const Indices& i) {
    return tir::sum({index(rows)},
                    [&](const Indices& k) { return g(k[0], i[0]) * quotient(k[0], i[0]); });
  });
  const auto count = static_cast<size_t>(rows * channels);
  Case c{create_prim_func("scale_gradient", {g, x, d}, {y}),
         {random_floats(count, 3), random_floats(count, 4),
          random_floats(static_cast<size_t>(rows), 5)},
         {}};
  for (size_t ch = 0; ch < static_cast<size_t>(channels); ++ch) {
    double sum = 0;
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
      size_t at = r * static_cast<size_t>(channels) + ch;
      sum += static_cast<double>(c.inputs[0][at]) * c.inputs[1][at] / (c.inputs[2][r] + 3.0);
    }
    c.expected.push_back(static_cast<float>(sum));
  }
  return c;
}

TEST(ColumnReduction, sums_of_products_of_elements_keep_nothing_in_memory) {
  for (int64_t channels : {20, 300}) {
    Case c = scale_gradient(70, channels);
    expect_columns(c);
    for (const Target& target : codegen_test::runnable_targets()) {
      std::string text = to_string(scheduled(c.func, target));
      EXPECT_EQ(text.find("allocate quotient"), std::string::npos) << text;
    }
  }
}

// Threads share rows, the sums of whose parts are added; where there are too few for that, or no two equal parts, columns.
TEST(ColumnReduction, threads_share_rows) {
  const std::string by_rows = "threads over 2 parts of the rows";
  for (const Case& c :
       {scale_gradient(1400, 20), scale_gradient(300, 150), means(1, 640, 48, false)}) {
    expect_columns(c);
    EXPECT_NE(rule_of(c.func).find(by_rows), std::string::npos) << rule_of(c.func);
  }
  for (const Case& c : {scale_gradient(1401, 20), scale_gradient(30, 1400), scale_gradient(60, 20),
                        means(2, 640, 48, false)}) {
    expect_columns(c);
    EXPECT_EQ(rule_of(c.func).find(by_rows), std::string::npos) << rule_of(c.func);
  }
}

// Two reductions of one kernel stay beside each other.
TEST(ColumnReduction, rows_of_two_sums_are_not_shared) {
  Tensor x = placeholder("x", f32, {index(1400), index(20)});
  auto reduced = [&](const char* name, Combiner c) {
    return compute(name, {index(20)}, [&](const Indices& i) {
      return reduce(c, {index(1400)}, [&](const Indices& k) { return x(k[0], i[0]); });
    });
  };
  Tensor sum = reduced("sum", Combiner::Sum), most = reduced("most", Combiner::Max);
  Tensor y = compute("y", {index(20)}, [&](const Indices& i) { return sum(i) - most(i); });
  const std::string rule = rule_of(create_prim_func("two", {x}, {y}));
  EXPECT_TRUE(rule.starts_with("columns:")) << rule;
  EXPECT_EQ(rule.find("parts of the rows"), std::string::npos) << rule;
}

// The sums of x * y over [n, 3], of which only the run tells n.
Case open_products(int64_t rows, int64_t channels) {
  const Var n = var("n", DType::Int(64));
  Tensor x = placeholder("x", f32, {n, index(3), index(channels)});
  Tensor y = placeholder("y", f32, {n, index(3), index(channels)});
  Tensor sum = compute("sum", {index(channels)}, [&](const Indices& i) {
    return tir::sum({n, index(3)},
                    [&](const Indices& k) { return x(k[0], k[1], i[0]) * y(k[0], k[1], i[0]); });
  });
  const auto count = static_cast<size_t>(rows * 3 * channels);
  Case c{create_prim_func("open_rows", {x, y}, {sum}, {n}),
         {random_floats(count, 3), random_floats(count, 4)},
         {},
         {rows}};
  for (size_t ch = 0; ch < static_cast<size_t>(channels); ++ch) {
    double all = 0;
    for (size_t at = ch; at < count; at += static_cast<size_t>(channels)) {
      all += static_cast<double>(c.inputs[0][at]) * c.inputs[1][at];
    }
    c.expected.push_back(static_cast<float>(all));
  }
  return c;
}

// Parts of an open number of rows: equal ones, a shorter one, and none for one of them or for both.
TEST(ColumnReduction, threads_share_an_open_number_of_rows) {
  for (int64_t rows : {0, 1, 2, 5, 8}) {
    SCOPED_TRACE(rows);
    const Case c = open_products(rows, 400);
    EXPECT_NE(rule_of(c.func).find("threads over 2 parts of the rows"), std::string::npos)
        << rule_of(c.func);
    expect_columns(c);
  }
}

// Factors that several sums need are a contraction's.
TEST(ColumnReduction, not_for_a_vector_by_a_matrix) {
  Tensor v = placeholder("v", f32, {index(64)});
  Tensor m = placeholder("m", f32, {index(64), index(32)});
  Tensor product = compute("y", {index(32)}, [&](const Indices& i) {
    return tir::sum({index(64)}, [&](const Indices& k) { return v(k[0]) * m(k[0], i[0]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("product", {v, m}, {product})).starts_with("columns:"));
}

TEST(ColumnReduction, not_for_matrix_products) {
  Tensor a = placeholder("a", f32, {index(8), index(64)});
  Tensor b = placeholder("b", f32, {index(64), index(32)});
  Tensor product = compute("y", {index(8), index(32)}, [&](const Indices& i) {
    return tir::sum({index(64)}, [&](const Indices& k) { return a(i[0], k[0]) * b(k[0], i[1]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("product", {a, b}, {product})).starts_with("columns:"));
}

}  // namespace
}  // namespace relay::lower_test
