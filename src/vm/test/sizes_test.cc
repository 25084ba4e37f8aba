// Tensors with sizes that only a run tells: `?` in types, and operators whose data decides.
#include "eval/evaluator.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using runtime::Value;
using vm_test::Compiled;

Tensor vector(std::vector<int32_t> values) {
  Tensor t = Tensor::empty(DType::Int(32), {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<int32_t>());
  return t;
}

Tensor floats(int64_t rows, int64_t columns) {
  Tensor t = Tensor::empty(DType::Float(32), {rows, columns});
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_double(i, static_cast<double>(i) - 4);
  return t;
}

// What the compiled program gives; the evaluator gives the same.
std::string both(const std::string& text, const std::vector<Value>& args = {}) {
  Compiled program(text);
  std::string result = program.text(args);
  Type type = as<FuncTypeNode>(program.source->find("main")->type)->ret_type;
  EXPECT_EQ(result,
            print_value(Evaluator(program.source).call("main", args), type, program.source));
  return result;
}

std::string failure(const std::string& text, const std::vector<Value>& args) {
  Compiled program(text);
  EXPECT_THROW(Evaluator(program.source).call("main", args), Error);
  try {
    program.run(args);
  } catch (const Error& e) {
    return e.what();
  }
  return "no failure";
}

TEST(Sizes, open_sizes_are_read_off_the_arguments) {
  const char* text = "def @main(%x: Tensor[(?, 3), float32]) { nn.relu(add(%x, %x)) }";
  for (int64_t rows : {0, 1, 2, 7, 33}) both(text, {floats(rows, 3)});
}

TEST(Sizes, reductions_and_products_of_open_sizes) {
  const char* text = R"(
def @main(%x: Tensor[(?, 5), float32], %w: Tensor[(4, 5), float32]) {
  (sum(%x, axis=[0]), nn.dense(%x, %w), nn.softmax(%x))
})";
  for (int64_t rows : {1, 3, 16, 17}) both(text, {floats(rows, 5), floats(4, 5)});
}

TEST(Sizes, views_and_tuples_of_open_sizes) {
  const char* text = R"(
def @main(%x: Tensor[(?, ?), float32]) {
  let %flat = reshape(%x, newshape=[-1]);
  (%flat, concatenate((%flat, nn.relu(%flat)), axis=0), shape_of(%x))
})";
  both(text, {floats(2, 3)});
  both(text, {floats(1, 1)});
  both(text, {floats(0, 4)});
}

TEST(Sizes, that_do_not_fit_are_an_error_with_its_place) {
  std::string message =
      failure("def @main(%x: Tensor[(?,), int32], %y: Tensor[(?,), int32]) {\n  add(%x, %y)\n}",
              {vector({1, 2, 3}), vector({1, 2})});
  EXPECT_NE(message.find("E0607"), std::string::npos) << message;
  EXPECT_NE(message.find("test.relay:3"), std::string::npos) << message;
}

TEST(Sizes, open_sizes_go_through_calls_matches_and_loops) {
  // The vector doubles in each iteration: a loop whose parameter changes its size.
  EXPECT_EQ(both(R"(
def @grow(%n: int32, %x: Tensor[(?,), int32]) -> Tensor[(?,), int32] {
  if (less(%n, 1)) { %x } else { @grow(subtract(%n, 1), concatenate((%x, %x), axis=0)) }
}
def @main(%x: Tensor[(?,), int32]) -> int32 { sum(@grow(5, %x)) }
)",
                 {vector({1, 2})}),
            "96");
}

TEST(Sizes, branches_that_know_more_and_less_of_a_size) {
  const char* text = R"(
def @grow[n: Dim](%k: int32, %x: Tensor[(n, 2), float32]) -> Tensor[(?, 2), float32] {
  if (%k == 0) { %x } else { @grow(%k - 1, concatenate((%x, %x), axis=0)) }
}
def @main(%x: Tensor[(1, 2), float32]) {
  let %a = @grow(2, %x);
  (%a, match? (Cons(%x, Nil)) { Cons(%h, Nil) => (%h, 1), Nil => (%a, 2) })
})";
  EXPECT_EQ(both(text, {floats(1, 2)}),
            "([[-4, -3], [-4, -3], [-4, -3], [-4, -3]], ([[-4, -3]], 1))");
}

