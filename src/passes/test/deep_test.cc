// Every pass on deeply nested programs. The tests of this room run on a 256 KB stack, which a pass that descends by
// recursion exceeds at 20,000 expressions; RELAY_DEPTH=100000, as in `make test-long`, shows quadratic time as well.
#include <cstdlib>
#include <ctime>

#include "passes/test/pass_test.h"

namespace relay {
namespace {

int depth() {
  const char* given = std::getenv("RELAY_DEPTH");
  return given == nullptr ? 20000 : std::atoi(given);
}
const int kDepth = depth();
#ifdef __SANITIZE_ADDRESS__
constexpr double kSecondsOfExpression = 2e-3;
#else
constexpr double kSecondsOfExpression = 2e-4;
#endif

Type vector_type() { return tensor_type(std::vector<int64_t>{4}, DType::Float(32)); }

Module operators() {
  Var x = var("x", vector_type());
  Expr e = x;
  for (int i = 0; i < kDepth; ++i) e = i % 2 ? call("add", {e, x}) : call("nn.relu", {e});
  return module_from_expr(function({x}, e));
}

Module shared_operators() {
  Var x = var("x", vector_type());
  Expr e = x;
  for (int i = 0; i < kDepth; ++i) e = call("add", {e, e});
  return module_from_expr(function({x}, e));
}

// Each value goes into a sum from the front and into one from the back, as in the gradient of a chain: where its
// users meet is at the end of both.
Module crossing_sums() {
  Var x = var("x", vector_type());
  std::vector<Expr> values;
  for (int i = 0; i < kDepth / 4; ++i) values.push_back(call("nn.relu", {x}));
  Expr front = x, back = x;
  for (size_t i = 0; i < values.size(); ++i) {
    front = call("add", {front, values[i]});
    back = call("multiply", {back, values[values.size() - 1 - i]});
  }
  return module_from_expr(function({x}, call("add", {front, back})));
}

Module simplifiable() {
  Var x = var("x", scalar_type(DType::Int(32)));
  Expr e = x, one = constant(1, DType::Int(32));
  for (int i = 0; i < kDepth; ++i) e = call("add", {e, one});
  return module_from_expr(function({x}, e));
}

Module projections() {
  Var x = var("x", vector_type());
  Expr e = x;
  for (int i = 0; i < kDepth; ++i) e = tuple_get_item(tuple({e, x}), 0);
  return module_from_expr(function({x}, e));
}

Module lets() {
  Var x = var("x", vector_type());
  std::vector<Var> names{x};
  for (int i = 0; i < kDepth; ++i) names.push_back(var("v", vector_type()));
  Expr e = names.back();
  for (size_t i = names.size(); i-- > 1;) e = let(names[i], call("nn.relu", {names[i - 1]}), e);
  return module_from_expr(function({x}, e));
}

Module branches(int depth = kDepth) {
  Var x = var("x", vector_type()), c = var("c", scalar_type(DType::Bool()));
  Expr e = x;
  for (int i = 0; i < depth; ++i) e = if_(c, call("nn.relu", {e}), x);
  return module_from_expr(function({x, c}, e));
}

Module closures() {
  Var x = var("x", vector_type());
  Expr e = x;
  for (int i = 0; i < kDepth; ++i) {
    Var y = var("y", vector_type());
    Function f = function({y}, call("add", {e, y}));
    Var name = var("f", f->type);
    e = let(name, f, call(name, {x}));
  }
  return module_from_expr(function({x}, e));
}

// match (%l) { Cons(_, Cons(_, %t)) => ..., _ => %x }
Module matches() {
  Module types = pass_test::parse("type List[A] { Cons(A, List[A]), Nil, }");
  Constructor cons = types->find_constructor("Cons");
  Var x = var("x", vector_type());
  Var l = var("l", type_call(types->find_type("List")->header, {vector_type()}));
  auto pattern_cons = [&](Pattern tail) {
    return make<PatternConstructorNode>([&](PatternConstructorNode& n) {
      n.constructor = cons;
      n.patterns = {make<PatternWildcardNode>(), tail};
    });
  };
  Expr e = x;
  for (int i = 0; i < kDepth; ++i) {
    Pattern tail =
        make<PatternVarNode>([&](PatternVarNode& n) { n.var = var("t", l->type_annotation); });
    e = match(
        l, {clause(pattern_cons(pattern_cons(tail)), e), clause(make<PatternWildcardNode>(), x)});
  }
  return make_module({global_var("main")}, {function({x, l}, e)}, types->type_definitions);
}

class DeepPrograms : public testing::TestWithParam<const Pass*> {};

TEST_P(DeepPrograms, go_through) {
  PassContext ctx;
  // No constant expression of these programs is worth a tensor.
  ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
    return {Tensor::scalar(1, DType::Int(32))};
  };
  register_ops();
  static const Module programs[] = {operators(),    shared_operators(), crossing_sums(),
                                    simplifiable(), projections(),      lets(),
                                    branches(),     closures(),         matches()};
  for (const Module& mod : programs) {
    Module taken = bring_into(GetParam()->in, mod, ctx);
    const std::clock_t start = std::clock();
    Module out = run_pass(taken, *GetParam(), ctx);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    // The processor's time: other processes do not count. Five times what the slowest pass takes.
    EXPECT_LT(seconds, kDepth * kSecondsOfExpression) << GetParam()->name;
    EXPECT_TRUE(out->find("main"));
  }
}

INSTANTIATE_TEST_SUITE_P(AllPasses, DeepPrograms, testing::ValuesIn(passes_that_keep_meaning()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(DeepPrograms, are_batched) {
  register_ops();
  PassContext ctx;
  // Enough to overrun the stack.
  Module out = run_pass(branches(kDepth / 5), kBatch, ctx);
  EXPECT_TRUE(out->find("main"));
}

}  // namespace
}  // namespace relay
