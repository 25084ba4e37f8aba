#include "base/diagnostic.h"

#include <gtest/gtest.h>

#include "base/codes/text.h"
#include "base/codes/types.h"

namespace relay {
namespace {

TEST(Diagnostic, points_at_the_source_with_a_caret) {
  auto file = SourceFile::make("a.relay", "let %x = 1;\n%y\n");
  Diagnostic d(codes::text_unbound_name, Span::range(file, 12, 14), "%y is not bound");
  d.expected("a bound name").found("%y").help("bind it with let");
  EXPECT_EQ(d.render(),
            "error[E0103]: %y is not bound\n"
            "  --> a.relay:2:1\n"
            "    |\n"
            "  2 | %y\n"
            "    | ^^\n"
            "  expected: a bound name\n"
            "  found:    %y\n"
            "  help:     bind it with let\n");
}

TEST(Diagnostic, escapes_what_a_terminal_would_obey) {
  EXPECT_EQ(escape_for_terminal("a\x1b[31m\xff%n"), "a\\x1B[31m\\xFF%n");
  EXPECT_EQ(escape_for_terminal("\xc3\xa9"), "\xc3\xa9");
  EXPECT_EQ(escape_for_terminal(std::string(10, 'x'), 4), "xxxx... (6 more bytes)");
}

TEST(Diagnostics, raises_all_errors_together_and_counts_the_rest) {
  Diagnostics diags(2);
  diags.throw_if_errors();
  for (int i = 0; i < 4; ++i) diags.error(codes::type_mismatch, {}, "m" + std::to_string(i));
  try {
    diags.throw_if_errors();
    FAIL();
  } catch (const UserError& e) {
    EXPECT_STREQ(e.what(),
                 "error[E0201]: m0\nerror[E0201]: m1\nnote: 2 further errors are not shown");
  }
}

TEST(Span, joins_parts_once_each_in_order) {
  auto file = SourceFile::make("m.onnx");
  Span a = Span::place(file, "node a (Conv)"), b = Span::place(file, "node b (Relu)");
  EXPECT_EQ(Span::join({a, Span(), b, a}).describe(),
            "m.onnx: node a (Conv) + m.onnx: node b (Relu)");
  EXPECT_EQ(Span::join({a}), a);
  EXPECT_FALSE(Span::join({}));
}

}  // namespace
}  // namespace relay
