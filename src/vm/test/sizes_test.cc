// Tensors with sizes that only a run tells: `?` in types, and operators of data-dependent results.
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

Tensor floats_of(const std::vector<int64_t>& shape) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_double(i, static_cast<double>(i) - 4);
  return t;
}

Tensor floats(int64_t rows, int64_t columns) { return floats_of({rows, columns}); }

// What the compiled program gives; the evaluator gives the same.
std::string both_texts(const std::string& text, const std::vector<Value>& args = {}) {
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
  for (int64_t rows : {0, 1, 2, 7, 33}) both_texts(text, {floats(rows, 3)});
}

TEST(Sizes, reductions_and_products_of_open_sizes) {
  const char* text = R"(
def @main(%x: Tensor[(?, 5), float32], %w: Tensor[(4, 5), float32]) {
  (sum(%x, axis=[0]), nn.dense(%x, %w), nn.softmax(%x))
})";
  for (int64_t rows : {1, 3, 16, 17}) both_texts(text, {floats(rows, 5), floats(4, 5)});
}

// Two dimensions, of which some sizes are likely: whichever version runs, the results are the same.
TEST(Sizes, versions_for_likely_sizes) {
  const char* text = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(n, m), float32], %w: Tensor[(4, m), float32],
                          size_hints=[["n", 0, 40, [1, 17]], ["m", 1, 9, [5]]]) {
  let %y = nn.dense(%x, %w);
  (sum(%x, axis=[0]), max(%y, axis=[1]), add(%x, %x))
})";
  for (int64_t rows : {0, 1, 2, 17, 40}) {
    for (int64_t columns : {1, 5, 9}) both_texts(text, {floats(rows, columns), floats(4, columns)});
  }
}

TEST(Sizes, outside_of_their_range_are_an_error) {
  const char* text = R"(
def @main[n: Dim](%x: Tensor[(n, 3), float32], size_hints=[["n", 1, 8, [4]]]) { nn.relu(%x) })";
  Compiled program(text);
  for (int64_t rows : {1, 4, 8}) program.run({floats(rows, 3)});
  for (int64_t rows : {0, 9, 1000}) {
    try {
      program.run({floats(rows, 3)});
      ADD_FAILURE() << rows << " rows are outside";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("dimension n is not in 1..8"), std::string::npos)
          << e.what();
    }
  }
}

TEST(Sizes, views_and_tuples_of_open_sizes) {
  const char* text = R"(
def @main(%x: Tensor[(?, ?), float32]) {
  let %flat = reshape(%x, newshape=[-1]);
  (%flat, concatenate((%flat, nn.relu(%flat)), axis=0), shape_of(%x))
})";
  both_texts(text, {floats(2, 3)});
  both_texts(text, {floats(1, 1)});
  both_texts(text, {floats(0, 4)});
}

TEST(Sizes, that_do_not_fit_are_an_error_with_its_place) {
  std::string message =
      failure("def @main(%x: Tensor[(?,), int32], %y: Tensor[(?,), int32]) {\n  add(%x, %y)\n}",
              {vector({1, 2, 3}), vector({1, 2})});
  EXPECT_NE(message.find("E0607"), std::string::npos) << message;
  EXPECT_NE(message.find("test.relay:3"), std::string::npos) << message;
}

TEST(Sizes, that_turn_out_to_be_one_are_broadcast) {
  const char* named = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(m, 3), float32]) {
  let %s = nn.relu(%x) + %y;
  (%s, where(greater(%s, %x), %y, negative(%x)), broadcast_to_like(%x, %s), sum(%s, axis=[0]), %s * %x)
})";
  const char* open =
      "def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) { nn.relu(%x + %y) * %y "
      "}";
  const std::vector<std::pair<int64_t, int64_t>> fit{{1, 1},  {1, 4}, {4, 1}, {4, 4}, {1, 33},
                                                     {33, 1}, {0, 1}, {1, 0}, {0, 0}};
  for (const char* text : {named, open}) {
    for (auto [n, m] : fit) both_texts(text, {floats(n, 3), floats(m, 3)});
    EXPECT_NE(failure(text, {floats(2, 3), floats(3, 3)}).find("or one of them be 1"),
              std::string::npos);
  }
  // The last axis, which is that of the vectors; and a size that is known.
  const char* last = R"(
def @main[n: Dim](%x: Tensor[(2, n), float32], %y: Tensor[(40,), float32]) {
  (%x + %y, broadcast_to(%x, shape=[3, 2, 40]), add(%y, nn.softmax(%x)))
})";
  for (int64_t n : {1, 40}) both_texts(last, {floats(2, n), floats_of({40})});
  EXPECT_NE(failure(last, {floats(2, 7), floats_of({40})}).find("n must equal 40"),
            std::string::npos);
}

