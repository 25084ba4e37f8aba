#include "eval/evaluator.h"

#include <gtest/gtest.h>

#include <regex>

#include "base/budget.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "ops/test/parse.h"
#include "runtime/core/kernel_abi.h"
#include "tir/compute.h"

namespace relay {
namespace {

using runtime::ObjectKind;
using runtime::Value;
using test::parse;

Value scalar(int64_t n) { return Value(Tensor::scalar(n, DType::Int(32))); }

int64_t number(const Value& v) { return v.tensor().get_as_int(0); }

// The result of @main, an int32, on int32 arguments.
int64_t run(const std::string& text, const std::vector<int64_t>& args = {},
            EvalOptions options = {}) {
  std::vector<Value> values;
  for (int64_t a : args) values.push_back(scalar(a));
  return number(Evaluator(parse(text), std::move(options)).call("main", std::move(values)));
}

// What a run that fails says.
std::string failure(const std::string& text, const std::vector<int64_t>& args = {},
                    EvalOptions options = {}) {
  try {
    run(text, args, std::move(options));
  } catch (const Error& e) {
    return e.what();
  }
  return "no failure";
}

void expect_in(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

constexpr const char* kList = "type List[A] { Cons(A, List[A]), Nil, }\n";

// The list n, n - 1, ..., 1.
constexpr const char* kUpTo = R"(
def @up_to(%n: int32, %acc: List[int32], %i: int32) -> List[int32] {
  if (less(%n, %i)) { %acc } else { @up_to(%n, Cons(%i, %acc), add(%i, 1)) }
}
)";

TEST(Evaluator, computes_tensors) {
  Module mod =
      parse("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3,), float32]) { add(%x, %y) }");
  Tensor x = Tensor::empty(DType::Float(32), {2, 3});
  Tensor y = Tensor::empty(DType::Float(32), {3});
  for (int i = 0; i < 6; ++i) x.data<float>()[i] = static_cast<float>(i);
  for (int i = 0; i < 3; ++i) y.data<float>()[i] = static_cast<float>(10 * i);
  Tensor z = Evaluator(mod).call("main", {x, y}).tensor();
  ASSERT_EQ(z.num_elements(), 6);
  EXPECT_EQ(z.data<float>()[5], 25.0f);
  EXPECT_EQ(z.data<float>()[0], 0.0f);
}

TEST(Evaluator, tuples_projections_and_tuple_operands) {
  EXPECT_EQ(run("def @main(%x: int32) { let %t = (%x, (add(%x, 1), 7)); add(%t.0, %t.1.0) }", {3}),
            7);
  Module mod = parse(
      "def @main(%x: Tensor[(2,), int32]) { %0 = concatenate((%x, %x), axis=0); "
      "split(%0, indices_or_sections=2, axis=0) }");
  Tensor x = Tensor::zeros(DType::Int(32), {2});
  Value out = Evaluator(mod).call("main", {x});
  ASSERT_TRUE(out.is_tuple());
  EXPECT_EQ(out.num_fields(), 2u);
  EXPECT_EQ(out.field(1).tensor().num_elements(), 2);
}

TEST(Evaluator, branches_run_one_side_only) {
  // The other side would divide by zero.
  const char* text =
      "def @main(%x: int32) { if (equal(%x, 0)) { 5 } else { floor_divide(10, %x) } }";
  EXPECT_EQ(run(text, {0}), 5);
  EXPECT_EQ(run(text, {4}), 2);
}

TEST(Evaluator, closures_keep_what_they_capture) {
  EXPECT_EQ(run(R"(
def @adder(%n: int32) -> fn (int32) -> int32 { fn (%x: int32) -> int32 { add(%x, %n) } }
def @main(%a: int32) {
  let %f = @adder(%a);
  let %g = @adder(100);
  add(%f(1), %g(2))
})",
                {10}),
            113);
}

TEST(Evaluator, closures_capture_through_functions_that_do_not_need_it) {
  EXPECT_EQ(run(R"(
def @main(%a: int32) {
  let %b = add(%a, 1);
  let %f = fn (%x: int32) { fn (%y: int32) { fn (%z: int32) { add(add(%b, %x), %z) } } };
  %f(10)(20)(30)
})",
                {1}),
            42);
}

TEST(Evaluator, a_counter_in_a_closure) {
  EXPECT_EQ(run(R"(
def @counter() -> fn () -> int32 {
  let %r = ref(0);
  fn () -> int32 { ref_write(%r, add(ref_read(%r), 1)); ref_read(%r) }
}
def @main() {
  let %c = @counter();
  let %d = @counter();
  let %p = %c();
  let %q = %c();
  let %s = %d();
  let %t = %c();
  add(multiply(%t, 10), %s)
})"),
            31);
}

