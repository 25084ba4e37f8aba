#include "passes/partial/partial_evaluate.h"

#include <map>

#include "node/walk.h"
#include "passes/structure/dead_code_elimination.h"
#include "passes/structure/remove_unused_functions.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

using pass_test::parse;
using runtime::Value;

constexpr const char* kList = "type List[A] { Cons(A, List[A]), Nil, }\n";

Module evaluated(const Module& mod) {
  return pass_test::apply(kPartialEvaluate, mod, pass_test::folding_context());
}

// What is left for a run: partial evaluation, and what it makes unused dropped.
Module residual(const std::string& text) {
  Module out = pass_test::apply(kDeadCodeElimination, evaluated(parse(text)));
  return pass_test::apply(kRemoveUnusedFunctions, out);
}

void becomes(const std::string& before, const std::string& after) {
  Module out = residual(before), want = parse(after);
  std::string difference = first_structural_mismatch(out, want);
  EXPECT_TRUE(difference.empty()) << difference << "\nbefore:\n"
                                  << before << "\nbecame:\n"
                                  << print_module(out);
  Module again = evaluated(out);
  EXPECT_TRUE(again == out || structural_equal(again, out)) << "changes its own result into:\n"
                                                            << print_module(again);
}

void unchanged(const std::string& text) {
  pass_test::expect_unchanged(kPartialEvaluate, text, pass_test::folding_context());
}

std::string shown(const Value& v) {
  std::vector<Tensor> tensors;
  pass_test::flatten(v, tensors);
  std::string out;
  for (const Tensor& t : tensors) {
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      out += std::to_string(t.get_as_double(i)) + " ";
    }
  }
  return out;
}

// @main on scalars.
std::string run(const Module& mod, const std::vector<double>& args) {
  std::vector<Value> values;
  const Function& main = mod->find("main");
  for (size_t i = 0; i < args.size(); ++i) {
    values.push_back(Tensor::scalar(args[i], as<TensorTypeNode>(main->params[i]->type)->dtype));
  }
  return shown(Evaluator(mod).call("main", std::move(values)));
}

// The residual program gives what the program gives.
Module same_value(const std::string& text, const std::vector<std::vector<double>>& runs) {
  Module before = parse(text), after = residual(text);
  for (const std::vector<double>& args : runs) {
    EXPECT_EQ(run(before, args), run(after, args)) << print_module(after);
  }
  return after;
}

// How many expressions of each kind the functions hold, themselves not counted.
std::map<int, int> count_kinds(const Module& mod) {
  std::map<int, int> out;
  for (const Function& f : mod->functions) {
    post_order(
        f, [&](const Node& n) { out[n.kind()] += &n != f.get(); }, family::program);
  }
  return out;
}

// Only operators on tensors, bound by Lets.
void expect_dataflow(const Module& mod) {
  std::map<int, int> kinds = count_kinds(mod);
  for (int kind : {ExprKind::Function, ExprKind::Match, ExprKind::RefCreate, ExprKind::RefRead,
                   ExprKind::RefWrite, ExprKind::If, ExprKind::GlobalVar, ExprKind::Constructor}) {
    EXPECT_EQ(kinds[kind], 0) << kind << "\n" << print_module(mod);
  }
  EXPECT_EQ(mod->functions.size(), 1u);
}

// What the pass says it has not done.
std::string note(const Module& mod) {
  const Dict& attrs = mod->find("main")->attrs;
  auto it = attrs.find(kPartialEvaluation);
  return it == attrs.end() ? "" : *it->second.get_if<std::string>();
}

Module limited(const std::string& text, const std::string& option, int64_t limit) {
  PassContext ctx = pass_test::folding_context();
  ctx.config["relay.PartialEvaluate." + option] = AttrValue(limit);
  Module out = pass_test::apply(kPartialEvaluate, parse(text), ctx);
  return pass_test::apply(kDeadCodeElimination, out);
}

TEST(PartialEvaluate, header_example) {
  becomes(std::string(kList) +
              "def @sum(%l: List[float32], %s: float32) -> float32 {\n"
              "  match (%l) { Cons(%h, %t) => { @sum(%t, add(%s, %h)) }, Nil => { %s }, } }\n"
              "def @main(%a: float32, %b: float32) { @sum(Cons(%a, Cons(%b, Nil)), 0f) }",
          std::string(kList) +
              "def @main(%a: float32, %b: float32) {\n"
              "  let %x = add(0f, %a); let %y = add(%x, %b); %y }");
}

