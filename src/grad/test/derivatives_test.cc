// Gradients of programs: values, mixed orders, and what is refused.
#include <gtest/gtest.h>

#include <cmath>

#include "eval/evaluator.h"
#include "grad/dataflow.h"
#include "grad/derivatives.h"
#include "grad/higher_order.h"
#include "ir/op.h"
#include "node/walk.h"
#include "ops/test/parse.h"
#include "types/infer.h"
#include "types/verify.h"

namespace relay {
namespace {

using runtime::Value;
using test::parse;

Value number(double v) { return Tensor::scalar(v, DType::Float(64)); }

double value_of(const Value& v) { return v.tensor().get_as_double(0); }

Function main_of(const Module& mod) { return mod->find("main"); }

// The derivative as a program with @main, checked.
Module as_program(const Derivative& d) {
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < d.module->functions.size(); ++i) {
    if (d.module->global_vars[i]->name_hint == "main") continue;
    names.push_back(d.module->global_vars[i]);
    functions.push_back(d.module->functions[i]);
  }
  names.push_back(global_var("main", d.function->type));
  functions.push_back(d.function);
  return make_module(names, functions, d.module->type_definitions);
}

Module gradient_of(const Module& mod) {
  // @main is called by the derivative only if it calls itself: then it keeps another name.
  GlobalVar f = global_var("f", main_of(mod)->type);
  Module renamed = with_function(mod, f, main_of(mod));
  Module out = as_program(reverse_mode(renamed, main_of(mod)));
  EXPECT_FALSE(find_ill_formed(out)) << find_ill_formed(out)->render();
  return out;
}

// (value, gradients) of a program.
Value run(const Module& mod, std::vector<Value> args) {
  return Evaluator(mod).call("main", std::move(args));
}

double derivative(const Module& mod, double x) {
  return value_of(run(gradient_of(mod), {number(x)}).field(1).field(0));
}

// The adjoint of one element of each line is computed where it is needed; those of several are added one by one.
TEST(HigherOrder, one_element_of_each_line_is_not_scattered) {
  auto gather = [](const char* indices) {
    return parse("def @main(%x: Tensor[(3, 4), float64], %i: Tensor[" + std::string(indices) +
                 ", int64]) { sum(gather(%x, %i, axis=1)) }");
  };
  auto scatters = [](const Module& mod) {
    bool found = false;
    post_order(main_of(gradient_of(mod)), [&](const Node& n) {
      auto* op = as<OpNode>(&n);
      found = found || (op != nullptr && op->name == "scatter_elements");
    });
    return found;
  };
  EXPECT_TRUE(scatters(gather("(3, 2)")));
  EXPECT_TRUE(scatters(gather("(2, 1)")));
  EXPECT_FALSE(scatters(gather("(3, 1)")));
  Tensor x = Tensor::empty(DType::Float(64), {3, 4}), at = Tensor::empty(DType::Int(64), {3, 1});
  for (int64_t i = 0; i < 12; ++i) x.set_from_double(i, static_cast<double>(i));
  const int64_t places[] = {2, -4, 3};
  for (int64_t i = 0; i < 3; ++i) at.set_from_int(i, places[i]);
  Tensor g = run(gradient_of(gather("(3, 1)")), {x, at}).field(1).field(0).tensor();
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(g.get_as_double(i), i == 2 || i == 4 || i == 11 ? 1 : 0) << i;
  }
}

TEST(HigherOrder, straight_line) {
  Module mod = parse("def @main(%x: float64) { multiply(%x, exp(%x)) }");
  Value out = run(gradient_of(mod), {number(0.5)});
  EXPECT_DOUBLE_EQ(value_of(out.field(0)), 0.5 * std::exp(0.5));
  EXPECT_DOUBLE_EQ(value_of(out.field(1).field(0)), 1.5 * std::exp(0.5));
}

TEST(HigherOrder, branches) {
  Module mod = parse(
      "def @main(%x: float64) {\n"
      "  if (greater(%x, 0f64)) { multiply(%x, %x) } else { negative(%x) } }");
  EXPECT_DOUBLE_EQ(derivative(mod, 3), 6);
  EXPECT_DOUBLE_EQ(derivative(mod, -3), -1);
}

