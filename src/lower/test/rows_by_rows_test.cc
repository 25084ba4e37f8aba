// Products of rows with rows, as they lie and by panels: what their tiles compute, at every kind of edge, on each target.
#include "lower/rules/row_loops.h"
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

using tir::Tensor;

// relu(x [m, k] times w [n, k] + bias), or the product alone. `at_most`: rows are open, no more than that; 0: they are a constant.
// With `columns_last` w is [k, n].
Case dense(int64_t m, int64_t n, int64_t k, bool epilogue, int64_t at_most = 0,
           bool columns_last = false) {
  const Var open = var("m", DType::Int(64));
  const PrimExpr rows = at_most > 0 ? PrimExpr(open) : index(m);
  Tensor x = placeholder("x", f32, {rows, index(k)});
  Tensor w = columns_last ? placeholder("w", f32, {index(k), index(n)})
                          : placeholder("w", f32, {index(n), index(k)});
  Tensor bias = placeholder("bias", f32, {index(n)});
  Tensor product = compute("product", {rows, index(n)}, [&](const Indices& i) {
    return sum({index(k)}, [&](const Indices& r) {
      return x(i[0], r[0]) * (columns_last ? w(r[0], i[1]) : w(i[1], r[0]));
    });
  });
  Tensor y = compute("y", product->shape(), [&](const Indices& i) {
    return max(product(i) + bias(i[1]), imm_float(f32, 0));
  });
  Case c;
  c.inputs = {random_floats(static_cast<size_t>(m * k), 1),
              random_floats(static_cast<size_t>(n * k), 2)};
  std::vector<Tensor> inputs{x, w};
  if (epilogue) {
    inputs.push_back(bias);
    c.inputs.push_back(random_floats(static_cast<size_t>(n), 3));
  }
  c.func = create_prim_func("dense", inputs, {epilogue ? y : product},
                            at_most > 0 ? std::vector<Var>{open} : std::vector<Var>{});
  if (at_most > 0) {
    c.dims = {m};
    c.func = modified(*c.func, [&](PrimFuncNode& f) { f.at_most = {at_most}; });
  }
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t col = 0; col < n; ++col) {
      double total = 0;
      for (int64_t r = 0; r < k; ++r) {
        total += static_cast<double>(c.inputs[0][static_cast<size_t>(row * k + r)]) *
                 c.inputs[1][static_cast<size_t>(columns_last ? r * n + col : col * k + r)];
      }
      if (epilogue) total = std::max(0.0, total + c.inputs[2][static_cast<size_t>(col)]);
      c.expected.push_back(static_cast<float>(total));
    }
  }
  return c;
}

TEST(RowProducts, tiles_and_their_edges) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{8, 24, 128},
                         {8, 10, 131},
                         {7, 17, 67},
                         {2, 3, 64},
                         {5, 2, 257},
                         {33, 31, 80},
                         {3, 50, 1001}}) {
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    expect_right(dense(m, n, k, false), "rows by rows:");
    expect_right(dense(m, n, k, true), "rows by rows:");
  }
}

// Every number of rows below and at the bound; the last tile of columns and of a sum.
TEST(RowProducts, open_rows_that_are_few) {
  for (int64_t m = 0; m <= 9; ++m) {
    SCOPED_TRACE(m);
    expect_right(dense(m, 19, 259, m % 2 == 0, 9), "rows by rows:");
  }
  EXPECT_TRUE(rule_of(dense(3, 24, 256, true, 32).func).ends_with(", open rows"));
  // How many there may be is not known.
  Case any = dense(3, 24, 256, true, 32);
  any.func = modified(*any.func, [](PrimFuncNode& f) { f.at_most.clear(); });
  EXPECT_EQ(rule_of(any.func).find("rows by rows:"), std::string::npos) << rule_of(any.func);
}