TEST(PartialEvaluate, closures_tuples_and_conditions) {
  becomes(
      "def @main(%x: float32) {\n"
      "  let %twice = fn (%f: fn (float32) -> float32, %v: float32) { %f(%f(%v)) };\n"
      "  let %t = (fn (%v: float32) { exp(%v) }, True);\n"
      "  if (%t.1) { %twice(%t.0, %x) } else { %x } }",
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); %b }");
}

TEST(PartialEvaluate, a_loop_over_a_counter) {
  becomes(
      "def @loop(%i: int32, %x: float32) -> float32 {\n"
      "  if (less(%i, 3)) { @loop(add(%i, 1), exp(%x)) } else { %x } }\n"
      "def @main(%x: float32) { @loop(0, %x) }",
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); let %c = exp(%b); %c }");
}

TEST(PartialEvaluate, a_loop_that_counts_down_from_the_greatest_number) {
  becomes(
      "def @loop(%i: int64, %x: float32) -> float32 {\n"
      "  if (greater(%i, 9223372036854775804i64)) { @loop(subtract(%i, 1i64), exp(%x)) } else { %x "
      "} "
      "}\n"
      "def @main(%x: float32) { @loop(9223372036854775807i64, %x) }",
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); let %c = exp(%b); %c }");
}

TEST(PartialEvaluate, a_loop_that_counts_down_beyond_zero_in_branches) {
  Module out = residual(
      "def @main(%x: float32, %c: bool) -> float32 {\n"
      "  let %loop: fn (int64, float32) -> float32 = fn (%i: int64, %y: float32) -> float32 {\n"
      "    if (greater(%i, -1i64)) {\n"
      "      if (%c) { %loop(subtract(%i, 2i64), exp(%y)) } else { %loop(subtract(%i, 2i64), %y) "
      "}\n"
      "    } else { %y } };\n"
      "  %loop(2i64, %x) }");
  EXPECT_EQ(print_module(out).find("loop"), std::string::npos) << print_module(out);
}

TEST(PartialEvaluate, a_function_of_named_sizes) {
  becomes(std::string(kList) +
              "def @scale[n: Dim](%x: Tensor[(n,), float32], %by: List[float32])\n"
              "    -> Tensor[(n,), float32] {\n"
              "  match (%by) { Cons(%f, %rest) => { @scale(multiply(%x, %f), %rest) },\n"
              "    Nil => { %x }, } }\n"
              "def @main(%x: Tensor[(3,), float32], %y: Tensor[(5,), float32]) {\n"
              "  let %by = Cons(2f, Cons(4f, Nil)); (@scale(%x, %by), @scale(%y, %by)) }",
          std::string(kList) +
              "def @main(%x: Tensor[(3,), float32], %y: Tensor[(5,), float32]) {\n"
              "  let %a = multiply(%x, 2f); let %b = multiply(%a, 4f);\n"
              "  let %c = multiply(%y, 2f); let %d = multiply(%c, 4f); let %r = (%b, %d); %r }");
}

TEST(PartialEvaluate, branches_of_sizes_that_differ_stay_of_an_open_size) {
  Module out = residual(R"(
    def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32], %c: bool)
        -> Tensor[(?,), float32] {
      if (%c) {
        let %a: Tensor[(?,), float32] = %x;
        %a
      } else {
        let %b: Tensor[(?,), float32] = exp(%y);
        %b
      }
    })");
  EXPECT_EQ(to_string(out->find("main")->body->type), "Tensor[(?,), float32]");
}

TEST(PartialEvaluate, a_call_that_stays_of_a_function_of_named_sizes_has_its_type) {
  Module out = residual(
      "def @grow[n: Dim](%x: Tensor[(n,), float32]) -> Tensor[(n,), float32] {\n"
      "  if (less(mean(%x), 1f)) { @grow(add(%x, 1f)) } else { %x } }\n"
      "def @main(%y: Tensor[(3,), float32]) {\n"
      "  let %f = fn (%v: Tensor[(3,), float32]) { multiply(%v, 2f) }; @grow(%f(%y)) }");
  post_order(
      out->find("main"),
      [](const Node& n) {
        if (auto* c = as<CallNode>(&n)) {
          EXPECT_TRUE(c->type);
        }
      },
      family::expr);
  EXPECT_EQ(to_string(out->find("main")->ret_type), "Tensor[(3,), float32]");
}

TEST(PartialEvaluate, a_reference_whose_uses_are_seen_is_no_more) {
  becomes(
      "def @main(%x: float32) {\n"
      "  let %r = ref(%x); let %set = fn (%v: float32) { ref_write(%r, %v) };\n"
      "  let %a = %set(exp(ref_read(%r))); let %b = %set(exp(ref_read(%r))); ref_read(%r) }",
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); %b }");
}

// ---- Models over known data

