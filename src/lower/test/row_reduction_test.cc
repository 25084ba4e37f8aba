// Kernels over rows: what their schedule computes, on each target, against plain loops.
#include "lower/test/same_bits.h"

namespace relay::lower_test {
namespace {

using tir::index;
using tir::Tensor;

void expect_rows(const Case& c) { expect_right(c, "rows:"); }

// Windows along axes are no rows, whether they overlap or lie side by side: lanes go along the axes.
TEST(RowReduction, not_for_windows_of_few_elements) {
  for (auto [size, stride] : {std::pair{2, 2}, {3, 2}, {3, 1}, {5, 5}}) {
    const int64_t out = (57 - size) / stride + 1;
    Tensor x = placeholder("x", f32, {index(3), index(57), index(57)});
    Tensor y = compute("y", {index(3), index(out), index(out)}, [&](const Indices& i) {
      return reduce(Combiner::Max, {index(size), index(size)}, [&](const Indices& k) {
        return x(i[0], i[1] * stride + k[0], i[2] * stride + k[1]);
      });
    });
    EXPECT_EQ(rule_of(create_prim_func("windows", {x}, {y})).find("rows:"), std::string::npos)
        << size << " by " << stride;
  }
}

// exp(x - max) / sum over the last axis of [rows, n], with the sizes known to the kernel or not.
Case softmax(int64_t rows, int64_t n, bool symbolic = false) {
  Var dims[] = {var("rows"), var("n")};
  PrimExpr count = symbolic ? PrimExpr(dims[0]) : index(rows);
  PrimExpr length = symbolic ? PrimExpr(dims[1]) : index(n);
  Tensor x = placeholder("x", f32, {count, length});
  Tensor top = compute("top", {count}, [&](const Indices& i) {
    return reduce(Combiner::Max, {length}, [&](const Indices& k) { return x(i[0], k[0]); });
  });
  Tensor e = compute("e", x->shape(),
                     [&](const Indices& i) { return call("exp", f32, {x(i) - top(i[0])}); });
  Tensor sum = compute("sum", {count}, [&](const Indices& i) {
    return tir::sum({length}, [&](const Indices& k) { return e(i[0], k[0]); });
  });
  Tensor y = compute("y", x->shape(), [&](const Indices& i) { return div(e(i), sum(i[0])); });
  Case c{create_prim_func("softmax", {x}, {y}, {dims[0], dims[1]}),
         {random_floats(static_cast<size_t>(rows * n), 7)},
         {},
         {rows, n}};
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = c.inputs[0].data() + r * n;
    double most = *std::max_element(row, row + n), total = 0;
    for (int64_t k = 0; k < n; ++k) total += std::exp(row[k] - most);
    for (int64_t k = 0; k < n; ++k)
      c.expected.push_back(static_cast<float>(std::exp(row[k] - most) / total));
  }
  return c;
}

// Normalisation of `groups` groups of the channels of [items, channels, pixels], scaled by channel,
// with a residual added before; one group and one pixel are layer normalisation.
Case normalisation(int64_t items, int64_t groups, int64_t channels, int64_t pixels) {
  int64_t per_group = channels / groups;
  Tensor a = placeholder("a", f32, {index(items), index(channels), index(pixels)});
  Tensor b = placeholder("b", f32, a->shape());
  Tensor gamma = placeholder("gamma", f32, {index(channels)});
  Tensor x = compute("x", a->shape(), [&](const Indices& i) { return a(i) + b(i); });
  std::vector<PrimExpr> rows{index(items), index(groups)};
  std::vector<PrimExpr> extents{index(per_group), index(pixels)};
  auto element = [&](const Indices& r, const Indices& k) {
    return x(r[0], r[1] * per_group + k[0], k[1]);
  };
  PrimExpr n = imm_float(f32, static_cast<double>(per_group * pixels));
  Tensor total = compute("total", rows, [&](const Indices& r) {
    return tir::sum(extents, [&](const Indices& k) { return element(r, k); });
  });
  Tensor mean = compute("mean", rows, [&](const Indices& r) { return div(total(r), n); });
  Tensor squares = compute("squares", rows, [&](const Indices& r) {
    return tir::sum(extents, [&](const Indices& k) {
      PrimExpr d = element(r, k) - mean(r);
      return d * d;
    });
  });
  Tensor factor = compute("factor", rows, [&](const Indices& r) {
    return call("rsqrt", f32, {div(squares(r), n) + imm_float(f32, 1e-5)});
  });
  Tensor y = compute("y", x->shape(), [&](const Indices& i) {
    Indices r{i[0], floor_div(i[1], index(per_group))};
    return (x(i) - mean(r)) * factor(r) * gamma(i[1]);
  });
  size_t size = static_cast<size_t>(items * channels * pixels);
  Case c{create_prim_func("norm", {a, b, gamma}, {y}),
         {random_floats(size, 1), random_floats(size, 2), random_floats(channels, 3)},
         {}};
  int64_t row = per_group * pixels;
  for (int64_t r = 0; r < items * groups; ++r) {
    auto at = [&](int64_t k) {
      size_t i = static_cast<size_t>(r * row + k);
      return static_cast<double>(c.inputs[0][i]) + c.inputs[1][i];
    };
    double m = 0, v = 0;
    for (int64_t k = 0; k < row; ++k) m += at(k) / static_cast<double>(row);
    for (int64_t k = 0; k < row; ++k) v += (at(k) - m) * (at(k) - m) / static_cast<double>(row);
    for (int64_t k = 0; k < row; ++k) {
      double scale = c.inputs[2][static_cast<size_t>((r % groups) * per_group + k / pixels)];
      c.expected.push_back(static_cast<float>((at(k) - m) / std::sqrt(v + 1e-5) * scale));
    }
  }
  return c;
}

// A reduction of the last axis of [rows, n].
Case reduction(Combiner combiner, int64_t rows, int64_t n, bool keepdims) {
  Tensor x = placeholder("x", f32, {index(rows), index(n)});
  std::vector<PrimExpr> shape{index(rows)};
  if (keepdims) shape.push_back(index(1));
  Tensor y = compute("y", shape, [&](const Indices& i) {
    return reduce(combiner, {index(n)}, [&](const Indices& k) { return x(i[0], k[0]); });
  });
  Case c{create_prim_func("reduction", {x}, {y}), {random_floats(rows * n, 5)}, {}};
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = c.inputs[0].data() + r * n;
    double v = row[0];
    for (int64_t k = 1; k < n; ++k) {
      v = combiner == Combiner::Sum    ? v + row[k]
          : combiner == Combiner::Prod ? v * row[k]
          : combiner == Combiner::Min  ? std::min<double>(v, row[k])
                                       : std::max<double>(v, row[k]);
    }
    c.expected.push_back(static_cast<float>(v));
  }
  return c;
}

