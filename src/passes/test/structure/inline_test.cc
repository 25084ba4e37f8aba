#include "passes/structure/inline.h"

#include "analysis/purity.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

void inlines_to(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kInline, before, after);
}
void inline_keeps(const std::string& text) { pass_test::expect_unchanged(kInline, text); }

TEST(Inline, header_example) {
  inlines_to("def @f(%a: float32) { exp(%a) } def @main(%x: float32) { @f(add(%x, 1f)) }",
             "def @main(%x: float32) { let %a = add(%x, 1f); exp(%a) }");
}

TEST(Inline, a_chain_of_functions_called_once) {
  inlines_to(
      "def @f(%a: float32) { exp(%a) } def @g(%b: float32) { @f(%b) }\n"
      "def @main(%x: float32) { @g(%x) }",
      "def @main(%x: float32) { let %b = %x; let %a = %b; exp(%a) }");
}

TEST(Inline, a_marked_function_gets_fresh_variables_at_each_place) {
  inlines_to(
      "def @f(%a: float32, Inline=1) { let %b = exp(%a); %b }\n"
      "def @main(%x: float32) { let %p = @f(%x); let %q = @f(%p); %q }",
      "def @main(%x: float32) {\n"
      "  let %p = { let %a = %x; let %b = exp(%a); %b };\n"
      "  let %q = { let %c = %p; let %d = exp(%c); %d }; %q }");
}

TEST(Inline, small_functions_at_level_3) {
  inlines_to("def @f(%a: float32) { exp(%a) } def @main(%x: float32) { @f(@f(%x)) }",
             "def @main(%x: float32) { let %a = { let %b = %x; exp(%b) }; exp(%a) }");
  std::string large = "%a";
  for (int i = 0; i < 9; ++i) large = "exp(" + large + ")";
  inline_keeps("def @f(%a: float32) { " + large + " } def @main(%x: float32) { @f(@f(%x)) }");
}

TEST(Inline, a_library_keeps_what_others_may_call) {
  PassContext level_2;
  level_2.opt_level = 2;
  pass_test::expect_unchanged(
      kInline, "def @f(%a: float32) { exp(%a) } def @g(%x: float32) { @f(%x) }", level_2);
  inlines_to("def @f(%a: float32) { exp(%a) } def @g(%x: float32) { @f(%x) }",
             "def @f(%a: float32) { exp(%a) } def @g(%x: float32) { let %a = %x; exp(%a) }");
  inlines_to(
      "def @f(%a: float32, global_symbol=\"f\") { exp(%a) } def @main(%x: float32) { @f(%x) }",
      "def @f(%a: float32, global_symbol=\"f\") { exp(%a) }\n"
      "def @main(%x: float32) { let %a = %x; exp(%a) }");
}

TEST(Inline, effects_are_not_shared_between_places) {
  Module out = pass_test::apply(
      kInline, pass_test::parse("def @f(Inline=1) { ref(1f) } def @main() { (@f(), @f()) }"));
  auto* t = as<TupleNode>(out->find("main")->body);
  ASSERT_NE(t, nullptr);
  EXPECT_TRUE(isa<RefCreateNode>(t->fields[0]) && isa<RefCreateNode>(t->fields[1]));
  EXPECT_FALSE(t->fields[0] == t->fields[1]);
}

TEST(Inline, leaves_what_it_must) {
  // Recursive, called twice, used as a value, polymorphic, a kernel.
  inline_keeps("def @f(%a: float32) -> float32 { @f(%a) } def @main(%x: float32) { @f(%x) }");
  inline_keeps(
      "def @f(%a: float32, Inline=1) -> float32 { @g(%a) }\n"
      "def @g(%a: float32) -> float32 { @f(%a) } def @main(%x: float32) { @f(%x) }");
  PassContext level_2;
  level_2.opt_level = 2;
  pass_test::expect_unchanged(
      kInline, "def @f(%a: float32) { exp(%a) } def @main(%x: float32) { @f(@f(%x)) }", level_2);
  inline_keeps("def @f(%a: float32) { exp(%a) } def @main() { @f }");
  inline_keeps("def @f[A](%a: A) -> A { %a } def @main(%x: float32) { @f(%x) }");
  inline_keeps("def @f(%a: float32, Primitive=1) { exp(%a) } def @main(%x: float32) { @f(%x) }");
}

// ---- Purity

Effects effects_of_main(const std::string& text) {
  Module mod = pass_test::parse(text);
  return Purity(mod).of(mod->find("main")->body);
}

TEST(Purity, joins_what_an_evaluation_reaches) {
  EXPECT_TRUE(effects_of_main("def @main(%x: float32) { (exp(%x), fn () { ref(%x) }) }").pure());
  EXPECT_EQ(effects_of_main("def @main(%x: float32) { exp(ref_read(ref(%x))) }"),
            Effects::alloc() | Effects::read());
  EXPECT_EQ(effects_of_main("def @main(%x: float32, %r: ref(float32), %c: bool) {\n"
                            "  if (%c) { ref_write(%r, %x) } else { () } }"),
            Effects::write());
  EXPECT_EQ(effects_of_main("def @main(%f: fn () -> float32) { %f() }"), Effects::all());
}

TEST(Purity, knows_named_functions_and_recursion) {
  EXPECT_EQ(effects_of_main("def @main(%x: float32) { let %f = fn () { ref(%x) }; %f() }"),
            Effects::alloc());
  EXPECT_EQ(effects_of_main("def @f(%x: int32) -> int32 { if (equal(%x, 0)) { 0 } else {\n"
                            "  @g(subtract(%x, 1)) } }\n"
                            "def @g(%x: int32) -> int32 { @f(%x) }\n"
                            "def @main() { @f(3) }"),
            Effects::partial());
}

TEST(Purity, tells_a_call_from_its_arguments) {
  Module mod = pass_test::parse(
      "def @f(%x: float32) { exp(%x) } def @main(%r: ref(float32)) { @f(ref_read(%r)) }");
  Purity purity(mod);
  EXPECT_EQ(purity.of(mod->find("main")->body), Effects::read());
  EXPECT_TRUE(purity.of_node(mod->find("main")->body).pure());
}

}  // namespace
}  // namespace relay