TEST(PartialEvaluate, an_rnn_over_a_known_list_is_dataflow) {
  Module out = same_value(std::string(kList) + R"(
def @cell(%x: float32, %h: float32) { tanh(add(multiply(%x, 0.5f), multiply(%h, 0.25f))) }
def @rnn(%xs: List[float32], %h: float32, %out: List[float32]) -> (float32, List[float32]) {
  match (%xs) {
    Cons(%x, %rest) => { let %n = @cell(%x, %h); @rnn(%rest, %n, Cons(%n, %out)) },
    Nil => { (%h, %out) },
  }
}
def @head(%xs: List[float32]) -> float32 { match? (%xs) { Cons(%x, _) => { %x }, } }
def @main(%a: float32, %b: float32, %c: float32) {
  let %r = @rnn(Cons(%a, Cons(%b, Cons(%c, Nil))), 0f, Nil);
  (%r.0, @head(%r.1))
})",
                          {{1, 2, 3}, {-1, 0, 5}});
  expect_dataflow(out);
  EXPECT_EQ(count_kinds(out)[ExprKind::Call], 11);
}

TEST(PartialEvaluate, an_rnn_over_fifty_known_steps_is_dataflow) {
  std::string list = "Nil", params;
  for (int i = 49; i >= 0; --i) list = "Cons(%x" + std::to_string(i) + ", " + list + ")";
  for (int i = 0; i < 50; ++i) {
    params += (i == 0 ? "" : ", ") + ("%x" + std::to_string(i)) + ": Tensor[(1, 3), float32]";
  }
  Module out = residual(std::string(kList) + R"(
def @fold[A, B](%f: fn (A, B) -> A, %start: A, %l: List[B]) -> A {
  match (%l) { Cons(%x, %rest) => { @fold(%f, %f(%start, %x), %rest) }, Nil => { %start }, } }
def @main()" + params + R"(, %w: Tensor[(4, 7), float32]) {
  let %steps = ref(0f);
  let %step = fn (%h: Tensor[(1, 4), float32], %x: Tensor[(1, 3), float32]) {
    let %n = ref_write(%steps, add(ref_read(%steps), 1f));
    tanh(nn.dense(concatenate((%x, %h), axis=1), %w)) };
  let %last = @fold(%step, zeros(shape=[1, 4], dtype="float32"), )" +
                        list + R"();
  (%last, ref_read(%steps)) })");
  expect_dataflow(out);
  EXPECT_EQ(count_kinds(out)[ExprKind::Call], 1 + 3 * 50);
  EXPECT_EQ(note(out), "");
}

TEST(PartialEvaluate, an_lstm_with_folds_and_closures_over_a_known_list_is_dataflow) {
  Module out = same_value(std::string(kList) + R"(
def @foldl[A, B](%f: fn (A, B) -> A, %acc: A, %xs: List[B]) -> A {
  match (%xs) { Cons(%x, %rest) => { @foldl(%f, %f(%acc, %x), %rest) }, Nil => { %acc }, }
}
def @map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  match (%xs) { Cons(%x, %rest) => { Cons(%f(%x), @map(%f, %rest)) }, Nil => { Nil }, }
}
def @lstm(%w: float32) -> (fn ((float32, float32), float32) -> (float32, float32)) {
  fn (%s: (float32, float32), %x: float32) -> (float32, float32) {
    let %c = add(multiply(sigmoid(%x), %s.1), multiply(%w, tanh(%s.0)));
    (multiply(sigmoid(%c), tanh(%c)), %c)
  }
}
def @main(%a: float32, %b: float32, %w: float32) {
  let %xs = @map(fn (%v: float32) -> float32 { multiply(%v, %w) }, Cons(%a, Cons(%b, Nil)));
  @foldl(@lstm(%w), (0f, 1f), %xs)
})",
                          {{1, 2, 3}, {-1, 0.5, 0.25}});
  std::map<int, int> kinds = count_kinds(out);
  EXPECT_EQ(kinds[ExprKind::Function] + kinds[ExprKind::Match] + kinds[ExprKind::GlobalVar], 0)
      << print_module(out);
}

TEST(PartialEvaluate, a_tree_lstm_over_a_known_tree_is_dataflow) {
  Module out = same_value(
      R"(
type Tree[A] { Leaf(A), Node(Tree[A], Tree[A]), }
def @lstm(%t: Tree[float32]) -> (float32, float32) {
  match (%t) {
    Leaf(%x) => { (tanh(%x), %x) },
    Node(%l, %r) => {
      let %a = @lstm(%l); let %b = @lstm(%r);
      let %c = add(multiply(sigmoid(%a.0), %a.1), multiply(sigmoid(%b.0), %b.1));
      (tanh(%c), %c)
    },
  }
}
def @main(%x: float32, %y: float32, %z: float32) {
  @lstm(Node(Node(Leaf(%x), Leaf(%y)), Node(Leaf(%z), Node(Leaf(%x), Leaf(%z))))).0
})",
      {{1, 2, 3}, {-1, 0.5, 0.25}});
  expect_dataflow(out);
}

