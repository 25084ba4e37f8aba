// Gradients as programs: what the optimiser leaves of them, and the pass of the first order.
#include <cmath>

#include "node/walk.h"
#include "passes/gradient/derivative_pass.h"
#include "passes/gradient/first_order_gradient.h"
#include "passes/gradient/lazy_gradient_init.h"
#include "passes/pipelines.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

using pass_test::folding_context;
using pass_test::parse;

Module with_derivative(const std::string& text, DerivativeKind kind = DerivativeKind::gradient,
                       const char* of = "f") {
  Module mod = parse(text);
  PassContext ctx = folding_context();
  ctx.verify = true;
  return add_derivative(mod, mod->find(of), kind, "main", ctx);
}

// How many closures, references, matches and calls of functions or constructors there are.
size_t leftovers(const Module& mod) {
  size_t count = 0;
  Function f = mod->find("main");
  post_order(
      f->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        count += isa<FunctionNode>(&n) || isa<RefCreateNode>(&n) || isa<RefReadNode>(&n) ||
                 isa<RefWriteNode>(&n) || isa<MatchNode>(&n) ||
                 (c != nullptr && !isa<OpNode>(c->op));
      },
      family::program);
  return count;
}

size_t calls_of(const Module& mod, const char* op) {
  size_t count = 0;
  post_order(
      mod->find("main"),
      [&](const Node& n) {
        count += n.info().family == family::expr &&
                 is_call_to(Expr(static_cast<const ExprNode*>(&n)), op);
      },
      family::program);
  return count;
}

const char* const kPerceptron =
    "def @f(%x: Tensor[(4, 3), float32], %w: Tensor[(5, 3), float32], %v: Tensor[(2, 5), float32]) "
    "{\n"
    "  let %h = nn.relu(nn.dense(%x, %w));\n"
    "  let %y = nn.log_softmax(nn.dense(%h, %v));\n"
    "  mean(%y) }";

TEST(GradientPrograms, of_the_first_order_leave_nothing_of_the_higher) {
  for (const char* text :
       {kPerceptron,
        "def @f(%x: Tensor[(1, 2, 6, 6), float32], %w: Tensor[(3, 2, 3, 3), float32]) {\n"
        "  let %c = nn.conv2d(%x, %w, padding=[1, 1]);\n"
        "  sum(nn.max_pool2d(%c, pool_size=[2, 2], strides=[2, 2])) }",
        "def @g(%x: float32) { multiply(%x, %x) }\n"
        "def @f(%x: float32, %y: float32) {\n"
        "  let %twice = fn (%h: fn (float32) -> float32, %z: float32) { %h(%h(%z)) };\n"
        "  let %t = (%x, @g(%y));\n"
        "  %twice(fn (%z: float32) { multiply(%z, %t.1) }, %t.0) }"}) {
    Module mod = with_derivative(text);
    EXPECT_EQ(leftovers(mod), 0u) << print_module(mod);
    EXPECT_EQ(mod->type_definitions.size(), 0u);
    EXPECT_EQ(calls_of(mod, "zeros"), 0u) << print_module(mod);
  }
}

TEST(GradientPrograms, have_the_same_values_in_both_modes) {
  Module higher = with_derivative(kPerceptron);
  Module first = parse(kPerceptron);
  first = add_first_order_gradient(first, first->find("f"), "main");
  std::vector<Tensor> a = pass_test::results(higher), b = pass_test::results(first);
  ASSERT_EQ(a.size(), 4u);
  ASSERT_EQ(b.size(), 4u);
  for (size_t i = 0; i < a.size(); ++i) {
    for (int64_t k = 0; k < a[i].num_elements(); ++k)
      EXPECT_NEAR(a[i].get_as_double(k), b[i].get_as_double(k), 1e-5) << i;
  }
}

TEST(GradientPrograms, forward_work_is_not_done_again) {
  Module mod = with_derivative(kPerceptron);
  // Two products forward; for each two backward, one of them for data.
  EXPECT_EQ(calls_of(mod, "nn.dense") + calls_of(mod, "nn.matmul"), 6u) << print_module(mod);
}