TEST(HigherOrder, recursion) {
  // x^5 by repeated multiplication.
  Module mod = parse(
      "def @power(%x: float64, %n: int32) -> float64 {\n"
      "  if (equal(%n, 0)) { 1f64 } else { multiply(%x, @power(%x, subtract(%n, 1))) } }\n"
      "def @main(%x: float64) { @power(%x, 5) }");
  EXPECT_NEAR(derivative(mod, 1.5), 5 * std::pow(1.5, 4), 1e-12);
}

TEST(HigherOrder, closures_and_references) {
  Module mod = parse(
      "def @main(%x: float64) {\n"
      "  let %r = ref(%x);\n"
      "  let %square = fn (%y: float64) { ref_write(%r, multiply(%y, %y)) };\n"
      "  let %a = %square(ref_read(%r));\n"
      "  let %b = %square(ref_read(%r));\n"
      "  multiply(%x, ref_read(%r)) }");
  EXPECT_NEAR(derivative(mod, 1.1), 5 * std::pow(1.1, 4), 1e-12);
}

TEST(HigherOrder, references_as_parameters) {
  // The reference is overwritten: its gradient is that of what it held first.
  Module mod = parse(
      "def @main(%r: ref(float64), %x: float64) {\n"
      "  let %a = ref_read(%r);\n"
      "  let %_ = ref_write(%r, multiply(%a, %x));\n"
      "  multiply(ref_read(%r), ref_read(%r)) }");
  Value r = Value::ref(number(3));
  Value out = run(gradient_of(mod), {r, number(2)});
  EXPECT_DOUBLE_EQ(value_of(out.field(0)), 36);
  EXPECT_DOUBLE_EQ(value_of(r.field(0)), 6);
  EXPECT_DOUBLE_EQ(value_of(out.field(1).field(0)), 24);
  EXPECT_DOUBLE_EQ(value_of(out.field(1).field(1)), 36);
}

TEST(HigherOrder, a_chain_of_any_length) {
  test::parse("def @main() { 1 }");
  Var x = var("x", scalar_type(DType::Float(64)));
  Expr e = x;
  for (int i = 0; i < 2000; ++i) e = call("negative", {e});
  Module mod = module_from_expr(function({x}, e));
  EXPECT_DOUBLE_EQ(value_of(run(gradient_of(mod), {number(2)}).field(1).field(0)), 1);
}

const char* const kList =
    "type List[A] { Cons(A, List[A]), Nil }\n"
    "def @fold[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B {\n"
    "  match (%l) { Cons(%h, %t) => @fold(%f, %f(%z, %h), %t), Nil => %z } }\n";

TEST(HigherOrder, lists_through_polymorphic_functions) {
  Module mod = parse(std::string(kList) +
                     "def @main(%l: List[float64]) {\n"
                     "  @fold(fn (%p: float64, %x: float64) { multiply(%p, %x) }, 1f64, %l) }");
  Value nil = Value::adt(1, {});
  Value list =
      Value::adt(0, {number(2), Value::adt(0, {number(3), Value::adt(0, {number(5), nil})})});
  Value out = run(gradient_of(mod), {list});
  EXPECT_DOUBLE_EQ(value_of(out.field(0)), 30);
  Value g = out.field(1).field(0);
  for (double want : {15.0, 10.0, 6.0}) {
    EXPECT_DOUBLE_EQ(value_of(g.field(0)), want);
    g = g.field(1);
  }
  EXPECT_EQ(g.num_fields(), 0u);
}

TEST(HigherOrder, trees_that_hold_tensors) {
  Module mod = parse(
      "type Tree { Leaf(float64), Node(Tree, Tree) }\n"
      "def @product(%t: Tree) -> float64 {\n"
      "  match (%t) { Leaf(%x) => %x, Node(%a, %b) => multiply(@product(%a), @product(%b)) } }\n"
      "def @main(%t: Tree, %n: int32) { @product(%t) }");
  auto leaf = [](double v) { return Value::adt(0, {number(v)}); };
  Value tree = Value::adt(1, {leaf(2), Value::adt(1, {leaf(3), leaf(7)})});
  Value out = run(gradient_of(mod), {tree, Value(Tensor::scalar(1, DType::Int(32)))});
  EXPECT_DOUBLE_EQ(value_of(out.field(0)), 42);
  Value g = out.field(1).field(0);
  EXPECT_DOUBLE_EQ(value_of(g.field(0).field(0)), 21);
  EXPECT_DOUBLE_EQ(value_of(g.field(1).field(0).field(0)), 14);
  EXPECT_DOUBLE_EQ(value_of(g.field(1).field(1).field(0)), 6);
  EXPECT_EQ(out.field(1).field(1).num_fields(), 0u);
}

