#include "analysis/known_values.h"

#include <gtest/gtest.h>

#include "ops/test/parse.h"

namespace relay {
namespace {

// The elements of @main's result as text, "[n, 12, 64]"; "nothing" when none is known.
std::string known(const std::string& text, ConstantEvaluator evaluate = {}) {
  Module mod = test::parse(text);
  const Function& main = mod->find("main");
  KnownValues values(std::move(evaluate));
  values.bind(main);
  const KnownValue* k = values.of(main->body);
  if (k == nullptr) return "nothing";
  std::string out = "[";
  for (int64_t i = 0; i < k->size(); ++i) {
    if (i > 0) out += ", ";
    out += k->is_int() ? to_string(k->ints[static_cast<size_t>(i)])
                       : std::to_string(k->floats[static_cast<size_t>(i)]);
  }
  return out + "]";
}

// What follows from the shape [n, 3, m + 1] of %x, which is %s.
std::string of_shape(const std::string& expr) {
  return known(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n, 3, m + 1), float32], %y: Tensor[(4), int64]) {\n"
      "  let %s = shape_of(%x, dtype=\"int64\");\n" +
      expr + " }");
}

TEST(KnownValues, sizes_are_terms) {
  EXPECT_EQ(of_shape("%s"), "[n, 3, (m + 1)]");
  EXPECT_EQ(of_shape("ndarray_size(%x, dtype=\"int64\")"), "[((3 * (m * n)) + (3 * n))]");
  EXPECT_EQ(of_shape("shape_of(nn.relu(%x), dtype=\"int32\")"), "[n, 3, (m + 1)]");
  EXPECT_EQ(known("def @main(%x: Tensor[(?, 5), float32]) { shape_of(%x) }"), "[?, 5]");
}

TEST(KnownValues, elements_are_followed_where_they_are_moved) {
  EXPECT_EQ(of_shape("take(%s, 2i64, axis=0)"), "[(m + 1)]");
  EXPECT_EQ(of_shape("take(%s, -1i64, axis=0, mode=\"fast\")"), "[(m + 1)]");
  EXPECT_EQ(of_shape("strided_slice(%s, begin=[0], end=[2], strides=[1])"), "[n, 3]");
  EXPECT_EQ(of_shape("strided_slice(%s, begin=[-1], end=[-10], strides=[-1])"), "[(m + 1), 3, n]");
  EXPECT_EQ(of_shape("concatenate((%s, %s), axis=0)"), "[n, 3, (m + 1), n, 3, (m + 1)]");
  EXPECT_EQ(of_shape("stack((%s, %s), axis=1)"), "[n, n, 3, 3, (m + 1), (m + 1)]");
  EXPECT_EQ(of_shape("transpose(stack((%s, %s), axis=0))"), "[n, n, 3, 3, (m + 1), (m + 1)]");
  EXPECT_EQ(of_shape("transpose(reshape(tile(%s, reps=[2]), newshape=[3, 2]), axes=[1, 0])"),
            "[n, (m + 1), 3, 3, n, (m + 1)]");
  EXPECT_EQ(of_shape("split(%s, indices_or_sections=3).2"), "[(m + 1)]");
  EXPECT_EQ(of_shape("let %p = split(%s, indices_or_sections=[1]); %p.1"), "[3, (m + 1)]");
  EXPECT_EQ(of_shape("reverse(%s, axis=0)"), "[(m + 1), 3, n]");
  EXPECT_EQ(of_shape("repeat(%s, repeats=2, axis=0)"), "[n, n, 3, 3, (m + 1), (m + 1)]");
  EXPECT_EQ(of_shape("squeeze(expand_dims(%s, axis=1))"), "[n, 3, (m + 1)]");
  EXPECT_EQ(of_shape("broadcast_to(take(%s, 0i64, axis=0), shape=[2])"), "[n, n]");
}