constexpr int64_t kLengths[] = {2, 7, 16, 49, 64, 65, 197, 768, 1000};

TEST(RowReduction, softmax_of_rows_of_any_length) {
  for (int64_t n : kLengths) {
    SCOPED_TRACE(n);
    expect_rows(softmax(3, n));
  }
  expect_rows(softmax(1, 1000));
  expect_rows(softmax(300, 200));  // enough for two threads
}

TEST(RowReduction, softmax_of_sizes_known_when_it_runs) {
  for (int64_t n : {1, 5, 64, 70, 129}) expect_rows(softmax(7, n, /*symbolic=*/true));
}

// exp(x - max) of rows whose length is a sum of sizes, read from [n*h, q, past + q] as [n, h, q, past + q].
TEST(RowReduction, softmax_behind_an_open_reshape_divides_nowhere) {
  constexpr int64_t h = 3;
  Var n = var("n"), q = var("q"), past = var("past");
  PrimExpr length = past + q;
  Tensor x = placeholder("x", f32, {n * h, q, length});
  Tensor y = compute("y", {n, index(h), q, length}, [&](const Indices& i) {
    PrimExpr line = ((i[0] * h + i[1]) * q + i[2]) * length + i[3];
    PrimExpr row = floor_div(line, length);
    return x(floor_div(row, q), floor_mod(row, q), floor_mod(line, length));
  });
  Tensor top = compute("top", {n, index(h), q}, [&](const Indices& i) {
    return reduce(Combiner::Max, {length},
                  [&](const Indices& k) { return y(i[0], i[1], i[2], k[0]); });
  });
  Tensor e = compute("e", y->shape(), [&](const Indices& i) {
    return call("exp", f32, {y(i) - top(i[0], i[1], i[2])});
  });
  for (auto [queries, before] : {std::pair<int64_t, int64_t>{1, 0}, {1, 70}, {5, 30}}) {
    int64_t columns = before + queries, rows = 2 * h * queries;
    Case c{create_prim_func("rows", {x}, {e}, {n, q, past}),
           {random_floats(static_cast<size_t>(rows * columns), 7)},
           {},
           {2, queries, before}};
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = c.inputs[0].data() + r * columns;
      double most = *std::max_element(row, row + columns);
      for (int64_t k = 0; k < columns; ++k)
        c.expected.push_back(static_cast<float>(std::exp(row[k] - most)));
    }
    expect_rows(c);
    std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
    EXPECT_EQ(text.find("// q"), std::string::npos) << text;
    EXPECT_EQ(text.find("%% q"), std::string::npos) << text;
  }
}