// A step of a recursion puts one closure on the tape, with one cell, whatever it computes.
TEST(GradientPrograms, a_step_of_a_recursion_is_one_entry) {
  Module mod = with_derivative(
      "def @climb(%x: float64, %n: int32) -> float64 {\n"
      "  if (less_equal(%n, 0)) { %x } else {\n"
      "    @climb(add(multiply(%x, 1.01f64), multiply(sin(%x), 0.01f64)), subtract(%n, 1)) } }\n"
      "def @f(%x: float64, %n: int32) { @climb(%x, %n) }");
  size_t functions = 0, closures = 0, cells = 0;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (mod->global_vars[i]->name_hint.find("climb_grad") == std::string::npos) continue;
    ++functions;
    post_order(
        mod->functions[i]->body,
        [&](const Node& n) {
          closures += isa<FunctionNode>(&n);
          cells += isa<RefCreateNode>(&n);
        },
        family::program);
  }
  EXPECT_EQ(functions, 1u);
  EXPECT_EQ(closures, 1u) << print_module(mod);
  EXPECT_EQ(cells, 1u) << print_module(mod);
}

// Two results of one run, of which one passes nothing back: what is computed for it alone, too.
TEST(GradientPrograms, a_result_without_an_adjoint_costs_nothing) {
  Module mod = with_derivative(
      "def @f(%x: Tensor[(3), float32]) {\n"
      "  let %a = exp(%x);\n"
      "  (sum(%a), tanh(%a)) }",
      DerivativeKind::gradient_of_first);
  EXPECT_EQ(leftovers(mod), 0u) << print_module(mod);
  EXPECT_EQ(calls_of(mod, "zeros") + calls_of(mod, "zeros_like"), 0u) << print_module(mod);
  // Of the gradient: one product, that with exp(%x).
  EXPECT_EQ(calls_of(mod, "multiply"), 1u) << print_module(mod);
  EXPECT_EQ(calls_of(mod, "tanh"), 1u);
}

TEST(GradientPrograms, a_checkpoint_is_computed_again) {
  auto program = [](const char* attrs) {
    return std::string("def @block(%x: Tensor[(8), float32]") + attrs +
           ") -> Tensor[(8), float32] { sin(exp(%x)) }\n"
           "def @f(%x: Tensor[(8), float32]) { sum(@block(%x)) }";
  };
  Module kept = with_derivative(program("")), again = with_derivative(program(", checkpoint=1"));
  EXPECT_EQ(calls_of(kept, "exp"), 1u) << print_module(kept);
  // The optimiser does not merge the two.
  PassContext ctx = folding_context();
  Module optimized = pass_test::apply(find_pass("EliminateCommonSubexpr"), again, ctx);
  EXPECT_EQ(calls_of(optimized, "exp"), 2u) << print_module(optimized);
  EXPECT_EQ(leftovers(again), 0u) << print_module(again);
  std::vector<Tensor> a = pass_test::results(kept), b = pass_test::results(optimized);
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(a[1].get_as_double(i), b[1].get_as_double(i), 1e-5);
}

TEST(GradientPrograms, a_marked_expression_is_computed_again) {
  auto program = [](const std::string& value) {
    return "def @f(%x: Tensor[(8), float32], %y: Tensor[(8), float32]) {\n  sum(multiply(" + value +
           ", %y)) }";
  };
  const std::string inside = "sin(exp(add(%x, annotation.checkpoint(tanh(cosh(%y))))))";
  Module kept = with_derivative(program("sin(exp(add(%x, tanh(cosh(%y)))))"));
  Module again = with_derivative(program("annotation.checkpoint(" + inside + ")"));
  EXPECT_EQ(calls_of(kept, "exp"), 1u) << print_module(kept);
  PassContext ctx = folding_context();
  Module optimized = pass_test::apply(find_pass("EliminateCommonSubexpr"), again, ctx);
  EXPECT_EQ(calls_of(optimized, "exp"), 2u) << print_module(optimized);
  EXPECT_EQ(calls_of(optimized, "cosh"), 2u) << print_module(optimized);
  EXPECT_EQ(calls_of(again, "annotation.checkpoint"), 0u) << print_module(again);
  std::vector<Tensor> a = pass_test::results(kept), b = pass_test::results(optimized);
  for (size_t k : {1, 2}) {
    for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(a[k].get_as_double(i), b[k].get_as_double(i), 1e-5);
  }
}

