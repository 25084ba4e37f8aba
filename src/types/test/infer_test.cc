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

TEST(Infer, a_declared_result_may_know_less_than_the_body) {
  const std::string x = "%x: Tensor[(3, 4), float32]";
  EXPECT_EQ(type_of_main("def @main(" + x + ") -> Tensor[(?, 4), float32] { nn.relu(%x) }"),
            "fn (Tensor[(3, 4), float32]) -> Tensor[(?, 4), float32]");
  EXPECT_EQ(type_of_main("def @main(" + x + ") -> (Tensor[(?, 4), float32], int32) { (%x, 1) }"),
            "fn (Tensor[(3, 4), float32]) -> (Tensor[(?, 4), float32], int32)");
  EXPECT_EQ(type_of_main(
                "def @main(" + x +
                ") {\n"
                "  let %f = fn (%y: Tensor[(3, 4), float32]) -> Tensor[(?, 4), float32] { %y };\n"
                "  %f(%x) }"),
            "fn (Tensor[(3, 4), float32]) -> Tensor[(?, 4), float32]");
  // A program with types is inferred again.
  Module typed = infer("def @main(" + x + ") -> Tensor[(?, 4), float32] { nn.relu(%x) }");
  EXPECT_TRUE(structural_equal(infer_types(typed)->find("main"), typed->find("main")));
}