TEST(PartialEvaluate, an_interpreter_of_a_known_program_is_compiled) {
  Module out = same_value(std::string(kList) + R"(
type Instruction { Push(float32), Add, Mul, Dup, }
def @exec(%code: List[Instruction], %stack: List[float32]) -> float32 {
  match? (%code) {
    Nil => { match? (%stack) { Cons(%top, _) => { %top }, } },
    Cons(%i, %rest) => {
      match (%i) {
        Push(%v) => { @exec(%rest, Cons(%v, %stack)) },
        Dup => { match? (%stack) { Cons(%a, _) => { @exec(%rest, Cons(%a, %stack)) }, } },
        Add => { match? (%stack) {
          Cons(%a, Cons(%b, %s)) => { @exec(%rest, Cons(add(%a, %b), %s)) }, } },
        Mul => { match? (%stack) {
          Cons(%a, Cons(%b, %s)) => { @exec(%rest, Cons(multiply(%a, %b), %s)) }, } },
      }
    },
  }
}
def @main(%x: float32) {
  @exec(Cons(Push(%x), Cons(Dup, Cons(Mul, Cons(Push(1f), Cons(Add, Nil))))), Nil)
})",
                          {{3}, {-2}});
  expect_dataflow(out);
  EXPECT_EQ(count_kinds(out)[ExprKind::Call], 2);
}

TEST(PartialEvaluate, church_numerals) {
  Module out = same_value(
      R"(
def @main(%x: float32) {
  let %two = fn (%f: fn (float32) -> float32) { fn (%v: float32) { %f(%f(%v)) } };
  let %succ = fn (%n: fn (fn (float32) -> float32) -> (fn (float32) -> float32)) {
    fn (%f: fn (float32) -> float32) { fn (%v: float32) { %f(%n(%f)(%v)) } } };
  let %three = %succ(%two);
  %three(%two(fn (%v: float32) { add(%v, 1f) }))(%x)
})",
      {{3}, {-2}});
  expect_dataflow(out);
  EXPECT_EQ(count_kinds(out)[ExprKind::Call], 6);
}

// ---- References

TEST(PartialEvaluate, a_reference_written_in_a_branch_of_a_run) {
  Module out = same_value(
      R"(
def @main(%c: bool, %x: float32) {
  let %r = ref(%x);
  let %before = ref_read(%r);
  let %a = if (%c) { let %w = ref_write(%r, exp(%x)); ref_read(%r) } else { ref_read(%r) };
  (%before, %a, ref_read(%r))
})",
      {{0, 2}, {1, 2}});
  std::map<int, int> kinds = count_kinds(out);
  // Only what comes after the branch has to look.
  EXPECT_EQ(kinds[ExprKind::RefRead], 1) << print_module(out);
}

TEST(PartialEvaluate, a_reference_written_in_a_clause_of_a_run) {
  same_value(std::string(kList) + R"(
def @make(%n: float32) -> List[float32] {
  if (less(%n, 0.5f)) { Nil } else { Cons(%n, @make(subtract(%n, 1f))) } }
def @main(%n: float32) {
  let %r = ref(1f);
  let %a = match (@make(%n)) {
    Cons(%h, Cons(_, _)) => { let %w = ref_write(%r, %h); %h },
    Cons(%h, Nil) => { let %w = ref_write(%r, add(%h, 10f)); %h },
    Nil => { ref_read(%r) },
  };
  (%a, ref_read(%r))
})",
             {{0}, {1}, {3}});
}

TEST(PartialEvaluate, a_reference_that_a_residual_closure_writes) {
  same_value(
      R"(
def @repeat(%n: float32, %f: fn () -> ()) -> () {
  if (less(%n, 0.5f)) { () } else { let %a = %f(); @repeat(subtract(%n, 1f), %f) } }
def @main(%n: float32) {
  let %r = ref(1f);
  let %q = ref(5f);
  let %f = fn () -> () { ref_write(%r, multiply(ref_read(%r), 2f)) };
  let %a = %f();
  let %w = @repeat(%n, %f);
  let %b = ref_read(%r);
  let %c = %f();
  (%b, ref_read(%r), ref_read(%q))
})",
      {{0}, {1}, {3}});
}