TEST(Evaluator, a_function_calls_itself_by_its_lets_name) {
  EXPECT_EQ(run(R"(
def @main(%n: int32) {
  let %fact = fn (%k: int32) -> int32 {
    if (equal(%k, 0)) { 1 } else { multiply(%k, %fact(subtract(%k, 1))) }
  };
  %fact(%n)
})",
                {6}),
            720);
}

TEST(Evaluator, an_inner_function_calls_the_outer_one) {
  EXPECT_EQ(run(R"(
def @main(%n: int32) {
  let %sum = fn (%k: int32) -> int32 {
    let %next = fn () -> int32 { %sum(subtract(%k, 1)) };
    if (equal(%k, 0)) { 0 } else { add(%k, %next()) }
  };
  %sum(%n)
})",
                {10}),
            55);
}

TEST(Evaluator, mutual_recursion) {
  const char* text = R"(
def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
def @main(%n: int32) { if (@even(%n)) { 1 } else { 0 } }
)";
  EXPECT_EQ(run(text, {10}), 1);
  EXPECT_EQ(run(text, {7}), 0);
}

TEST(Evaluator, maps_and_folds_lists) {
  EXPECT_EQ(run(std::string(kList) + kUpTo + R"(
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
}
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %l: List[B]) -> A {
  match (%l) { Cons(%h, %t) => { @foldl(%f, %f(%acc, %h), %t) }, Nil => { %acc } }
}
def @main(%n: int32) {
  let %l = @map(fn (%x: int32) -> int32 { multiply(%x, %x) }, @up_to(%n, Nil, 1));
  @foldl(fn (%a: int32, %b: int32) -> int32 { add(%a, %b) }, 0, %l)
})",
                {10}),
            385);
}

TEST(Evaluator, operators_and_constructors_are_values) {
  EXPECT_EQ(run(std::string(kList) + R"(
def @twice(%f: fn (int32, int32) -> int32, %x: int32) -> int32 { %f(%f(%x, %x), %x) }
def @main(%x: int32) {
  let %cons = fn (%h: int32, %t: List[int32]) -> List[int32] { Cons(%h, %t) };
  let %l = %cons(@twice(fn (%a: int32, %b: int32) { add(%a, %b) }, %x), Nil);
  match (%l) { Cons(%h, _) => { %h }, Nil => { 0 } }
})",
                {5}),
            15);
  // Text has no operator as a value; a program may have one.
  register_ops();
  Var f = var("f");
  Expr e = let(f, OpRegistry::global().get("add"), make<CallNode>([&](CallNode& c) {
                 c.op = f;
                 c.args = {constant(2.0, DType::Int(32)), constant(3.0, DType::Int(32))};
               }));
  EXPECT_EQ(number(Evaluator(nullptr).evaluate(e)), 5);
}

TEST(Evaluator, patterns_of_every_kind) {
  std::string text = std::string(kList) + R"(
def @main(%a: int32, %b: int32) {
  let %l = if (equal(%a, 0)) { Nil } else { Cons((%a, %b), Cons((%b, %a), Nil)) };
  match (%l) {
    Cons((%x, _), Cons((_, %y), Nil)) => { add(multiply(%x, 10), %y) },
    Cons(%p, _) => { %p.0 },
    %other => { match (%other) { Nil => { subtract(0, 1) }, _ => { 99 } } },
  }
})";
  EXPECT_EQ(run(text, {3, 4}), 33);
  EXPECT_EQ(run(text, {0, 4}), -1);
}

// ---- Order and sharing

// Each use of `tick` adds a digit to what the reference holds.
constexpr const char* kTick = R"(
def @tick(%r: ref(int32), %d: int32) -> int32 {
  ref_write(%r, add(multiply(ref_read(%r), 10), %d));
  %d
}
)";

TEST(Evaluator, effects_come_from_left_to_right) {
  EXPECT_EQ(run(std::string(kTick) + R"(
def @main() {
  let %r = ref(0);
  let %t = (@tick(%r, 1), add(@tick(%r, 2), @tick(%r, 3)), if (True) { @tick(%r, 4) } else { 0 });
  let %u = @tick(%r, 5);
  ref_read(%r)
})"),
            12345);
}

TEST(Evaluator, a_shared_expression_is_computed_once) {
  EXPECT_EQ(run(std::string(kTick) + R"(
def @main() {
  let %r = ref(0);
  %0 = @tick(%r, 1);
  let %s = add(%0, %0);
  ref_read(%r)
})"),
            1);
}