TEST(Sizes, arange_of_bounds_that_are_computed) {
  const char* text = "def @main(%a: int32, %b: int32, %s: int32) { dyn.arange(%a, %b, %s) }";
  auto run = [&](int64_t a, int64_t b, int64_t s) {
    return both(text, {Tensor::scalar(a, DType::Int(32)), Tensor::scalar(b, DType::Int(32)),
                       Tensor::scalar(s, DType::Int(32))});
  };
  EXPECT_EQ(run(0, 4, 1), both("def @main() { arange(start=0, stop=4, dtype=\"int32\") }"));
  EXPECT_EQ(run(7, 0, -3),
            both("def @main() { arange(start=7, stop=0, step=-3, dtype=\"int32\") }"));
  run(3, 3, 1);
  run(5, 1, 2);
  EXPECT_NE(failure(text, {Tensor::scalar(0, DType::Int(32)), Tensor::scalar(1, DType::Int(32)),
                           Tensor::scalar(0, DType::Int(32))})
                .find("E0605"),
            std::string::npos);
}

TEST(Sizes, what_is_counted) {
  const char* text = R"(
def @main(%x: Tensor[(?, 3), float32]) {
  let %where = argwhere(greater(%x, 0f));
  (%where, gather_nd(%x, transpose(%where, axes=[1, 0])))
})";
  for (int64_t rows : {0, 1, 2, 9}) both(text, {floats(rows, 3)});
}

TEST(Sizes, shapes_that_are_tensors) {
  Value s23 = vector({2, 3}), s61 = vector({6, 1});
  Tensor x = floats(2, 3);
  const char* reshape =
      "def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(2,), int32]) { dyn.reshape(%x, %s) }";
  both(reshape, {x, s61});
  both(reshape, {x, vector({-1, 2})});
  both(reshape, {x, vector({0, -1})});
  EXPECT_NE(failure(reshape, {x, vector({4, 2})}).find("E0605"), std::string::npos);
  EXPECT_NE(failure(reshape, {x, vector({-1, -1})}).find("E0605"), std::string::npos);
  EXPECT_NE(failure(reshape, {x, vector({-1, 4})}).find("E0605"), std::string::npos);
  both("def @main(%s: Tensor[(2,), int32]) { dyn.full(7, %s) }", {s23});
  both("def @main(%s: Tensor[(2,), int32]) { dyn.full(7, %s) }", {vector({0, 3})});
  both("def @main(%s: Tensor[(2,), int32]) { dyn.zeros(%s, shape=[], dtype=\"float32\") }", {s23});
  both("def @main(%s: Tensor[(2,), int32]) { dyn.ones(%s, shape=[], dtype=\"int32\") }", {s23});
  both("def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(3,), int32]) { dyn.tile(%x, %s) }",
       {x, vector({2, 1, 2})});
  both(
      "def @main(%x: Tensor[(1, 3), float32], %s: Tensor[(2,), int32]) { dyn.broadcast_to(%x, %s) "
      "}",
      {floats(1, 3), vector({4, 3})});
  EXPECT_NE(failure("def @main(%x: Tensor[(1, 3), float32], %s: Tensor[(2,), int32]) { "
                    "dyn.broadcast_to(%x, %s) }",
                    {floats(1, 3), vector({4, 2})})
                .find("E0605"),
            std::string::npos);
}

TEST(Sizes, slices_with_bounds_that_are_computed) {
  const char* text = R"(
def @main(%x: Tensor[(?, 4), float32], %b: Tensor[(2,), int32], %e: Tensor[(2,), int32],
          %s: Tensor[(2,), int32]) { dyn.strided_slice(%x, %b, %e, %s) })";
  auto run = [&](std::vector<int32_t> b, std::vector<int32_t> e, std::vector<int32_t> s) {
    return both(text, {floats(5, 4), vector(b), vector(e), vector(s)});
  };
  run({0, 0}, {5, 4}, {1, 1});
  run({1, -2}, {100, 4}, {2, 1});
  run({4, 3}, {-100, -100}, {-2, -1});
  run({3, 0}, {3, 4}, {1, 3});
  EXPECT_NE(
      failure(text, {floats(5, 4), vector({0, 0}), vector({1, 1}), vector({0, 1})}).find("E0605"),
      std::string::npos);
}

TEST(Sizes, kernels_of_equal_functions_are_one) {
  Compiled program(R"(
def @f(%x: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] { nn.relu(%x) }
def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) {
  (nn.relu(%x), nn.relu(%y), @f(%y))
})");
  EXPECT_EQ(program.bytecode.kernels.size(), 1u);
}

}  // namespace
}  // namespace relay