TEST(HigherOrder, nested_to_the_third_order) {
  Module mod = parse("def @main(%x: float64) { multiply(multiply(%x, %x), sin(%x)) }");
  // Each time the gradient of the gradient.
  auto next = [](const Module& m) {
    Module g = gradient_of(m);
    Function f = main_of(g);
    Expr derivative = tuple_get_item(tuple_get_item(f->body, 1), 0);
    return with_function(g, g->find_global_var("main"), function(f->params, derivative));
  };
  Module second = next(next(mod));
  double x = 0.7, s = std::sin(x), c = std::cos(x);
  EXPECT_NEAR(value_of(run(next(mod), {number(x)})), 2 * x * s + x * x * c, 1e-12);
  EXPECT_NEAR(value_of(run(second, {number(x)})), 2 * s + 4 * x * c - x * x * s, 1e-12);
  EXPECT_NEAR(value_of(run(next(second), {number(x)})), 6 * c - 6 * x * s - x * x * c, 1e-12);
}

TEST(HigherOrder, forward_over_reverse) {
  Module mod = parse("def @main(%x: float64) { multiply(%x, sin(%x)) }");
  Module g = gradient_of(mod);
  Function f = main_of(g);
  Function slope = function(f->params, tuple_get_item(tuple_get_item(f->body, 1), 0));
  Module twice = as_program(forward_mode(g, slope));
  Value out = run(twice, {number(0.4), number(2)});
  double x = 0.4;
  EXPECT_NEAR(value_of(out.field(0)), std::sin(x) + x * std::cos(x), 1e-12);
  EXPECT_NEAR(value_of(out.field(1)), 2 * (2 * std::cos(x) - x * std::sin(x)), 1e-12);
}

TEST(HigherOrder, forward_mode_through_recursion) {
  Module mod = parse(
      "def @power(%x: float64, %n: int32) -> float64 {\n"
      "  if (equal(%n, 0)) { 1f64 } else { multiply(%x, @power(%x, subtract(%n, 1))) } }\n"
      "def @f(%x: float64) { @power(%x, 4) }\ndef @main(%x: float64) { @f(%x) }");
  Value out = run(as_program(forward_mode(mod, mod->find("f"))), {number(1.5), number(1)});
  EXPECT_NEAR(value_of(out.field(1)), 4 * std::pow(1.5, 3), 1e-12);
}

Value list_of(const std::vector<double>& elements) {
  Value list = Value::adt(1, {});
  for (size_t i = elements.size(); i-- > 0;) list = Value::adt(0, {number(elements[i]), list});
  return list;
}

const char* const kScaled =
    "type List[A] { Cons(A, List[A]), Nil }\n"
    "def @main(%l: List[float64], %y: float64) -> List[float64] {\n"
    "  match (%l) { Cons(%h, %t) => Cons(multiply(%h, multiply(%y, %y)), @main(%t, %y)), "
    "Nil => Nil } }";

TEST(HigherOrder, tangents_of_lists) {
  Module mod = parse(kScaled);
  Module out = as_program(forward_mode(
      with_function(mod, global_var("f", main_of(mod)->type), main_of(mod)), main_of(mod)));
  EXPECT_FALSE(find_ill_formed(out)) << find_ill_formed(out)->render();
  Value found = run(out, {list_of({2, 3}), number(5), list_of({1, 10}), number(0.5)}).field(1);
  EXPECT_DOUBLE_EQ(value_of(found.field(0)), 25 + 2 * 2 * 5 * 0.5);
  EXPECT_DOUBLE_EQ(value_of(found.field(1).field(0)), 250 + 3 * 2 * 5 * 0.5);
  EXPECT_EQ(found.field(1).field(1).num_fields(), 0u);
  // Of another structure.
  EXPECT_THROW(run(out, {list_of({2, 3}), number(5), list_of({1}), number(0.5)}), RuntimeError);
}