TEST(Evaluator, a_shared_expression_is_computed_in_the_scope_common_to_its_uses) {
  // Both branches use %0: before the branch. Only one uses %1: inside it.
  EXPECT_EQ(run(std::string(kTick) + R"(
def @main(%c: int32) {
  let %r = ref(0);
  %0 = @tick(%r, 1);
  let %t = if (equal(%c, @tick(%r, 2))) { add(%0, 1) } else {
    %1 = @tick(%r, 3);
    add(add(%1, %1), %0)
  };
  ref_read(%r)
})",
                {0}),
            213);
  // A function's body runs with each call, what it shares with its surroundings once.
  EXPECT_EQ(run(std::string(kTick) + R"(
def @main() {
  let %r = ref(0);
  %0 = @tick(%r, 1);
  let %f = fn () -> int32 { add(%0, @tick(%r, 2)) };
  let %a = %f();
  let %b = %f();
  let %c = %0;
  ref_read(%r)
})"),
            122);
}

// ---- Depth

TEST(Evaluator, a_million_tail_calls_in_constant_space) {
  EvalOptions options;
  options.memory_limit = 20000;
  EXPECT_EQ(run(R"(
def @main(%n: int32) { @loop(%n, 0) }
def @loop(%n: int32, %acc: int32) -> int32 {
  if (equal(%n, 0)) { %acc } else {
    let %next = subtract(%n, 1);
    let %result = @loop(%next, add(%acc, 1));
    %result
  }
})",
                {1000000}, options),
            1000000);
}

TEST(Evaluator, recursion_as_deep_as_memory) {
  EXPECT_EQ(run(R"(
def @main(%n: int32) -> int32 {
  if (equal(%n, 0)) { 0 } else { add(1, @main(subtract(%n, 1))) }
})",
                {100000}),
            100000);
}

TEST(Evaluator, recursion_without_end_is_an_error) {
  expect_in(failure("def @main(%n: int32) -> int32 { add(1, @main(%n)) }", {1}),
            "the calls nest too deep");
}

TEST(Evaluator, long_lists_are_made_and_let_go) {
  int64_t before = runtime::thread_object_bytes();
  EXPECT_EQ(run(std::string(kList) + kUpTo + R"(
def @length(%l: List[int32], %n: int32) -> int32 {
  match (%l) { Cons(_, %t) => { @length(%t, add(%n, 1)) }, Nil => { %n } }
}
def @main(%n: int32) {
  let %l = @up_to(%n, Nil, 1);
  let %unused = Cons(0, %l);
  add(@length(%l, 0), @length(%l, 0))
})",
                {200000}),
            400000);
  EXPECT_LE(runtime::thread_object_bytes(), before);
}

TEST(Evaluator, deep_programs) {
  register_ops();
  // 100,000 nested calls, Lets, branches and functions.
  const int kDepth = 100000;
  Expr one = constant(1.0, DType::Int(32));
  Expr sum = one;
  for (int i = 0; i < kDepth; ++i) sum = call("add", {sum, one});
  EXPECT_EQ(number(Evaluator(nullptr).evaluate(sum)), kDepth + 1);

  std::vector<Var> vars;
  for (int i = 0; i < kDepth; ++i) vars.push_back(var("v", scalar_type(DType::Int(32))));
  Expr lets = vars.back();
  for (int i = kDepth; i-- > 1;) lets = let(vars[i], call("add", {vars[i - 1], one}), lets);
  lets = let(vars[0], one, lets);
  EXPECT_EQ(number(Evaluator(nullptr).evaluate(lets)), kDepth);

  Expr yes = constant(1.0, DType::Bool());
  Expr branches = one;
  for (int i = 0; i < kDepth; ++i) branches = if_(yes, branches, one);
  EXPECT_EQ(number(Evaluator(nullptr).evaluate(branches)), 1);

  Expr thunks = one;
  for (int i = 0; i < kDepth; ++i) thunks = function({}, thunks);
  EXPECT_EQ(Evaluator(nullptr).evaluate(thunks).kind(), ObjectKind::closure);
}

// ---- Memory

