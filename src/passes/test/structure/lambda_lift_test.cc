#include "passes/structure/lambda_lift.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

void lifts_to(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kLambdaLift, before, after);
}

TEST(LambdaLift, a_function_that_is_only_called_makes_no_closure) {
  lifts_to("def @main(%x: float32) { let %f = fn (%y: float32) { add(%x, %y) }; %f(1f) }",
           "def @main(%x: float32) { @main_f(%x, 1f) }\n"
           "def @main_f(%x: float32, %y: float32) { add(%x, %y) }");
}

TEST(LambdaLift, a_value_is_a_closure_of_what_it_captures) {
  lifts_to("def @main(%x: float32) { fn (%y: float32) { add(%x, %y) } }",
           "def @main(%x: float32) { @main_fn(%x) }\n"
           "def @main_fn(%x: float32, Closure=1) { fn (%y: float32) { add(%x, %y) } }");
}

TEST(LambdaLift, a_value_that_captures_nothing_is_the_function) {
  lifts_to("def @main() { let %f = fn (%y: float32) { exp(%y) }; (%f, %f(1f)) }",
           "def @main() { (@main_f, @main_f(1f)) } def @main_f(%y: float32) { exp(%y) }");
}

TEST(LambdaLift, recursion_is_recursion_of_a_global_function) {
  lifts_to(
      "def @main(%n: int32, %x: float32) {\n"
      "  let %f = fn (%i: int32) -> float32 {\n"
      "    if (equal(%i, 0)) { %x } else { %f(subtract(%i, 1)) } }; %f(%n) }",
      "def @main(%n: int32, %x: float32) { @main_f(%x, %n) }\n"
      "def @main_f(%x: float32, %i: int32) -> float32 {\n"
      "  if (equal(%i, 0)) { %x } else { @main_f(%x, subtract(%i, 1)) } }");
}

TEST(LambdaLift, a_recursive_value_calls_itself_without_a_closure) {
  lifts_to(
      "def @main(%x: float32) {\n"
      "  let %f = fn (%i: int32) -> float32 { if (equal(%i, 0)) { %x } else { %f(0) } };\n"
      "  (%f, %f(1)) }",
      "def @main(%x: float32) { let %f = @main_f_closure(%x); (%f, %f(1)) }\n"
      "def @main_f(%x: float32, %i: int32) -> float32 {\n"
      "  if (equal(%i, 0)) { %x } else { @main_f(%x, 0) } }\n"
      "def @main_f_closure(%x: float32, Closure=1) {\n"
      "  fn (%i: int32) -> float32 { @main_f(%x, %i) } }");
}

TEST(LambdaLift, captures_of_called_functions_pass_through) {
  lifts_to(
      "def @main(%x: float32) {\n"
      "  let %f = fn (%y: float32) { add(%x, %y) };\n"
      "  let %g = fn (%z: float32) { let %h = fn () { %f(%z) }; %h() }; %g(2f) }",
      "def @main(%x: float32) { @main_g(%x, 2f) }\n"
      "def @main_g(%x: float32, %z: float32) { @main_h(%x, %z) }\n"
      "def @main_h(%x: float32, %z: float32) { @main_f(%x, %z) }\n"
      "def @main_f(%x: float32, %y: float32) { add(%x, %y) }");
}

TEST(LambdaLift, type_parameters_in_scope_are_captured) {
  Module out =
      pass_test::apply(kLambdaLift, pass_test::parse("type List[A] { Cons(A, List[A]), Nil, }\n"
                                                     "def @one[A](%x: A) -> fn (A) -> List[A] {\n"
                                                     "  fn (%y: A) { Cons(%x, Cons(%y, Nil)) } }\n"
                                                     "def @main() { let %f = @one(1); %f(2) }"));
  Function lifted = out->find("one_fn");
  ASSERT_TRUE(lifted);
  EXPECT_EQ(lifted->type_params.size(), 1u);
  EXPECT_TRUE(lifted->has_attr(attr::kClosure));
}

TEST(LambdaLift, what_a_closure_shares_is_computed_outside) {
  lifts_to("def @main(%x: float32) { %0 = exp(%x); (%0, fn () { add(%0, 1f) }) }",
           "def @main(%x: float32) { let %a = exp(%x); (%a, @main_fn(%a)) }\n"
           "def @main_fn(%a: float32, Closure=1) { fn () { add(%a, 1f) } }");
}

TEST(LambdaLift, leaves_kernels_and_closures_of_the_module) {
  pass_test::expect_unchanged(
      kLambdaLift, "def @main(%x: float32) { (fn (%p: float32, Primitive=1) { exp(%p) })(%x) }");
  pass_test::expect_unchanged(
      kLambdaLift,
      "def @f(%x: float32, Closure=1) { fn (%y: float32) { add(%x, %y) } }\n"
      "def @main() { @f(1f) }");
}

}  // namespace
}  // namespace relay
