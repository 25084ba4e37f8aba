#include "ir/text/format.h"

#include <gtest/gtest.h>

#include "ir/test/test_ops.h"
#include "ir/text/text.h"
#include "node/structural.h"

namespace relay {
namespace {

// The text in canonical layout, which must mean the same and stay as it is when formatted again.
std::string formatted(const std::string& text) {
  test::register_test_ops();
  std::string once = format_text(SourceFile::make("a.relay", text));
  EXPECT_EQ(format_text(SourceFile::make("b.relay", once)), once);
  Module before = parse_module("a.relay", text), after = parse_module("b.relay", once);
  EXPECT_EQ(first_structural_mismatch(before, after), "") << once;
  return once;
}

constexpr const char* kVersion = "#[version = \"0.0.5\"]\n";

TEST(Format, writes_one_layout) {
  EXPECT_EQ(formatted("#[version=\"0.0.5\"]\n\n\ntype   List[A]{Cons(A,List[A]),Nil}\n"
                      "def @f [A] ( %l:List[A],Inline = 1 )->int32{\n"
                      "match(%l){Cons(_,%t)=>{1+@f(%t)},Nil=>-2}}\n"
                      "def @g(%x:(int32,),%c :bool){let %y=test.attrs( 1f,list =[1,2] );\n\n\n"
                      "%0=fn(%z:int32){%z};if(%c){%0( %x . 0 )}else{0}}"),
            "#[version = \"0.0.5\"]\n"
            "\n"
            "type List[A] {\n"
            "  Cons(A, List[A]),\n"
            "  Nil,\n"
            "}\n"
            "\n"
            "def @f[A](%l: List[A], Inline=1) -> int32 {\n"
            "  match (%l) {\n"
            "    Cons(_, %t) => { 1 + @f(%t) },\n"
            "    Nil => -2,\n"
            "  }\n"
            "}\n"
            "\n"
            "def @g(%x: (int32,), %c: bool) {\n"
            "  let %y = test.attrs(1f, list=[1, 2]);\n"
            "\n"
            "  %0 = fn (%z: int32) { %z };\n"
            "  if (%c) { %0(%x.0) } else { 0 }\n"
            "}\n");
}

TEST(Format, keeps_comments_where_they_stand) {
  std::string text = std::string("// head\n") + kVersion +
                     "// about f\n"
                     "// more\n"
                     "\n"
                     "// apart\n"
                     "def @f(%x: int32 /* one */, %y: int32) -> int32 {  // behind the head\n"
                     "  // before a line\n"
                     "  let %z = %x;  // behind a line\n"
                     "\n"
                     "  /* block\n"
                     "     of two lines */\n"
                     "  let %w = (%x,  // the first\n"
                     "    // the second\n"
                     "    %y);\n"
                     "  /* inside */ %w.0 +  // sum\n"
                     "  %z\n"
                     "  // at the end\n"
                     "}  // f\n"
                     "// the last\n";
  EXPECT_EQ(formatted(text),
            std::string("// head\n") + kVersion +
                "// about f\n"
                "// more\n"
                "\n"
                "// apart\n"
                "def @f(%x: int32 /* one */, %y: int32) -> int32 { // behind the head\n"
                "  // before a line\n"
                "  let %z = %x; // behind a line\n"
                "\n"
                "  /* block\n"
                "     of two lines */\n"
                "  let %w = (\n"
                "    %x, // the first\n"
                "    // the second\n"
                "    %y\n"
                "  );\n"
                "  /* inside */ %w.0 + // sum\n"
                "      %z\n"
                "  // at the end\n"
                "} // f\n"
                "// the last\n");
}

TEST(Format, breaks_long_lines_at_brackets_and_operators) {
  std::string name(30, 'a');
  std::string x = "%" + name;
  std::string text = std::string(kVersion) + "def @f(" + x + "1: int32, " + x + "2: int32, " + x +
                     "3: int32) -> int32 { let %s = " + x + "1 + " + x + "2 + " + x + "3 * " + x +
                     "1; let %t = (" + x + "1, (" + x + "2, " + x + "3), %s); if (True) { " + x +
                     "1 + 1 } else if (False) { " + x + "2 } else { 100000000 } }";
  EXPECT_EQ(formatted(text), std::string(kVersion) +
                                 "def @f(\n"
                                 "  " +
                                 x +
                                 "1: int32,\n"
                                 "  " +
                                 x +
                                 "2: int32,\n"
                                 "  " +
                                 x +
                                 "3: int32\n"
                                 ") -> int32 {\n"
                                 "  let %s = " +
                                 x + "1 + " + x +
                                 "2\n"
                                 "      + " +
                                 x + "3 * " + x +
                                 "1;\n"
                                 "  let %t = (\n"
                                 "    " +
                                 x +
                                 "1,\n"
                                 "    (" +
                                 x + "2, " + x +
                                 "3),\n"
                                 "    %s\n"
                                 "  );\n"
                                 "  if (True) {\n"
                                 "    " +
                                 x +
                                 "1 + 1\n"
                                 "  } else if (False) {\n"
                                 "    " +
                                 x +
                                 "2\n"
                                 "  } else {\n"
                                 "    100000000\n"
                                 "  }\n"
                                 "}\n");
}

TEST(Format, keeps_a_call_around_the_lines_of_its_argument) {
  EXPECT_EQ(formatted(std::string(kVersion) +
                      "def @f(%c: bool, %h) { let %g = %h(fn (%x: int32) -> int32 { let %y = %x; "
                      "%y }, 1); if (%c) { 1 } // then\nelse { 2 } }"),
            std::string(kVersion) +
                "def @f(%c: bool, %h) {\n"
                "  let %g = %h(fn (%x: int32) -> int32 {\n"
                "    let %y = %x;\n"
                "    %y\n"
                "  }, 1);\n"
                "  if (%c) {\n"
                "    1\n"
                "  } // then\n"
                "  else {\n"
                "    2\n"
                "  }\n"
                "}\n");
}

TEST(Format, leaves_the_metadata_section_as_it_is) {
  std::string section = "#[metadata]\n{\n  \"relay.Constant\":  []\n}\n";
  std::string text = formatted(std::string(kVersion) + "def @f() { 1 }\n" + section);
  EXPECT_TRUE(text.ends_with("}\n\n" + section)) << text;
}

TEST(Format, a_hundred_thousand_brackets_cost_no_stack) {
  test::register_test_ops();
  constexpr int kDepth = 100000;
  std::string text = std::string(kVersion) + "def @f(%c: bool) {";
  for (int i = 0; i < kDepth; ++i) text += "if(%c){(";
  text += "1";
  for (int i = 0; i < kDepth; ++i) text += ")}else{2}";
  text += "}";
  std::string once = format_text(SourceFile::make("a.relay", text));
  EXPECT_LT(once.size(), kDepth * 600u);
  EXPECT_TRUE(once == format_text(SourceFile::make("b.relay", once)));
}

}  // namespace
}  // namespace relay