TEST(GradientPrograms, jacobian_hessian_and_products) {
  const char* text =
      "def @f(%x: Tensor[(2), float64]) { multiply(multiply(%x, %x), reverse(%x, axis=0)) }\n"
      "def @s(%x: Tensor[(2), float64]) { sum(multiply(multiply(%x, %x), reverse(%x, axis=0))) }";
  auto values = [](const Module& mod) {
    return pass_test::results(mod, [](int64_t at) { return at == 0 ? 2.0 : 3.0; });
  };
  // f = (a^2 b, b^2 a) at (2, 3).
  auto expect = [](const Tensor& t, std::vector<double> want) {
    ASSERT_EQ(t.num_elements(), static_cast<int64_t>(want.size()));
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(t.get_as_double(static_cast<int64_t>(i)), want[i], 1e-12) << i;
  };
  expect(values(with_derivative(text, DerivativeKind::jacobian))[0], {12, 4, 9, 12});
  expect(values(with_derivative(text, DerivativeKind::hessian, "s"))[0], {6, 10, 10, 4});
  // Along (2, 3), too: H d.
  expect(values(with_derivative(text, DerivativeKind::hvp, "s"))[0], {42, 32});
  std::vector<Tensor> jvp = values(with_derivative(text, DerivativeKind::jvp));
  expect(jvp[1], {36, 54});
  std::vector<Tensor> vjp = values(with_derivative(text, DerivativeKind::vjp));
  expect(vjp[1], {51, 44});
}

TEST(FirstOrderGradient, makes_gradients_of_the_functions_of_a_module) {
  Module mod = parse("def @main(%x: float64) { exp(multiply(%x, %x)) }");
  Module out = pass_test::apply(kFirstOrderGradient, mod);
  std::vector<Tensor> r = pass_test::results(out, [](int64_t) { return 0.5; });
  ASSERT_EQ(r.size(), 2u);
  EXPECT_NEAR(r[1].get_as_double(0), std::exp(0.25), 1e-12);
  EXPECT_EQ(calls_of(out, "exp"), 1u);
}

TEST(FirstOrderGradient, refuses_branches_E1007) {
  Module mod = parse("def @main(%x: float32) { if (greater(%x, 0f)) { %x } else { exp(%x) } }");
  try {
    pass_test::apply(kFirstOrderGradient, mod);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E1007"), std::string::npos) << e.what();
  }
}

TEST(LazyGradientInit, fills_cells_when_something_arrives) {
  Module mod = parse(
      "def @main(%g: Tensor[(3), float32], %c: bool) {\n"
      "  let %d = ref(zeros(shape=[3]));\n"
      "  let %add = fn () { ref_write(%d, add(ref_read(%d), %g)) };\n"
      "  let %_ = if (%c) { let %a = %add(); %add() } else { () };\n"
      "  ref_read(%d) }");
  Module out = pass_test::apply(kLazyGradientInit, mod);
  EXPECT_EQ(out->type_definitions.size(), 1u) << print_module(out);
  for (double c : {0.0, 1.0}) {
    auto run = [&](const Module& m) {
      return pass_test::results(m, [&](int64_t at) { return c * static_cast<double>(at + 1); });
    };
    std::vector<Tensor> a = run(mod), b = run(out);
    for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(a[0].get_as_double(i), b[0].get_as_double(i));
  }
  // The zeros are made in the clause of the last read only.
  EXPECT_EQ(calls_of(out, "zeros"), 1u) << print_module(out);
  size_t writes = 0;
  post_order(
      out->find("main"), [&](const Node& n) { writes += isa<RefWriteNode>(&n); }, family::program);
  EXPECT_EQ(writes, 2u) << print_module(out);
}

TEST(LazyGradientInit, leaves_a_reference_that_goes_elsewhere) {
  for (const char* text :
       {"def @main(%g: float32) { let %d = ref(zeros(shape=[])); (%d, ref_read(%d)).1 }",
        "def @main(%g: float32) { let %d = ref(%g); ref_read(%d) }"}) {
    Module mod = parse(text);
    EXPECT_EQ(pass_test::apply(kLazyGradientInit, mod), mod);
  }
}

TEST(AddDerivative, wants_a_free_name) {
  Module mod = parse("def @main(%x: float32) { %x }");
  PassContext ctx;
  EXPECT_THROW(add_derivative(mod, mod->find("main"), DerivativeKind::gradient, "main", ctx),
               UserError);
}

}  // namespace
}  // namespace relay