// Copies of a loop's body hide the latency of short ones; a long one has instructions enough.
TEST(RowReduction, long_bodies_are_not_copied) {
  auto copies = [](int64_t functions) {
    Tensor x = placeholder("x", f32, {index(3), index(64)});
    Tensor sum = compute("sum", {index(3)}, [&](const Indices& i) {
      return tir::sum({index(64)}, [&](const Indices& k) { return x(i[0], k[0]); });
    });
    Tensor y = compute("y", x->shape(), [&](const Indices& i) {
      PrimExpr out = x(i) * sum(i[0]);
      for (int64_t n = 1; n <= functions; ++n)
        out = out + call("tanh", f32, {x(i) * imm_float(f32, static_cast<double>(n))});
      return out;
    });
    const std::string text = to_string(
        lower_loops(scheduled(create_prim_func("long", {x}, {y}), codegen_test::text_target())));
    int64_t calls = 0;
    for (size_t at = 0; (at = text.find("tanh(", at)) != std::string::npos; ++at) ++calls;
    return calls / functions;
  };
  EXPECT_GE(copies(1), 4);
  EXPECT_EQ(copies(10), 1);
}

TEST(RowReduction, rows_larger_than_the_stack_live_in_scratch_memory) {
  expect_rows(softmax(2, 20000));
}

// The greatest of each of `windows` overlapping windows of a bordered row.
Case greatest_of_windows(int64_t rows, int64_t windows, int64_t size) {
  constexpr int64_t kBorder = 3;
  const int64_t n = 2 * (windows - 1) + size - kBorder;
  Tensor x = placeholder("x", f32, {index(rows), index(n)});
  Tensor y = compute("y", {index(rows), index(windows)}, [&](const Indices& i) {
    return reduce(Combiner::Max, {index(size)}, [&](const Indices& k) {
      PrimExpr at = i[1] * 2 + k[0] - kBorder;
      return select(ge(at, index(0)), x(i[0], at), imm_float(f32, -5));
    });
  });
  Case c{create_prim_func("windows", {x}, {y}), {random_floats(rows * n, 7)}, {}};
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t w = 0; w < windows; ++w) {
      float best = -5;
      for (int64_t k = std::max<int64_t>(kBorder - 2 * w, 0); k < size; ++k)
        best = std::max(best, c.inputs[0][static_cast<size_t>(r * n + 2 * w + k - kBorder)]);
      c.expected.push_back(best);
    }
  }
  return c;
}

TEST(RowReduction, few_long_windows_are_rows_though_they_overlap) {
  expect_right(greatest_of_windows(3, 3, 101), "rows: 1 reduction");
  EXPECT_FALSE(rule_of(greatest_of_windows(3, 16, 101).func).starts_with("rows:"));
}

