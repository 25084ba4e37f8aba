#include "passes/simplify/simplify_expr.h"

#include <set>

#include "passes/test/pass_test.h"
#include "passes/test/simplify_expr_rows.h"

namespace relay {
namespace {

using pass_test::Row;
using pass_test::rows;

TEST(SimplifyExpr, every_rule_fires_where_it_may_and_nowhere_else) {
  for (const Row& row : rows()) {
    SCOPED_TRACE(row.rule);
    pass_test::expect_becomes(kSimplifyExpr, row.fires, row.becomes);
    pass_test::expect_unchanged(kSimplifyExpr, row.stays);
  }
}

// A condition may broadcast what it chooses from: it does not where the sizes have one name.
TEST(SimplifyExpr, a_choice_between_equals_of_named_sizes) {
  auto program = [](const std::string& size, const std::string& body) {
    return "def @main[n: Dim](%c: Tensor[(n), bool], %x: Tensor[(" + size + "), float32]) { " +
           body + " }";
  };
  pass_test::expect_becomes(kSimplifyExpr, program("n", "where(%c, %x, %x)"), program("n", "%x"));
  for (const char* size : {"1", "?"})
    pass_test::expect_unchanged(kSimplifyExpr, program(size, "where(%c, %x, %x)"));
}

TEST(SimplifyExpr, every_rule_has_a_row) {
  std::set<std::string> with_row, rules;
  for (const Row& row : rows()) with_row.insert(row.rule);
  for (std::string_view name : simplify_expr_rules()) {
    EXPECT_TRUE(rules.insert(std::string(name)).second) << name << " is there twice";
  }
  EXPECT_EQ(with_row, rules);
}

}  // namespace
}  // namespace relay
