#include "passes/simplify/fold_constant.h"

#include "node/walk.h"
#include "passes/pipelines.h"
#include "passes/structure/to_graph_normal_form.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

void folds_to(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kFoldConstant, before, after, pass_test::folding_context());
}
void fold_keeps(const std::string& text, PassContext ctx = pass_test::folding_context()) {
  pass_test::expect_unchanged(kFoldConstant, text, ctx);
}

TEST(FoldConstant, header_examples) {
  folds_to("def @main(%x: float32) { multiply(%x, add(2f, 3f)) }",
           "def @main(%x: float32) { multiply(%x, 5f) }");
  folds_to("def @main(%x: float32) { let %c = 1f; add(%x, %c) }",
           "def @main(%x: float32) { add(%x, 1f) }");
  folds_to("def @main(%a: float32, %b: float32) { if (True) { %a } else { %b } }",
           "def @main(%a: float32, %b: float32) { %a }");
  folds_to("def @main(%a: float32, %b: float32) { (%a, %b).0 }",
           "def @main(%a: float32, %b: float32) { %a }");
}

TEST(FoldConstant, known_sizes_of_tensors_that_are_not) {
  folds_to(
      "def @main[n: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(4), int64]) {\n"
      "  (take(shape_of(%x, dtype=\"int64\"), 1i64, axis=0), take(%y, 1i64, axis=0)) }",
      "def @main[n: Dim](%x: Tensor[(n, 3), float32], %y: Tensor[(4), int64]) {\n"
      "  (3i64, take(%y, 1i64, axis=0)) }");
  fold_keeps(
      "def @main[n: Dim](%x: Tensor[(n, 3), float32]) {\n"
      "  take(shape_of(%x, dtype=\"int64\"), 0i64, axis=0) }");
  // What may not end is not left out.
  fold_keeps(
      "def @f(%x: Tensor[(3), float32]) -> Tensor[(3), float32] { @f(%x) }\n"
      "def @main(%x: Tensor[(3), float32]) { shape_of(@f(%x), dtype=\"int64\") }");
}

TEST(FoldConstant, what_fills_lead_to_is_computed_where_the_chain_ends) {
  // A small result, through a fill and a map of it.
  folds_to(
      "def @main(%x: float32) { multiply(%x, sum(add(ones(shape=[20000], dtype=\"float32\"), 1f))) "
      "}",
      "def @main(%x: float32) { multiply(%x, 40000f) }");
  // A scan is kept, large as it is; so are its fill's other uses, as a fill.
  Module scanned =
      pass_test::apply(kFoldConstant,
                       test::parse("def @main(%x: Tensor[(300, 100), float32]) {\n"
                                   "  %0 = ones(shape=[300, 100], dtype=\"float32\");\n"
                                   "  (add(%x, cumsum(%0, axis=1)), add(%x, %0)) }"),
                       pass_test::folding_context());
  const std::string text = print_module(scanned);
  EXPECT_EQ(text.find("cumsum"), text.npos) << text;
  EXPECT_NE(text.find("ones"), text.npos) << text;
  // Maps and moves of a fill cost a kernel nothing.
  fold_keeps(
      "def @main(%x: Tensor[(300, 100), float32]) {\n"
      "  add(%x, transpose(sqrt(ones(shape=[100, 300], dtype=\"float32\")))) }");
}

constexpr const char* kList = "type List[A] { Cons(A, List[A]), Nil, }\n";

