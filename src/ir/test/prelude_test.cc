#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "ir/test/test_ops.h"
#include "ir/text/prelude/prelude.h"
#include "ir/text/prelude/prelude_files.h"
#include "ir/text/text.h"
#include "node/structural.h"

namespace relay {
namespace {

Module parse(const std::string& text) {
  test::register_test_ops();
  return parse_module("a.relay", "#[version = \"0.0.5\"]\n" + text);
}

std::set<std::string> names(const Module& mod) {
  std::set<std::string> out;
  for (const GlobalVar& g : mod->global_vars) out.insert("@" + g->name_hint);
  for (const TypeData& t : mod->type_definitions) out.insert(t->header->name_hint);
  return out;
}

using NameSet = std::set<std::string>;

TEST(Prelude, only_what_a_module_reaches_becomes_part_of_it) {
  EXPECT_EQ(names(parse("def @main(%x: int32) -> int32 { %x }")), (NameSet{"@main"}));
  EXPECT_EQ(names(parse("def @main(%x: List[int32]) -> List[int32] { @rev(%x) }")),
            (NameSet{"@list.reverse_onto", "@main", "@rev", "List"}));
  EXPECT_EQ(names(parse("def @main() -> Option[int32] { None }")), (NameSet{"@main", "Option"}));
}

TEST(Prelude, an_attribute_is_no_constructor) {
  Module mod = parse("def @main(%x: int32, %y: int32) { fn (%z: int32, Flag=None) { %z } }");
  EXPECT_EQ(names(mod), (NameSet{"@main"}));
}

TEST(Prelude, own_definitions_take_the_place_of_the_preludes) {
  Module mod = parse(R"(
type List[A] { Nil, Cons(A, List[A]) }
def @length(%x: int32) -> int32 { %x }
def @main(%x: List[int32]) -> (List[int32], int32) { (@rev(%x), @length(1)) })");
  EXPECT_EQ(names(mod), (NameSet{"@length", "@list.reverse_onto", "@main", "@rev", "List"}));
  EXPECT_EQ(mod->find("length")->params.size(), 1u);
  EXPECT_EQ(mod->find_constructor("Nil")->tag, 0);
}

TEST(Prelude, an_own_constructor_does_not_bring_the_type_of_another_one) {
  Module mod = parse(R"(
type Stack { Push(int32, Stack), Nil }
def @main() -> Stack { Nil })");
  EXPECT_EQ(names(mod), (NameSet{"@main", "Stack"}));
}

TEST(Prelude, an_own_helper_of_the_same_name_is_not_called_by_the_prelude) {
  Module mod = parse(R"(
def @rev(%x: int32) -> int32 { %x }
def @main(%xs: List[int32]) { @concat(%xs, %xs) })");
  EXPECT_EQ(names(mod), (NameSet{"@concat", "@list.reverse_onto", "@main", "@rev", "List"}));
}

TEST(Prelude, functions_of_the_prelude_call_each_other_by_dotted_names) {
  for (const EmbeddedFile& file : prelude_texts()) {
    Diagnostics diags;
    auto source = SourceFile::make(std::string(file.name), std::string(file.text));
    std::vector<text::Token> tokens = text::tokenize(source, diags).tokens;
    std::string_view current;
    for (size_t i = 1; i < tokens.size(); ++i) {
      if (tokens[i].kind != text::TokenKind::global) continue;
      if (tokens[i - 1].text == "def") {
        current = tokens[i].text;
      } else {
        EXPECT_TRUE(tokens[i].text == current || tokens[i].text.find('.') != std::string_view::npos)
            << "@" << current << " calls @" << tokens[i].text;
      }
    }
  }
}

TEST(Prelude, text_with_parts_of_the_prelude_is_self_contained) {
  Module once = parse("def @main(%x: List[int32]) -> List[int32] { @rev(%x) }");
  std::string printed = print_module(once);
  EXPECT_EQ(first_structural_mismatch(once, parse_module("b.relay", printed)), "") << printed;
}

TEST(Prelude, a_module_can_have_all_of_a_file) {
  Module own = parse("def @rev(%x: int32) -> int32 { %x }");
  EXPECT_THROW(import_prelude(own, "more.rly"), UserError);
  Module first = import_prelude(parse("def @main(%xs: List[int32]) { @rev(%xs) }"), "nat.rly");
  EXPECT_EQ(names(first).count("@nat_add"), 1u);
  EXPECT_EQ(import_prelude(first, "nat.rly").get(), first.get()) << "all is there already";
}

TEST(Prelude, threads_may_parse_at_once) {
  test::register_test_ops();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 20; ++k) {
        EXPECT_EQ(parse("def @main(%x: List[int32]) { @rev(%x) }")->functions.size(), 3u);
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace relay
