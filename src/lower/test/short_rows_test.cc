// Rows that fill no vector: what their schedule computes, on each target, against plain loops.
#include "lower/test/kernel_case.h"

namespace relay::lower_test {
namespace {

struct Shape {
  std::vector<int64_t> leading;  // the last of them are the rows
  int64_t length;

  int64_t rows() const {
    int64_t out = 1;
    for (int64_t e : leading) out *= e;
    return out;
  }
  std::vector<PrimExpr> of_rows() const {
    std::vector<PrimExpr> out;
    for (int64_t e : leading) out.push_back(index(e));
    return out;
  }
  std::vector<PrimExpr> all() const {
    std::vector<PrimExpr> out = of_rows();
    out.push_back(index(length));
    return out;
  }
};

Indices element(Indices row, const PrimExpr& k) {
  row.push_back(k);
  return row;
}
Indices row_of(Indices i) {
  i.pop_back();
  return i;
}

// exp(x - max) / sum of the rows of a + b, times a weight for each place in a row.
Case softmax(const Shape& shape) {
  Tensor a = placeholder("a", f32, shape.all()), b = placeholder("b", f32, shape.all());
  Tensor weight = placeholder("weight", f32, {index(shape.length)});
  Tensor x = compute("x", shape.all(), [&](const Indices& i) { return a(i) + b(i); });
  auto over = [&](const char* name, Combiner combiner, const Tensor& of) {
    return compute(name, shape.of_rows(), [&](const Indices& i) {
      return reduce(combiner, {index(shape.length)},
                    [&](const Indices& k) { return of(element(i, k[0])); });
    });
  };
  Tensor top = over("top", Combiner::Max, x);
  Tensor e = compute("e", shape.all(),
                     [&](const Indices& i) { return call("exp", f32, {x(i) - top(row_of(i))}); });
  Tensor total = over("total", Combiner::Sum, e);
  Tensor y = compute("y", shape.all(), [&](const Indices& i) {
    return div(e(i), total(row_of(i))) * weight(i.back());
  });
  auto n = static_cast<size_t>(shape.rows() * shape.length);
  Case c{create_prim_func("softmax", {a, b, weight}, {y}),
         {random_floats(n, 7), random_floats(n, 8),
          random_floats(static_cast<size_t>(shape.length), 9)},
         {}};
  for (size_t r = 0; r < n; r += static_cast<size_t>(shape.length)) {
    std::vector<double> row;
    for (size_t k = 0; k < static_cast<size_t>(shape.length); ++k) {
      row.push_back(static_cast<double>(c.inputs[0][r + k]) + c.inputs[1][r + k]);
    }
    double most = *std::ranges::max_element(row), sum = 0;
    for (double v : row) sum += std::exp(v - most);
    for (size_t k = 0; k < row.size(); ++k) {
      c.expected.push_back(static_cast<float>(std::exp(row[k] - most) / sum * c.inputs[2][k]));
    }
  }
  return c;
}

// A number for each row.
Case largest(const Shape& shape, bool doubled) {
  Tensor x = placeholder("x", f32, shape.all());
  Tensor top = compute("top", shape.of_rows(), [&](const Indices& i) {
    return reduce(Combiner::Max, {index(shape.length)},
                  [&](const Indices& k) { return x(element(i, k[0])); });
  });
  Tensor y = compute("y", shape.of_rows(), [&](const Indices& i) { return top(i) + top(i); });
  auto n = static_cast<size_t>(shape.rows() * shape.length);
  Case c{create_prim_func("largest", {x}, {doubled ? y : top}), {random_floats(n, 5)}, {}};
  for (auto row = c.inputs[0].begin(); row != c.inputs[0].end(); row += shape.length) {
    c.expected.push_back(*std::max_element(row, row + shape.length) * (doubled ? 2.0f : 1.0f));
  }
  return c;
}

TEST(ShortRows, are_right_for_every_length_and_number) {
  for (int64_t length : {2, 3, 5, 7, 8, 10, 13, 16, 17, 25, 28}) {
    expect_right(softmax({{length % 2 == 0 ? int64_t{64} : int64_t{43}}, length}), "short rows:");
  }
  expect_right(softmax({{3, 37}, 6}), "short rows:");
  expect_right(largest({{51}, 9}, false), "short rows:");
  expect_right(largest({{2, 2, 32}, 4}, true), "short rows:");
}

TEST(ShortRows, takes_no_other_kernels) {
  // Rows of two vectors and more, those of more columns than there are registers for, and few of them.
  EXPECT_TRUE(rule_of(softmax({{64}, 32}).func).starts_with("rows:"));
  EXPECT_TRUE(rule_of(softmax({{64}, 29}).func).starts_with("rows:"));
  EXPECT_TRUE(rule_of(softmax({{31}, 8}).func).starts_with("rows:"));
  // Columns: lanes over the other axis read neighbours.
  Tensor x = placeholder("x", f32, {index(10), index(64)});
  Tensor y = compute("y", {index(64)}, [&](const Indices& i) {
    return tir::sum({index(10)}, [&](const Indices& k) { return x(k[0], i[0]) * x(k[0], i[0]); });
  });
  EXPECT_FALSE(rule_of(create_prim_func("columns", {x}, {y})).starts_with("short rows"));
}

}  // namespace
}  // namespace relay::lower_test