TEST(FoldConstant, a_match_of_a_known_constructor) {
  folds_to(std::string(kList) +
               "def @main(%a: float32, %l: List[float32]) {\n"
               "  match (Cons(%a, %l)) { Nil => { 0f }, Cons(%x, %t) => { exp(%x) }, } }",
           std::string(kList) +
               "def @main(%a: float32, %l: List[float32]) {\n"
               "  let %x = %a; let %t = %l; exp(%x) }");
  folds_to(std::string(kList) +
               "def @main(%a: float32, %b: float32) {\n"
               "  match ((Cons(%a, Cons(%b, Nil)), %b)) {\n"
               "    (Cons(_, Nil), %y) => { %y },\n"
               "    (Cons(%x, Cons(_, _)), %y) => { add(%x, %y) },\n"
               "    _ => { 0f }, } }",
           std::string(kList) +
               "def @main(%a: float32, %b: float32) {\n"
               "  let %x = %a; let %p = %b; let %q: List[float32] = Nil; let %y = %b;\n"
               "  add(%x, %y) }");
}

TEST(FoldConstant, what_fails_is_left_to_the_run) {
  PassContext ctx;
  ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
    throw RuntimeError(Diagnostic());
  };
  fold_keeps("def @main(%c: bool) { if (%c) { add(1, 2) } else { 0 } }", ctx);
}

TEST(FoldConstant, a_match_of_a_value_with_a_name) {
  folds_to(std::string(kList) +
               "def @main(%a: float32) {\n"
               "  let %n = Nil; let %l = Cons(%a, %n);\n"
               "  match (%l) { Cons(%x, _) => { exp(%x) }, Nil => { %a }, } }",
           std::string(kList) +
               "def @main(%a: float32) {\n"
               "  let %n = Nil; let %l = Cons(%a, %n); let %x = %a; let %t = %n; exp(%x) }");
}

TEST(FoldConstant, no_match_of_what_only_a_run_knows) {
  fold_keeps(std::string(kList) +
             "def @main(%a: float32, %l: List[float32]) {\n"
             "  match (Cons(%a, %l)) { Cons(_, Nil) => { 0f }, Cons(%x, _) => { %x },\n"
             "    Nil => { 1f }, } }");
  // The name's parts would be computed in another place.
  fold_keeps(std::string(kList) +
             "def @main(%a: float32, %l: List[float32]) {\n"
             "  let %m = Cons(exp(%a), %l);\n"
             "  (%m, fn () { match (%m) { Cons(%x, _) => { %x }, Nil => { 1f }, } }) }");
  fold_keeps(std::string(kList) +
             "def @main(%a: float32) { match? (Cons(%a, Nil)) { Nil => { 1f }, } }");
}

TEST(FoldConstant, a_connected_expression_is_folded_whole) {
  folds_to("def @main(%x: int32) { add(%x, multiply(add(2, 3), subtract(10, 4))) }",
           "def @main(%x: int32) { add(%x, 30) }");
}

// A program that depends on no input is a constant as a whole: what is computed is one small kernel
// again and again, not one kernel of the program's size.
TEST(FoldConstant, a_long_constant_program_is_computed_in_pieces) {
  std::string text = "def @main(%x: Tensor[(4,), float32]) {\n  let %x0 = ones(shape=[4]);\n";
  const int steps = 300;
  for (int i = 0; i < steps; ++i) {
    std::string from = "%x" + std::to_string(i);
    text += "  let %t" + std::to_string(i) + " = split(multiply(tanh(" + from + "), " + from +
            "), indices_or_sections=2);\n  let %x" + std::to_string(i + 1) + " = concatenate((%t" +
            std::to_string(i) + ".1, %t" + std::to_string(i) + ".0));\n";
  }
  text += "  add(%x, %x" + std::to_string(steps) + ") }";
  PassContext ctx = pass_test::folding_context();
  ConstantEvaluator evaluate = ctx.evaluate;
  size_t calls = 0, largest = 0;
  ctx.evaluate = [&](const Function& f, const std::vector<Tensor>& args) {
    size_t size = 0;
    post_order(
        f, [&](const Node&) { ++size; }, family::expr);
    ++calls;
    largest = std::max(largest, size);
    return evaluate(f, args);
  };
  Module mod = pass_test::apply(kToGraphNormalForm, pass_test::parse(text));
  Expr body = pass_test::apply(kFoldConstant, mod, ctx)->find("main")->body;
  ASSERT_TRUE(is_call_to(body, "add"));
  EXPECT_TRUE(isa<ConstantNode>(as<CallNode>(body)->args[1]));
  EXPECT_EQ(calls, size_t{1} + 4 * steps);
  EXPECT_LE(largest, 8u);
}