TEST(HigherOrder, weights_of_lists) {
  Module mod = parse(kScaled);
  Module out =
      as_program(reverse_mode(with_function(mod, global_var("f", main_of(mod)->type), main_of(mod)),
                              main_of(mod), Weights::Given));
  Value found = run(out, {list_of({2, 3}), number(5), list_of({1, 10})}).field(1);
  EXPECT_DOUBLE_EQ(value_of(found.field(0).field(0)), 25);
  EXPECT_DOUBLE_EQ(value_of(found.field(0).field(1).field(0)), 250);
  EXPECT_DOUBLE_EQ(value_of(found.field(1)), 2 * 5 * (2 * 1 + 3 * 10));
}

TEST(HigherOrder, forward_over_reverse_of_a_tree_and_a_reference) {
  Module mod = parse(
      "type Tree { Leaf(float64), Node(Tree, Tree) }\n"
      "def @product(%t: Tree) -> float64 {\n"
      "  match (%t) { Leaf(%x) => multiply(%x, %x), Node(%a, %b) => multiply(@product(%a), "
      "@product(%b)) } }\n"
      "def @main(%t: Tree, %r: ref(float64)) {\n"
      "  let %_ = ref_write(%r, multiply(ref_read(%r), @product(%t)));\n"
      "  ref_read(%r) }");
  Derivative second = derivative(mod, main_of(mod), DerivativeKind::hvp);
  auto tree = [](double a, double b) {
    return Value::adt(1, {Value::adt(0, {number(a)}), Value::adt(0, {number(b)})});
  };
  Value r = Value::ref(number(7));
  // r a^2 b^2 along (1, 0.5; 2).
  Value found = run(as_program(second), {tree(2, 3), r, tree(1, 0.5), number(2)});
  EXPECT_DOUBLE_EQ(value_of(found.field(0).field(0).field(0)),
                   2 * 2 * 9 * 2 + 7 * (2 * 9 + 4 * 2 * 3 * 0.5));
  EXPECT_DOUBLE_EQ(value_of(found.field(1)), 2 * 2 * 9 + 4 * 2 * 3 * 0.5);
  EXPECT_DOUBLE_EQ(value_of(r.field(0)), 7 * 36);
}

TEST(HigherOrder, a_tangent_of_zero_stays_zero_where_the_derivative_is_nan) {
  // Of the exponent it is log(x), which a negative base has not.
  Module mod =
      parse("def @main(%x: float64, %n: int32) { power(%x, cast(%n, dtype=\"float64\")) }");
  Value out =
      run(as_program(forward_mode(mod, main_of(mod))),
          {number(-2), Value(Tensor::scalar(3, DType::Int(32))), number(1), Value::tuple({})});
  EXPECT_DOUBLE_EQ(value_of(out.field(1)), 12);
}

TEST(HigherOrder, weights_of_the_result) {
  Module mod =
      parse("def @f(%x: Tensor[(2), float64]) { (multiply(%x, %x), 3) }\ndef @main() { 1 }");
  Module out = as_program(reverse_mode(mod, mod->find("f"), Weights::Given));
  auto pair = [](double a, double b) {
    Tensor t = Tensor::empty(DType::Float(64), {2});
    t.set_from_double(0, a);
    t.set_from_double(1, b);
    return Value(t);
  };
  Value g = run(out, {pair(1, 2),
                      Value::tuple({pair(10, 100), Value(Tensor::scalar(0, DType::Int(32)))})})
                .field(1)
                .field(0);
  EXPECT_DOUBLE_EQ(g.tensor().get_as_double(0), 20);
  EXPECT_DOUBLE_EQ(g.tensor().get_as_double(1), 400);
}

TEST(HigherOrder, sizes_with_names) {
  Module mod = parse(
      "def @main[n: Dim](%x: Tensor[(n, 3), float64], %w: Tensor[(3), float64]) {\n"
      "  sum(multiply(%x, %w)) }");
  Module g = gradient_of(mod);
  Tensor x = Tensor::empty(DType::Float(64), {2, 3}), w = Tensor::empty(DType::Float(64), {3});
  for (int i = 0; i < 6; ++i) x.set_from_double(i, i);
  for (int i = 0; i < 3; ++i) w.set_from_double(i, i + 1);
  Value out = run(g, {x, w});
  EXPECT_DOUBLE_EQ(out.field(1).field(0).tensor().get_as_double(5), 3);
  EXPECT_DOUBLE_EQ(out.field(1).field(1).tensor().get_as_double(1), 5);
}

