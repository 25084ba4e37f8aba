#include "passes/structure/compile_match.h"

#include <set>

#include "node/walk.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

const std::string kTypes =
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "type Color { Red, Green, Blue, }\n";

void becomes(const std::string& before, const std::string& after) {
  pass_test::expect_becomes(kCompileMatch, kTypes + before, kTypes + after);
}
void unchanged(const std::string& text) {
  pass_test::expect_unchanged(kCompileMatch, kTypes + text);
}

TEST(CompileMatch, header_example) {
  becomes(
      "def @main(%l: List[float32]) {\n"
      "  match (%l) { Cons(_, Cons(%y, _)) => { exp(%y) }, Cons(%x, Nil) => { %x },\n"
      "               Nil => { 0f }, } }",
      "def @main(%l: List[float32]) {\n"
      "  match (%l) { Cons(%x, %t) => { match (%t) { Cons(%y, _) => { exp(%y) },\n"
      "                                              Nil => { %x }, } },\n"
      "               Nil => { 0f }, } }");
}

TEST(CompileMatch, a_right_side_with_several_ways_to_it_is_a_function) {
  becomes(
      "def @main(%a: Color, %b: Color, %x: float32) {\n"
      "  match ((%a, %b)) { (Red, _) => { 1f }, (_, Red) => { 2f }, (_, _) => { exp(%x) }, } }",
      "def @main(%a: Color, %b: Color, %x: float32) {\n"
      "  let %p = %a; let %q = %b;\n"
      "  match (%p) { Red => { 1f },\n"
      "               _ => { match (%q) { Red => { 2f }, _ => { exp(%x) }, } }, } }");
  becomes(
      "def @main(%p: (Color, Color), %x: float32) {\n"
      "  match (%p) { (Red, Green) => { 1f }, (%y, _) => { %0 = (%y, exp(%x)); %0.1 }, } }",
      "def @main(%p: (Color, Color), %x: float32) {\n"
      "  let %join = fn (%y: Color) { %0 = (%y, exp(%x)); %0.1 };\n"
      "  match (%p) { (%a, %b) => {\n"
      "    match (%a) { Red => { match (%b) { Green => { 1f }, _ => { %join(%a) }, } },\n"
      "                 _ => { %join(%a) }, } }, } }");
}

TEST(CompileMatch, what_no_clause_covers_fails_at_the_place_of_the_match) {
  becomes("def @main(%l: List[float32]) { match? (%l) { Cons(%x, Nil) => { %x }, } }",
          "def @main(%l: List[float32]) {\n"
          "  match? (%l) { Cons(%x, %t) => { match? (%t) { Nil => { %x }, } }, } }");
  Module mod = pass_test::parse(kTypes +
                                "def @main(%l: List[float32]) {\n"
                                "  match? (%l) { Cons(%x, Nil) => { %x }, } }");
  auto* before = as<MatchNode>(mod->find("main")->body);
  Module out = pass_test::apply(kCompileMatch, mod);
  auto* after = as<MatchNode>(out->find("main")->body);
  auto* inner = as<MatchNode>(after->clauses[0]->rhs);
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(inner->span.describe(), before->span.describe());
}

// Maranget's example: no question is asked twice on any way.
TEST(CompileMatch, no_question_is_asked_twice) {
  Module out = pass_test::apply(
      kCompileMatch,
      pass_test::parse(kTypes +
                       "def @main(%a: List[Color], %b: List[Color]) {\n"
                       "  match ((%a, %b)) {\n"
                       "    (Cons(Red, Cons(Red, _)), Cons(Green, _)) => { 1 },\n"
                       "    (Cons(Red, Cons(Blue, _)), Cons(_, Nil)) => { 2 },\n"
                       "    (Cons(_, Nil), _) => { 3 }, (_, Nil) => { 4 }, (_, _) => { 5 }, } }"));
  // From the outside in: a match, and the variables that matches around it look at.
  std::vector<std::pair<const Node*, std::set<const Node*>>> work{
      {out->find("main")->body.get(), {}}};
  int matches = 0;
  while (!work.empty()) {
    auto [n, asked] = work.back();
    work.pop_back();
    if (auto* m = as<MatchNode>(n)) {
      ++matches;
      EXPECT_TRUE(asked.insert(m->data.get()).second) << print_module(out);
    }
    for_each_child(*n, [&](const NodeRef& child) { work.emplace_back(child.get(), asked); });
  }
  EXPECT_EQ(matches, 8) << print_module(out);
}

TEST(CompileMatch, what_clauses_share_is_computed_where_it_was) {
  becomes(
      "def @main(%l: List[float32], %r: ref(float32)) {\n"
      "  %0 = ref_read(%r);\n"
      "  match (%l) { Cons(_, Cons(_, _)) => { add(%0, 1f) }, Cons(_, Nil) => { add(%0, 2f) },\n"
      "               Nil => { 0f }, } }",
      "def @main(%l: List[float32], %r: ref(float32)) {\n"
      "  let %a = ref_read(%r);\n"
      "  match (%l) { Cons(_, %t) => { match (%t) { Cons(_, _) => { add(%a, 1f) },\n"
      "                                             Nil => { add(%a, 2f) }, } },\n"
      "               Nil => { 0f }, } }");
}

TEST(CompileMatch, leaves_flat_matches) {
  unchanged(
      "def @main(%l: List[float32]) { match (%l) { Cons(%x, _) => { %x }, Nil => { 0f }, } }");
  unchanged("def @main(%c: Color) { match (%c) { Green => { 1f }, _ => { 0f }, } }");
  unchanged("def @main(%p: (float32, float32)) { match (%p) { (%x, _) => { %x }, } }");
  unchanged("def @main(%l: List[float32]) { match? (%l) { Cons(%x, _) => { %x }, } }");
}

// n clauses over n parts, each with one constructor: trees of it are exponential in n.
TEST(CompileMatch, leaves_a_match_whose_tree_would_be_far_larger) {
  std::string parts, clauses;
  const int n = 18;
  for (int i = 0; i < n; ++i) {
    parts += std::string(i ? ", " : "") + "Color";
    for (const char* color : {"Red", "Green"}) {
      std::string row;
      for (int k = 0; k < n; ++k) {
        row += std::string(k ? ", " : "") + (k == i || k == (i + 7) % n ? color : "_");
      }
      clauses += "(" + row + ") => { " + std::to_string(i) + " }, ";
    }
  }
  std::string any;
  for (int k = 0; k < n; ++k) any += k ? ", _" : "_";
  unchanged("def @main(%p: (" + parts + ")) { match (%p) { " + clauses + "(" + any +
            ") => { 99 }, } }");
}

}  // namespace
}  // namespace relay