// Where panels hold pairs, rows of bfloat16 stay in them unless pairs along the sum fill vectors.
TEST(RowProducts, few_rows_of_bfloat16_where_pairs_fill_vectors) {
  for (DType dtype : {f32, DType::BFloat16()}) {
    for (int64_t terms : {256, 264}) {
      const Var rows = var("m", DType::Int(64));
      Tensor x = placeholder("x", dtype, {rows, index(terms)});
      Tensor w = placeholder("w", dtype, {index(64), index(terms)});
      Tensor y = compute("y", {rows, index(64)}, [&](const Indices& i) {
        return sum({index(terms)}, [&](const Indices& r) {
          return cast(f32, x(i[0], r[0])) * cast(f32, w(i[1], r[0]));
        });
      });
      const PrimFunc f = create_prim_func("dense", {x, w}, {y}, {rows});
      const std::optional<int64_t> all = terms / 8,
                                   whole = terms == 256 ? std::optional(terms / 32) : std::nullopt;
      EXPECT_EQ(few_rows_of_product(f, parse_target("x86-64-v4")), all);
      EXPECT_EQ(few_rows_of_product(f, parse_target("x86-64-v4 -mattr=+avx512bf16")),
                dtype == f32 ? all : whole);
    }
  }
}

// Where the other order packs the whole matrix, twice as many as where it writes panels.
TEST(RowProducts, few_rows_stay_in_a_part_of_the_cache) {
  const Target target = parse_target("x86-64-v4 -num-threads=1 -l2=1M");
  for (auto [columns, sum, most] : {std::array<int64_t, 3>{512, 512, 64},
                                    {512, 1024, 64},
                                    {512, 2048, 32},
                                    {512, 4096, 16},
                                    {32, 2048, 64}}) {
    PrimFunc f = dense(3, columns, sum, false, 1).func;
    f = modified(*f, [](PrimFuncNode& n) { n.at_most.clear(); });
    EXPECT_EQ(few_rows_of_product(f, target), most) << sum;
  }
}

// One row is a reduction, and short sums are not worth the sum of their lanes.
TEST(RowProducts, not_for_one_row_or_short_sums) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{1, 24, 128}, {8, 1, 128}, {8, 24, 12}}) {
    const std::string rule = rule_of(dense(m, n, k, true).func);
    EXPECT_EQ(rule.find("rows by rows:"), std::string::npos) << rule;
  }
}

// The rest of a tile, of a block that is transposed, and of a vector; data of several axes of rows.
TEST(PanelProducts, tiles_and_their_edges) {
  const std::string by_tile = ", columns transposed a tile at a time";
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 320, 64},
                         {40, 300, 33},
                         {9, 257, 47},
                         {2, 512, 32},
                         {67, 259, 130}}) {
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    for (bool epilogue : {false, true}) {
      const Case c = dense(m, n, k, epilogue);
      EXPECT_TRUE(rule_of(c.func).ends_with(by_tile)) << rule_of(c.func);
      expect_right(c, "sum:");
    }
  }
}

// A matrix with its columns last is copied, where rows are some and vectors as long as a line.
TEST(PanelProducts, columns_that_are_neighbours_are_copied) {
  const std::string by_tile = ", columns copied a tile at a time";
  const Target longer = parse_target("x86-64-v4 -num-threads=2");
  auto times = [](int64_t m, int64_t n, int64_t k, bool epilogue) {
    return dense(m, n, k, epilogue, 0, true);
  };
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 320, 64},
                         {33, 300, 33},
                         {37, 257, 47},
                         {67, 259, 130},
                         {530, 768, 520}}) {
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    for (bool epilogue : {false, true}) {
      const Case c = times(m, n, k, epilogue);
      EXPECT_TRUE(rule_of(c.func, longer).ends_with(by_tile)) << rule_of(c.func, longer);
      expect_right(c, "sum:");
    }
  }
  for (auto [m, n, k] : {std::array<int64_t, 3>{31, 320, 64},
                         {1025, 320, 64},
                         {40, 255, 64},
                         {40, 320, 31},
                         {40, 320, 16384}}) {
    const std::string rule = rule_of(times(m, n, k, true).func, longer);
    EXPECT_EQ(rule.find("a tile at a time"), std::string::npos) << rule;
  }
  const std::string shorter =
      rule_of(times(40, 320, 64, true).func, parse_target("x86-64-v3 -num-threads=2"));
  EXPECT_EQ(shorter.find("a tile at a time"), std::string::npos) << shorter;
}

