// Programs over trees, computed depth by depth: they give what they give node by node.
#include <gtest/gtest.h>

#include <random>

#include "eval/evaluator.h"
#include "node/walk.h"
#include "passes/gradient/derivative_pass.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"
#include "passes/trees/batch_trees.h"

namespace relay {
namespace {

using pass_test::apply;
using pass_test::flatten;
using pass_test::folding_context;
using pass_test::parse;

constexpr const char* kTypes = R"(
type List[A] { Cons(A, List[A]), Nil }
type Tree { Leaf(Tensor[(3), float32]), Word(int32), Fork(Tree, Tree) }
type Rose { Rose(float32, List[Rose]) }
type Even { Stop(float32), Both(Odd, Odd) }
type Odd { Step(float32, Even) }
)";

// A binary tree with a parameter and a loop over a list of trees.
constexpr const char* kTrees = R"(
def @f(%w: Tensor[(3), float32], %t: Tree) -> (Tensor[(3), float32], float32) {
  match (%t) {
    Leaf(%x) => (tanh(%x), 1f),
    Fork(%l, %r) => {
      let %a = @f(%w, %l);
      let %b = @f(%w, %r);
      (tanh(multiply(%w, add(%a.0, multiply(%b.0, 0.5f)))), add(%a.1, add(%b.1, 1f))) },
    Word(%n) => (multiply(%w, cast(%n, dtype="float32")), 2f) } }
def @main(%w: Tensor[(3), float32], %s: float32) {
  let %loop: fn (List[Tree], float32, int32) -> float32 =
    fn (%l: List[Tree], %sum: float32, %i: int32) -> float32 {
      match (%l) {
        Cons(%t, %rest) => {
          let %h = @f(%w, %t);
          let %m = multiply(mean(multiply(%h.0, %h.0)), %h.1);
          let %more = add(multiply(%sum, %s), multiply(%m, cast(%i, dtype="float32")));
          %loop(%rest, %more, add(%i, 1)) },
        Nil => %sum } };
  %loop(DATA, 0f, 1) }
)";

// Nodes with any number of parts, which a loop goes through.
constexpr const char* kRoses = R"(
def @rose(%w: Tensor[(3), float32], %t: Rose) -> Tensor[(3), float32] {
  match (%t) { Rose(%x, %kids) => {
    let %loop: fn (Tensor[(3), float32], List[Rose]) -> Tensor[(3), float32] =
      fn (%sum: Tensor[(3), float32], %l: List[Rose]) -> Tensor[(3), float32] {
        match (%l) {
          Cons(%k, %rest) => {
            let %h = @rose(%w, %k);
            %loop(add(multiply(%sum, 0.5f), multiply(%h, %x)), %rest) },
          Nil => %sum } };
    tanh(add(%loop(multiply(%w, %x), %kids), %w)) } } }
def @total(%w: Tensor[(3), float32], %l: List[Rose]) -> float32 {
  match (%l) {
    Cons(%t, %rest) => add(mean(@rose(%w, %t)), multiply(2f, @total(%w, %rest))),
    Nil => 0f } }
def @main(%w: Tensor[(3), float32], %s: float32) { multiply(%s, @total(%w, DATA)) }
)";

// Two functions that call each other, whose parameters are in another order.
constexpr const char* kPairs = R"(
def @even(%w: float32, %v: float32, %t: Even) -> float32 {
  match (%t) { Stop(%x) => multiply(%x, %w),
               Both(%a, %b) => multiply(@odd(%a, %v, %w), @odd(%b, %v, %w)) } }
def @odd(%t: Odd, %v: float32, %w: float32) -> float32 {
  match (%t) { Step(%x, %e) => add(%x, multiply(%v, @even(%w, %v, %e))) } }
def @main(%w: Tensor[(3), float32], %s: float32) { @even(sum(%w), %s, DATA) }
)";