TEST(PartialEvaluate, a_reference_in_escaping_data) {
  same_value(std::string(kList) + R"(
def @bump(%l: List[ref(float32)], %n: float32) -> float32 {
  match (%l) {
    Cons(%r, %rest) => {
      let %w = ref_write(%r, add(ref_read(%r), %n)); add(ref_read(%r), @bump(%rest, %n)) },
    Nil => { 0f },
  }
}
def @pick(%c: bool, %a: List[ref(float32)], %b: List[ref(float32)]) { if (%c) { %a } else { %b } }
def @main(%c: bool, %n: float32) {
  let %r = ref(1f); let %q = ref(2f);
  let %l = @pick(%c, Cons(%r, Cons(%r, Nil)), Cons(%q, Nil));
  let %s = @bump(%l, %n);
  (%s, ref_read(%r), ref_read(%q))
})",
             {{0, 3}, {1, 3}});
}

TEST(PartialEvaluate, two_names_of_one_reference) {
  same_value(
      R"(
def @main(%c: bool, %x: float32) {
  let %r = ref(%x); let %q = ref(1f);
  let %s = if (%c) { %r } else { %q };
  let %a = ref_write(%r, 5f);
  let %b = ref_read(%s);
  let %d = ref_write(%s, 7f);
  (%b, ref_read(%r), ref_read(%q))
})",
      {{0, 3}, {1, 3}});
}

TEST(PartialEvaluate, closures_that_share_a_reference_keep_the_order_of_effects) {
  becomes(
      "def @main(%r: ref(float32), %x: float32) {\n"
      "  let %put = fn (%v: float32) { ref_write(%r, %v) };\n"
      "  let %get = fn () { ref_read(%r) };\n"
      "  let %a = %get(); let %b = %put(%x); let %c = %get(); let %d = %put(%a); (%a, %c) }",
      "def @main(%r: ref(float32), %x: float32) {\n"
      "  let %a = ref_read(%r); let %b = ref_write(%r, %x); let %c = ref_read(%r);\n"
      "  let %d = ref_write(%r, %a); let %e = (%a, %c); %e }");
}

TEST(PartialEvaluate, a_memo_table_in_a_reference) {
  Module out = same_value(std::string(kList) + R"(
def @lookup(%k: int32, %t: List[(int32, float32)]) -> List[float32] {
  match (%t) {
    Cons(%e, %rest) => { if (equal(%e.0, %k)) { Cons(%e.1, Nil) } else { @lookup(%k, %rest) } },
    Nil => { Nil },
  }
}
def @fib(%n: int32, %x: float32, %memo: ref(List[(int32, float32)])) -> float32 {
  if (less(%n, 2)) { %x } else {
    match (@lookup(%n, ref_read(%memo))) {
      Cons(%v, _) => { %v },
      Nil => {
        let %v = add(@fib(subtract(%n, 1), %x, %memo), @fib(subtract(%n, 2), %x, %memo));
        let %w = ref_write(%memo, Cons((%n, %v), ref_read(%memo)));
        %v
      },
    }
  }
}
def @main(%x: float32) { @fib(10, %x, ref(Nil)) })",
                          {{1}, {0.5}});
  expect_dataflow(out);
  EXPECT_EQ(count_kinds(out)[ExprKind::Call], 9);
}

TEST(PartialEvaluate, a_function_that_finds_itself_through_a_reference) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the evaluator does not free references that reach themselves";
#endif
  same_value(
      R"(
def @main(%n: float32) {
  let %self = ref(fn (%k: float32) -> float32 { %k });
  let %f = fn (%k: float32) -> float32 {
    if (less(%k, 0.5f)) { 1f } else { multiply(%k, ref_read(%self)(subtract(%k, 1f))) } };
  let %w = ref_write(%self, %f);
  %f(%n)
})",
      {{0}, {3}, {5}});
}

TEST(PartialEvaluate, a_counter_in_a_closure) {
  Module out = same_value(
      R"(
def @main(%x: float32) {
  let %counter = fn (%start: float32) {
    let %n = ref(%start);
    fn () { let %w = ref_write(%n, add(ref_read(%n), 1f)); ref_read(%n) } };
  let %a = %counter(0f); let %b = %counter(%x);
  let %p = %a(); let %q = %a(); let %s = %b();
  (%p, %q, %s, %a())
})",
      {{1}, {10}});
  EXPECT_EQ(count_kinds(out)[ExprKind::RefWrite], 0);
}

// ---- What ends