// So it is for rows of any number where another kernel serves few: one open size, which is the number of rows.
TEST(PanelProducts, columns_are_copied_for_open_rows) {
  const Target longer = parse_target("x86-64-v4 -num-threads=2");
  auto open = [](int64_t m, int64_t n, int64_t k) {
    Case c = dense(m, n, k, true, 1, true);
    c.func = modified(*c.func, [](PrimFuncNode& f) { f.at_most.clear(); });
    return c;
  };
  for (int64_t m : {0, 1, 33, 150}) {
    const Case c = open(m, 300, 40);
    EXPECT_TRUE(rule_of(c.func, longer).ends_with(", columns copied a tile at a time"));
    EXPECT_EQ(few_rows_beside_panels(c.func, longer), 31);
    expect_right(c, "sum:");
  }
  const Case few = dense(20, 300, 40, true, 31, true);
  EXPECT_EQ(rule_of(few.func, longer).find("a tile at a time"), std::string::npos);
  EXPECT_EQ(few_rows_beside_panels(open(9, 200, 40).func, longer), std::nullopt);
  EXPECT_EQ(few_rows_beside_panels(dense(40, 300, 40, true, 0, true).func, longer), std::nullopt);
}

// Where the rows do not stay in half of L2, they pass by several tiles at once: as many parts for each thread, and what is left
// over of the columns by itself.
TEST(PanelProducts, several_tiles_at_once_for_rows_that_leave_l2) {
  const std::string several = " tiles of columns at once, ";
  for (int64_t columns : {768, 780}) {
    for (bool epilogue : {false, true}) {
      const Case c = dense(530, columns, 520, epilogue);
      EXPECT_NE(rule_of(c.func).find(several), std::string::npos) << rule_of(c.func);
      expect_right(c, "sum:");
    }
  }
  // Neither where the rows stay there, nor where the weights of one tile fill it.
  for (auto [m, n, k] : {std::array<int64_t, 3>{120, 768, 520}, {530, 768, 2048}}) {
    const std::string rule = rule_of(dense(m, n, k, true).func);
    EXPECT_TRUE(rule.ends_with("a tile at a time")) << rule;
    EXPECT_EQ(rule.find(several), std::string::npos) << rule;
  }
}

// A result that exceeds L2 is written by long pieces of rows; not where panels of so many columns would fill L2.
TEST(PanelProducts, several_tiles_at_once_for_results_that_leave_l2) {
  const std::string several = " tiles of columns at once, ";
  for (auto [m, n, k] : {std::array<int64_t, 3>{480, 1536, 64}, {480, 1540, 33}}) {
    const Case c = dense(m, n, k, false);
    EXPECT_NE(rule_of(c.func).find(several), std::string::npos) << rule_of(c.func);
    expect_right(c, "sum:");
  }
  for (auto [m, n, k] : {std::array<int64_t, 3>{60, 1536, 64}, {480, 1536, 2000}}) {
    const std::string rule = rule_of(dense(m, n, k, false).func);
    EXPECT_TRUE(rule.ends_with("a tile at a time")) << rule;
    EXPECT_EQ(rule.find(several), std::string::npos) << rule;
  }
}

// Few columns leave threads without panels, many rows are worth a matrix that is transposed once, and few rows with long
// sums read it as it lies.
TEST(PanelProducts, not_for_few_columns_or_many_rows) {
  for (auto [m, n, k] : {std::array<int64_t, 3>{40, 16, 64}, {1100, 320, 64}, {8, 320, 256}}) {
    const std::string rule = rule_of(dense(m, n, k, true).func);
    EXPECT_EQ(rule.find("a tile at a time"), std::string::npos) << rule;
  }
}

}  // namespace
}  // namespace relay::lower_test
