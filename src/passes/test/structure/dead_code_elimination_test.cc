#include "passes/structure/dead_code_elimination.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

void dce_becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kDeadCodeElimination, before, after);
}
void dce_keeps(const std::string& text) { pass_test::expect_unchanged(kDeadCodeElimination, text); }

TEST(DeadCodeElimination, header_example) {
  dce_becomes(
      "def @main(%x: float32, %y: float32, %r: ref(float32)) {\n"
      "  let %a = exp(%x); let %b = ref_write(%r, %x); (%y, %a).0 }",
      "def @main(%x: float32, %y: float32, %r: ref(float32)) {\n"
      "  let %b = ref_write(%r, %x); %y }");
}

TEST(DeadCodeElimination, unused_values_go_as_a_chain) {
  dce_becomes(
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%a); let %c = (%a, %b); %x }",
      "def @main(%x: float32) { %x }");
}

TEST(DeadCodeElimination, a_local_function_that_only_calls_itself_goes) {
  dce_becomes("def @main(%x: float32) { let %f = fn (%a: float32) -> float32 { %f(%a) }; %x }",
              "def @main(%x: float32) { %x }");
}

TEST(DeadCodeElimination, a_field_of_a_named_tuple_is_taken_directly) {
  dce_becomes("def @main(%x: float32, %y: float32) { let %t = (%x, %y); add(%t.1, %y) }",
              "def @main(%x: float32, %y: float32) { add(%y, %y) }");
}

TEST(DeadCodeElimination, inside_branches_clauses_and_closures) {
  dce_becomes(
      "type Maybe[A] { Some(A), None, }\n"
      "def @main(%c: bool, %m: Maybe[float32], %x: float32) {\n"
      "  let %f = fn () { let %d = exp(%x); %x };\n"
      "  (if (%c) { let %a = exp(%x); %x } else { %x },\n"
      "   match (%m) { Some(%v) => { let %b = exp(%v); %v }, None => { %x }, }, %f()) }",
      "type Maybe[A] { Some(A), None, }\n"
      "def @main(%c: bool, %m: Maybe[float32], %x: float32) {\n"
      "  let %f = fn () { %x };\n"
      "  (if (%c) { %x } else { %x },\n"
      "   match (%m) { Some(%v) => { %v }, None => { %x }, }, %f()) }");
}

TEST(DeadCodeElimination, a_pure_call_of_a_function_of_the_module_goes) {
  dce_becomes(
      "def @f(%x: float32) { exp(%x) }\n"
      "def @main(%x: float32) { let %a = @f(%x); %x }",
      "def @f(%x: float32) { exp(%x) }\n"
      "def @main(%x: float32) { %x }");
}

TEST(DeadCodeElimination, a_reference_that_nobody_looks_at_goes) {
  dce_becomes("def @main(%x: float32) { let %r = ref(%x); let %v = ref_read(%r); %x }",
              "def @main(%x: float32) { %x }");
}

TEST(DeadCodeElimination, effects_stay) {
  dce_keeps("def @main(%x: float32, %r: ref(float32)) { let %a = ref_write(%r, %x); %x }");
  dce_keeps(
      "def @set(%r: ref(float32), %x: float32) { ref_write(%r, %x) }\n"
      "def @main(%x: float32, %r: ref(float32)) { let %a = @set(%r, %x); %x }");
  dce_keeps(
      "def @main(%x: float32, %r: ref(float32)) {\n"
      "  let %f = fn () { ref_write(%r, %x) }; let %a = %f(); %x }");
  dce_keeps("def @main(%x: float32, %r: ref(float32)) { (%x, ref_write(%r, %x)).0 }");
}

TEST(DeadCodeElimination, what_may_fail_or_not_end_stays) {
  dce_keeps(
      "def @loop(%x: float32) -> float32 { @loop(%x) }\n"
      "def @main(%x: float32) { let %a = @loop(%x); %x }");
  dce_keeps(
      "type Maybe[A] { Some(A), None, }\n"
      "def @main(%m: Maybe[float32], %x: float32) {\n"
      "  let %a = match? (%m) { Some(%v) => { %v }, }; %x }");
}

TEST(DeadCodeElimination, a_call_of_an_unknown_function_stays) {
  dce_keeps("def @main(%f: fn (float32) -> float32, %x: float32) { let %a = %f(%x); %x }");
}

TEST(DeadCodeElimination, a_field_that_would_be_computed_elsewhere_stays) {
  dce_keeps("def @main(%x: float32) { let %t = (exp(%x), %x); fn () { %t.0 } }");
}

}  // namespace
}  // namespace relay