TEST(Evaluator, operands_are_let_go_after_their_last_use) {
  // Fifty tensors of 40 kB one after the other need room for two, and the kernel's.
  std::string text = "def @main(%x: int32) { let %a0 = full(0, shape=[10000], dtype=\"int32\");\n";
  for (int i = 1; i < 50; ++i) {
    text += "let %a" + std::to_string(i) + " = add(%a" + std::to_string(i - 1) + ", 1);\n";
  }
  text += "sum(%a49) }";
  EvalOptions options;
  options.memory_limit = 100000;
  EXPECT_EQ(run(text, {1}, options), 490000);
  options.memory_limit = 60000;
  expect_in(failure(text, {1}, options), "memory limit of 60000 bytes");
}

TEST(Evaluator, a_branch_lets_go_what_only_the_other_wants) {
  const char* text = R"(
def @main(%c: int32) {
  let %big = full(1, shape=[10000], dtype="int32");
  let %s = if (equal(%c, 0)) {
    sum(full(2, shape=[10000], dtype="int32"))
  } else { sum(%big) };
  add(%s, 0)
})";
  EvalOptions options;
  options.memory_limit = 60000;
  EXPECT_EQ(run(text, {0}, options), 20000);
  EXPECT_EQ(run(text, {1}, options), 10000);
}

// ---- Failures

TEST(Evaluator, a_named_size_of_one_is_broadcast) {
  const std::string text = R"(
def @f[n: Dim](%x: Tensor[(n, 2), int32], %y: Tensor[(5, 2), int32]) { add(%x, %y) }
def @of(%rows: Tensor[(ROWS, 2), int32]) { @f(%rows, ones(shape=[5, 2], dtype="int32")) }
def @main() -> int32 {
  let %z = @of(ones(shape=[ROWS, 2], dtype="int32"));
  sum(%z, axis=[0, 1])
})";
  auto with_rows = [&](const std::string& rows) {
    return std::regex_replace(text, std::regex("ROWS"), rows);
  };
  EXPECT_EQ(run(with_rows("5")), 20);
  EXPECT_EQ(run(with_rows("1")), 20);
  expect_in(failure(with_rows("3")), "error[E0203]: add: the shapes do not broadcast");
}

TEST(Evaluator, a_size_of_one_that_data_decide_is_broadcast) {
  const std::string text = R"(
def @main(%rows: int32) -> int32 {
  let %shape = stack((%rows, 2), axis=0);
  let %x = dyn.ones(%shape, dtype="int32");
  sum(add(add(%x, %x), ones(shape=[5, 2], dtype="int32")), axis=[0, 1])
})";
  EXPECT_EQ(run(text, {5}), 30);
  EXPECT_EQ(run(text, {1}), 30);
  expect_in(failure(text, {3}), "error[E0203]: add: the shapes do not broadcast");
}

TEST(Evaluator, no_clause_fits) {
  std::string text = failure(std::string(kList) + R"(
def @head(%l: List[int32]) -> int32 { match? (%l) { Cons(%h, _) => { %h } } }
def @main() { add(1, @head(Nil)) })");
  expect_in(text, "error[E0607]: no clause of the match fits the value");
  expect_in(text, "found:    Nil");
  expect_in(text, "match? (%l)");
  expect_in(text, "called from here");
}

TEST(Evaluator, out_of_fuel) {
  EvalOptions options;
  options.fuel = 1000;
  expect_in(failure("def @main(%n: int32) -> int32 { @main(add(%n, 1)) }", {0}, options),
            "error[E0606]");
  EXPECT_EQ(run("def @main(%n: int32) { add(%n, 1) }", {0}, options), 1);
}

TEST(Evaluator, can_be_cancelled) {
  int asked = 0;
  BudgetLimits limits;
  limits.kind = BudgetKind::run;
  limits.cancelled = [&] { return ++asked == 3; };
  BudgetScope scope(limits);
  expect_in(failure("def @main(%n: int32) -> int32 { @main(add(%n, 1)) }", {0}), "cancelled");
}

// test.positive(x): x, if it is positive.
void register_positive() {
  if (OpRegistry::global().find("test.positive")) return;
  auto positive = [](const ComputeContext& ctx) {
    return tir::imperative(
        "y", ctx.inputs[0]->dtype, {}, {ctx.inputs[0]},
        [](const std::vector<tir::Buffer>& in, const tir::Buffer& out) {
          tir::PrimExpr x = tir::load(in[0], {});
          return tir::seq({tir::check(tir::gt(x, tir::imm(tir::DType::Int(32), 0)),
                                      RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, "not positive"),
                           tir::store(out, {}, x)});
        });
  };
  OpRegistry::global().add({
      .name = "test.positive",
      .doc = "The argument, which must be positive.",
      .args = {{"x", "An int32."}},
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .relation = [](RelationContext& ctx) -> Type { return ctx.arg(0); },
      .compute = compute_rule(positive),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = Absent::NotDifferentiable,
      .batching = Absent::LaneByLane,
      .examples = {{.args = {"int32"}, .attrs = "", .inputs = {{3}}, .results = {{3}}}},
      .expected = "its sentence",
  });
}