TEST(PartialEvaluate, recursion_on_data_of_a_run_stays) {
  unchanged(std::string(kList) +
            "def @sum(%l: List[float32], %s: float32) -> float32 {\n"
            "  match (%l) { Cons(%h, %t) => { @sum(%t, add(%s, %h)) }, Nil => { %s }, } }\n"
            "def @main(%l: List[float32]) { @sum(%l, 0f) }");
  unchanged(
      "def @loop(%i: int32, %n: int32, %x: float32) -> float32 {\n"
      "  if (less(%i, %n)) { @loop(add(%i, 1), %n, exp(%x)) } else { %x } }\n"
      "def @main(%n: int32, %x: float32) { @loop(0, %n, %x) }");
  unchanged(
      "def @main(%n: int32, %x: float32) {\n"
      "  let %loop = fn (%i: int32, %x: float32) -> float32 {\n"
      "    if (less(%i, %n)) { %loop(add(%i, 1), exp(%x)) } else { %x } };\n"
      "  %loop(0, %x) }");
  // A state that one of its branches makes a constant is nearer to no end.
  unchanged(
      "def @main(%n: int32, %k: int32, %x: float32) {\n"
      "  let %loop = fn (%i: int32, %m: int32, %x: float32) -> float32 {\n"
      "    if (less(%i, %n)) {\n"
      "      if (less(%i, %k)) { %loop(add(%i, 1), 7, exp(%x)) } else { %loop(add(%i, 1), %m, %x) "
      "}\n"
      "    } else { multiply(%x, cast(%m, dtype=\"float32\")) } };\n"
      "  %loop(0, %k, %x) }");
}

TEST(PartialEvaluate, what_does_not_end_stays) {
  unchanged(
      "def @f(%x: float32, %c: bool) -> float32 { if (%c) { %x } else { @f(%x, %c) } }\n"
      "def @main(%x: float32) { @f(%x, False) }");
  // Counts upwards for ever: at most so often, and then not at all.
  unchanged(
      "def @f(%i: int32, %x: float32) -> float32 {\n"
      "  if (less(%i, -1)) { %x } else { @f(add(%i, 1), exp(%x)) } }\n"
      "def @main(%x: float32) { @f(0, %x) }");
  unchanged(std::string(kList) +
            "def @f(%l: List[float32], %x: float32) -> float32 {\n"
            "  match (%l) { Nil => { %x }, Cons(_, _) => { @f(Cons(%x, %l), exp(%x)) }, } }\n"
            "def @main(%x: float32) { @f(Cons(%x, Nil), %x) }");
}

TEST(PartialEvaluate, mutual_recursion) {
  Module out = same_value(
      R"(
type Nat { Z, S(Nat), }
def @even(%n: Nat, %x: float32) -> float32 {
  match (%n) { Z => { %x }, S(%m) => { @odd(%m, exp(%x)) }, } }
def @odd(%n: Nat, %x: float32) -> float32 {
  match (%n) { Z => { negative(%x) }, S(%m) => { @even(%m, tanh(%x)) }, } }
def @main(%x: float32) { @even(S(S(S(Z))), %x) })",
      {{0.5}});
  expect_dataflow(out);
  unchanged(
      "type Nat { Z, S(Nat), }\n"
      "def @even(%n: Nat) -> float32 { match (%n) { Z => { 1f }, S(%m) => { @odd(%m) }, } }\n"
      "def @odd(%n: Nat) -> float32 { match (%n) { Z => { 0f }, S(%m) => { @even(%m) }, } }\n"
      "def @main(%n: Nat) { @even(%n) }");
}

TEST(PartialEvaluate, a_function_that_never_stops_at_compile_time_may_in_a_run) {
  same_value(
      "def @collatz(%n: int32, %steps: int32, %x: float32) -> float32 {\n"
      "  if (equal(%n, 1)) { %x } else {\n"
      "    if (equal(%n, multiply(divide(%n, 2), 2))) { @collatz(divide(%n, 2), add(%steps, 1), "
      "add(%x, 1f)) }\n"
      "    else { @collatz(add(multiply(%n, 3), 1), add(%steps, 1), add(%x, 1f)) } } }\n"
      "def @main(%x: float32) { @collatz(7, 0, %x) }",
      {{0}});
}

// 2^59 calls.
std::string doubling() {
  std::string text =
      "def @main(%x: float32) {\n"
      "  let %f0 = fn (%v: float32) { exp(%v) };\n";
  for (int i = 1; i < 60; ++i) {
    std::string before = "%f" + std::to_string(i - 1);
    text += "  let %f" + std::to_string(i) + " = fn (%v: float32) { " + before + "(" + before +
            "(%v)) };\n";
  }
  return text + "  %f59(%x) }";
}