std::string number(std::mt19937& random) {
  return std::to_string(std::uniform_int_distribution<int>(-9, 9)(random)) + "e-1f";
}
std::string tree(std::mt19937& random, int depth) {
  int kind = std::uniform_int_distribution<int>(0, 5)(random);
  if (depth == 0 || kind == 0) {
    if (kind % 2 == 0) return "Word(" + std::to_string(kind) + ")";
    return "Leaf(stack((" + number(random) + ", " + number(random) + ", " + number(random) +
           "), axis=0))";
  }
  return "Fork(" + tree(random, depth - 1) + ", " + tree(random, depth - 1) + ")";
}
std::string list(const std::vector<std::string>& items) {
  std::string out = "Nil";
  for (size_t i = items.size(); i-- > 0;) out = "Cons(" + items[i] + ", " + out + ")";
  return out;
}
std::string rose(std::mt19937& random, int depth) {
  int count = depth == 0 ? 0 : std::uniform_int_distribution<int>(0, 4)(random);
  std::vector<std::string> kids;
  for (int i = 0; i < count; ++i) kids.push_back(rose(random, depth - 1));
  return "Rose(" + number(random) + ", " + list(kids) + ")";
}
std::string even(std::mt19937& random, int depth) {
  if (depth == 0) return "Stop(" + number(random) + ")";
  auto odd = [&] { return "Step(" + number(random) + ", " + even(random, depth - 1) + ")"; };
  return "Both(" + odd() + ", " + odd() + ")";
}

Module program(const std::string& functions, const std::string& data) {
  std::string text = kTypes + functions;
  text.replace(text.find("DATA"), 4, data);
  return parse(text);
}

void expect_equal(const Module& a, const Module& b) {
  std::vector<Tensor> x = pass_test::results(a), y = pass_test::results(b);
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    for (int64_t k = 0; k < x[i].num_elements(); ++k) {
      double p = x[i].get_as_double(k), q = y[i].get_as_double(k);
      ASSERT_LE(std::abs(p - q), 2e-5 * (1 + std::abs(q))) << "result " << i << ", element " << k;
    }
  }
}

Module gradient(const Module& mod, bool batched) {
  PassContext ctx = folding_context();
  ctx.verify = true;
  if (batched) ctx.required_pass.insert("BatchTrees");
  Module out = add_derivative(mod, mod->find("main"), DerivativeKind::gradient, "slope", ctx);
  Function f = out->find("slope");
  return with_function(out, global_var("main", f->type), f);
}

// The pass changes the program and not its results, nor those of its gradient.
void check(const std::string& functions, const std::string& data) {
  SCOPED_TRACE(data);
  Module mod = program(functions, data);
  Module out = apply(kBatchTrees, mod, folding_context());
  ASSERT_FALSE(out == mod);
  expect_equal(out, mod);
  expect_equal(gradient(mod, true), gradient(mod, false));
}

TEST(BatchTrees, lists_of_trees) {
  std::mt19937 random(7);
  check(kTrees, "Nil");
  check(kTrees, "Cons(Word(3), Nil)");
  for (int depth : {1, 3, 5}) {
    check(kTrees,
          list({tree(random, depth), tree(random, 0), tree(random, depth), tree(random, 1)}));
  }
}

TEST(BatchTrees, nodes_with_lists_of_parts) {
  std::mt19937 random(8);
  check(kRoses, "Nil");
  check(kRoses, "Cons(Rose(2f, Nil), Nil)");
  check(kRoses, list({rose(random, 3), rose(random, 0), rose(random, 2)}));
}

TEST(BatchTrees, functions_that_call_each_other) {
  std::mt19937 random(9);
  for (int depth : {0, 1, 4}) check(kPairs, even(random, depth));
}

// Sizes that only the caller knows.
TEST(BatchTrees, sizes_with_names) {
  const std::string functions = R"(
def @f[n: Dim](%w: Tensor[(n), float32], %t: Tree) -> Tensor[(n), float32] {
  match (%t) {
    Leaf(%x) => multiply(%w, sum(%x)),
    Fork(%l, %r) => tanh(multiply(@f(%w, %l), @f(%w, %r))),
    Word(%n) => add(%w, cast(%n, dtype="float32")) } }
def @main(%w: Tensor[(3), float32], %s: float32) { multiply(%s, sum(@f(%w, DATA))) }
)";
  std::mt19937 random(10);
  check(functions, tree(random, 4));
}

