// ToANormalForm, ToBasicBlockNormalForm and ToGraphNormalForm.
#include "passes/structure/to_a_normal_form.h"
#include "passes/structure/to_basic_block_normal_form.h"
#include "passes/structure/to_graph_normal_form.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

using pass_test::expect_becomes;
using pass_test::expect_unchanged;

TEST(ToANormalForm, header_example) {
  expect_becomes(kToANormalForm, "def @main(%x: float32) { %0 = exp(%x); add(%0, %0) }",
                 "def @main(%x: float32) { let %x1 = exp(%x); let %x2 = add(%x1, %x1); %x2 }");
}

TEST(ToANormalForm, a_shared_value_is_bound_in_the_scope_common_to_its_uses) {
  expect_becomes(kToANormalForm,
                 "def @main(%c: bool, %x: float32) {\n"
                 "  %0 = exp(%x); if (%c) { add(%0, 1f) } else { sqrt(%0) } }",
                 "def @main(%c: bool, %x: float32) {\n"
                 "  let %a = exp(%x);\n"
                 "  let %r = if (%c) { let %b = add(%a, 1f); %b } else { let %d = sqrt(%a); %d };\n"
                 "  %r }");
}

TEST(ToANormalForm, what_one_branch_needs_stays_in_it) {
  expect_becomes(kToANormalForm,
                 "def @main(%c: bool, %x: float32) { if (%c) { exp(%x) } else { %x } }",
                 "def @main(%c: bool, %x: float32) {\n"
                 "  let %r = if (%c) { let %a = exp(%x); %a } else { %x }; %r }");
}

TEST(ToANormalForm, closures_and_clauses_have_their_own_names) {
  expect_becomes(kToANormalForm,
                 "type Maybe[A] { Some(A), None, }\n"
                 "def @main(%m: Maybe[float32]) {\n"
                 "  match (%m) { Some(%v) => { exp(%v) }, None => { (fn () { exp(1f) })() }, } }",
                 "type Maybe[A] { Some(A), None, }\n"
                 "def @main(%m: Maybe[float32]) {\n"
                 "  let %r = match (%m) {\n"
                 "    Some(%v) => { let %a = exp(%v); %a },\n"
                 "    None => { let %f = fn () { let %b = exp(1f); %b }; let %d = %f(); %d }, };\n"
                 "  %r }");
}

TEST(ToANormalForm, effects_keep_their_order) {
  expect_becomes(kToANormalForm,
                 "def @main(%r: ref(float32)) {\n"
                 "  let %a = ref_write(%r, exp(1f)); add(ref_read(%r), 2f) }",
                 "def @main(%r: ref(float32)) {\n"
                 "  let %x1 = exp(1f); let %a = ref_write(%r, %x1); let %x2 = ref_read(%r);\n"
                 "  let %x3 = add(%x2, 2f); %x3 }");
}

TEST(ToANormalForm, leaves_kernels_and_normal_forms_as_they_are) {
  expect_unchanged(kToANormalForm, "def @main(%x: float32) { %x }");
  expect_unchanged(kToANormalForm,
                   "def @main(%x: float32) { let %a = exp(%x); let %b = add(%a, 1f); %b }");
  expect_unchanged(kToANormalForm,
                   "def @main(%x: float32) {\n"
                   "  let %a = (fn (%p: float32, Primitive=1) { exp(exp(%p)) })(%x); %a }");
}

TEST(ToBasicBlockNormalForm, header_example) {
  expect_becomes(kToBasicBlockNormalForm,
                 "def @main(%c: bool, %x: float32) {\n"
                 "  %0 = exp(%x); if (%c) { add(%0, 1f) } else { sqrt(%0) } }",
                 "def @main(%c: bool, %x: float32) {\n"
                 "  let %a = exp(%x); if (%c) { add(%a, 1f) } else { sqrt(%a) } }");
}

TEST(ToBasicBlockNormalForm, a_value_is_bound_in_the_innermost_block_that_dominates_its_uses) {
  expect_becomes(kToBasicBlockNormalForm,
                 "def @main(%c: bool, %x: float32) {\n"
                 "  if (%c) { %0 = exp(%x); if (%c) { %0 } else { sqrt(%0) } } else { %x } }",
                 "def @main(%c: bool, %x: float32) {\n"
                 "  if (%c) { let %a = exp(%x); if (%c) { %a } else { sqrt(%a) } } else { %x } }");
}