TEST(KnownValues, elements_are_computed) {
  EXPECT_EQ(of_shape("add(%s, multiply(%s, 2i64))"), "[(3 * n), 9, ((3 * m) + 3)]");
  EXPECT_EQ(of_shape("subtract(%s, %s)"), "[0, 0, 0]");
  EXPECT_EQ(of_shape("prod(%s)"), "[((3 * (m * n)) + (3 * n))]");
  EXPECT_EQ(of_shape("sum(stack((%s, %s)), axis=[0])"), "[(2 * n), 6, ((2 * m) + 2)]");
  EXPECT_EQ(of_shape("maximum(%s, 3i64)"), "[max(3, n), 3, max((m + 1), 3)]");
  EXPECT_EQ(of_shape("cast(%s, dtype=\"int32\")"), "[n, 3, (m + 1)]");
  EXPECT_EQ(of_shape("trunc_divide(%s, 2i64)"), "[(n // 2), 1, ((m + 1) // 2)]");
  EXPECT_EQ(of_shape("floor_mod(%s, 2i64)"), "[(n % 2), 1, ((m + 1) % 2)]");
  EXPECT_EQ(of_shape("negative(%s)"), "[(-1 * n), -3, ((-1 * m) + -1)]");
  EXPECT_EQ(of_shape("abs(%s)"), "[n, 3, (m + 1)]");
  // What stays above zero is its own amount.
  EXPECT_EQ(of_shape("abs(add(floor_divide(subtract(%s, 1i64), 4i64), 1i64))"),
            "[(((n + -1) // 4) + 1), 1, ((m // 4) + 1)]");
  EXPECT_EQ(of_shape("take(abs(floor_divide(subtract(%s, 1i64), 4i64)), 0i64, axis=0)"), "nothing");
}

TEST(KnownValues, a_quotient_is_rounded_towards_zero_from_both_sides) {
  // -1 / 2 is 0 and not -1: the floor would be wrong where n is 0.
  EXPECT_NE(of_shape("trunc_divide(subtract(%s, 1i64), 2i64)"),
            of_shape("floor_divide(subtract(%s, 1i64), 2i64)"));
  EXPECT_EQ(of_shape("take(trunc_divide(subtract(%s, 5i64), 2i64), 1i64, axis=0)"), "[-1]");
  EXPECT_EQ(of_shape("take(floor_divide(subtract(%s, 4i64), 2i64), 1i64, axis=0)"), "[-1]");
}

TEST(KnownValues, tests_are_decided_where_every_size_agrees) {
  EXPECT_EQ(of_shape("equal(%s, %s)"), "[1, 1, 1]");
  EXPECT_EQ(of_shape("equal(%s, -1i64)"), "[0, 0, 0]");
  EXPECT_EQ(of_shape("less(%s, 3i64)"), "[?, 0, ?]");
  EXPECT_EQ(of_shape("greater(%s, 0i64)"), "[?, 1, 1]");
  EXPECT_EQ(of_shape("less_equal(%s, add(%s, 1i64))"), "[1, 1, 1]");
  EXPECT_EQ(of_shape("logical_and(equal(%s, 0i64), greater(%s, 0i64))"), "[?, 0, 0]");
  EXPECT_EQ(of_shape("where(equal(%s, -1i64), %s, add(%s, 1i64))"), "[(n + 1), 4, (m + 2)]");
  // The condition is open, both branches are 3.
  EXPECT_EQ(of_shape("where(equal(%s, 5i64), 3i64, %s)"), "[?, 3, ?]");
  EXPECT_EQ(of_shape("where(1f, 3i64, 3i64)"), "[3]");
}

TEST(KnownValues, what_is_not_known_stays_apart_from_what_is) {
  EXPECT_EQ(of_shape("%y"), "nothing");
  EXPECT_EQ(of_shape("concatenate((%y, %s), axis=0)"), "[?, ?, ?, ?, n, 3, (m + 1)]");
  EXPECT_EQ(of_shape("strided_slice(concatenate((%y, %s), axis=0), begin=[4], end=[6], "
                     "strides=[1])"),
            "[n, 3]");
  EXPECT_EQ(of_shape("add(strided_slice(%y, begin=[0], end=[3], strides=[1]), %s)"), "nothing");
  EXPECT_EQ(of_shape("take(%s, take(%y, 0i64, axis=0), axis=0)"), "nothing");
}

