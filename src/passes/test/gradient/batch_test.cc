// Batched programs: each gives in every lane what the program itself gives.
#include <gtest/gtest.h>

#include <cmath>

#include "eval/test/stacked.h"
#include "ir/op.h"
#include "node/walk.h"
#include "ops/register_ops.h"
#include "passes/gradient/batch_pass.h"
#include "passes/gradient/derivative_pass.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

using eval_test::stacked;
using pass_test::flatten;
using pass_test::folding_context;
using pass_test::parse;
using runtime::Value;

constexpr int64_t kLanes = 3;
using Axis = std::optional<int64_t>;

BatchOptions options_of(const std::vector<Axis>& in, int64_t lanes = kLanes) {
  BatchOptions out{.lanes = dim(lanes)};
  out.in_axes.emplace();
  for (const Axis& a : in) out.in_axes->push_back({a});
  return out;
}

Module batched(const Module& mod, const BatchOptions& options, const std::string& of = "f",
               const std::string& name = "main", std::vector<LaneByLane>* report = nullptr) {
  PassContext ctx = folding_context();
  ctx.verify = true;
  return add_batched(mod, of, options, name, ctx, report);
}

// Elements that differ from lane to lane; whole numbers from 0 to 3 for integers.
Value sample_of(const Type& type, int64_t& at, bool same) {
  if (auto* tuple = as<TupleTypeNode>(type)) {
    std::vector<Value> fields;
    for (const Type& f : tuple->fields) fields.push_back(sample_of(f, at, same));
    return Value::tuple(fields);
  }
  auto* t = as<TensorTypeNode>(type);
  Tensor out = Tensor::empty(t->dtype, *t->const_shape());
  for (int64_t i = 0; i < out.num_elements(); ++i) {
    double x = pass_test::ordinary(same ? i : at++);
    out.set_from_double(i, t->dtype.is_floating() ? x
                           : t->dtype.is_bool()   ? x > 0
                                                  : std::floor(std::abs(x)));
  }
  return out;
}

// @main of `out` on batches along the first axes, against @f of `mod` lane by lane.
void expect_lanes(const Module& mod, const Module& out, const std::vector<Axis>& in) {
  Function f = mod->find("f");
  std::vector<std::vector<Value>> lanes(kLanes);
  int64_t at = 0;
  std::vector<Value> args;
  for (size_t i = 0; i < f->params.size(); ++i) {
    std::vector<Value> each;
    for (std::vector<Value>& lane : lanes) {
      each.push_back(sample_of(f->params[i]->type, at, !in[i]));
      lane.push_back(each.back());
    }
    args.push_back(in[i] ? stacked(each) : each[0]);
  }
  std::vector<Value> wanted;
  for (const std::vector<Value>& lane : lanes) wanted.push_back(Evaluator(mod).call("f", lane));
  std::vector<Tensor> a, b;
  flatten(Evaluator(out).call("main", args), a);
  flatten(stacked(wanted), b);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    ASSERT_EQ(std::vector<int64_t>(a[k].shape().begin(), a[k].shape().end()),
              std::vector<int64_t>(b[k].shape().begin(), b[k].shape().end()));
    for (int64_t i = 0; i < a[k].num_elements(); ++i) {
      double x = a[k].get_as_double(i), y = b[k].get_as_double(i);
      ASSERT_LE(std::abs(x - y), 1e-4 * (1 + std::abs(y)))
          << "result " << k << ", element " << i << "\n"
          << print_module(out);
    }
  }
}

// What is computed lane by lane, as words.
std::vector<std::string> check(const std::string& text, std::vector<Axis> in) {
  SCOPED_TRACE(text);
  Module mod = parse(text);
  std::vector<LaneByLane> report;
  Module out = batched(mod, options_of(in), "f", "main", &report);
  expect_lanes(mod, out, in);
  // With a number of lanes that only a run tells.
  BatchOptions open = options_of(in);
  open.lanes = nullptr;
  expect_lanes(mod, batched(mod, open), in);
  std::vector<std::string> what;
  for (const LaneByLane& l : report) what.push_back(l.what);
  return what;
}

using Words = std::vector<std::string>;

size_t ifs(const Module& mod) {
  size_t count = 0;
  for (const Function& f : mod->functions)
    post_order(
        f, [&](const Node& n) { count += isa<IfNode>(&n); }, family::program);
  return count;
}