TEST(Sizes, of_batches_indices_and_sums_are_broadcast) {
  const char* products = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(n, 5, 6), float32], %y: Tensor[(m, 7, 6), float32]) {
  (nn.batch_matmul(%x, %y, transpose_b=True), einsum((%x, %y), equation="bij,bkj->bik"),
   einsum((%x, %y), equation="bij,bkj->ik"))
})";
  for (int64_t n : {1, 3}) both_texts(products, {floats_of({n, 5, 6}), floats_of({n, 7, 6})});
  const char* batches = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(n, 5, 6), float32], %y: Tensor[(m, 7, 6), float32]) {
  (nn.batch_matmul(%x, %y, transpose_b=True), einsum((%x, %y), equation="bij,bkj->bik"))
})";
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 3}, {3, 1}, {3, 3}, {1, 1}}) {
    both_texts(batches, {floats_of({n, 5, 6}), floats_of({m, 7, 6})});
  }
  const char* undone = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(n, 4), float32], %y: Tensor[(m, 4), float32]) {
  (collapse_sum_like(%x + %y, %x), collapse_sum_like(%x + %y, %y))
})";
  for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 3}, {3, 1}, {3, 3}, {1, 1}}) {
    both_texts(undone, {floats_of({n, 4}), floats_of({m, 4})});
  }
  const char* indices = R"(
def @main[n: Dim, m: Dim](%x: Tensor[(5, 4), float32], %i: Tensor[(n,), int32], %j: Tensor[(m,), int32]) {
  adv_index((%x, %i, %j))
})";
  both_texts(indices, {floats(5, 4), vector({2}), vector({0, 3, 1})});
  both_texts(indices, {floats(5, 4), vector({4, 1, 0}), vector({3})});
}

TEST(Sizes, of_the_texts_of_nested_functions_types_are_bounded) {
  constexpr int kDepth = 300;
  std::string text = "def @main(%x: float32) {\n";
  for (int i = 0; i < kDepth; ++i) text += "fn (%a" + std::to_string(i) + ": float32) { ";
  text += "%x" + std::string(kDepth, '}') + "\n}";
  Compiled program(text);
  EXPECT_GE(program.bytecode.program.functions.size(), size_t{kDepth});
  for (const runtime::Function& f : program.bytecode.program.functions) {
    for (const runtime::Slot& s : f.results) EXPECT_LE(s.type_text.size(), 2100u) << f.name;
    for (const runtime::Slot& s : f.params) EXPECT_LE(s.type_text.size(), 2100u) << f.name;
  }
}

TEST(Sizes, of_pools_whose_only_window_hangs_over) {
  const char* text = R"(
def @main[n: Dim](%x: Tensor[(1, 1, n), float32]) {
  (nn.max_pool1d(%x, pool_size=[3], strides=[2], ceil_mode=True),
   nn.avg_pool1d(%x, pool_size=[3], strides=[2], ceil_mode=True))
})";
  EXPECT_EQ(both_texts(text, {floats_of({1, 1, 2})}), "([[[-3]]], [[[-3.5]]])");
  both_texts(text, {floats_of({1, 1, 3})});
  both_texts(text, {floats_of({1, 1, 4})});
  EXPECT_NE(failure(text, {floats_of({1, 1, 1})}).find("n must be at least 2"), std::string::npos);
}

