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
}

TEST(Untaken, factors_that_do_not_matter_are_left_out_of_the_derivative_of_a_product) {
  expect_becomes(
      "let %p = nn.dense(%x, %y); let %s = strided_slice(%c, begin=[0, 0], end=[2, 2]);\n"
      "let %w = where(%s, %p, 0f); %w",
      "let %s = strided_slice(%c, begin=[0, 0], end=[2, 2]);\n"
      "let %n = expand_dims(any(%s, axis=[0]), axis=1);\n"
      "let %r = expand_dims(any(%s, axis=[1]), axis=1);\n"
      "let %k = where(%r, %x, 0f); let %l = where(%n, %y, 0f); let %q = nn.dense(%x, %y);\n"
      "let %d = nn.dense(%k, %l); let %p = annotation.derivative_of(%q, %d);\n"
      "let %w = where(%s, %p, 0f); %w");
}

TEST(Untaken, masks_go_through_tuples) {
  expect_becomes(
      "let %q = multiply(%x, %x); let %t = (%q, %y); let %p = concatenate(%t);\n"
      "let %d = (%c, %c); let %e = concatenate(%d); let %w = where(%e, %p, 0f); %w",
      "let %d = (%c, %c); let %e = concatenate(%d);\n"
      "let %a = broadcast_to(cast(%e, dtype=\"float32\"), shape=[4, 3]);\n"
      "let %m = greater(strided_slice(%a, begin=[0], end=[2], axes=[0]), 0f);\n"
      "let %k = stop_gradient(%x); let %x1 = where(%m, %x, %k); let %q = multiply(%x1, %x1);\n"
      "let %j = (%q, %y); let %p = concatenate(%j); let %w = where(%e, %p, 0f); %w");
  // Adjoints of joined tensors are slices of that of the result.
  expect_unchanged(
      "let %t = (%x, %y); let %p = concatenate(%t);\n"
      "let %d = (%c, %c); let %e = concatenate(%d); let %w = where(%e, %p, 0f); %w");
}

TEST(Untaken, a_function_gets_no_adjoint_where_nobody_asks_for_its_result) {
  auto becomes = [](const std::string& before, const std::string& after) {
    const std::string head =
        "def @f(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { log(%x) }\n"
        "def @main(%x: Tensor[(2, 3), float32], %c: Tensor[(2, 3), bool]) {\n";
    Function f = parse(head + before + " }")->find("main");
    Function wanted = parse(head + after + " }")->find("main");
    Function found = without_untaken(f);
    EXPECT_TRUE(structural_equal(found, wanted)) << print_expr(found) << "\n" << print_expr(wanted);
  };
  becomes("let %p = @f(%x); let %w = where(%c, %p, 0f); %w",
          "let %s = any(%c); let %k = stop_gradient(%x); let %m = where(%s, %x, %k);\n"
          "let %p = @f(%m); let %w = where(%c, %p, 0f); %w");
  // The condition comes of its result, and others use it.
  const std::string of_result =
      "let %p = @f(%x); let %t = isfinite(%p); let %w = where(%t, %p, 0f); %w";
  becomes(of_result, of_result);
  const std::string others = "let %p = @f(%x); let %w = where(%c, %p, 0f); (%p, %w)";
  becomes(others, others);
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