std::string error_of(const std::string& text, const BatchOptions& options) {
  try {
    batched(parse(text), options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

const char* const kSquares = "def @f(%x: Tensor[(2, 3), float32]) { multiply(%x, %x) }";

TEST(Batch, dataflow_has_no_loop) {
  EXPECT_EQ(check("def @f(%x: Tensor[(4), float32], %w: Tensor[(5, 4), float32]) {\n"
                  "  let %h = nn.relu(nn.dense(expand_dims(%x, axis=0), %w));\n"
                  "  (sum(%h), nn.softmax(%h), %h) }",
                  {0, std::nullopt}),
            Words());
  EXPECT_EQ(check("def @f(%x: Tensor[(2, 4), float32], %w: Tensor[(5, 4), float32]) {\n"
                  "  add(nn.dense(%x, %w), ones(shape=[2, 5], dtype=\"float32\")) }",
                  {0, 0}),
            Words());
}

TEST(Batch, vectors_times_one_matrix_stay_rows) {
  for (const char* product : {"nn.matmul(%w, %x)", "nn.matmul(%w, %x, transpose_a=True)",
                              "nn.dense(%w, transpose(%x))"}) {
    std::string text = "def @f(%x: Tensor[(4, 1), float32], %w: Tensor[(4, 4), float32]) { " +
                       std::string(product) + " }";
    EXPECT_EQ(check(text, {0, std::nullopt}), Words());
    std::string out = print_module(batched(parse(text), options_of({0, std::nullopt})));
    EXPECT_NE(out.find("nn.matmul(%"), std::string::npos) << out;
    EXPECT_EQ(out.find("axes=[1, 0, 2]"), std::string::npos) << out;
  }
  // Two columns: lanes are more columns.
  const char* columns =
      "def @f(%x: Tensor[(4, 2), float32], %w: Tensor[(3, 4), float32]) { nn.matmul(%w, %x) }";
  EXPECT_EQ(check(columns, {0, std::nullopt}), Words());
  std::string out = print_module(batched(parse(columns), options_of({0, std::nullopt})));
  EXPECT_NE(out.find("axes=[1, 0, 2]"), std::string::npos) << out;
}

TEST(Batch, no_axes_of_a_lane_are_not_all_axes) {
  EXPECT_EQ(check("def @f(%x: float32) { (nn.l2_normalize(%x, eps=0.1f), sum(%x)) }", {0}),
            (Words{"nn.l2_normalize"}));
}

TEST(Batch, what_depends_on_no_lane_is_computed_once) {
  Module mod =
      parse("def @f(%x: Tensor[(4), float32], %w: Tensor[(4), float32]) { add(%x, exp(%w)) }");
  Module out = batched(mod, options_of({0, std::nullopt}));
  EXPECT_NE(print_module(out).find("exp(%w)"), std::string::npos) << print_module(out);
}

TEST(Batch, a_pure_branch_becomes_a_selection) {
  const char* text =
      "def @f(%x: float32, %y: Tensor[(3), float32]) {\n"
      "  if (greater(%x, 0f)) { (exp(%y), 1f) } else { (multiply(%y, %x), %x) } }";
  EXPECT_EQ(check(text, {0, 0}), Words());
  EXPECT_EQ(check(text, {0, std::nullopt}), Words());
  EXPECT_EQ(ifs(batched(parse(text), options_of({0, 0}))), ifs(parse(text)));
  // The condition is the same in all lanes.
  EXPECT_EQ(check(text, {std::nullopt, 0}), Words());
  EXPECT_EQ(ifs(batched(parse(text), options_of({std::nullopt, 0}))), 2 * ifs(parse(text)));
}

TEST(Batch, a_loop_with_one_count_for_all_lanes_stays) {
  EXPECT_EQ(
      check("def @f(%x: Tensor[(3), float32], %n: int32) {\n"
            "  let %loop = fn (%i: int32, %y: Tensor[(3), float32]) -> Tensor[(3), float32] {\n"
            "    if (less(%i, %n)) { %loop(add(%i, 1), multiply(add(%y, %x), 0.5f)) }\n"
            "    else { %y } };\n"
            "  %loop(0, zeros_like(%x)) }",
            {0, std::nullopt}),
      Words());
}

TEST(Batch, tail_recursion_goes_on_with_a_mask) {
  // Local, with a count of its own in each lane, and a result that is not a parameter.
  EXPECT_EQ(check("def @f(%x: float32, %n: int32) {\n"
                  "  let %loop = fn (%i: int32, %y: float32) -> (float32, int32) {\n"
                  "    let %z = multiply(%y, 1.5f);\n"
                  "    if (less(%i, %n)) { %loop(add(%i, 1), add(%z, %x)) }\n"
                  "    else { (%z, %i) } };\n"
                  "  %loop(0, 1f) }",
                  {0, 0}),
            Words());
  // Of the module, with branches in branches, two of which go on.
  EXPECT_EQ(
      check("def @collatz(%n: int32, %steps: int32) -> int32 {\n"
            "  if (less_equal(%n, 1)) { %steps } else {\n"
            "    if (equal(mod(%n, 2), 0)) { @collatz(floor_divide(%n, 2), add(%steps, 1)) }\n"
            "    else { @collatz(add(multiply(%n, 3), 1), add(%steps, 1)) } } }\n"
            "def @f(%n: int32) { @collatz(add(%n, 4), 0) }",
            {0}),
      Words());
}

TEST(Batch, other_recursion_on_what_depends_on_the_lane_is_lane_by_lane) {
  EXPECT_EQ(check("def @fact(%n: int32) -> int32 {\n"
                  "  if (less_equal(%n, 1)) { 1 } else { multiply(%n, @fact(subtract(%n, 1))) } }\n"
                  "def @f(%n: int32, %x: float32) { (@fact(%n), add(%x, 1f)) }",
                  {0, 0}),
            Words{"if"});
  EXPECT_EQ(
      check("def @f(%n: int32) {\n"
            "  let %fact = fn (%n: int32) -> int32 {\n"
            "    if (less_equal(%n, 1)) { 1 } else { multiply(%n, %fact(subtract(%n, 1))) } };\n"
            "  %fact(%n) }",
            {0}),
      Words{"if"});
}

TEST(Batch, references_hold_lanes) {
  EXPECT_EQ(check("def @f(%x: Tensor[(3), float32]) {\n"
                  "  let %r = ref(ones(shape=[3], dtype=\"float32\"));\n"
                  "  let %w = ref_write(%r, add(ref_read(%r), %x));\n"
                  "  let %v = ref_write(%r, multiply(ref_read(%r), %x));\n"
                  "  ref_read(%r) }",
                  {0}),
            Words());
}

TEST(Batch, a_branch_with_effects_is_lane_by_lane) {
  // With all that the reference is in.
  EXPECT_EQ(check("def @f(%x: float32) {\n"
                  "  let %r = ref(1f);\n"
                  "  let %w = if (greater(%x, 0f)) { ref_write(%r, %x) } else { () };\n"
                  "  add(ref_read(%r), 1f) }",
                  {0}),
            Words{"if"});
}

TEST(Batch, a_function_that_writes_to_what_it_is_given_is_lane_by_lane) {
  EXPECT_EQ(check("def @keep(%r: ref(float32), %x: float32) {\n"
                  "  if (greater(%x, 0f)) { ref_write(%r, %x) } else { () } }\n"
                  "def @f(%x: float32) {\n"
                  "  let %r = ref(1f); let %w = @keep(%r, %x); let %v = @keep(%r, negative(%x));\n"
                  "  add(ref_read(%r), 1f) }",
                  {0}),
            Words{"@keep"});
}

const char* const kList =
    "type List[A] { Cons(A, List[A]), Nil }\n"
    "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
    "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } } }\n"
    "def @fold[A, B](%f: fn (A, B) -> A, %a: A, %l: List[B]) -> A {\n"
    "  match (%l) { Cons(%h, %t) => { @fold(%f, %f(%a, %h), %t) }, Nil => { %a } } }\n";

TEST(Batch, data_of_one_structure_hold_lanes) {
  EXPECT_EQ(check(std::string(kList) +
                      "def @f(%x: Tensor[(3), float32], %w: Tensor[(3), float32]) {\n"
                      "  let %l = Cons(%x, Cons(%w, Cons(exp(%x), Nil)));\n"
                      "  let %m = @map(fn (%e: Tensor[(3), float32]) { multiply(%e, %x) }, %l);\n"
                      "  @fold(fn (%a: Tensor[(3), float32], %e: Tensor[(3), float32]) {\n"
                      "    add(multiply(%a, 0.5f), %e) }, %w, %m) }",
                  {0, std::nullopt}),
            Words());
}

TEST(Batch, data_with_tensors_in_their_definition) {
  std::string text =
      "type Tree { Leaf(Tensor[(2), float32]), Node(Tree, Tree) }\n"
      "def @total(%t: Tree) -> Tensor[(2), float32] {\n"
      "  match (%t) { Leaf(%x) => { %x },\n"
      "    Node(%a, %b) => { tanh(add(@total(%a), @total(%b))) } } }\n"
      "def @f(%x: Tensor[(2), float32], %w: Tensor[(2), float32]) {\n"
      "  @total(Node(Node(Leaf(%x), Leaf(%w)), Leaf(multiply(%x, 0.5f)))) }";
  Module mod = parse(text);
  std::vector<LaneByLane> report;
  Module out = batched(mod, options_of({0, std::nullopt}), "f", "main", &report);
  expect_lanes(mod, out, {0, std::nullopt});
  EXPECT_TRUE(report.empty());
  EXPECT_NE(print_module(out).find("Leaf_lanes"), std::string::npos);
}

TEST(Batch, data_that_the_lane_decides_are_lane_by_lane) {
  EXPECT_EQ(check(std::string(kList) +
                      "def @f(%x: float32) {\n"
                      "  let %l = if (greater(%x, 0f)) { Cons(%x, Cons(2f, Nil)) } else { Nil };\n"
                      "  let %s = @fold(fn (%a: float32, %e: float32) { add(%a, %e) }, 1f, %l);\n"
                      "  multiply(%s, 2f) }",
                  {0}),
            Words{"if"});
}

TEST(Batch, closures_capture_lanes) {
  EXPECT_EQ(
      check("def @f(%x: float32, %y: float32) {\n"
            "  let %twice = fn (%g: fn (float32) -> float32) { fn (%z: float32) { %g(%g(%z)) } };\n"
            "  let %h = %twice(fn (%z: float32) { add(multiply(%z, %x), %y) });\n"
            "  (%h(1f), %h(%x)) }",
            {0, std::nullopt}),
      Words());
}

TEST(Batch, random_numbers_from_no_key_are_drawn_in_each_lane) {
  register_ops();
  OpRegistry::global().add({
      .name = "test.draw",
      .doc = "Other numbers each time.",
      .args = {{"like", "Tells the type."}},
      .fusion = FusionClass::Opaque,
      .effect = Effect::Random,
      .relation = [](RelationContext& ctx) -> Type { return ctx.arg(0); },
      .compute = Absent::Replaced,
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = Absent::NotDifferentiable,
      .batching = Absent::LaneByLane,
      .examples = {{.args = {"float32"}, .attrs = ""}},
      .expected = Absent::ByNumPy,
  });
  std::vector<LaneByLane> report;
  Module out = batched(parse("def @f(%x: float32, %y: float32) { add(%x, test.draw(%y)) }"),
                       options_of({0, std::nullopt}), "f", "main", &report);
  OpRegistry::global().remove("test.draw");
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0].what, "test.draw");
  EXPECT_NE(report[0].why.find("no key"), std::string::npos);
}

TEST(Batch, axes_are_where_they_are_said_to_be) {
  Module mod = parse(
      "def @f(%p: (Tensor[(2, 3), float32], Tensor[(3), float32])) {\n"
      "  let %y = add(%p.0, %p.1); (%y, sum(%y)) }");
  BatchOptions options = options_of({0});
  (*options.in_axes)[0].fields = {{2}, {-1}};
  options.out_axes.fields = {{1}, {0}};
  Module out = batched(mod, options);
  EXPECT_EQ(to_string(Type(out->find("main")->type)),
            "fn ((Tensor[(2, 3, 3), float32], Tensor[(3, 3), float32])) -> (Tensor[(2, 3, 3), "
            "float32], Tensor[(3,), float32])");
  // The same numbers as with axes in front.
  BatchOptions plain = options_of({0});
  Module front = batched(mod, plain, "f", "front");
  int64_t at = 0;
  Value x = sample_of(parse("def @g(%x: (Tensor[(3, 2, 3), float32], Tensor[(3, 3), float32])) {"
                            " %x }")
                          ->find("g")
                          ->params[0]
                          ->type,
                      at, false);
  auto transposed = [](const Tensor& t, std::vector<int64_t> axes) {
    std::string text = "def @main(%x: " +
                       to_string(Type(tensor_type(
                           std::vector<int64_t>(t.shape().begin(), t.shape().end()), t.dtype()))) +
                       ") { transpose(%x, axes=[";
    for (size_t i = 0; i < axes.size(); ++i) text += (i > 0 ? ", " : "") + std::to_string(axes[i]);
    return Evaluator(parse(text + "]) }")).call("main", {t}).tensor();
  };
  Value moved = Value::tuple(
      {transposed(x.field(0).tensor(), {1, 2, 0}), transposed(x.field(1).tensor(), {1, 0})});
  Value a = Evaluator(front).call("front", {x}), b = Evaluator(out).call("main", {moved});
  Tensor first = transposed(a.field(0).tensor(), {1, 0, 2});
  for (int64_t i = 0; i < first.num_elements(); ++i)
    EXPECT_EQ(first.get_as_double(i), b.field(0).tensor().get_as_double(i));
}

TEST(Batch, the_pass_makes_a_batch_of_main) {
  Module out = pass_test::apply(
      kBatch,
      parse("def @main(%x: Tensor[(3), float32], %n: int32) -> float32 {\n"
            "  if (less(%n, 1)) { sum(%x) } else { multiply(@main(%x, subtract(%n, 1)), 2f) } }"));
  EXPECT_EQ(to_string(Type(out->find("main")->type)),
            "fn [lanes: Dim](Tensor[(lanes, 3), float32], Tensor[(lanes,), int32]) -> "
            "Tensor[(lanes,), float32]");
  Tensor x = pass_test::sample(Type(tensor_type(std::vector<int64_t>{2, 3}, DType::Float(32))),
                               [](int64_t at) { return static_cast<double>(at); });
  Tensor n = pass_test::sample(Type(tensor_type(std::vector<int64_t>{2}, DType::Int(32))),
                               [](int64_t at) { return static_cast<double>(2 * at); });
  Tensor y = Evaluator(out).call("main", {x, n}).tensor();
  EXPECT_EQ(y.get_as_double(0), 3);
  EXPECT_EQ(y.get_as_double(1), 12 * 4);
}

// ---- With itself, and with gradients

TEST(Batch, of_a_batched_function) {
  Module mod = parse(
      "def @f(%x: Tensor[(2), float32], %w: Tensor[(2), float32], %n: int32) {\n"
      "  let %loop = fn (%i: int32, %y: Tensor[(2), float32]) -> Tensor[(2), float32] {\n"
      "    if (less(%i, %n)) { %loop(add(%i, 1), add(multiply(%y, %w), %x)) } else { %y } };\n"
      "  %loop(0, %x) }");
  // Over %x first, then over %w and %n: every pair.
  Module once = batched(mod, options_of({0, std::nullopt, std::nullopt}, 2), "f", "g");
  Module twice = batched(once, options_of({std::nullopt, 0, 0}), "g", "main");
  Module again = batched(
      batched(mod, options_of({std::nullopt, 0, 0}), "f", "g"),
      [] {
        BatchOptions o = options_of({0, std::nullopt, std::nullopt}, 2);
        o.out_axes = {1};
        return o;
      }(),
      "g", "main");
  int64_t at = 0;
  std::vector<Value> args;
  for (const Var& p : twice->find("main")->params) args.push_back(sample_of(p->type, at, false));
  Tensor a = Evaluator(twice).call("main", args).tensor();
  Tensor b = Evaluator(again).call("main", args).tensor();
  ASSERT_EQ(a.num_elements(), 3 * 2 * 2);
  ASSERT_EQ(b.num_elements(), a.num_elements());
  for (int64_t i = 0; i < a.num_elements(); ++i)
    EXPECT_NEAR(a.get_as_double(i), b.get_as_double(i), 1e-5);
}

void expect_same_results(const Module& a, const Module& b) {
  int64_t at = 0;
  std::vector<Value> args;
  for (const Var& p : a->find("main")->params) args.push_back(sample_of(p->type, at, false));
  std::vector<Tensor> x, y;
  flatten(Evaluator(a).call("main", args), x);
  flatten(Evaluator(b).call("main", args), y);
  ASSERT_EQ(x.size(), y.size());
  for (size_t k = 0; k < x.size(); ++k) {
    ASSERT_EQ(x[k].num_elements(), y[k].num_elements());
    for (int64_t i = 0; i < x[k].num_elements(); ++i)
      EXPECT_NEAR(x[k].get_as_double(i), y[k].get_as_double(i), 1e-4);
  }
}

// Where lanes do not mix, the gradient of the batch is the batch of the gradients.
void expect_commutes(const std::string& text) {
  SCOPED_TRACE(text);
  Module mod = parse(text);
  PassContext ctx = folding_context();
  size_t count = mod->find("f")->params.size();
  std::vector<Axis> in(count, 0);
  Module of_batch = batched(mod, options_of(in), "f", "b");
  of_batch = add_derivative(of_batch, of_batch->find("b"), DerivativeKind::gradient, "main", ctx);
  Module of_gradient = add_derivative(mod, mod->find("f"), DerivativeKind::gradient, "g", ctx);
  of_gradient = batched(of_gradient, options_of(in), "g", "main");
  expect_same_results(of_batch, of_gradient);
  Module higher = add_derivative(mod, mod->find("f"), DerivativeKind::hvp, "g", ctx);
  std::vector<Axis> twice(2 * count, 0);
  higher = batched(higher, options_of(twice), "g", "main");
  Module hvp = batched(mod, options_of(in), "f", "b");
  hvp = add_derivative(hvp, hvp->find("b"), DerivativeKind::hvp, "main", ctx);
  expect_same_results(hvp, higher);
}

TEST(Batch, commutes_with_gradients) {
  expect_commutes(
      "def @f(%x: Tensor[(3), float32], %w: Tensor[(2, 3), float32]) {\n"
      "  sum(tanh(nn.dense(expand_dims(%x, axis=0), %w))) }");
  expect_commutes(
      "def @f(%x: float32) {\n"
      "  if (greater(%x, 0f)) { multiply(%x, sin(%x)) } else { exp(%x) } }");
  expect_commutes(
      "def @f(%x: float32) {\n"
      "  let %loop = fn (%y: float32) -> float32 {\n"
      "    if (less(%y, 9f)) { %loop(add(multiply(%y, 1.5f), 1f)) } else { %y } };\n"
      "  %loop(multiply(%x, %x)) }");
  expect_commutes(std::string(kList) +
                  "def @f(%x: float32) {\n"
                  "  @fold(fn (%a: float32, %e: float32) { multiply(%a, sin(%e)) }, %x,\n"
                  "    @map(fn (%e: float32) { multiply(%e, %x) }, Cons(%x, Cons(2f, Nil)))) }");
  // Lane by lane.
  expect_commutes(
      "def @p(%x: float32, %n: int32) -> float32 {\n"
      "  if (less_equal(%n, 0)) { 1f } else { multiply(%x, @p(%x, subtract(%n, 1))) } }\n"
      "def @f(%x: float32) {\n"
      "  if (greater(%x, 0f)) { @p(%x, 3) } else { multiply(2f, @p(%x, 2)) } }");
}

// ---- Errors

TEST(Batch, refusals_have_codes) {
  auto expect = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect(error_of(kSquares, options_of({3})), "E1101");
  expect(error_of(kSquares, options_of({-4})), "E1101");
  expect(error_of(kSquares, options_of({0, 0})), "E1101");
  BatchOptions pair = options_of({0});
  (*pair.in_axes)[0].fields = {{0}, {0}};
  expect(error_of(kSquares, pair), "E1101");
  BatchOptions none = options_of({0});
  none.out_axes.axis = std::nullopt;
  expect(error_of(kSquares, none), "E1101");
  expect(error_of(kSquares, options_of({std::nullopt})), "E1103");
  BatchOptions strict = options_of({0});
  strict.strict = true;
  EXPECT_EQ(error_of(kSquares, strict), "no error");
  expect(error_of("def @f(%n: int32) -> int32 {\n"
                  "  if (less_equal(%n, 1)) { 1 } else { multiply(%n, @f(subtract(%n, 1))) } }",
                  strict),
         "E1104");
  expect(error_of("def @f(%x: Tensor[(3), float32]) { argwhere(%x) }", options_of({0})), "E1105");
  expect(error_of(std::string(kList) +
                      "def @f(%x: float32) { if (greater(%x, 0f)) { Cons(%x, Nil) } else { Nil } }",
                  options_of({0})),
         "E1105");
  expect(
      error_of("def @f(%g: fn (float32) -> float32, %x: float32) { %g(%x) }", options_of({0, 0})),
      "E1106");
}

// A function that batching does not see into.
TEST(Batch, a_function_with_its_own_gradient_keeps_it) {
  EXPECT_EQ(
      check("def @h_back(%x: float32, %g: float32) { (multiply(%g, 3f),) }\n"
            "def @h(%x: float32, custom_gradient=\"h_back\") -> float32 { multiply(%x, %x) }\n"
            "def @f(%x: float32) { add(@h(%x), 1f) }",
            {0}),
      Words{"@h"});
}

}  // namespace
}  // namespace relay