TEST(Sizes, open_sizes_go_through_calls_matches_and_loops) {
  // The vector doubles in each iteration: a loop whose parameter changes its size.
  EXPECT_EQ(both_texts(R"(
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
  EXPECT_EQ(both_texts(text, {floats(1, 2)}),
            "([[-4, -3], [-4, -3], [-4, -3], [-4, -3]], ([[-4, -3]], 1))");
}

TEST(Sizes, arange_of_bounds_that_are_computed) {
  const char* text = "def @main(%a: int32, %b: int32, %s: int32) { dyn.arange(%a, %b, %s) }";
  auto run = [&](int64_t a, int64_t b, int64_t s) {
    return both_texts(text, {Tensor::scalar(a, DType::Int(32)), Tensor::scalar(b, DType::Int(32)),
                             Tensor::scalar(s, DType::Int(32))});
  };
  EXPECT_EQ(run(0, 4, 1), both_texts("def @main() { arange(start=0, stop=4, dtype=\"int32\") }"));
  EXPECT_EQ(run(7, 0, -3),
            both_texts("def @main() { arange(start=7, stop=0, step=-3, dtype=\"int32\") }"));
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
  for (int64_t rows : {0, 1, 2, 9}) both_texts(text, {floats(rows, 3)});
}

TEST(Sizes, shapes_that_are_tensors) {
  Value s23 = vector({2, 3}), s61 = vector({6, 1});
  Tensor x = floats(2, 3);
  const char* reshape =
      "def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(2,), int32]) { dyn.reshape(%x, %s) }";
  both_texts(reshape, {x, s61});
  both_texts(reshape, {x, vector({-1, 2})});
  both_texts(reshape, {x, vector({0, -1})});
  EXPECT_NE(failure(reshape, {x, vector({4, 2})}).find("E0605"), std::string::npos);
  EXPECT_NE(failure(reshape, {x, vector({-1, -1})}).find("E0605"), std::string::npos);
  EXPECT_NE(failure(reshape, {x, vector({-1, 4})}).find("E0605"), std::string::npos);
  both_texts("def @main(%s: Tensor[(2,), int32]) { dyn.full(7, %s) }", {s23});
  both_texts("def @main(%s: Tensor[(2,), int32]) { dyn.full(7, %s) }", {vector({0, 3})});
  both_texts("def @main(%s: Tensor[(2,), int32]) { dyn.zeros(%s, shape=[], dtype=\"float32\") }",
             {s23});
  both_texts("def @main(%s: Tensor[(2,), int32]) { dyn.ones(%s, shape=[], dtype=\"int32\") }",
             {s23});
  both_texts("def @main(%x: Tensor[(2, 3), float32], %s: Tensor[(3,), int32]) { dyn.tile(%x, %s) }",
             {x, vector({2, 1, 2})});
  both_texts(
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
    return both_texts(text, {floats(5, 4), vector(b), vector(e), vector(s)});
  };
  run({0, 0}, {5, 4}, {1, 1});
  run({1, -2}, {100, 4}, {2, 1});
  run({4, 3}, {-100, -100}, {-2, -1});
  run({3, 0}, {3, 4}, {1, 3});
  EXPECT_NE(
      failure(text, {floats(5, 4), vector({0, 0}), vector({1, 1}), vector({0, 1})}).find("E0605"),
      std::string::npos);
}

// ---- Named sizes that no tensor among the parameters has

TEST(Sizes, are_read_off_the_fields_of_tuples) {
  const char* text = R"(
def @f[n: Dim, m: Dim](%p: (Tensor[(n, 4), float32], (Tensor[(n,), float32], Tensor[(m,), float32])))
    -> (Tensor[(n, 4), float32], Tensor[(n,), float32], Tensor[(m,), float32]) {
  let %sum = sum(%p.0, axis=[1]) + %p.1.0;
  (%p.0 * 2f, %sum, %p.1.1 + 1f)
}
def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(3,), float32], %z: Tensor[(2,), float32]) {
  (@f((%x, (%y, %z))), @f((%x, (%y, %y))))
})";
  both_texts(text, {floats(3, 4), floats_of({3}), floats_of({2})});
}

TEST(Sizes, of_a_tuple_that_is_an_input) {
  const char* text = R"(
def @main[n: Dim](%p: (Tensor[(n + 1,), float32], Tensor[(n,), float32])) {
  (%p.0 * 2f, nn.relu(%p.1))
})";
  both_texts(text, {Value::tuple({floats_of({4}), floats_of({3})})});
}

TEST(Sizes, must_fail_when_inputs_disagree) {
  const char* text = R"(
def @main[n: Dim](%p: (Tensor[(n,), float32], (Tensor[(n,), float32], int32)), %x: Tensor[(n + 1,), float32]) {
  (%p.0 + %p.1.0, nn.relu(%x))
})";
  Compiled program(text);
  Value one = Tensor::scalar(1, DType::Int(32));
  auto message = [&](const Value& tuple, int64_t x) -> std::string {
    try {
      program.run({tuple, floats_of({x})});
    } catch (const Error& e) {
      return e.what();
    }
    return "no failure";
  };
  auto with = [&](const Value& a, const Value& b) {
    return Value::tuple({a, Value::tuple({b, one})});
  };
  EXPECT_EQ(message(with(floats_of({3}), floats_of({3})), 4), "no failure");
  EXPECT_NE(message(with(floats_of({3}), floats_of({2})), 4).find("'p.1.0' disagrees about"),
            std::string::npos);
  EXPECT_NE(message(with(floats_of({3}), floats(3, 1)), 4).find("E0603"), std::string::npos);
  EXPECT_NE(message(with(floats_of({3}), vector({1, 2, 3})), 4).find("E0603"), std::string::npos);
  EXPECT_NE(message(Value::tuple({floats_of({3})}), 4).find("E0603"), std::string::npos);
  EXPECT_NE(message(Value::tuple({one, one, one}), 4).find("E0603"), std::string::npos);
  std::string text_of = message(with(floats_of({3}), floats_of({3})), 3);
  EXPECT_NE(text_of.find("E0607"), std::string::npos) << text_of;
  EXPECT_NE(text_of.find("a size of 'x' is not (n + 1)"), std::string::npos) << text_of;
}

