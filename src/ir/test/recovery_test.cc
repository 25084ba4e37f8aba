// What is told about texts with several mistakes, and what is left of them to be checked further.
#include <gtest/gtest.h>

#include "ir/test/test_ops.h"
#include "ir/text/text.h"

namespace relay {
namespace {

constexpr const char* kVersionLine = "#[version = \"0.0.5\"]\n";

struct Result {
  // "line:column code message", one for each error.
  std::string errors;
  Module module;
};

Result read(const std::string& text) {
  test::register_test_ops();
  Diagnostics diags;
  Result out;
  auto source = SourceFile::make("a.relay", kVersionLine + text);
  out.module = parse_module(source, diags);
  for (const Diagnostic& d : diags.all()) {
    auto at = source->position(d.span.begin());
    out.errors += std::to_string(at.line - 1) + ":" + std::to_string(at.column) + " " +
                  std::string(d.code) + " " + d.message + "\n";
  }
  return out;
}

std::string function_names(const Module& mod) {
  std::string out;
  for (const GlobalVar& g : mod->global_vars) out += g->name_hint + " ";
  return out;
}

TEST(Recovery, goes_on_with_the_next_line) {
  EXPECT_EQ(read("def @main(%x: int32) -> int32 {\n"
                 "  let %a = %x + ;\n"
                 "  let %b = test.pair(%x, %a;\n"
                 "  let = 3;\n"
                 "  %0 = (1, 2];\n"
                 "  let %c = %b + %nobody;\n"
                 "  let %d = %0.0 + %a;\n"
                 "  %c %d\n"
                 "}\n")
                .errors,
            "2:17 E0101 this cannot be read\n"
            "3:28 E0101 this cannot be read\n"
            "4:7 E0101 this cannot be read\n"
            "5:13 E0101 this cannot be read\n"
            "6:17 E0103 %nobody is not bound here\n"
            "8:6 E0101 this cannot be read\n");
}

TEST(Recovery, goes_on_behind_the_braces_that_hold_the_mistake) {
  EXPECT_EQ(read("def @main(%c: bool) -> int32 {\n"
                 "  let %a = if (%c) { 1 + } else { %nobody };\n"
                 "  let %f = fn (%x: int32) { let %y = ); %x };\n"
                 "  let %m = match ((1, 2)) { (%p %q) => { 1 }, _ => { 2 } };\n"
                 "  %f(%a) + %z\n"
                 "}\n"
                 "def @next() { )\n }\n"
                 "def @last() { %z }\n")
                .errors,
            "2:26 E0101 this cannot be read\n"
            "2:35 E0103 %nobody is not bound here\n"
            "3:38 E0101 this cannot be read\n"
            "4:33 E0101 this cannot be read\n"
            "5:12 E0103 %z is not bound here\n"
            "7:15 E0101 this cannot be read\n"
            "9:15 E0103 %z is not bound here\n");
}

TEST(Recovery, goes_on_with_the_next_definition) {
  EXPECT_EQ(read("type A { B( }\n"
                 "def @f( { 1 }\n"
                 "garbage { C }\n"
                 "def @g() { 1 ]\n"
                 "extern\n"
                 "def @h() { test.unknown(1, axis=2) }\n")
                .errors,
            "1:13 E0101 this cannot be read\n"
            "2:9 E0101 this cannot be read\n"
            "4:14 E0101 this cannot be read\n"
            "6:1 E0101 this cannot be read\n"
            "6:12 E0105 there is no operator or constructor 'test.unknown'\n");
}

TEST(Recovery, tells_a_name_once) {
  EXPECT_EQ(read("def @f() { (%x, %x, @g(), @g(), Foo(1), Foo(2)) }\n"
                 "def @h(%y: Strange) -> Strange { match (%x) { Bar(%z) => %z, Bar(_) => %y } }\n")
                .errors,
            "1:13 E0103 %x is not bound here\n"
            "1:33 E0105 there is no operator or constructor 'Foo'\n"
            "2:12 E0103 there is no type Strange\n"
            "2:41 E0103 %x is not bound here\n"
            "2:47 E0103 there is no constructor Bar\n"
            "1:21 E0103 there is no function @g\n");
}

TEST(Recovery, keeps_what_does_not_depend_on_a_mistake) {
  Result r = read(
      "def @good(%x: int32) -> int32 { @typed(%x) }\n"
      "def @typed(%x: int32) -> int32 { %nobody }\n"
      "def @untyped(%x) { %nobody }\n"
      "def @user() { @untyped(1) }\n"
      "def @user_of_user() { @user() }\n"
      "def @lost() { @nowhere() }\n");
  EXPECT_EQ(function_names(r.module), "good typed ");
  EXPECT_NE(print_module(r.module).find("@typed(%x)\n"), std::string::npos);
}

TEST(Recovery, a_hundred_thousand_open_brackets_are_one_mistake) {
  EXPECT_EQ(read("def @f() {\n" + std::string(100000, '(') + "\n}\ndef @g() { ]\n}\n").errors,
            "3:1 E0101 this cannot be read\n"
            "4:12 E0101 this cannot be read\n");
}

}  // namespace
}  // namespace relay
