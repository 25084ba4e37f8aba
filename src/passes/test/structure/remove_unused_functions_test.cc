#include "passes/structure/remove_unused_functions.h"

#include "passes/test/pass_test.h"

namespace relay {
namespace {

TEST(RemoveUnusedFunctions, keeps_what_main_reaches) {
  pass_test::expect_becomes(
      kRemoveUnusedFunctions,
      "def @f() { @g() } def @g() { 1 } def @h() { @h2() } def @h2() -> int32 "
      "{ @h() } def @main() { @g() }",
      "def @g() { 1 } def @main() { @g() }");
}

TEST(RemoveUnusedFunctions, a_function_as_a_value_is_used) {
  pass_test::expect_unchanged(kRemoveUnusedFunctions,
                              "def @g() { 1 } def @main() { (fn () { @g }, 2) }");
}

TEST(RemoveUnusedFunctions, a_library_stays) {
  pass_test::expect_unchanged(kRemoveUnusedFunctions, "def @f() { 1 } def @g() { 2 }");
}

TEST(RemoveUnusedFunctions, exported_functions_are_entries) {
  pass_test::expect_becomes(kRemoveUnusedFunctions,
                            "def @f(global_symbol=\"f\") { @g() } def @g() { 1 } def @h() { 2 }",
                            "def @f(global_symbol=\"f\") { @g() } def @g() { 1 }");
}

TEST(RemoveUnusedFunctions, entries_are_named_in_the_config) {
  PassContext ctx;
  ctx.config["relay.RemoveUnusedFunctions.entry_functions"] =
      AttrValue(ValueList{AttrValue(std::string("f"))});
  pass_test::expect_becomes(kRemoveUnusedFunctions,
                            "def @f() { @g() } def @g() { 1 } def @main() { 2 }",
                            "def @f() { @g() } def @g() { 1 }", ctx);
}

}  // namespace
}  // namespace relay
