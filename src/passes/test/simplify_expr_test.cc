#include "passes/simplify_expr.h"

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
