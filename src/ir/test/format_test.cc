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
                "def @f(%x: int32 /* one */, %y: int32) -> int32 {  // behind the head\n"
                "  // before a line\n"
                "  let %z = %x;  // behind a line\n"
                "\n"
                "  /* block\n"
                "     of two lines */\n"
                "  let %w = (\n"
                "    %x,  // the first\n"
                "    // the second\n"
                "    %y\n"
                "  );\n"
                "  /* inside */ %w.0 +  // sum\n"
                "      %z\n"
                "  // at the end\n"
                "}  // f\n"
                "// the last\n");
}

// Each of a number of lines is laid out as it stands here; the text is given without line breaks.
void stays(const std::string& definitions) {
  std::string joined = kVersion;
  for (char c : definitions) joined += c == '\n' ? ' ' : c;
  EXPECT_EQ(formatted(joined), kVersion + definitions);
}

TEST(Format, breaks_the_outer_construct_first) {
  // Parameters before the result and the body, each in its line.
  stays(R"(def @parameters(
  %state: (Tensor[(1, 4), float32], Tensor[(1, 4), float32]),
  %x: Tensor[(1, 3), float32]
) -> (Tensor[(1, 4), float32], Tensor[(1, 4), float32]) {
  %state
}
)");
  // A binding before its value; operators before arguments, the loosest first.
  stays(R"(def @operators(%gates: int32, %cells: int32, %h: fn (int32, int32) -> int32) -> int32 {
  let %below =
    %h(%gates, %cells) * %h(%cells, %gates) + %h(%gates, %gates) * %h(%cells, %cells) + %cells;
  let %apart = %h(%gates, %cells) * %h(%cells, %gates)
    + %h(%gates, %gates) * %h(%cells, %cells)
    + %h(%gates, %cells) * %h(%cells, %gates);
  %h(%gates, %cells) * %h(%cells, %gates) * %h(%gates, %cells) * %h(%cells, %gates) * %gates
    + %h(%gates, %cells)
}
)");
  // A call's arguments, each in its line; a branch with the others.
  stays(
      R"(def @arguments(%first: int32, %g: fn (int32, int32, int32) -> int32, %c: fn (int32) -> bool) {
  let %value = %g(
    %g(%first, %first, %first) + %g(%first, %first, %first),
    %g(%first, %first, %g(%first, %first, %first)),
    100000000
  );
  if (%c(%g(%value, %value, %value) + %g(%first, %first, %first))) {
    %g(%value, %value, %value)
  } else if (%c(%first)) {
    100
  } else {
    %first
  }
}
)");
}

TEST(Format, heads_of_functions_stay_together) {
  stays(R"(def @f() {
  let %decide: fn (List[int32], int32) -> (List[int32], int32) =
    fn (%list: List[int32], %first: int32) -> (List[int32], int32) {
      let %rest = %list;
      (%rest, %first)
    };
  let %short: fn (int32) -> int32 = fn (%x: int32) -> int32 {
    let %y = %x;
    %y
  };
  (%decide, %short)
}
)");
}

TEST(Format, clauses_break_behind_the_arrow) {
  stays(
      R"(def @f(%list: List[int32], %g: fn (int32, List[int32]) -> int32, %c: fn (int32) -> bool) {
  match (%list) {
    Cons(%first, %rest) =>
      %g(if (%c(1)) { %first } else { %first + 1 }, Cons(%first + 100, Cons(%first, %rest))),
    Nil => if (%c(%g(2, %list) + %g(3, %list) + %g(4, %list) + %g(5, %list) + %g(6, %list))) {
      1
    } else {
      2
    },
  }
}
)");
}

TEST(Format, lists_do_not_step_to_the_right) {
  stays(R"(def @short() -> List[int32] {
  let %numbers =
    Cons(1000000, Cons(1000001, Cons(1000002, Cons(1000003, Cons(1000004, Cons(1000005,
    Cons(1000006, Cons(1000007, Nil))))))));
  %numbers
}
)");
  stays(R"(def @long(%f: fn (int32, int32) -> int32) -> List[int32] {
  Cons(%f(1000000, 1000000) + %f(1000000, 1000000),
  Cons(%f(1000000, 1000000) + %f(1000000, 1000000),
  Cons(%f(1000000, 1000000) + %f(1000000, 1000000), Nil)))
}
)");
  stays(R"(def @numbers() {
  test.attrs(
    1f,
    list=[
      10000000, 20000000, 30000000, 40000000, 50000000, 60000000, 70000000, 80000000, 9000, 1, 2, 3,
      4, 5, 6, 7, 8, 9
    ]
  )
}
)");
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
                "  }  // then\n"
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