TEST(FoldConstant, a_chain_of_large_constants_is_computed_without_keeping_them) {
  std::string text = "def @main(%x: Tensor[(20000,), float32]) {\n  let %x0 = ";
  PassContext ctx = pass_test::folding_context();
  ConstantEvaluator evaluate = ctx.evaluate;
  size_t calls = 0;
  ctx.evaluate = [&](const Function& f, const std::vector<Tensor>& args) {
    ++calls;
    return evaluate(f, args);
  };
  text +=
      "concatenate((arange(stop=10000f, dtype=\"float32\"), "
      "arange(start=1f, stop=10001f, dtype=\"float32\")));\n";
  for (int i = 0; i < 30; ++i) {
    text += "  let %x" + std::to_string(i + 1) + " = add(%x" + std::to_string(i) + ", 1f);\n";
  }
  Module mod = pass_test::apply(kToGraphNormalForm, pass_test::parse(text + "  add(%x, %x30) }"));
  pass_test::apply(kFoldConstant, mod, ctx);
  EXPECT_EQ(calls, 4u);  // the two parts, and twice sixteen of the others
}

TEST(FoldConstant, what_is_made_of_nothing_is_computed_once) {
  PassContext ctx = pass_test::folding_context();
  size_t calls = 0;
  ctx.evaluate = [&, evaluate = ctx.evaluate](const Function& f, const std::vector<Tensor>& args) {
    ++calls;
    return evaluate(f, args);
  };
  Module out =
      pass_test::apply(kFoldConstant,
                       pass_test::parse("def @main(%x: Tensor[(4,), float32]) {\n"
                                        "  (add(%x, zeros(shape=[4], dtype=\"float32\")),\n"
                                        "   multiply(%x, zeros(shape=[4], dtype=\"float32\")),\n"
                                        "   subtract(%x, ones(shape=[4], dtype=\"float32\"))) }"),
                       ctx);
  EXPECT_EQ(calls, 2u);
  auto* parts = as<TupleNode>(out->find("main")->body);
  const double want[] = {0, 0, 1};
  for (size_t i = 0; i < 3; ++i) {
    auto* k = as<ConstantNode>(as<CallNode>(parts->fields[i])->args[1]);
    ASSERT_NE(k, nullptr) << i;
    EXPECT_EQ(k->data.get_as_double(3), want[i]);
  }
}

TEST(FoldConstant, tuples_of_constants_and_several_results) {
  Module out = pass_test::apply(
      kFoldConstant,
      pass_test::parse("def @main(%x: Tensor[(2,), float32]) {\n"
                       "  %0 = split(ones(shape=[4], dtype=\"float32\"), indices_or_sections=2);\n"
                       "  (add(%x, %0.1), concatenate((%0.0, %0.1))) }"),
      pass_test::folding_context());
  auto* t = as<TupleNode>(out->find("main")->body);
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(isa<ConstantNode>(as<CallNode>(t->fields[0])->args[1]));
  auto* joined = as<ConstantNode>(t->fields[1]);
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(joined->data.num_elements(), 4);
}

TEST(FoldConstant, a_condition_that_is_computed_here_is_chosen_by_the_next_run) {
  PassContext ctx = pass_test::folding_context();
  Module mod =
      pass_test::parse("def @main(%x: float32) { if (less(1f, 2f)) { exp(%x) } else { %x } }");
  Module once = pass_test::apply(kFoldConstant, mod, ctx);
  auto* choice = as<IfNode>(once->find("main")->body);
  ASSERT_NE(choice, nullptr);
  EXPECT_TRUE(isa<ConstantNode>(choice->cond));
  EXPECT_TRUE(is_call_to(pass_test::apply(kFoldConstant, once, ctx)->find("main")->body, "exp"));
}