TEST(RowReduction, normalisation_with_what_is_added_before) {
  for (int64_t n : kLengths) {
    SCOPED_TRACE(n);
    expect_rows(normalisation(3, 1, n, 1));
  }
  expect_rows(normalisation(2, 1, 5, 49));  // one row an item
  expect_rows(normalisation(2, 5, 5, 49));  // instance normalisation
  expect_rows(normalisation(2, 3, 6, 49));  // groups
  expect_rows(normalisation(40, 3, 96, 10));
}

TEST(RowReduction, every_combiner) {
  for (Combiner c : {Combiner::Sum, Combiner::Prod, Combiner::Min, Combiner::Max}) {
    for (int64_t n : kLengths) {
      SCOPED_TRACE(n);
      expect_rows(reduction(c, 3, n, false));
    }
    expect_rows(reduction(c, 1, 77, true));
    expect_rows(reduction(c, 500, 77, true));
  }
}

// Of long rows that come from memory several are read at once, as many as divide their number; not of rows in a cache.
TEST(RowReduction, rows_from_memory_are_reduced_several_at_once) {
  for (auto [rows, together] :
       {std::pair<int64_t, int64_t>{8200, 4}, {8202, 2}, {8201, 1}, {40, 1}}) {
    SCOPED_TRACE(rows);
    const std::string text =
        together == 1 ? "lanes, threads" : ", " + std::to_string(together) + " rows at once";
    for (int64_t n : {515, 768}) {
      const Case c = reduction(Combiner::Max, rows, n, false);
      expect_rows(c);
      EXPECT_NE(rule_of(c.func).find(text), std::string::npos) << rule_of(c.func);
    }
  }
}

// A reduction of the axes of `shape` that are marked, of 2 (3 for whole numbers, whose products are never 0) and 1, or of the
// elements, and the result plus 1.
PrimFunc reduction_of_axes(Combiner combiner, DType d, const std::vector<int64_t>& shape,
                           const std::vector<bool>& reduced) {
  std::vector<PrimExpr> extents, kept, sums;
  for (size_t i = 0; i < shape.size(); ++i) {
    extents.push_back(index(shape[i]));
    (reduced[i] ? sums : kept).push_back(extents.back());
  }
  Tensor x = placeholder("x", d, extents);
  PrimExpr base = cast(d, index(d.is_floating() ? 2 : 3)), one = cast(d, index(1));
  Tensor r = compute("r", kept, [&](const Indices& i) {
    return reduce(combiner, sums, [&](const Indices& k) {
      Indices at;
      size_t next = 0, next_reduced = 0;
      for (bool is : reduced) at.push_back(is ? k[next_reduced++] : i[next++]);
      return combiner == Combiner::Prod ? select(lt(x(at), cast(d, index(5))), base, one) : x(at);
    });
  });
  Tensor y = compute("y", kept, [&](const Indices& i) { return r(i) + one; });
  return create_prim_func("reduction", {x}, {y});
}

constexpr Combiner kCombiners[] = {Combiner::Sum, Combiner::Prod, Combiner::Min, Combiner::Max};

TEST(RowReduction, all_axes_at_once_in_every_dtype) {
  for (DType d : {DType::Float(32), DType::Float(64), DType::Int(8), DType::UInt(8), DType::Int(16),
                  DType::Int(32), DType::Int(64)}) {
    for (Combiner c : kCombiners) {
      SCOPED_TRACE(d.to_string());
      expect_same_bits(reduction_of_axes(c, d, {1, 7, 33}, {true, true, true}), "rows:");
    }
  }
  expect_same_bits(reduction_of_axes(Combiner::Max, f32, {13, 1, 8, 1}, {true, true, true, true}),
                   "rows:");
}

TEST(RowReduction, last_axes_are_one_row) {
  for (const auto& [shape, reduced] :
       {std::pair{std::vector<int64_t>{5, 4, 29, 4}, std::vector{true, true, true, true}},
        std::pair{std::vector<int64_t>{6, 9, 7}, std::vector{false, true, true}},
        std::pair{std::vector<int64_t>{4, 4, 4}, std::vector{false, true, true}}}) {
    for (Combiner c : kCombiners) {
      PrimFunc f = reduction_of_axes(c, f32, shape, reduced);
      expect_same_bits(f, "rows:");
      const std::string text = to_string(scheduled(f, codegen_test::text_target()));
      EXPECT_EQ(text.find(" // "), std::string::npos) << text;
    }
  }
  // An axis between them is kept.
  expect_same_bits(reduction_of_axes(Combiner::Sum, f32, {3, 5, 7, 4}, {true, false, true, true}),
                   "rows:");
}

