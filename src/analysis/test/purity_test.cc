#include "analysis/purity.h"

#include <gtest/gtest.h>

#include "ops/test/parse.h"

namespace relay {
namespace {

constexpr const char* kMap =
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "type Nat { Z, S(Nat), }\n"
    "def @apply(%f: fn (float32) -> float32, %x: float32) -> float32 { %f(%x) }\n"
    "def @twice(%f: fn (float32) -> float32, %x: float32) -> float32 {\n"
    "  @apply(%f, @apply(%f, %x)) }\n"
    "def @map(%f: fn (float32) -> float32, %l: List[float32]) -> List[float32] {\n"
    "  match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil }, } }\n";

// The effects of @main's body.
Effects effects(const std::string& text) {
  Module mod = test::parse(kMap + text);
  return Purity(mod).of(mod->find("main")->body);
}

TEST(Purity, tells_the_effects_apart) {
  EXPECT_EQ(effects("def @main(%x: float32) { exp(%x) }"), Effects::none());
  EXPECT_EQ(effects("def @main(%x: float32) { ref(%x) }"), Effects::alloc());
  EXPECT_EQ(effects("def @main(%r: ref(float32)) { ref_read(%r) }"), Effects::read());
  EXPECT_EQ(effects("def @main(%r: ref(float32)) { ref_write(%r, 1f) }"), Effects::write());
  EXPECT_EQ(effects("def @main(%n: Nat) { match? (%n) { Z => { 1f }, } }"), Effects::partial());
  EXPECT_EQ(effects("def @main(%f: fn () -> float32) { %f() }"), Effects::all());
}

TEST(Purity, a_function_is_what_its_body_does) {
  Module mod = test::parse(std::string(kMap) +
                           "def @main(%r: ref(float32)) {\n"
                           "  let %f = fn () { ref_read(%r) }; %f }");
  Purity purity(mod);
  const Function& main = mod->find("main");
  EXPECT_EQ(purity.of(main->body), Effects::none());
  EXPECT_EQ(purity.of_body(cast<FunctionNode>(as<LetNode>(main->body)->value)), Effects::read());
  // What the parameter does is the caller's.
  EXPECT_EQ(purity.of_body(mod->find("twice")), Effects::none());
  EXPECT_EQ(purity.of_body(mod->find("map")), Effects::partial());
  EXPECT_EQ(purity.of(mod->find("twice")->body), Effects::all());
}

TEST(Purity, sees_through_functions_that_are_passed) {
  EXPECT_EQ(effects("def @main(%x: float32) { @twice(fn (%v: float32) { exp(%v) }, %x) }"),
            Effects::none());
  EXPECT_EQ(effects("def @main(%x: float32, %l: List[float32]) {\n"
                    "  let %f = fn (%v: float32) { add(%v, %x) }; @map(%f, %l) }"),
            Effects::partial());
  EXPECT_EQ(effects("def @main(%r: ref(float32), %x: float32) {\n"
                    "  @twice(fn (%v: float32) { ref_read(%r) }, %x) }"),
            Effects::read());
  EXPECT_EQ(effects("def @main(%r: ref(float32), %x: float32) {\n"
                    "  @twice(fn (%v: float32) { let %w = ref_write(%r, %v); %v }, %x) }"),
            Effects::write());
}

TEST(Purity, what_is_not_known_may_do_everything) {
  // A function from data.
  EXPECT_EQ(effects("def @main(%l: List[fn (float32) -> float32], %x: float32) {\n"
                    "  match (%l) { Cons(%f, _) => { @apply(%f, %x) }, Nil => { %x }, } }"),
            Effects::all());
  // A local function that calls a parameter of the function around it.
  EXPECT_EQ(effects("def @main(%f: fn (float32) -> float32, %x: float32) {\n"
                    "  let %g = fn (%v: float32) { %f(%v) }; @apply(%g, %x) }"),
            Effects::all());
  // A function that is chosen by a run.
  EXPECT_EQ(effects("def @main(%c: bool, %x: float32) {\n"
                    "  let %g = if (%c) { fn (%v: float32) { exp(%v) } } else {\n"
                    "    fn (%v: float32) { %v } };\n"
                    "  @apply(%g, %x) }"),
            Effects::all());
}

TEST(Purity, recursion_through_an_argument_may_not_end) {
  EXPECT_EQ(effects("def @again(%x: float32) -> float32 { @apply(@again, %x) }\n"
                    "def @main(%x: float32) { @again(%x) }"),
            Effects::partial());
}

}  // namespace
}  // namespace relay