TEST(Evaluator, kernels_that_fail_say_where) {
  register_ops();
  register_positive();
  const char* text = R"(
def @f(%n: int32) -> int32 { add(1, test.positive(%n)) }
def @main(%n: int32) { add(1, @f(%n)) })";
  EXPECT_EQ(run(text, {5}), 7);
  std::string message = failure(text, {0});
  expect_in(message, "error[E0605]: test.positive fails: an index lies outside the tensor");
  expect_in(message, "test.relay:3");
  expect_in(message, "called from here");
}

TEST(Evaluator, arguments_are_checked) {
  Module mod = parse(
      "def @main[n: Dim](%x: Tensor[(n, 2), float32], %y: Tensor[(n,), float32]) { (%x, %y) }");
  auto message = [&](std::vector<Value> args) -> std::string {
    try {
      Evaluator(mod).call("main", std::move(args));
    } catch (const UserError& e) {
      return e.what();
    }
    return "";
  };
  Value x(Tensor::zeros(DType::Float(32), {3, 2}));
  EXPECT_EQ(message({x, Tensor::zeros(DType::Float(32), {3})}), "");
  expect_in(message({x}), "wrong number of arguments");
  expect_in(message({x, Tensor::zeros(DType::Float(32), {4})}), "'y' of @main");
  expect_in(message({x, Tensor::zeros(DType::Int(32), {3})}), "Tensor[(3,), int32]");
  expect_in(message({x, Value::tuple({x})}), "a tuple");
  EXPECT_THROW(Evaluator(mod).call("nothing", {}), UserError);
}

TEST(Evaluator, shapes_that_do_not_fit_are_found_in_the_run) {
  // Unchecked: types would refuse it.
  register_ops();
  Var x = var("x");
  Function f = function({x}, call("add", {x, constant(Tensor::zeros(DType::Float(32), {3}))}));
  Evaluator eval(make_module({global_var("main")}, {f}));
  EXPECT_EQ(eval.call("main", {Tensor::zeros(DType::Float(32), {2, 3})}).tensor().rank(), 2);
  EXPECT_THROW(eval.call("main", {Tensor::zeros(DType::Float(32), {2, 4})}), RuntimeError);
}

TEST(Evaluator, wide_floats_round_at_the_end_of_a_kernel) {
  // 1e8 + 3 is no float32.
  Module mod = parse("def @main(%x: Tensor[(4,), float32]) { sum(%x) }");
  Tensor x = Tensor::empty(DType::Float(32), {4});
  x.data<float>()[0] = 1e8f;
  for (int i = 1; i < 4; ++i) x.data<float>()[i] = i < 3 ? 3.0f : -1e8f;
  EXPECT_EQ(Evaluator(mod).call("main", {x}).tensor().data<float>()[0], 0.0f);
  EvalOptions wide;
  wide.wide_floats = true;
  EXPECT_EQ(Evaluator(mod, wide).call("main", {x}).tensor().data<float>()[0], 6.0f);
}

TEST(Evaluator, a_failed_call_leaves_it_ready_for_the_next) {
  Evaluator eval(parse(std::string(kList) + R"(
def @main(%n: int32) -> int32 {
  if (equal(%n, 0)) { match? (Cons(%n, Nil)) { Nil => { 1 } } } else { add(1, @main(subtract(%n, 1))) }
}
def @ok() { 7 })"));
  int64_t before = runtime::thread_object_bytes();
  EXPECT_THROW(eval.call("main", {scalar(30)}), RuntimeError);
  EXPECT_EQ(number(eval.call("ok", {})), 7);
  EXPECT_LE(runtime::thread_object_bytes(), before + 4096);
}

TEST(Evaluator, closures_that_came_out_go_in_again) {
  Evaluator eval(parse(R"(
def @make(%n: int32) -> fn (int32) -> int32 { let %f = fn (%x: int32) -> int32 { add(%x, %n) }; %f }
def @use(%f: fn (int32) -> int32) -> int32 { %f(1) })"));
  Value f = eval.call("make", {scalar(41)});
  EXPECT_EQ(number(eval.call("use", {f})), 42);
  EXPECT_EQ(number(eval.apply(f, {scalar(2)})), 43);
  EXPECT_EQ(eval.closure_name(f.tag()), "f");
}

}  // namespace
}  // namespace relay