TEST(Sizes, are_read_off_what_closures_references_and_matches_give) {
  const char* text = R"(
type Vec[n: Dim] { Vec(Tensor[(n,), float32]), Pair((Tensor[(n,), float32], int32)), }
def @twice[n: Dim](%f: fn () -> Tensor[(n,), float32]) -> Tensor[(n,), float32] { %f() + %f() }
def @both_texts[n: Dim](%f: fn (Tensor[(n,), float32]) -> Tensor[(n,), float32], %r: ref(Tensor[(n,), float32])) {
  %f(ref_read(%r) * 2f) + ref_read(%r)
}
def @values[n: Dim](%v: Vec[n], %c: bool) -> Tensor[(n,), float32] {
  match (%v) {
    Vec(%x) => if (%c) { %x + %x } else { %x * 3f },
    Pair(%p) => nn.relu(%p.0),
  }
}
def @main(%x: Tensor[(3,), float32], %c: bool) {
  (@twice(fn () { %x - 1f }), @both_texts(fn (%y: Tensor[(3,), float32]) { nn.relu(%y) }, ref(%x)),
   @values(Vec(%x), %c), @values(Pair((%x, 1)), %c))
})";
  for (int64_t c : {0, 1}) both_texts(text, {floats_of({3}), Tensor::scalar(c, DType::Bool())});
}

TEST(Sizes, of_a_loop_over_a_tuple_change_from_step_to_step) {
  EXPECT_EQ(both_texts(R"(
def @grow[n: Dim](%k: int32, %p: (Tensor[(n,), int32], int32)) -> Tensor[(?,), int32] {
  if (%k < 1) { %p.0 } else { @grow(%k - 1, (concatenate((%p.0, %p.0), axis=0) + 1, 0)) }
}
def @main(%x: Tensor[(2,), int32]) -> int32 { sum(@grow(3, (%x, 0))) }
)",
                       {vector({1, 2})}),
            "72");
}

TEST(Sizes, must_fail_E0401_size_of_nothing) {
  // Twice a size is a size, but the size itself is nowhere.
  const char* text = R"(
def @f[n: Dim](%x: Tensor[(n * 2,), float32]) { nn.relu(%x) }
def @main(%x: Tensor[(4,), float32]) { @f(%x) }
)";
  try {
    Compiled program(text);
    FAIL() << "it compiles";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("error[E0401]: the size n cannot be read off any value"),
              std::string::npos)
        << e.what();
    EXPECT_NE(std::string(e.what()).find("Tensor[(n,), float32]"), std::string::npos);
  }
}

TEST(Sizes, kernels_of_equal_functions_are_one) {
  Compiled program(R"(
def @f(%x: Tensor[(?, 3), float32]) -> Tensor[(?, 3), float32] { nn.relu(%x) }
def @main(%x: Tensor[(?, 3), float32], %y: Tensor[(?, 3), float32]) {
  (nn.relu(%x), nn.relu(%y), @f(%y))
})");
  EXPECT_EQ(program.bytecode.kernels.size(), 1u);
}

TEST(Sizes, tensors_in_data_from_outside_have_the_sizes_of_their_types) {
  const std::string text =
      "type Pair[A] { Pair(A, A) }\n"
      "def @main[n: Dim](%p: Pair[Tensor[(n,), float32]]) {\n"
      "  match (%p) { Pair(%a, %b) => %a + %b } }";
  auto given = [](int64_t a, int64_t b) {
    return std::vector<Value>{Value::adt(0, {floats_of({a}), floats_of({b})})};
  };
  EXPECT_EQ(both_texts(text, given(3, 3)), "[-8, -6, -4]");
  for (auto [a, b] : {std::pair{1000, 3}, std::pair{3, 1000}}) {
    EXPECT_NE(failure(text, given(a, b)).find("E0607"), std::string::npos) << a << " " << b;
  }
  const std::string through_reference =
      "def @main[n: Dim](%x: Tensor[(n,), float32], %r: ref(Tensor[(n,), float32])) { %x + "
      "ref_read(%r) }";
  EXPECT_EQ(both_texts(through_reference, {floats_of({2}), Value::ref(floats_of({2}))}),
            "[-8, -6]");
  EXPECT_NE(
      failure(through_reference, {floats_of({1000}), Value::ref(floats_of({2}))}).find("E0607"),
      std::string::npos);
}

}  // namespace
}  // namespace relay