// x - top - log(sum(exp(x - top))): no tensor holds the exponentials.
TEST(RowReduction, what_is_only_summed_is_not_stored) {
  Tensor x = placeholder("x", f32, {index(3), index(300)});
  Tensor top = compute("top", {index(3)}, [&](const Indices& i) {
    return reduce(Combiner::Max, {index(300)}, [&](const Indices& k) { return x(i[0], k[0]); });
  });
  Tensor e = compute("e", x->shape(),
                     [&](const Indices& i) { return call("exp", f32, {x(i) - top(i[0])}); });
  Tensor sum = compute("sum", {index(3)}, [&](const Indices& i) {
    return tir::sum({index(300)}, [&](const Indices& k) { return e(i[0], k[0]); });
  });
  Tensor y = compute("y", x->shape(), [&](const Indices& i) {
    return x(i) - top(i[0]) - call("log", f32, {sum(i[0])});
  });
  Case c{create_prim_func("log_softmax", {x}, {y}), {random_floats(900, 7)}, {}, {}};
  for (int64_t r = 0; r < 3; ++r) {
    const float* row = c.inputs[0].data() + r * 300;
    double most = *std::max_element(row, row + 300), total = 0;
    for (int64_t k = 0; k < 300; ++k) total += std::exp(row[k] - most);
    for (int64_t k = 0; k < 300; ++k)
      c.expected.push_back(static_cast<float>(row[k] - most - std::log(total)));
  }
  expect_rows(c);
  const std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
  EXPECT_EQ(text.find("allocate e"), std::string::npos) << text;
}

// The sum over the last axis of a tensor of [3, 5, 200] that takes too long to compute for other uses.
Case sum_of(const std::vector<Tensor>& inputs, const Tensor& e,
            const std::function<float(const Case&, int64_t i, int64_t j, int64_t k)>& element) {
  Tensor y = compute("y", {index(3), index(5)}, [&](const Indices& i) {
    return tir::sum({index(200)}, [&](const Indices& k) { return e(i[0], i[1], k[0]); });
  });
  Case c{create_prim_func("sum_of", inputs, {y}), {}, {}};
  for (const Tensor& x : inputs) {
    size_t size = 1;
    for (const PrimExpr& d : x->shape()) size *= static_cast<size_t>(*as_int(d));
    c.inputs.push_back(random_floats(size, static_cast<int>(c.inputs.size()) + 1));
  }
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 5; ++j) {
      double total = 0;
      for (int64_t k = 0; k < 200; ++k) total += element(c, i, j, k);
      c.expected.push_back(static_cast<float>(total));
    }
  }
  return c;
}

// A sum that would read no element once, or not along its rows, reads them from memory.
TEST(RowReduction, elements_that_the_sum_cannot_compute_are_stored) {
  const std::vector<PrimExpr> shape{index(3), index(5), index(200)};
  auto expect_stored = [](const Case& c) {
    expect_rows(c);
    const std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
    EXPECT_NE(text.find("allocate e"), std::string::npos) << text;
  };
  {
    SCOPED_TRACE("distances");
    Tensor a = placeholder("a", f32, {index(3), index(200)});
    Tensor b = placeholder("b", f32, {index(5), index(200)});
    Tensor e = compute("e", shape, [&](const Indices& i) {
      PrimExpr d = a(i[0], i[2]) - b(i[1], i[2]);
      return select(lt(d, imm_float(f32, 0)), imm_float(f32, 0) - d, d);
    });
    expect_stored(sum_of({a, b}, e, [](const Case& c, int64_t i, int64_t j, int64_t k) {
      return std::fabs(c.inputs[0][i * 200 + k] - c.inputs[1][j * 200 + k]);
    }));
  }
  {
    SCOPED_TRACE("masked count");
    Tensor n = placeholder("n", f32, {index(3), index(5)});
    Tensor e = compute("e", shape, [&](const Indices& i) {
      PrimExpr inside = lt(cast(f32, i[2]), n(i[0], i[1]) * imm_float(f32, 100));
      return select(inside, imm_float(f32, 1), imm_float(f32, 0));
    });
    expect_stored(sum_of({n}, e, [](const Case& c, int64_t i, int64_t j, int64_t k) {
      return static_cast<float>(k) < c.inputs[0][i * 5 + j] * 100 ? 1.0f : 0.0f;
    }));
  }
  {
    SCOPED_TRACE("transposed");
    Tensor x = placeholder("x", f32, {index(200), index(3), index(5)});
    Tensor e = compute("e", shape,
                       [&](const Indices& i) { return call("exp", f32, {x(i[2], i[0], i[1])}); });
    expect_stored(sum_of({x}, e, [](const Case& c, int64_t i, int64_t j, int64_t k) {
      return std::exp(c.inputs[0][k * 15 + i * 5 + j]);
    }));
  }
}

