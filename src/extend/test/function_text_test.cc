// Functions as text: templates and patterns.
#include "extend/function_text.h"

#include <gtest/gtest.h>

#include "ir/text/text.h"
#include "ops/register_ops.h"
#include "types/infer.h"

namespace relay::extend {
namespace {

Expr expression(const std::string& text) { return infer_type(parse_expr("e.relay", text)); }

const char* const kX = "free_var %x: Tensor[(2, 3), float32];\n";

class FunctionText : public testing::Test {
 protected:
  void SetUp() override { register_ops(); }

  static bool matches(const std::string& pattern, const std::string& expr,
                      const std::set<std::string>& constants = {}) {
    Expr f = parse_expr("p.relay", pattern);
    auto params = as<FunctionNode>(f)->params.size();
    DFMatch m;
    return m.matches(function_pattern(read_function("p", pattern, params), constants).pattern,
                     expression(kX + expr));
  }

  static void refuses(const std::string& code, const std::string& pattern,
                      const std::set<std::string>& constants = {}) {
    try {
      matches(pattern, "%x", constants);
      FAIL() << pattern;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, code) << e.what();
    }
  }
};

TEST_F(FunctionText, a_template_has_the_types_of_its_arguments) {
  Function f = read_function("f", "fn (%a) { %0 = exp(%a); multiply(%0, %0) }", 1);
  Expr e = instantiated(f, {expression(std::string(kX) + "tanh(%x)")});
  ASSERT_TRUE(e->type);
  EXPECT_EQ(to_string(e->type), "Tensor[(2, 3), float32]");
  EXPECT_EQ(print_expr(e), std::string(kX) + "%0 = tanh(%x);\n%1 = exp(%0);\nmultiply(%1, %1)");
}

TEST_F(FunctionText, a_template_that_does_not_fit_is_refused) {
  Function f = read_function("f", "fn (%a) { nn.dense(%a, %a) }", 1);
  Expr scalar = expression("1f");
  EXPECT_THROW(instantiated(f, {scalar}), UserError);
  EXPECT_THROW(read_function("f", "fn (%a) { %a }", 2), UserError);
  EXPECT_THROW(read_function("f", "exp", 1), UserError);
}

TEST_F(FunctionText, a_pattern_is_what_looks_like_the_body) {
  const char* swish = "fn (%a) { multiply(%a, sigmoid(%a)) }";
  EXPECT_TRUE(matches(swish, "%0 = exp(%x); multiply(%0, sigmoid(%0))"));
  EXPECT_TRUE(matches(swish, "%0 = exp(%x); multiply(sigmoid(%0), %0)"));
  EXPECT_FALSE(matches(swish, "multiply(exp(%x), sigmoid(tanh(%x)))"));
  EXPECT_TRUE(matches("fn (%a, %b) { (%a, %b).0 }", "(%x, exp(%x)).0"));
  EXPECT_FALSE(matches("fn (%a, %b) { (%a, %b).0 }", "(%x, exp(%x)).1"));
  EXPECT_TRUE(matches("fn (%a) { add(%a, 2f) }", "add(%x, 2f)"));
  EXPECT_FALSE(matches("fn (%a) { add(%a, 2f) }", "add(%x, 3f)"));
}

TEST_F(FunctionText, attributes_that_are_written_are_compared) {
  EXPECT_TRUE(matches("fn (%a) { sum(%a, axis=[1]) }", "sum(%x, axis=[1])"));
  EXPECT_FALSE(matches("fn (%a) { sum(%a, axis=[1]) }", "sum(%x, axis=[0])"));
  EXPECT_TRUE(matches("fn (%a) { sum(%a) }", "sum(%x, axis=[0])"));
}

TEST_F(FunctionText, some_parameters_are_constants) {
  EXPECT_TRUE(matches("fn (%a, %c) { multiply(%a, %c) }", "multiply(%x, 2f)", {"c"}));
  EXPECT_FALSE(matches("fn (%a, %c) { divide(%a, %c) }", "divide(%x, tanh(%x))", {"c"}));
  refuses("E0316", "fn (%a) { exp(%a) }", {"c"});
}

TEST_F(FunctionText, what_no_pattern_says_is_refused_E0316) {
  refuses("E0316", "fn (%a) { let %b = exp(%a); %b }");
  refuses("E0316", "fn (%a) { %a }");
  refuses("E0316", "fn (%a, %b) { exp(%a) }");
  refuses("E0316", "fn (%a) { fn (%c) { exp(%a) } }");
}

TEST_F(FunctionText, a_pattern_that_is_too_deep_is_refused) {
  std::string body = "%a";
  for (int i = 0; i < 20'000; ++i) body = "exp(" + body + ")";
  EXPECT_THROW(matches("fn (%a) { " + body + " }", "exp(%x)"), UserError);
}

}  // namespace
}  // namespace relay::extend