TEST(FoldConstant, what_depends_on_a_parameter_stays) {
  fold_keeps("def @main(%x: float32) { add(add(%x, 2f), 3f) }");
  fold_keeps("def @f(%x: float32) { exp(%x) } def @main() { @f(1f) }");
}

TEST(FoldConstant, what_would_grow_stays) {
  fold_keeps("def @main() { zeros(shape=[1000, 1000], dtype=\"float32\") }");
  PassContext ctx = pass_test::folding_context();
  ctx.config["relay.FoldConstant.max_bytes"] = AttrValue(int64_t{64});
  fold_keeps("def @main() { zeros(shape=[17], dtype=\"float32\") }", ctx);
}

// A product with a weight of 1 MiB that is turned first, as importers write matrix products.
Module turned_weight(Tensor weight) {
  Module mod = pass_test::parse(
      "def @main(%x: Tensor[(2, 512), float32], %w: Tensor[(512, 512), float32]) {\n"
      "  nn.dense(%x, transpose(%w, axes=[1, 0])) }");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    NodeRef body =
        substitute(f->body, {{f->params[1].get(), constant(std::move(weight))}}, family::expr);
    return function({f->params[0]}, Expr::unchecked(body), f->ret_type);
  });
}

TEST(FoldConstant, transposes_of_large_constants_stay_where_that_is_asked_for) {
  Module mod = turned_weight(Tensor::zeros(DType::Float(32), {512, 512}));
  PassContext ctx = pass_test::folding_context();
  const int64_t bytes = int64_t{1} << 20;
  ctx.config["relay.FoldConstant.keep_transposes"] = AttrValue(bytes);
  EXPECT_TRUE(pass_test::apply(kFoldConstant, mod, ctx) == mod);
  for (int64_t kept : {bytes + 1, int64_t{0}}) {
    ctx.config["relay.FoldConstant.keep_transposes"] = AttrValue(kept);
    Expr folded = pass_test::apply(kFoldConstant, mod, ctx)->find("main")->body;
    EXPECT_TRUE(isa<ConstantNode>(as<CallNode>(folded)->args[1])) << kept;
  }
}

TEST(FoldConstant, the_pipeline_moves_a_large_weight_once) {
  PassContext ctx = pass_test::folding_context();
  ctx.target.has_blocked_kernels = true;
  int moved = 0;
  ctx.evaluate = [&, evaluate = ctx.evaluate](const Function& f, const std::vector<Tensor>& args) {
    for (const Tensor& a : args) moved += a.byte_size() >= size_t{1} << 20;
    return evaluate(f, args);
  };
  Module mod = turned_weight(Tensor::zeros(DType::Float(32), {512, 512}));
  Module out = run_passes(mod, optimize_pipeline(), ctx);
  EXPECT_EQ(moved, 1);
  EXPECT_EQ(print_module(out).find("transpose"), std::string::npos) << print_module(out);
  EXPECT_NE(print_module(out).find("nn.contrib_dense_pack"), std::string::npos);
}

TEST(FoldConstant, effects_stay) {
  fold_keeps("def @main(%x: float32, %r: ref(float32)) { (%x, ref_write(%r, %x)).0 }");
  fold_keeps("def @main() { ref_read(ref(1f)) }");
}

TEST(FoldConstant, kernels_stay_as_they_are) {
  fold_keeps("def @main() { (fn (Primitive=1) { add(1f, 2f) })() }");
}

TEST(FoldConstant, without_an_evaluator_values_are_left_alone) {
  fold_keeps("def @main() { add(1f, 2f) }", PassContext());
}

}  // namespace
}  // namespace relay