size_t calls_of(const Module& mod, const std::string& op) {
  size_t count = 0;
  for (const Function& f : mod->functions) {
    post_order(
        f, [&](const Node& n) { count += is_call_to(Expr(&static_cast<const ExprNode&>(n)), op); },
        family::expr);
  }
  return count;
}

// What a loop does with the result of one tree alone is done for all at once.
TEST(BatchTrees, elements_are_computed_together) {
  Module out = apply(kBatchTrees, program(kTrees, "Nil"), folding_context());
  for (size_t i = 0; i < out->functions.size(); ++i) {
    const std::string& name = out->global_vars[i]->name_hint;
    Module one = make_module({out->global_vars[i]}, {out->functions[i]}, out->type_definitions);
    EXPECT_EQ(calls_of(one, "mean"), name.find("element_rows") != std::string::npos) << name;
  }
}

std::string why(const std::string& functions, const std::string& data) {
  PassContext ctx = folding_context();
  ctx.config["relay.BatchTrees.strict"] = AttrValue(true);
  try {
    apply(kBatchTrees, program(functions, data), ctx);
  } catch (const UserError& e) {
    return std::string(e.diagnostics().front().code) + " " + e.diagnostics().front().found_text;
  }
  return "";
}

std::string with_clause(const std::string& fork) {
  return R"(
def @f(%w: float32, %t: Tree) -> float32 {
  match (%t) { Leaf(%x) => sum(%x), Word(%n) => 1f, Fork(%l, %r) => {)" +
         fork + R"(} } }
def @main(%w: Tensor[(3), float32], %s: float32) { @f(%s, DATA) }
)";
}

TEST(BatchTrees, what_stays_as_it_is) {
  auto stays = [](const std::string& fork) {
    Module mod = program(with_clause(fork), "Word(1)");
    EXPECT_TRUE(apply(kBatchTrees, mod, folding_context()) == mod);
    return why(with_clause(fork), "Word(1)");
  };
  EXPECT_EQ(why(with_clause("add(@f(%w, %l), @f(%w, %r))"), "Word(1)"), "");
  EXPECT_EQ(stays("add(@f(%w, %l), @f(add(%w, 1f), %r))"),
            "E1107 what @f is given besides its tree is not the same at all nodes");
  EXPECT_EQ(stays("if (less(@f(%w, %l), 0f)) { @f(%w, %r) } else { 1f }"),
            "E1107 it calls itself under a condition, or within a function");
  EXPECT_EQ(
      stays("add(@f(%w, %l), @f(%w, Fork(%r, %r)))"),
      "E1107 %r is not a tensor of known sizes, and used for more than to call the function on it");
  EXPECT_EQ(stays("let %c = ref(@f(%w, %l)); ref_write(%c, @f(%w, %r)); ref_read(%c)"),
            "E1107 a clause has effects");
  EXPECT_EQ(
      stays("let %c = add(@f(%w, %l), @f(%w, %r)); add(%c, match (%l) { Leaf(%y) => sum(%y), _ => "
            "0f })"),
      "E1107 %l is not a tensor of known sizes, and used for more than to call the function on it");
}

// Neither what the pass makes nor its gradient is asked for more.
TEST(BatchTrees, strict_takes_its_own_result) {
  PassContext ctx = folding_context();
  ctx.config["relay.BatchTrees.strict"] = AttrValue(true);
  for (const char* functions : {kTrees, kRoses}) {
    Module out = apply(kBatchTrees, program(functions, "Nil"), ctx);
    EXPECT_TRUE(apply(kBatchTrees, out, ctx) == out);
    EXPECT_NO_THROW(apply(kBatchTrees, gradient(program(functions, "Nil"), true), ctx));
  }
}

// A list is a tree in which nothing can be computed together.
TEST(BatchTrees, lists_stay) {
  Module mod = parse(std::string(kTypes) + R"(
def @product(%l: List[float32]) -> float32 {
  match (%l) { Cons(%h, %t) => multiply(%h, @product(%t)), Nil => 1f } }
def @main(%x: float32) { @product(Cons(%x, Cons(%x, Nil))) }
)");
  EXPECT_TRUE(apply(kBatchTrees, mod, folding_context()) == mod);
}

}  // namespace
}  // namespace relay
