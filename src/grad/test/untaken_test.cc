// Where masks are put on operands below a `where`, and where they are not.
#include "grad/untaken.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "node/structural.h"
#include "ops/test/parse.h"

namespace relay {
namespace {

using test::parse;

constexpr const char* kParams =
    "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], %c: Tensor[(2, 3), bool], %b: bool";

Function in_lets(const std::string& body) {
  return parse("def @main(" + std::string(kParams) + ") {\n" + body + " }")->find("main");
}

void expect_becomes(const std::string& before, const std::string& after) {
  Function found = without_untaken(in_lets(before)), wanted = in_lets(after);
  EXPECT_TRUE(structural_equal(found, wanted)) << print_expr(found) << "\n" << print_expr(wanted);
}

void expect_unchanged(const std::string& body) {
  Function f = in_lets(body);
  Function found = without_untaken(f);
  EXPECT_TRUE(found == f) << print_expr(found);
}

TEST(Untaken, operands_of_a_product_are_masked) {
  expect_becomes("let %l = log(%x); let %p = multiply(%x, %l); let %w = where(%c, %p, 0f); %w",
                 "let %k = stop_gradient(%x); let %m = where(%c, %x, %k);\n"
                 "let %l = log(%m); let %p = multiply(%m, %l); let %w = where(%c, %p, 0f); %w");
}

TEST(Untaken, a_body_without_names_gets_them) {
  expect_becomes("where(%c, 0f, multiply(%x, %y))",
                 "let %n = logical_not(%c); let %k = stop_gradient(%x);\n"
                 "let %m = where(%n, %x, %k); let %i = stop_gradient(%y);\n"
                 "let %j = where(%n, %y, %i); let %p = multiply(%m, %j);\n"
                 "let %w = where(%c, 0f, %p); %w");
}

TEST(Untaken, what_is_used_outside_keeps_its_adjoint) {
  expect_becomes(
      "let %l = log(%x); let %p = multiply(%l, %l); let %w = where(%c, %p, 0f);\n"
      "let %s = add(%w, %l); %s",
      "let %l = log(%x); let %k = stop_gradient(%l); let %m = where(%c, %l, %k);\n"
      "let %p = multiply(%m, %m); let %w = where(%c, %p, 0f); let %s = add(%w, %l); %s");
}

TEST(Untaken, a_condition_on_the_value_is_computed_from_what_has_no_mask) {
  expect_becomes("let %p = multiply(%x, %y); let %t = isfinite(%p); let %w = where(%t, %p, 0f); %w",
                 "let %q = multiply(%x, %y); let %t = isfinite(%q);\n"
                 "let %k = stop_gradient(%x); let %m = where(%t, %x, %k);\n"
                 "let %i = stop_gradient(%y); let %j = where(%t, %y, %i);\n"
                 "let %p = multiply(%m, %j); let %w = where(%t, %p, 0f); %w");
}

TEST(Untaken, a_number_as_the_condition_goes_through_products_of_matrices) {
  expect_becomes("let %p = nn.dense(%x, %y); let %w = where(%b, %p, 0f); %w",
                 "let %k = stop_gradient(%x); let %m = where(%b, %x, %k);\n"
                 "let %i = stop_gradient(%y); let %j = where(%b, %y, %i);\n"
                 "let %p = nn.dense(%m, %j); let %w = where(%b, %p, 0f); %w");
  expect_unchanged(
      "let %p = nn.dense(%x, %y); let %s = strided_slice(%c, begin=[0, 0], end=[2, 2]);\n"
      "let %w = where(%s, %p, 0f); %w");
}

TEST(Untaken, what_makes_no_nan_of_zero_stays) {
  expect_unchanged("let %p = multiply(%x, %y); let %w = add(%p, log(%x)); %w");
  expect_unchanged("let %s = add(%x, %y); let %w = where(%c, %s, %y); %w");
  expect_unchanged("let %s = divide(multiply(%x, 3f), 7f); let %w = where(%c, %s, -1e9f); %w");
  expect_unchanged(
      "let %s = multiply(%x, 3f); let %n = negative(%s); let %t = stop_gradient(%n);\n"
      "let %w = where(%c, %t, %s); %w");
  // Both branches ask for it.
  expect_unchanged("let %p = multiply(%x, %y); let %w = where(%c, %p, %p); %w");
  // The condition alone.
  expect_unchanged(
      "let %p = multiply(%x, %y); let %t = greater(%p, 0f);\n"
      "let %w = where(%t, %x, %y); %w");
  // Others than the branch see it.
  expect_unchanged("let %p = multiply(%x, %y); let %w = where(%c, %p, 0f); (%p, %w)");
}

}  // namespace
}  // namespace relay