TEST(KnownValues, tensors_are_made) {
  EXPECT_EQ(known("def @main() { zeros(shape=[3], dtype=\"int64\") }"), "[0, 0, 0]");
  EXPECT_EQ(known("def @main() { arange(start=2, stop=9, step=3, dtype=\"int32\") }"), "[2, 5, 8]");
  EXPECT_EQ(known("def @main() { full(7i64, shape=[2], dtype=\"int32\") }"), "[7, 7]");
  EXPECT_EQ(known("def @main(%x: Tensor[(2), int64]) { ones_like(%x) }"), "[1, 1]");
  EXPECT_EQ(of_shape("full(take(%s, 0i64, axis=0), shape=[2], dtype=\"int64\")"), "[n, n]");
}

TEST(KnownValues, numbers_are_those_of_their_dtype) {
  EXPECT_EQ(known("def @main() { multiply(65536, 65536) }"), "nothing");
  EXPECT_EQ(known("def @main() { multiply(65536i64, 65536i64) }"), "[4294967296]");
  EXPECT_EQ(known("def @main() { cast(300i64, dtype=\"uint8\") }"), "nothing");
  EXPECT_EQ(known("def @main() { trunc_divide(1i64, 0i64) }"), "nothing");
  EXPECT_EQ(known("def @main() { cast(floor(divide(7f, 2f)), dtype=\"int64\") }"), "[3]");
  EXPECT_EQ(known("def @main() { multiply(9223372036854775807i64, 2i64) }"), "nothing");
}

TEST(KnownValues, data_is_not_looked_at) {
  EXPECT_EQ(known("def @main() { zeros(shape=[5000], dtype=\"int64\") }"), "nothing");
  EXPECT_EQ(known("def @main() { zeros(shape=[65], dtype=\"float32\") }"), "nothing");
  // One element of something large is not computed either.
  EXPECT_EQ(known("def @main() { take(zeros(shape=[5000], dtype=\"int64\"), 0i64, axis=0) }"),
            "nothing");
}

TEST(KnownValues, an_evaluator_does_what_has_no_rule) {
  int calls = 0;
  auto evaluate = [&](const Function& f, const std::vector<Tensor>& args) {
    ++calls;
    EXPECT_EQ(f->params.size(), args.size());
    return std::vector<Tensor>{Tensor::scalar(static_cast<double>(8), DType::Float(32))};
  };
  EXPECT_EQ(known("def @main() { cast(power(2f, 3f), dtype=\"int64\") }", evaluate), "[8]");
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(known("def @main(%x: float32) { power(%x, 3f) }", evaluate), "nothing");
  EXPECT_EQ(calls, 1);
}

TEST(KnownValues, work_is_bounded) {
  // Terms that would double their size in each step, and a chain that is deep.
  std::string text =
      "def @main[n: Dim, m: Dim](%x: Tensor[(n, m), float32]) {\n"
      "  let %v0 = shape_of(%x, dtype=\"int64\");\n";
  for (int i = 1; i <= 300; ++i) {
    std::string last = "%v" + std::to_string(i - 1);
    text += "  let %v" + std::to_string(i) + " = multiply(add(" + last + ", 1i64), reverse(" +
            last + ", axis=0));\n";
  }
  EXPECT_EQ(known(text + "  %v300 }"), "nothing");
  text = "def @main() {\n  let %v0 = zeros(shape=[1], dtype=\"int64\");\n";
  for (int i = 1; i <= 20000; ++i) {
    text += "  let %v" + std::to_string(i) + " = add(%v" + std::to_string(i - 1) + ", 1i64);\n";
  }
  EXPECT_EQ(known(text + "  %v20000 }"), "[20000]");
}

}  // namespace
}  // namespace relay
