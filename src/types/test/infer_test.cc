#include "types/infer.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "node/structural.h"
#include "ops/register_ops.h"
#include "types/verify.h"

namespace relay {
namespace {

Module infer(const std::string& text) {
  register_ops();
  return infer_types(parse_module("a.relay", "#[version = \"0.0.5\"]\n" + text));
}

std::string type_of_main(const std::string& text) {
  Module mod = infer(text);
  auto problem = find_ill_formed(mod);
  EXPECT_FALSE(problem.has_value()) << problem->render();
  return to_string(mod->find("main")->type);
}

std::string errors(const std::string& text) {
  try {
    infer(text);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Infer, types_what_is_not_annotated) {
  EXPECT_EQ(type_of_main("def @main(%x: Tensor[(2, 3), float32]) {\n"
                         "  let %f = fn (%a) { nn.relu(%a) };\n"
                         "  (%f(%x), add(%x, 1f))\n}"),
            "fn (Tensor[(2, 3), float32]) -> (Tensor[(2, 3), float32], Tensor[(2, 3), float32])");
}

TEST(Infer, named_dimensions_flow_through_operators) {
  EXPECT_EQ(type_of_main("def @main[n: Dim](%x: Tensor[(n, 4), float32]) { add(%x, %x) }"),
            "fn [n: Dim](Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32]");
}

TEST(Infer, polymorphic_functions_are_used_at_several_types) {
  EXPECT_EQ(type_of_main("def @id[A](%x: A) -> A { %x }\n"
                         "def @main(%x: float32) { (@id(%x), @id((%x, 1))) }"),
            "fn (float32) -> (float32, (float32, int32))");
}

TEST(Infer, recursive_data_and_functions) {
  EXPECT_EQ(type_of_main("type List[A] { Cons(A, List[A]), Nil, }\n"
                         "def @length[A](%l: List[A]) -> int32 {\n"
                         "  match (%l) { Nil => { 0 }, Cons(_, %t) => { 1 + @length(%t) }, }\n}\n"
                         "def @main() { @length(Cons(1f, Cons(2f, Nil))) }"),
            "fn () -> int32");
}

TEST(Infer, keeps_a_typed_program_as_it_is) {
  Module mod = infer("def @main(%x: Tensor[(2,), float32]) { nn.relu(%x) }");
  EXPECT_TRUE(infer_types(mod) == mod);
}

TEST(Infer, points_at_both_sides_of_a_clash) {
  std::string e = errors("def @main(%c: bool, %x: float32) { if (%c) { %x } else { (%x, %x) } }");
  EXPECT_NE(e.find("E0201"), std::string::npos) << e;
  EXPECT_NE(e.find("branches of an if"), std::string::npos) << e;
}

TEST(Infer, reports_each_kind_of_error) {
  auto has = [](const std::string& text, const char* code) {
    std::string e = errors(text);
    EXPECT_NE(e.find(code), std::string::npos) << text << "\n" << e;
  };
  has("def @main(%x: Tensor[(2,), float32], %y: Tensor[(3,), float32]) { add(%x, %y) }", "E0203");
  has("def @main(%x: float32) { %x(1) }", "E0206");
  has("def @main(%x: (float32, float32)) { %x.7 }", "E0207");
  has("def @main(%x) { %x }", "E0208");
  has("def @main() { let %f = fn (%g) { %g(%g) }; 1 }", "E0209");
  has("def @f(%x: int32) { %x } def @main() { @f(1, 2) }", "E0202");
}

}  // namespace
}  // namespace relay
