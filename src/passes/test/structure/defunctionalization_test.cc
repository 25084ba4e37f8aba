#include "passes/structure/defunctionalization.h"

#include "analysis/function_types.h"
#include "node/walk.h"
#include "passes/test/meaning_programs.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

void defunctionalization_keeps(const std::string& text) {
  pass_test::expect_unchanged(kDefunctionalization, text);
}

TEST(Defunctionalization, header_example) {
  pass_test::expect_becomes(
      kDefunctionalization,
      "def @twice(%f: fn (int32) -> int32, %x: int32) -> int32 { %f(%f(%x)) }\n"
      "def @main() { let %n = ref_read(ref(3)); @twice(fn (%y: int32) { add(%n, %y) }, 1) }",
      "type Fn { Fn_main_fn(int32), }\n"
      "def @main() { let %n = ref_read(ref(3)); @twice(Fn_main_fn(%n), 1) }\n"
      "def @main_fn(%n: int32, %y: int32) -> int32 { add(%n, %y) }\n"
      "def @twice(%f: Fn, %x: int32) -> int32 { @apply(%f, @apply(%f, %x)) }\n"
      "def @apply(%f: Fn, %p0: int32) -> int32 {\n"
      "  match (%f) { Fn_main_fn(%c) => { @main_fn(%c, %p0) }, } }");
}

TEST(Defunctionalization, no_value_is_a_function_and_nothing_is_polymorphic) {
  for (const auto& p : pass_test::kMeaningPrograms) {
    SCOPED_TRACE(p.name);
    Module out = pass_test::apply(kDefunctionalization, pass_test::parse(p.text));
    for (const Function& f : out->functions) {
      EXPECT_TRUE(f->type_params.empty());
      for (const Var& v : f->params) EXPECT_FALSE(mentions_function(v->type));
      post_order(
          f->body,
          [&](const Node& n) {
            EXPECT_FALSE(isa<FunctionNode>(&n));
            auto* c = as<CallNode>(&n);
            EXPECT_FALSE(c != nullptr && isa<VarNode>(c->op));
          },
          family::program);
    }
  }
}

TEST(Defunctionalization, one_instance_for_each_type) {
  Module out =
      pass_test::apply(kDefunctionalization,
                       pass_test::parse("def @app[A](%f: fn (A) -> A, %x: A) -> A { %f(%x) }\n"
                                        "def @main() { (@app(fn (%x: int32) { add(%x, 1) }, 1),\n"
                                        "  @app(fn (%x: float32) { exp(%x) }, 1f),\n"
                                        "  @app(fn (%y: int32) { %y }, 2)) }"));
  int instances = 0, types = 0;
  for (const GlobalVar& g : out->global_vars) instances += g->name_hint.rfind("app_", 0) == 0;
  for (const TypeData& t : out->type_definitions) types += t->header->name_hint.rfind("Fn", 0) == 0;
  EXPECT_EQ(instances, 2);
  EXPECT_EQ(types, 2);
}

TEST(Defunctionalization, leaves_what_it_must) {
  defunctionalization_keeps("def @main(%x: float32) { exp(%x) }");
  defunctionalization_keeps("def @main(%f: fn () -> int32) { %f() }");
  defunctionalization_keeps("def @main[A](%x: A) { let %f = fn () { %x }; %f() }");
  defunctionalization_keeps(
      "type Lazy[A] { Later(fn () -> A), }\n"
      "def @main() -> int32 { match (Later(fn () { 1 })) { Later(%f) => { %f() }, } }");
  // Called at one type after another without end.
  defunctionalization_keeps(
      "def @f[A](%x: A, %n: int32) -> int32 {\n"
      "  let %g = fn () { %x }; if (equal(%n, 0)) { 0 } else { @f((%g(), %x), subtract(%n, 1)) } "
      "}\n"
      "def @main() -> int32 { @f(1, 3) }");
  // A size is known when the program runs.
  defunctionalization_keeps(
      "def @f[n: Dim](%x: Tensor[(n,), int32]) -> int32 { 1 }\n"
      "def @main() -> int32 { let %g = fn () { ones(shape=[2], dtype=\"int32\") }; @f(%g()) }");
}

}  // namespace
}  // namespace relay
