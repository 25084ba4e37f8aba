#include "types/match.h"

#include <gtest/gtest.h>

#include <chrono>

#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "types/infer.h"

namespace relay {
namespace {

const char* kTypes =
    "type List[A] { Cons(A, List[A]), Nil, }\n"
    "type Option[A] { Some(A), None, }\n"
    "type Colour { Red, Green, Blue, }\n";

std::string with_header(const std::string& text) {
  return "#[version = \"0.0.5\"]\n" + std::string(kTypes) + text;
}

// The diagnostics of `match (%x: type) { clauses }`, each as its found line, or "redundant".
std::vector<std::string> problems(const std::string& type, const std::string& clauses,
                                  const std::string& keyword = "match") {
  register_ops();
  std::string text = with_header("def @f(%x: " + type + ") -> int32 {\n  " + keyword + " (%x) {\n" +
                                 clauses + "\n  }\n}\n");
  std::vector<Diagnostic> found;
  try {
    found = check_matches(infer_types(parse_module("a.relay", text)));
  } catch (const UserError& e) {
    found = e.diagnostics();
  }
  std::vector<std::string> out;
  for (const Diagnostic& d : found) {
    EXPECT_EQ(d.code, "E0211") << d.render();
    out.push_back(d.severity == Severity::warning ? "redundant" : d.found_text);
  }
  return out;
}

using Problems = std::vector<std::string>;

TEST(Match, total_matches_have_no_problems) {
  EXPECT_EQ(problems("List[int32]", "Nil => 0, Cons(%a, _) => %a,"), Problems{});
  EXPECT_EQ(problems("List[int32]", "Nil => 0, Cons(_, Nil) => 1, Cons(_, Cons(%a, _)) => %a,"),
            Problems{});
  EXPECT_EQ(problems("Colour", "Red => 0, %other => 1,"), Problems{});
  EXPECT_EQ(problems("(Colour, Colour)",
                     "(Red, _) => 0, (_, Red) => 1, (Green, Green) => 2, "
                     "(Green, Blue) => 3, (Blue, Green) => 4, "
                     "(Blue, Blue) => 5,"),
            Problems{});
}

TEST(Match, a_value_that_is_not_covered_is_shown) {
  EXPECT_EQ(problems("List[int32]", "Nil => 0, Cons(%a, Cons(_, _)) => %a,"),
            Problems{"no clause for Cons(_, Nil)"});
  EXPECT_EQ(problems("(Colour, Option[Colour])",
                     "(Red, _) => 0, (_, None) => 1, "
                     "(Green, Some(Red)) => 2, (Blue, Some(_)) => 3,"),
            Problems{"no clause for (Green, Some(Green))"});
  EXPECT_EQ(problems("Option[(Colour,)]", "None => 0, Some((Red,)) => 1, Some((Blue,)) => 1,"),
            Problems{"no clause for Some((Green,))"});
}

TEST(Match, an_open_match_need_not_be_total) {
  EXPECT_EQ(problems("List[int32]", "Cons(%a, _) => %a,", "match?"), Problems{});
}

TEST(Match, a_clause_that_no_value_reaches_is_redundant) {
  EXPECT_EQ(problems("Colour", "Red => 0, _ => 1, Blue => 2,"), Problems{"redundant"});
  EXPECT_EQ(problems("Colour", "Red => 0, Red => 1, _ => 2,"), Problems{"redundant"});
  // Covered by the clauses before it together, not by one of them.
  EXPECT_EQ(problems("(Option[int32], Colour)",
                     "(Some(_), _) => 0, (None, Red) => 1, (None, _) => 2, (_, Blue) => 3,"),
            Problems{"redundant"});
  EXPECT_EQ(problems("Colour", "Red => 0, Green => 1, Blue => 2, _ => 3,", "match?"),
            Problems{"redundant"});
}

TEST(Match, hard_patterns_end_in_a_verdict) {
  // Rows that each fix two of many columns: a decision tree of exponential size.
  constexpr int kColumns = 40;
  std::string type, clauses;
  for (int i = 0; i < kColumns; ++i) type += i == 0 ? "(Colour" : ", Colour";
  type += ")";
  for (int row = 0; row + 1 < kColumns; ++row) {
    clauses += "(";
    for (int i = 0; i < kColumns; ++i) {
      clauses += i == row ? "Red, " : i == kColumns - 1 - row ? "Green, " : "_, ";
    }
    clauses += ") => 0,\n";
  }
  auto begin = std::chrono::steady_clock::now();
  Problems found = problems(type, clauses);
  EXPECT_FALSE(found.empty());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Match, many_clauses_take_little_time) {
  constexpr int kClauses = 5000;
  std::string type = "type Many { ", clauses;
  for (int i = 0; i < kClauses; ++i) {
    type += "C" + std::to_string(i) + ", ";
    if (i != 1234) clauses += "C" + std::to_string(i) + " => 0, ";
  }
  register_ops();
  try {
    infer_types(parse_module(
        "a.relay", with_header(type + "}\ndef @f(%x: Many) { match (%x) { " + clauses + "} }")));
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics().at(0).found_text, "no clause for C1234");
  }
}

}  // namespace
}  // namespace relay