// log(1 + exp(x)), each step in a tensor of its own.
TEST(RowReduction, no_step_of_a_chain_that_is_only_summed_is_stored) {
  Tensor x = placeholder("x", f32, {index(3), index(5), index(200)});
  Tensor first =
      compute("e1", x->shape(), [&](const Indices& i) { return call("exp", f32, {x(i)}); });
  Tensor second = compute("e2", x->shape(), [&](const Indices& i) {
    return call("log", f32, {first(i) + imm_float(f32, 1)});
  });
  Case c = sum_of({x}, second, [](const Case& at, int64_t i, int64_t j, int64_t k) {
    return std::log(1 + std::exp(at.inputs[0][(i * 5 + j) * 200 + k]));
  });
  expect_rows(c);
  const std::string text = to_string(scheduled(c.func, codegen_test::text_target()));
  EXPECT_EQ(text.find("allocate e"), std::string::npos) << text;
}

TEST(RowReduction, a_column_is_a_row) {
  for (Combiner c : kCombiners) {
    expect_same_bits(reduction_of_axes(c, f32, {300, 1}, {true, false}), "rows:");
    expect_same_bits(reduction_of_axes(c, f32, {3, 50, 1, 1}, {false, true, false, false}),
                     "rows:");
  }
}

TEST(RowReduction, the_first_and_the_last_axis) {
  for (Combiner c : kCombiners) {
    for (int64_t n : {3, 100}) {
      expect_same_bits(reduction_of_axes(c, f32, {5, 9, n}, {true, false, true}), "rows:");
    }
  }
}

TEST(RowReduction, greatest_and_least_give_nan_for_a_row_with_nan) {
  for (Combiner combiner : {Combiner::Min, Combiner::Max}) {
    for (size_t where : {0, 15, 48, 70}) {
      Case c = reduction(combiner, 3, 71, false);
      c.inputs[0][71 + where] = std::numeric_limits<float>::quiet_NaN();
      c.expected[1] = std::numeric_limits<float>::quiet_NaN();
      expect_rows(c);
    }
  }
}

TEST(RowReduction, not_for_matrix_products_nor_for_reductions_over_leading_axes) {
  Tensor a = placeholder("a", f32, {index(8), index(64)});
  Tensor b = placeholder("b", f32, {index(32), index(64)});
  Tensor product = compute("y", {index(8), index(32)}, [&](const Indices& i) {
    return tir::sum({index(64)}, [&](const Indices& k) { return a(i[0], k[0]) * b(i[1], k[0]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("product", {a, b}, {product})).starts_with("rows:"));
  Tensor columns = compute("y", {index(64)}, [&](const Indices& i) {
    return tir::sum({index(8)}, [&](const Indices& k) { return a(k[0], i[0]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("columns", {a}, {columns})).starts_with("rows:"));
  PrimFunc middle = reduction_of_axes(Combiner::Sum, f32, {4, 5, 32}, {true, true, false});
  EXPECT_FALSE(rule_of(middle).starts_with("rows:"));
}

}  // namespace
}  // namespace relay::lower_test