TEST(Infer, what_two_open_sizes_broadcast_to) {
  EXPECT_EQ(
      type_of_main(
          "def @main[n: Dim, m: Dim](%x: Tensor[(n, 4), float32], %y: Tensor[(m, 4), float32]) {\n"
          "  %x + %y + %x }"),
      "fn [n: Dim, m: Dim](Tensor[(n, 4), float32], Tensor[(m, 4), float32]) -> "
      "Tensor[(broadcast(m, n), 4), float32]");
  EXPECT_EQ(type_of_main(
                "def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32])\n"
                "    -> Tensor[(broadcast(n, m),), float32] { %x * %y }"),
            "fn [n: Dim, m: Dim](Tensor[(n,), float32], Tensor[(m,), float32]) -> "
            "Tensor[(broadcast(m, n),), float32]");
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

const std::string kList =
    "type Option[A] { Some(A), None, }\n"
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {\n"
    "  match (%l) { Nil => Nil, Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)), }\n}\n"
    "def @foldl[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B {\n"
    "  match (%l) { Nil => %z, Cons(%h, %t) => @foldl(%f, %f(%z, %h), %t), }\n}\n"
    "def @id[A](%x: A) -> A { %x }\n";

TEST(Infer, constructors_operators_and_polymorphic_functions_are_values) {
  EXPECT_EQ(type_of_main(kList + "def @main() { @map(Some, Cons(1, Nil)) }"),
            "fn () -> List[Option[int32]]");
  EXPECT_EQ(type_of_main(kList + "def @main() { @foldl(add, 0f, Cons(1f, Nil)) }"),
            "fn () -> float32");
  EXPECT_EQ(type_of_main(kList + "def @main() { @map(@id, Cons(1, Nil)) }\n"
                                 "def @empty() -> List[float32] { @map(@id, Nil) }"),
            "fn () -> List[int32]");
}

TEST(Infer, one_value_is_used_at_several_types) {
  EXPECT_EQ(
      type_of_main(kList + "def @main() {\n"
                           "  let %some = Some;\n"
                           "  let %id = fn [A](%x: A) -> A { %x };\n"
                           "  (%some(1), %some(2f), %id(%id)(1), @map(%id, Cons(True, Nil)))\n"
                           "}"),
      "fn () -> (Option[int32], Option[float32], int32, List[bool])");
}

TEST(Infer, an_operator_as_a_value_has_the_type_of_its_use) {
  EXPECT_EQ(type_of_main("def @main(%x: Tensor[(2, 3), float32], %c: bool) {\n"
                         "  let %f = if (%c) { nn.relu } else { exp };\n  %f(%x)\n}"),
            "fn (Tensor[(2, 3), float32], bool) -> Tensor[(2, 3), float32]");
}

TEST(Infer, functions_may_be_polymorphic_over_each_kind) {
  EXPECT_EQ(type_of_main("def @f[n: Dim](%x: Tensor[(n, 4), float32]) -> Tensor[(n, 4), float32] "
                         "{ add(%x, %x) }\n"
                         "def @main(%x: Tensor[(3, 4), float32]) { @f(%x) }"),
            "fn (Tensor[(3, 4), float32]) -> Tensor[(3, 4), float32]");
  EXPECT_EQ(type_of_main("def @f[s: Shape, t: BaseType](%x: Tensor[s, t]) -> Tensor[s, t] { %x }\n"
                         "def @g[s: Shape](%x: Tensor[s, int8]) -> Tensor[s, int8] { @f(%x) }\n"
                         "def @main(%x: Tensor[(3,), int8]) { @g(%x) }"),
            "fn (Tensor[(3,), int8]) -> Tensor[(3,), int8]");
  EXPECT_EQ(type_of_main("def @f[s: Shape](%x: Tensor[s, float32], %y: Tensor[s, float32]) "
                         "{ add(nn.relu(%x), %y) }\n"
                         "def @main(%x: Tensor[(3,), float32]) { @f(%x, %x) }"),
            "fn (Tensor[(3,), float32]) -> Tensor[(3,), float32]");
}

TEST(Infer, data_types_may_have_dimensions) {
  EXPECT_EQ(type_of_main("type Vec[n: Dim] { V(Tensor[(n,), float32]), }\n"
                         "def @first[n: Dim](%v: Vec[n]) -> Tensor[(n,), float32] "
                         "{ match (%v) { V(%t) => %t, } }\n"
                         "def @main(%x: Tensor[(3,), float32]) { @first(V(%x)) }"),
            "fn (Tensor[(3,), float32]) -> Tensor[(3,), float32]");
}

TEST(Infer, sizes_in_arguments_of_data_types) {
  const std::string vec = "type Vec[n: Dim] { V(Tensor[(n,), float32]), }\ntype unit { U, }\n";
  EXPECT_EQ(type_of_main(vec + "def @main(%v: Vec[3], %u: unit, %w: Vec[?]) { (%v, %u, %w) }"),
            "fn (Vec[3], unit, Vec[?]) -> (Vec[3], unit, Vec[?])");
  EXPECT_EQ(
      type_of_main(vec + "def @main[n: Dim](%v: Vec[n], %w: Vec[2 * (n + 1)]) {\n"
                         "  match (%w) { V(%t) => (%v, %t), }\n}"),
      "fn [n: Dim](Vec[n], Vec[((2 * n) + 2)]) -> (Vec[n], Tensor[(((2 * n) + 2),), float32])");
  std::string text = print_module(infer(
      vec + "def @main[n: Dim](%v: Vec[max(n, 4)], %w: Vec[(n + 1)], %u: unit) { (%v, %w, %u) }"));
  EXPECT_NE(text.find("Vec[max(4, n)], Vec[(n + 1)], unit"), std::string::npos) << text;
  EXPECT_TRUE(structural_equal(infer_types(parse_module("b.relay", text)),
                               infer_types(parse_module("a.relay", text))));
}

TEST(Infer, a_polymorphic_result_may_be_left_to_inference) {
  EXPECT_EQ(type_of_main("def @main() { (@pair(1), @pair(2f)) }\n"
                         "def @pair[A](%x: A) { (%x, %x) }"),
            "fn () -> ((int32, int32), (float32, float32))");
}

TEST(Infer, globals_may_call_each_other_without_annotations) {
  EXPECT_EQ(type_of_main("def @even(%n) { if (equal(%n, 0)) { True } else { @odd(%n - 1) } }\n"
                         "def @odd(%n) { if (equal(%n, 0)) { False } else { @even(%n - 1) } }\n"
                         "def @main() { @even(10) }"),
            "fn () -> bool");
}

TEST(Infer, references_are_of_one_type) {
  EXPECT_EQ(type_of_main(kList + "def @main() {\n  let %r = ref(Nil);\n"
                                 "  ref_write(%r, Cons(1, Nil));\n  ref_read(%r)\n}"),
            "fn () -> List[int32]");
  // Reading at another type than what was written would break every promise.
  std::string e = errors(kList +
                         "def @main() {\n  let %r = ref(@id);\n"
                         "  ref_write(%r, fn (%x: int32) { %x + 1 });\n"
                         "  ref_read(%r)(1f)\n}");
  EXPECT_NE(e.find("E0201"), std::string::npos) << e;
}

TEST(Infer, unknown_inputs_follow_from_the_rest) {
  EXPECT_EQ(type_of_main("def @main(%x: Tensor[(2, 3), float32], %w, %b) {\n"
                         "  nn.bias_add(nn.dense(%x, %w, units=4), %b)\n}"),
            "fn (Tensor[(2, 3), float32], Tensor[(4, 3), float32], Tensor[(4,), float32])"
            " -> Tensor[(2, 4), float32]");
  EXPECT_EQ(type_of_main("def @main(%x) -> Tensor[(2, 3), float32] { transpose(nn.relu(%x)) }"),
            "fn (Tensor[(3, 2), float32]) -> Tensor[(2, 3), float32]");
  EXPECT_EQ(type_of_main("def @main(%x, %w: Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32] "
                         "{ nn.dense(%x, %w) }"),
            "fn (Tensor[(2, 3), float32], Tensor[(4, 3), float32]) -> Tensor[(2, 4), float32]");
}

TEST(Infer, equal_parts_of_types_are_looked_at_once) {
  // The type of %x60 has 2^60 leaves.
  std::string text = "def @f(%x0: int32, %c: bool) -> int32 {\n";
  for (const char* name : {"x", "y"}) {
    if (*name == 'y') text += "  let %y0 = %x0 + 1;\n";
    for (int i = 0; i < 60; ++i) {
      std::string from = name + std::to_string(i), to = name + std::to_string(i + 1);
      text += "  let %" + to + " = (%" + from + ", %" + from + ");\n";
    }
  }
  infer(text + "  let %z = if (%c) { %x60 } else { %y60 };\n  1\n}");
}

}  // namespace
}  // namespace relay