TEST(PartialEvaluate, at_a_limit_what_is_done_stays_done) {
  for (const char* option : {"max_bindings", "max_steps"}) {
    Module out = limited(doubling(), option, 1000);
    std::map<int, int> kinds = count_kinds(out);
    EXPECT_GT(kinds[ExprKind::Call], 200) << option;
    EXPECT_LT(kinds[ExprKind::Let], 4300) << option;
    EXPECT_LE(kinds[ExprKind::Function], 60) << option;
    EXPECT_NE(note(out), "") << option;
  }
}

constexpr const char* kParity =
    "def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }\n"
    "def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }\n";

TEST(PartialEvaluate, a_long_recursion_that_makes_no_code_goes_on_where_the_limit_ended_it) {
  std::string text = std::string(kParity) + "def @main(%x: float32) { (exp(%x), @even(1001)) }";
  Module out = limited(text, "max_steps", 2000);
  EXPECT_EQ(count_kinds(out)[ExprKind::GlobalVar], 3) << print_module(out);
  EXPECT_NE(note(out).find("it takes long"), std::string::npos) << note(out);
  EXPECT_EQ(run(out, {1}), run(parse(text), {1}));
  EXPECT_EQ(note(limited(text, "max_steps", 20'000)), "");
}

TEST(PartialEvaluate, a_long_recursion_that_makes_code_stays_one_and_other_work_is_done) {
  std::string text = R"(
def @loop(%i: int32, %x: float32) -> float32 {
  if (less(%i, 100)) { @loop(add(%i, 1), tanh(exp(add(%x, 0.5f)))) } else { %x } }
def @main(%x: float32) {
  let %twice = fn (%f: fn (float32) -> float32, %v: float32) { %f(%f(%v)) };
  (@loop(0, %x), %twice(fn (%v: float32) { sin(%v) }, %x)) })";
  Module out = limited(text, "max_bindings", 20);
  const Function& main = out->find("main");
  std::map<int, int> kinds = count_kinds(module_from_expr(main));
  EXPECT_EQ(kinds[ExprKind::Call], 3) << print_module(out);  // @loop(0, %x) and two sines
  EXPECT_EQ(kinds[ExprKind::Function], 0);
  EXPECT_NE(note(out).find("its code grows"), std::string::npos) << note(out);
  EXPECT_EQ(run(out, {1}), run(parse(text), {1}));
  expect_dataflow(residual(text));
}

TEST(PartialEvaluate, a_loop_that_computes_many_tensors_stays_one_unless_it_is_short) {
  auto steps = [](int n) {
    return "def @loop(%i: int32, %x: Tensor[(4), float32]) -> Tensor[(4), float32] {\n"
           "  if (less(%i, " +
           std::to_string(n) +
           ")) { @loop(add(%i, 1), sin(cos(tanh(exp(sigmoid(%x)))))) } else { %x } }\n"
           "def @main(%x: Tensor[(4), float32]) { @loop(0, %x) }";
  };
  expect_dataflow(residual(steps(10)));
  unchanged(steps(40));
}

TEST(PartialEvaluate, a_long_loop_of_which_each_step_leaves_a_call_or_a_function_stays_one) {
  auto list = [](int n, const std::string& part) {
    std::string text = "Nil";
    for (int i = 0; i < n; ++i) text = "Cons(" + part + ", " + text + ")";
    return text;
  };
  auto trees = [&](int n) {
    return std::string(kList) + R"(
type Tree { Leaf(float32), Node(Tree, Tree), }
def @sum(%t: Tree) -> float32 {
  match (%t) { Leaf(%x) => { exp(%x) }, Node(%a, %b) => { add(@sum(%a), @sum(%b)) }, } }
def @all(%l: List[Tree], %s: float32) -> float32 {
  match (%l) { Cons(%t, %r) => { @all(%r, add(%s, @sum(%t))) }, Nil => { %s }, } }
def @main(%t: Tree) { @all()" +
           list(n, "%t") + ", (0f, 1f).0) }";
  };
  auto functions = [&](int n) {
    return std::string(kList) + R"(
def @push(%l: List[float32], %tape: ref(fn () -> float32)) -> () {
  match (%l) {
    Cons(%x, %r) => {
      let %before = ref_read(%tape);
      let %w = ref_write(%tape, fn () { add(exp(%x), %before()) });
      @push(%r, %tape)
    },
    Nil => { () },
  }
}
def @main(%x: float32, %tape: ref(fn () -> float32)) { @push()" +
           list(n, "%x") + ", %tape) }";
  };
  auto loops = [](const std::string& text, const std::string& name) {
    int calls = 0;
    post_order(residual(text)->find("main"), [&](const Node& n) {
      auto* g = as<GlobalVarNode>(&n);
      calls += g != nullptr && g->name_hint == name;
    });
    return calls;
  };
  EXPECT_EQ(loops(trees(30), "all"), 0);
  EXPECT_EQ(loops(trees(50), "all"), 1);
  EXPECT_EQ(loops(functions(30), "push"), 0);
  EXPECT_EQ(loops(functions(50), "push"), 1);
  EXPECT_NE(note(evaluated(parse(trees(50)))).find("each step leaves a call"), std::string::npos);
  // Nothing of the loop is left here, however long it is.
  expect_dataflow(residual(std::string(kList) + R"(
def @all(%l: List[float32], %s: float32) -> float32 {
  match (%l) { Cons(%x, %r) => { @all(%r, add(%s, exp(%x))) }, Nil => { %s }, } }
def @main(%x: float32) { @all()" +
                           list(50, "%x") + ", 0f) }"));
}

TEST(PartialEvaluate, data_that_is_known_in_part) {
  same_value(std::string(kList) + R"(
def @zip(%a: List[float32], %b: List[float32]) -> List[(float32, float32)] {
  match ((%a, %b)) {
    (Cons(%x, %xs), Cons(%y, %ys)) => { Cons((%x, %y), @zip(%xs, %ys)) },
    _ => { Nil },
  }
}
def @make(%n: float32) -> List[float32] {
  if (less(%n, 0.5f)) { Nil } else { Cons(%n, @make(subtract(%n, 1f))) } }
def @dot(%l: List[(float32, float32)]) -> float32 {
  match (%l) { Cons(%p, %r) => { add(multiply(%p.0, %p.1), @dot(%r)) }, Nil => { 0f }, } }
def @main(%n: float32) { @dot(@zip(Cons(1f, Cons(2f, Cons(%n, Nil))), @make(%n))) })",
             {{0}, {1}, {2}, {5}});
}

// ---- What stays

TEST(PartialEvaluate, programs_with_nothing_to_decide) {
  unchanged("def @main(%x: float32) { let %f = exp(%x); add(%f, %f) }");
  unchanged("def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { %x } }");
  unchanged("def @main(%f: fn (float32) -> float32, %x: float32) { %f(%f(%x)) }");
  unchanged("def @main(%r: ref(float32)) { let %w = ref_write(%r, 1f); ref_read(%r) }");
  unchanged(
      std::string(kList) +
      "def @main(%l: List[float32]) { match (%l) { Cons(%x, _) => { %x }, Nil => { 0f }, } }");
}

TEST(PartialEvaluate, a_function_that_is_named_as_a_value_stays_one) {
  same_value(
      R"(
def @twice(%f: fn (float32) -> float32, %n: float32, %x: float32) -> float32 {
  if (less(%n, 0.5f)) { %x } else { @twice(%f, subtract(%n, 1f), %f(%f(%x))) } }
def @g(%x: float32) { add(%x, 1f) }
def @main(%n: float32, %x: float32) { @twice(@g, %n, @twice(fn (%v: float32) { multiply(%v, %x) },
  %n, %x)) })",
      {{0, 2}, {3, 2}});
}

TEST(PartialEvaluate, a_match_without_a_clause_fails_in_the_run) {
  Module out = residual(std::string(kList) +
                        "def @main(%x: float32) {\n"
                        "  let %l = Cons(%x, Nil); match? (%l) { Nil => { %x }, } }");
  EXPECT_EQ(count_kinds(out)[ExprKind::Match], 1);
  EXPECT_THROW(run(out, {1}), RuntimeError);
}

TEST(PartialEvaluate, closures_around_references_in_a_long_program) {
  // 5,000 closures, each around a reference.
  register_ops();
  Type scalar = scalar_type(DType::Float(32));
  Var x = var("x", scalar);
  std::vector<Var> names{x};
  std::vector<std::pair<Var, Expr>> lets;
  Expr last = x;
  for (int i = 0; i < 5000; ++i) {
    Var f = var("f", func_type({scalar}, scalar)), p = var("p", scalar), v = var("v", scalar);
    Var r = var("r", ref_type(scalar));
    lets.emplace_back(f, function({p}, let(r, ref_create(p), call("exp", {ref_read(r)}))));
    lets.emplace_back(v, call(f, {last}));
    last = v;
  }
  Expr body = last;
  for (size_t i = lets.size(); i-- > 0;) body = let(lets[i].first, lets[i].second, body);
  Module out = evaluated(module_from_expr(function({x}, body)));
  std::map<int, int> kinds = count_kinds(out);
  EXPECT_EQ(kinds[ExprKind::Function], 0);
  EXPECT_EQ(kinds[ExprKind::RefCreate], 0);
  EXPECT_EQ(kinds[ExprKind::Call], 5000);
}

}  // namespace
}  // namespace relay
