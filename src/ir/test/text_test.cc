#include "ir/text/text.h"

#include <gtest/gtest.h>

#include "ir/test/test_ops.h"
#include "node/structural.h"

namespace relay {
namespace {

// Parses, prints and parses again; the two modules must be equal and the second print the same.
std::string round_trip(const std::string& text) {
  test::register_test_ops();
  Module once = parse_module("a.relay", text);
  std::string printed = print_module(once);
  Module twice = parse_module("b.relay", printed);
  EXPECT_EQ(first_structural_mismatch(once, twice), "") << printed;
  EXPECT_EQ(print_module(twice), printed);
  return printed;
}

std::string errors(const std::string& text) {
  test::register_test_ops();
  try {
    parse_module("a.relay", text);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

constexpr const char* kVersion = "#[version = \"0.0.5\"]\n";

TEST(Text, prints_shared_expressions_once) {
  EXPECT_EQ(round_trip(std::string(kVersion) + "def @main(%x: Tensor[(2,), float32]) {\n"
                                               "  %0 = test.id(%x);\n"
                                               "  test.pair(%0, %0)\n"
                                               "}\n"),
            std::string(kVersion) +
                "def @main(%x: Tensor[(2,), float32]) {\n"
                "  %0 = test.id(%x);\n"
                "  test.pair(%0, %0)\n"
                "}\n");
}

TEST(Text, keeps_every_construct) {
  round_trip(std::string(kVersion) + R"(
type List[A] {
  Cons(A, List[A]),
  Nil,
}
extern type Opaque
def @id[A](%x: A) -> A { %x }
def @f[n: Dim](%x: Tensor[(n, 4), float32], %r: ref(Tensor[(), int32])) {
  // comments /* nest */
  let %y: Tensor[(n, 4), float32] = test.id(%x);
  let %g = fn (%a: int32, Inline=1) -> int32 { %a };
  ref_write(%r, %g(3));
  let %l = Cons(1, Cons(-2, Nil));
  %0 = match (%l) {
    Cons(%h, _) => { %h },
    Nil => { 0 },
  };
  %1 = (ref_read(%r), %0, (1f,), 2.5f16, -1i64, True, inff);
  if (True) { (%y, %1.0) } else { (test.id(%y), %1.1) }
}
)");
}

TEST(Text, keeps_bindings_wherever_they_are) {
  round_trip(std::string(kVersion) + R"(
def @main(%x: int32) {
  let %a = (
    let %b = test.id(%x);
    (let %c = test.id(%b); %c)
  );
  %0 = (
    let %loop: fn (int32) -> int32 = fn (%i: int32) -> int32 { %loop(test.id(%i)) };
    %loop(%a)
  );
  test.pair(%0, (let %d = %a; %d))
}
)");
}

TEST(Text, keeps_attributes_and_drops_defaults) {
  std::string printed = round_trip(std::string(kVersion) +
                                   "def @main(%x: float32) { test.attrs(%x, name=\"a\\n\\\"b\", "
                                   "list=[1, 2], level=1) }\n");
  EXPECT_NE(printed.find("test.attrs(%x, list=[1, 2], name=\"a\\n\\\"b\")"), std::string::npos)
      << printed;
}

TEST(Text, keeps_constants_bit_for_bit) {
  test::register_test_ops();
  Tensor t = Tensor::empty(DType::Float(32), {2, 2});
  const float values[] = {1.5f, -0.0f, 1e-45f, 3e38f};
  std::copy(values, values + 4, t.data<float>());
  Module mod = module_from_expr(call("test.id", {constant(t)}));
  Module back = parse_module("a.relay", print_module(mod));
  EXPECT_EQ(first_structural_mismatch(mod, back), "");
}

TEST(Text, reads_operators_with_precedence_from_left_to_right) {
  test::register_test_ops();
  Expr e = parse_expr("a.relay", "1 - 2 - 3");
  EXPECT_EQ(print_expr(e), "%0 = subtract(1, 2);\nsubtract(%0, 3)");
}

TEST(Text, a_projection_is_no_decimal_point) {
  test::register_test_ops();
  Expr e = parse_expr("a.relay", "let %t = ((1, 2), 3); %t.0.1");
  EXPECT_EQ(to_string(as<LetNode>(e)->body->type), "int32");
}

TEST(Text, reports_the_errors_of_all_definitions) {
  EXPECT_EQ(errors(std::string(kVersion) + "def @a() { %x }\n"
                                           "def @b() { test.idd(1) }\n"
                                           "def @c( { 1 }\n"),
            "error[E0103]: %x is not bound here\n"
            "  --> a.relay:2:12\n"
            "    |\n"
            "  2 | def @a() { %x }\n"
            "    |            ^^\n"
            "error[E0105]: there is no operator or constructor 'test.idd'\n"
            "  --> a.relay:3:12\n"
            "    |\n"
            "  3 | def @b() { test.idd(1) }\n"
            "    |            ^^^^^^^^\n"
            "  help:     did you mean test.id?\n"
            "error[E0101]: this cannot be read\n"
            "  --> a.relay:4:9\n"
            "    |\n"
            "  4 | def @c( { 1 }\n"
            "    |         ^\n"
            "  expected: a parameter, an attribute or ')'\n"
            "  found:    '{'");
}

TEST(Text, names_bad_literals_versions_attributes_and_globals) {
  auto has = [](const std::string& text, const char* code) {
    std::string e = errors(text);
    EXPECT_NE(e.find(code), std::string::npos) << text << "\n" << e;
  };
  has(std::string(kVersion) + "def @main() { 99999999999999999999 }", "E0102");
  has(std::string(kVersion) + "def @main() { 300i8 }", "E0102");
  has(std::string(kVersion) + "def @main() { \"open }", "E0102");
  has(std::string(kVersion) + "def @a() { 1 } def @a() { 2 }", "E0104");
  has(std::string(kVersion) + "def @a() { test.attrs(1f, levle=2) }", "E0106");
  has(std::string(kVersion) + "def @a() { test.attrs(1f, level=\"x\") }", "E0106");
  has("def @a() { 1 }", "E0107");
  has("#[version = \"9\"]\ndef @a() { 1 }", "E0107");
  has(std::string(kVersion) + "def @a() { meta[relay.Constant][3] }", "E0108");
  has(std::string(kVersion) + "def @a() { 1 }\n#[metadata]\n{\"x\": 1}", "E0108");
  has(std::string(kVersion) + "def @a() { @nobody() }", "E0103");
  has(std::string(kVersion) + "def @a() { \x01 }", "E0101");
}

TEST(Text, a_type_that_shares_its_parts_is_cut) {
  Type t = scalar_type(DType::Int(32));
  for (int i = 0; i < 60; ++i) t = tuple_type({t, t});
  std::string text = to_string(t);
  EXPECT_LT(text.size(), 5'000'000u);
  EXPECT_TRUE(text.ends_with("..."));
}

TEST(Text, a_hundred_thousand_lines_cost_no_stack) {
  test::register_test_ops();
  std::string text = std::string(kVersion) + "def @main(%x: float32) {\n  %0 = test.id(%x);\n";
  for (int i = 1; i < 100000; ++i) {
    text += "  %" + std::to_string(i) + " = test.id(%" + std::to_string(i - 1) + ");\n";
  }
  text += "  %99999\n}\n";
  Module mod = parse_module("a.relay", text);
  std::string printed = print_module(mod);
  EXPECT_TRUE(structural_equal(mod, parse_module("b.relay", printed)));
}

std::string repeat(const std::string& part, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += part;
  return out;
}

TEST(Text, deep_nesting_costs_no_stack_and_no_indentation) {
  test::register_test_ops();
  constexpr int kDepth = 25000;
  auto nested = [&](const std::string& open, const std::string& inner, const std::string& close) {
    return "{ " + repeat(open, kDepth) + inner + repeat(close, kDepth) + " }\n";
  };
  const std::string list = "type List[A] { Cons(A, List[A]), Nil }\n";
  const std::string programs[] = {
      "def @main(%c: bool) -> int32 " + nested("if (%c) {", "1", "} else { 2 }"),
      "def @main(%c: bool) -> int32 " + nested("if (%c) { 1 } else ", "{ 2 }", ""),
      "def @main(%c: bool) -> bool " + nested("if (", "%c", ") { %c } else { True }"),
      "def @main(%x: int32) -> int32 " + nested("test.id(", "%x", ")"),
      "def @main(%x: int32) -> int32 " + nested("1 + (", "%x", ")"),
      list + "def @main() -> List[int32] " + nested("Cons(1, ", "Nil", ")"),
      list + "def @main(%l: List[int32]) -> int32 " +
          nested("match (%l) { Nil => 0, Cons(%h, %t) => ", "1", "}"),
      list + "def @main(%l: List[int32]) -> int32 { match? (%l) {" + repeat("Cons(_, ", kDepth) +
          "_" + repeat(")", kDepth) + " => 1 } }\n",
      "def @main(%x: int32) -> int32 " +
          nested("let %f = fn (%y: int32) -> int32 {", "%y", "}; %f(%x)"),
      "def @main(%x: " + repeat("ref(", kDepth) + "(int32,)" + repeat(")", kDepth) + ") { 1 }\n",
  };
  for (const std::string& program : programs) {
    Module mod = parse_module("a.relay", kVersion + program);
    std::string printed = print_module(mod);
    EXPECT_TRUE(structural_equal(mod, parse_module("b.relay", printed))) << program.substr(0, 100);
    EXPECT_LT(printed.size(), kDepth * 500u) << program.substr(0, 100);
  }
}

}  // namespace
}  // namespace relay
