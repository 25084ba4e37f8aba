#include "passes/structure/to_cps.h"

#include "node/walk.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

void becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kToCPS, before, after);
}

TEST(ToCPS, header_example) {
  becomes(
      "def @g(%x: float32) -> float32 { exp(%x) }\n"
      "def @f(%x: float32) -> float32 { add(@g(%x), 1f) }",
      "def @g(%x: float32) -> float32 { @g_cps(%x, fn (%r: float32) { %r }) }\n"
      "def @g_cps[R](%x: float32, %k: fn (float32) -> R, CPS=1) -> R {\n"
      "  let %a = exp(%x); %k(%a) }\n"
      "def @f(%x: float32) -> float32 { @f_cps(%x, fn (%r: float32) { %r }) }\n"
      "def @f_cps[R](%x: float32, %k: fn (float32) -> R, CPS=1) -> R {\n"
      "  @g_cps(%x, fn (%a: float32) { let %b = add(%a, 1f); %k(%b) }) }");
}

TEST(ToCPS, the_answer_has_a_name_that_no_type_parameter_has) {
  becomes("def @f[R](%x: R) -> R { %x }",
          "def @f[R](%p0: R) -> R { @f_cps(%p0, fn (%r: R) -> R { %r }) }\n"
          "def @f_cps[R, R1](%x: R, %k: fn (R) -> R1, CPS=1) -> R1 { %k(%x) }");
  // Inside a type as well: there, R would be the inner one.
  Module out = pass_test::apply(
      kToCPS, pass_test::parse("def @f(%g: fn [R](R) -> R, %x: int32) -> int32 { %g(%x) }"));
  std::string text = print_module(out);
  EXPECT_EQ(print_module(pass_test::parse(text.substr(text.find('\n')))), text);
}

TEST(ToCPS, tail_calls_hand_on_their_continuation) {
  becomes("def @f(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { @f(subtract(%n, 1)) } }",
          "def @f(%n: int32) -> int32 { @f_cps(%n, fn (%r: int32) { %r }) }\n"
          "def @f_cps[R](%n: int32, %k: fn (int32) -> R, CPS=1) -> R {\n"
          "  let %c = equal(%n, 0);\n"
          "  if (%c) { %k(0) } else { let %m = subtract(%n, 1); @f_cps(%m, %k) } }");
}

TEST(ToCPS, what_follows_a_branch_that_calls_is_a_function) {
  becomes(
      "def @f(%n: int32) -> int32 {\n"
      "  add(if (equal(%n, 0)) { 0 } else { @f(subtract(%n, 1)) }, 1) }",
      "def @f(%n: int32) -> int32 { @f_cps(%n, fn (%r: int32) { %r }) }\n"
      "def @f_cps[R](%n: int32, %k: fn (int32) -> R, CPS=1) -> R {\n"
      "  let %c = equal(%n, 0);\n"
      "  let %rest = fn (%v: int32) { let %s = add(%v, 1); %k(%s) };\n"
      "  if (%c) { %rest(0) } else { let %m = subtract(%n, 1); @f_cps(%m, %rest) } }");
}

TEST(ToCPS, functions_as_values_follow) {
  becomes(
      "def @f(%x: float32) -> float32 {\n"
      "  let %g = fn (%h: fn (float32) -> float32) { %h(%x) };\n"
      "  let %e = fn (%y: float32) { exp(%y) }; %g(%e) }",
      "def @f(%x: float32) -> float32 { @f_cps(%x, fn (%r: float32) { %r }) }\n"
      "def @f_cps[R](%x: float32, %k: fn (float32) -> R, CPS=1) -> R {\n"
      "  let %g = fn (%h: fn (float32, fn (float32) -> R) -> R, %k1: fn (float32) -> R) -> R {\n"
      "    %h(%x, %k1) };\n"
      "  let %e = fn (%y: float32, %k2: fn (float32) -> R) -> R { let %z = exp(%y); %k2(%z) };\n"
      "  %g(%e, %k) }");
}

TEST(ToCPS, every_call_is_a_tail_call) {
  Module out = pass_test::apply(
      kToCPS, pass_test::parse("type List[A] { Cons(A, List[A]), Nil, }\n"
                               "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
                               "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) },\n"
                               "               Nil => { Nil }, } }\n"
                               "def @main() { @map(fn (%x: int32) { add(%x, 1) }, Nil) }"));
  Function map = out->find("map_cps");
  ASSERT_TRUE(map);
  post_order(
      map,
      [&](const Node& n) {
        auto* l = as<LetNode>(&n);
        auto* c = l == nullptr ? nullptr : as<CallNode>(l->value);
        EXPECT_TRUE(c == nullptr || isa<OpNode>(c->op) || isa<ConstructorNode>(c->op));
      },
      family::program);
  // The type of @map has a function in it: as it was, for whom it was.
  EXPECT_EQ(out->find("map")->params.size(), 2u);
  EXPECT_TRUE(isa<MatchNode>(out->find("map")->body));
}

TEST(ToCPS, leaves_what_it_must) {
  // A data type that holds functions; a kernel; whoever hands a function to one that stays.
  pass_test::expect_unchanged(
      kToCPS,
      "type Lazy[A] { Later(fn () -> A), }\n"
      "def @force(%l: Lazy[int32]) -> int32 { match (%l) { Later(%f) => { %f() }, } }\n"
      "def @hold(%f: fn () -> int32) -> int32 { @force(Later(%f)) }\n"
      "def @main() -> int32 { @hold(fn () { 1 }) }");
  pass_test::expect_unchanged(kToCPS, "def @main(%x: float32, Primitive=1) { exp(%x) }");
}

TEST(ToCPS, un_cps_gives_a_function_of_direct_style) {
  Module mod = pass_test::parse(
      "def @f[R](%x: float32, %k: fn (float32) -> R) -> R { %k(exp(%x)) } def @main() { 1 }");
  Function f = un_cps(mod->find_global_var("f"));
  EXPECT_EQ(to_string(f->type), "fn (float32) -> float32");
}

}  // namespace
}  // namespace relay