TEST(HigherOrder, sizes_that_get_a_name_in_a_function) {
  // The size of what is joined is `?`, and has a name in @power, which calls itself.
  Module mod = parse(
      "def @power[n: Dim, m: Dim](%x: Tensor[(n), float64], %y: Tensor[(m), float64], %k: int32)\n"
      "    -> (Tensor[(n), float64], Tensor[(m), float64]) {\n"
      "  if (equal(%k, 0)) { (%x, %y) } else {\n"
      "    @power(multiply(%x, %x), multiply(%y, 3f64), subtract(%k, 1)) } }\n"
      "def @twice(%x: Tensor[(?), float64], %y: Tensor[(2), float64]) {\n"
      "  @power(concatenate((%x, %x), axis=0), %y, 2) }\n"
      "def @main(%x: Tensor[(1), float64], %y: Tensor[(2), float64]) {\n"
      "  let %t = @twice(%x, %y);\n"
      "  multiply(sum(%t.0), sum(%t.1)) }");
  auto vector = [](const std::vector<double>& elements) {
    Tensor t = Tensor::empty(DType::Float(64), {static_cast<int64_t>(elements.size())});
    for (size_t i = 0; i < elements.size(); ++i)
      t.set_from_double(static_cast<int64_t>(i), elements[i]);
    return Value(t);
  };
  // 2 x^4 * 9 (y0 + y1).
  Module g = gradient_of(mod);
  Value out = run(g, {vector({2}), vector({1, 2})});
  EXPECT_DOUBLE_EQ(value_of(out.field(0)), 2 * 16 * 27);
  EXPECT_DOUBLE_EQ(value_of(out.field(1).field(0)), 2 * 4 * 8 * 27);
  EXPECT_DOUBLE_EQ(value_of(out.field(1).field(1)), 2 * 16 * 9);
  Module tangent = as_program(forward_mode(mod, main_of(mod)));
  EXPECT_FALSE(find_ill_formed(tangent)) << find_ill_formed(tangent)->render();
  Value change = run(tangent, {vector({2}), vector({1, 2}), vector({1}), vector({0, 10})}).field(1);
  EXPECT_DOUBLE_EQ(value_of(change), 2 * 4 * 8 * 27 + 2 * 16 * 9 * 10);
}