TEST(ToBasicBlockNormalForm, closures_and_clauses_are_blocks) {
  expect_becomes(kToBasicBlockNormalForm,
                 "type Maybe[A] { Some(A), None, }\n"
                 "def @main(%m: Maybe[float32], %x: float32) {\n"
                 "  %0 = exp(%x); %1 = sqrt(%0);\n"
                 "  match (%m) { Some(%v) => { fn () { add(%v, %1) } },\n"
                 "               None => { fn () { %1 } }, } }",
                 "type Maybe[A] { Some(A), None, }\n"
                 "def @main(%m: Maybe[float32], %x: float32) {\n"
                 "  let %b = sqrt(exp(%x));\n"
                 "  match (%m) { Some(%v) => { fn () { add(%v, %b) } },\n"
                 "               None => { fn () { %b } }, } }");
}

TEST(ToBasicBlockNormalForm, effects_before_a_named_one_keep_their_place) {
  expect_becomes(kToBasicBlockNormalForm,
                 "def @main(%c: bool, %r: ref(float32)) {\n"
                 "  %0 = ref_read(%r);\n"
                 "  (ref_write(%r, 1f), if (%c) { %0 } else { exp(%0) }, ref_write(%r, 2f)) }",
                 "def @main(%c: bool, %r: ref(float32)) {\n"
                 "  let %w = ref_write(%r, 1f); let %a = ref_read(%r);\n"
                 "  (%w, if (%c) { %a } else { exp(%a) }, ref_write(%r, 2f)) }");
}

TEST(ToBasicBlockNormalForm, leaves_what_one_block_shares) {
  expect_unchanged(kToBasicBlockNormalForm,
                   "def @main(%c: bool, %x: float32) {\n"
                   "  %0 = exp(%x); let %a = add(%0, %0); let %b = add(%a, %0);\n"
                   "  (if (%c) { %1 = sqrt(%x); add(%1, %1) } else { %b }, fn () { exp(%x) }) }");
}

TEST(ToGraphNormalForm, header_example) {
  expect_becomes(kToGraphNormalForm,
                 "def @main(%x: float32) {\n"
                 "  let %a = exp(%x); let %b = add(%a, %a); nn.relu(%b) }",
                 "def @main(%x: float32) { %0 = exp(%x); nn.relu(add(%0, %0)) }");
}

TEST(ToGraphNormalForm, names_of_names) {
  expect_becomes(kToGraphNormalForm,
                 "def @main(%x: float32) {\n"
                 "  let %a = exp(%x); let %b = %a; let %c = %b; let %d = %x; add(%c, %d) }",
                 "def @main(%x: float32) { add(exp(%x), %x) }");
}

TEST(ToGraphNormalForm, into_branches_and_beside_closures) {
  expect_becomes(kToGraphNormalForm,
                 "def @main(%c: bool, %x: float32) {\n"
                 "  let %a = exp(%x); let %b = sqrt(%x);\n"
                 "  (if (%c) { %a } else { %x }, %b, fn () { %b }) }",
                 "def @main(%c: bool, %x: float32) {\n"
                 "  %0 = sqrt(%x); (if (%c) { exp(%x) } else { %x }, %0, fn () { %0 }) }");
}

TEST(ToGraphNormalForm, what_only_closures_use_stays_outside_them) {
  expect_unchanged(kToGraphNormalForm,
                   "def @main(%x: float32) { let %a = exp(%x); fn () { add(%a, 1f) } }");
  expect_becomes(kToGraphNormalForm,
                 "def @main(%x: float32) { let %a = exp(%x); let %b = sqrt(%a); fn () { %b } }",
                 "def @main(%x: float32) { let %b = sqrt(exp(%x)); fn () { %b } }");
}

TEST(ToGraphNormalForm, effects_and_functions_keep_their_names) {
  expect_unchanged(kToGraphNormalForm,
                   "def @main(%x: float32, %r: ref(float32)) {\n"
                   "  let %a = ref_read(%r); let %b = ref_write(%r, %x); (%a, ref(%x)) }");
  expect_unchanged(kToGraphNormalForm,
                   "def @main(%x: float32) {\n"
                   "  let %f = fn (%y: float32) -> float32 { %f(%y) }; %f(%x) }");
  expect_unchanged(kToGraphNormalForm, "def @main(%x: float32) { let %unused = exp(%x); %x }");
}

}  // namespace
}  // namespace relay
