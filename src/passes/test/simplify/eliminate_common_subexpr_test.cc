#include "passes/simplify/eliminate_common_subexpr.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

void cse_becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kEliminateCommonSubexpr, before, after);
}
void cse_keeps(const std::string& text) {
  pass_test::expect_unchanged(kEliminateCommonSubexpr, text);
}

TEST(EliminateCommonSubexpr, header_example) {
  cse_becomes("def @main(%x: float32) { add(exp(%x), exp(%x)) }",
              "def @main(%x: float32) { %0 = exp(%x); add(%0, %0) }");
}

TEST(EliminateCommonSubexpr, equality_goes_up) {
  cse_becomes("def @main(%x: float32) { add(sqrt(add(exp(%x), 1f)), sqrt(add(exp(%x), 1f))) }",
              "def @main(%x: float32) { %0 = sqrt(add(exp(%x), 1f)); add(%0, %0) }");
}

TEST(EliminateCommonSubexpr, tuples_and_projections) {
  cse_becomes(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  %0 = split(%x, indices_or_sections=2); %1 = split(%x, indices_or_sections=2);\n"
      "  (concatenate((%0.0, %1.1)), concatenate((%1.0, %0.1))) }",
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  %0 = split(%x, indices_or_sections=2); %1 = concatenate((%0.0, %0.1)); (%1, %1) }");
}

TEST(EliminateCommonSubexpr, variables_bound_to_equal_values_are_equal) {
  cse_becomes(
      "def @main(%x: float32) { let %a = exp(%x); let %b = exp(%x); (sqrt(%a), sqrt(%b)) }",
      "def @main(%x: float32) { %0 = exp(%x); let %a = %0; let %b = %0; %1 = sqrt(%a); (%1, %1) }");
}

TEST(EliminateCommonSubexpr, an_outer_value_serves_a_branch_and_a_closure) {
  cse_becomes(
      "def @main(%c: bool, %x: float32) {\n"
      "  (if (%c) { sqrt(exp(%x)) } else { %x }, fn () { exp(%x) }, exp(%x)) }",
      "def @main(%c: bool, %x: float32) {\n"
      "  %0 = exp(%x); (if (%c) { sqrt(%0) } else { %x }, fn () { %0 }, %0) }");
}

TEST(EliminateCommonSubexpr, pure_functions_of_the_module) {
  cse_becomes(
      "def @f(%x: float32) { exp(%x) } def @main(%x: float32) { add(@f(%x), @f(%x)) }",
      "def @f(%x: float32) { exp(%x) } def @main(%x: float32) { %0 = @f(%x); add(%0, %0) }");
}

TEST(EliminateCommonSubexpr, other_attributes_are_another_value) {
  cse_keeps("def @main(%x: Tensor[(2, 2), float32]) { add(sum(%x, axis=[0]), sum(%x, axis=[1])) }");
  cse_keeps("def @main(%x: float32) { add(exp(%x), sqrt(%x)) }");
  cse_keeps("def @main(%x: float32) { (add(%x, 0f), add(%x, -0f)) }");
}

TEST(EliminateCommonSubexpr, nothing_is_hoisted_out_of_branches_or_closures) {
  cse_keeps("def @main(%c: bool, %x: float32) { if (%c) { sqrt(exp(%x)) } else { exp(%x) } }");
  cse_keeps(
      "def @main(%c: bool, %d: bool, %x: float32) {\n"
      "  (if (%c) { exp(%x) } else { %x }, if (%d) { exp(%x) } else { %x }) }");
  cse_keeps("def @main(%x: float32) { (fn () { exp(%x) }, fn () { exp(%x) }) }");
}

TEST(EliminateCommonSubexpr, effects_are_not_merged) {
  cse_keeps("def @main(%x: float32) { (ref(%x), ref(%x)) }");
  cse_keeps(
      "def @main(%x: float32, %r: ref(float32)) {\n"
      "  let %a = ref_read(%r); let %w = ref_write(%r, %x); let %b = ref_read(%r); add(%a, %b) }");
  cse_keeps("def @new(%x: float32) { ref(%x) } def @main(%x: float32) { (@new(%x), @new(%x)) }");
  cse_keeps("def @main(%f: fn (float32) -> float32, %x: float32) { add(%f(%x), %f(%x)) }");
  cse_keeps(
      "def @loop(%x: float32) -> float32 { @loop(%x) }\n"
      "def @main(%x: float32) { add(@loop(%x), @loop(%x)) }");
}

}  // namespace
}  // namespace relay