TEST(FirstOrder, shares_values_and_makes_no_zeros) {
  Module mod = parse(
      "def @main(%x: float64, %n: int32) {\n"
      "  let %e = exp(%x);\n"
      "  let %t = (%e, multiply(%e, %x));\n"
      "  (%t.1, %n) }");
  Function g = first_order_gradient(main_of(mod));
  std::string text = print_expr(g);
  auto count = [&](const std::string& what) {
    size_t n = 0;
    for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  EXPECT_EQ(count(" exp("), 1u) << text;
  EXPECT_EQ(count("zeros"), 0u) << text;
  EXPECT_EQ(count("let "), 0u) << text;
  Value out = run(with_function(mod, mod->find_global_var("main"), g),
                  {number(0.3), Value(Tensor::scalar(4, DType::Int(32)))});
  EXPECT_NEAR(value_of(out.field(1).field(0)), std::exp(0.3) * 1.3, 1e-12);
  EXPECT_EQ(out.field(1).field(1).num_fields(), 0u);
}

TEST(FirstOrder, a_chain_of_any_length) {
  Var x = var("x", scalar_type(DType::Float(64)));
  test::parse("def @main() { 1 }");
  Expr e = x;
  for (int i = 0; i < 20000; ++i) e = call("negative", {e});
  Function g = first_order_gradient(function({x}, e));
  EXPECT_DOUBLE_EQ(value_of(run(module_from_expr(g), {number(2)}).field(1).field(0)), 1);
}

TEST(StopGradient, is_a_constant) {
  Module mod = parse("def @main(%x: float64) { multiply(%x, stop_gradient(multiply(%x, %x))) }");
  EXPECT_DOUBLE_EQ(derivative(mod, 3), 9);
  Value first =
      run(with_function(mod, mod->find_global_var("main"), first_order_gradient(main_of(mod))),
          {number(3)});
  EXPECT_DOUBLE_EQ(value_of(first.field(1).field(0)), 9);
}

TEST(Checkpoint, gives_the_same_gradient) {
  Module mod = parse(
      "def @block(%x: float64, %t: (float64, int32), checkpoint=1) -> float64 {\n"
      "  multiply(sin(%x), exp(multiply(%x, %t.0))) }\n"
      "def @main(%x: float64) { multiply(@block(@block(%x, (%x, 3)), (%x, 4)), %x) }");
  Module plain = parse(
      "def @block(%x: float64, %t: (float64, int32)) -> float64 {\n"
      "  multiply(sin(%x), exp(multiply(%x, %t.0))) }\n"
      "def @main(%x: float64) { multiply(@block(@block(%x, (%x, 3)), (%x, 4)), %x) }");
  EXPECT_NEAR(derivative(mod, 0.6), derivative(plain, 0.6), 1e-12);
}

const char* const kCustom =
    "def @log1pexp(%x: float64, %n: int32, custom_gradient=\"slope\") -> float64 {\n"
    "  log(add(1f64, exp(%x))) }\n";

TEST(CustomGradient, takes_the_place_of_the_functions_own) {
  Module mod = parse(std::string(kCustom) +
                     "def @slope(%x: float64, %n: int32, %g: float64) -> (float64, ()) {\n"
                     "  (multiply(%g, sigmoid(%x)), ()) }\n"
                     "def @main(%x: float64) { multiply(2f64, @log1pexp(%x, 3)) }");
  // Its own would be inf / inf.
  EXPECT_DOUBLE_EQ(derivative(mod, 1000), 2);
  EXPECT_NEAR(derivative(mod, 0), 1, 1e-12);
}

// ---- Where a function has no derivative

TEST(Kinks, have_the_stated_values) {
  EXPECT_DOUBLE_EQ(derivative(parse("def @main(%x: float64) { nn.relu(%x) }"), 0), 0);
  EXPECT_DOUBLE_EQ(derivative(parse("def @main(%x: float64) { abs(%x) }"), 0), 0);
  EXPECT_DOUBLE_EQ(derivative(parse("def @main(%x: float64) { maximum(%x, 1f64) }"), 1), 0.5);
  EXPECT_DOUBLE_EQ(derivative(parse("def @main(%x: float64) { floor(%x) }"), 0.5), 0);
  EXPECT_DOUBLE_EQ(
      derivative(parse("def @main(%x: float64) { clip(%x, a_min=0.0, a_max=1.0) }"), 1), 1);
  EXPECT_DOUBLE_EQ(derivative(parse("def @main(%x: float64) {\n"
                                    "  max(stack((%x, %x, 0f64), axis=0)) }"),
                              2),
                   1);
}

TEST(Kinks, an_untaken_branch_of_where_is_no_nan) {
  for (const char* f : {"sqrt(%x)", "log(%x)", "rsqrt(%x)", "divide(1f64, %x)", "power(%x, 0.5f64)",
                        "acosh(add(%x, 1f64))", "divide(log(%x), sqrt(%x))"}) {
    Module mod = parse("def @main(%x: float64) {\n  where(greater(%x, 0f64), " + std::string(f) +
                       ", 2f64) }");
    Module tangent = as_program(forward_mode(mod, main_of(mod)));
    for (double x : {0.0, -3.0}) {
      EXPECT_DOUBLE_EQ(derivative(mod, x), 0) << f;
      EXPECT_DOUBLE_EQ(value_of(run(tangent, {number(x), number(1)}).field(1)), 0) << f;
    }
    EXPECT_TRUE(std::isfinite(derivative(mod, 0.5))) << f;
  }
}

// Products of what is written to one place, also where one factor is 0.
TEST(Scatter, products_have_gradients) {
  auto written = [](const std::string& data, const std::string& updates, double x) {
    return derivative(
        parse("def @main(%x: float64) {\n  let %i = cast(greater(arange(start=0, stop=3, "
              "step=1, dtype=\"int64\"), 1i64), dtype=\"int64\");\n"
              "  sum(scatter_elements(stack((" +
              data + ", 3f64), axis=0), %i, stack((" + updates +
              ", 7f64), axis=0), reduction=\"mul\")) }"),
        x);
  };
  EXPECT_NEAR(written("2f64", "%x, multiply(%x, 3f64)", 5), 60, 1e-9);  // 6 x^2 + 21
  EXPECT_NEAR(written("%x", "%x, multiply(%x, 3f64)", 5), 225, 1e-9);   // 3 x^3 + 21
  EXPECT_NEAR(written("2f64", "%x, subtract(%x, 1f64)", 1), 2, 1e-9);   // 2 x (x - 1) + 21
  EXPECT_NEAR(written("2f64", "%x, multiply(%x, 3f64)", 0), 0, 1e-9);
}

// ---- What is refused

std::string error_of(const std::string& text, bool first_order = false) {
  Module mod = parse(text);
  try {
    if (first_order) {
      first_order_gradient(main_of(mod));
    } else {
      reverse_mode(mod, main_of(mod));
    }
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

void expect_error(const std::string& error, const char* code, const char* says) {
  EXPECT_NE(error.find(code), std::string::npos) << error;
  EXPECT_NE(error.find(says), std::string::npos) << error;
}

TEST(GradientErrors, integer_function_E1001) {
  expect_error(error_of("def @main(%x: float32) { cast(%x, dtype=\"int32\") }"), "E1001", "floats");
  expect_error(error_of("def @main(%x: int32) { add(%x, 1) }", true), "E1001", "floats");
}

TEST(GradientErrors, operator_without_a_gradient_E1002) {
  const char* text =
      "def @main(%x: Tensor[(1, 1, 4, 4), float32]) {\n"
      "  reinterpret(%x, dtype=\"float32\") }";
  for (bool first_order : {false, true}) {
    std::string error = error_of(text, first_order);
    expect_error(error, "E1002", "reinterpret has no gradient");
    expect_error(error, "test.relay:3", "a trained model's numbers, which are constants");
  }
}

TEST(GradientErrors, attributes_without_a_gradient_E1003) {
  expect_error(error_of("def @main(%x: Tensor[(?, 3), float32], %u: Tensor[(2, 3), float32]) {\n"
                        "  update_slice(%x, %u, 0i64) }"),
               "E1003", "update_slice");
}

TEST(GradientErrors, random_numbers_without_a_key_E1004) {
  test::parse("def @main() { 1 }");
  OpInfo row = *OpRegistry::global().get("exp")->row;
  row.name = "gradtest.noise";
  row.effect = Effect::Random;
  OpRegistry::global().add(row);
  std::string error = error_of("def @main(%x: float32) { gradtest.noise(%x) }");
  OpRegistry::global().remove("gradtest.noise");
  expect_error(error, "E1004", "draws other numbers each time");
}

TEST(GradientErrors, write_to_a_captured_reference_E1005) {
  Module mod = parse(
      "def @main(%x: float32) {\n"
      "  let %r = ref(%x);\n"
      "  let %f = fn (%y: float32) { let %_ = ref_write(%r, %y); %y };\n"
      "  %f(%x) }");
  Function inner = cast<FunctionNode>(as<LetNode>(as<LetNode>(main_of(mod)->body)->body)->value);
  try {
    reverse_mode(mod, inner);
    FAIL();
  } catch (const UserError& e) {
    expect_error(e.what(), "E1005", "'r'");
  }
}

TEST(GradientErrors, custom_gradient_of_the_wrong_type_E1006) {
  std::string error = error_of(std::string(kCustom) +
                               "def @slope(%x: float64, %g: float64) { (%g,) }\n"
                               "def @main(%x: float64) { @log1pexp(%x, 3) }");
  expect_error(error, "E1006", "@log1pexp");
  expect_error(error, "fn (float64, int32, float64) -> (float64, ())", "fn (float64, float64)");
}

TEST(GradientErrors, what_is_no_dataflow_E1007) {
  expect_error(error_of("def @main(%x: float32) { if (greater(%x, 0f)) { %x } else { 0f } }", true),
               "E1007", "plain dataflow");
  expect_error(error_of("def @main(%f: fn (float32) -> float32) { %f(1f) }"), "E1007", "function");
  expect_error(error_of("def @main(%r: (ref(float32), int32)) { ref_read(%r.0) }"), "E1007",
               "holds references");
  Type deep = scalar_type(DType::Float(32));
  for (int i = 0; i < 100000; ++i) deep = tuple_type({deep});
  Var x = var("x", deep), y = var("y", scalar_type(DType::Float(32)));
  try {
    reverse_mode(parse("def @main() { 1 }"), function({x, y}, y));
    FAIL();
  } catch (const UserError& e) {
    expect_error(e.what(), "E1007", "nested too deep");
  }
}

}  // namespace
}  // namespace relay
