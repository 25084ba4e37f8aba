#include "ir/bindings.h"

#include <gtest/gtest.h>

#include "ir/expr.h"
#include "ir/text/text.h"

namespace relay {
namespace {

std::vector<std::string> names(const Expr& e) {
  std::vector<std::string> out;
  for (const Var& v : free_vars(e)) out.push_back(v->name_hint);
  return out;
}

using Names = std::vector<std::string>;

TEST(Bindings, free_variables_come_in_the_order_of_their_appearance) {
  Var x = var("x", nullptr);
  Var y = var("y", nullptr);
  EXPECT_EQ(names(tuple({y, x, y})), (Names{"y", "x"}));
  EXPECT_EQ(names(function({y}, tuple({y, x}))), (Names{"x"}));
  EXPECT_EQ(names(x), (Names{"x"}));
  EXPECT_EQ(names(function({x}, x)), Names{});
}

TEST(Bindings, a_let_binds_in_its_body_and_a_function_knows_its_own_name) {
  Var x = var("x", nullptr);
  Var y = var("y", nullptr);
  EXPECT_EQ(names(let(y, x, y)), (Names{"x"}));
  EXPECT_EQ(names(let(y, tuple({y}), x)), (Names{"y", "x"}));
  EXPECT_EQ(names(let(y, function({}, y), y)), Names{});
  EXPECT_EQ(names(tuple({let(y, x, y), y})), (Names{"y", "x"}));
}

TEST(Bindings, what_is_shared_is_below_what_all_its_uses_are_below) {
  Var x = var("x", nullptr);
  Var y = var("y", nullptr);
  Expr shared = tuple({y});
  EXPECT_EQ(names(let(y, x, tuple({shared, tuple({shared})}))), (Names{"x"}));
  EXPECT_EQ(names(tuple({shared, let(y, x, shared)})), (Names{"y", "x"}));
}

TEST(Bindings, patterns_bind_in_their_clause) {
  Module mod = parse_module("m", R"(#[version = "0.0.5"]
def @main(%o: Option[int32]) -> int32 { match (%o) { Some(%v) => %v, None => 0 } }
)");
  const Function& main = mod->find("main");
  EXPECT_NO_THROW(check_bindings(main));
  auto* m = as<MatchNode>(main->body);
  EXPECT_EQ(names(m->clauses[0]->rhs), (Names{"v"}));
}

TEST(Bindings, two_binders_of_a_variable_are_refused) {
  Var x = var("x", nullptr);
  Var y = var("y", nullptr);
  EXPECT_THROW(check_bindings(function({x}, function({x}, x))), UserError);
  EXPECT_THROW(check_bindings(function({x}, tuple({let(y, x, y), let(y, x, y)}))), UserError);
  Expr once = let(y, x, y);
  EXPECT_NO_THROW(check_bindings(function({x}, tuple({once, once}))));
}

TEST(Bindings, deep_programs_take_no_stack_and_little_time) {
  Var x = var("x", nullptr);
  Expr e = x;
  for (int i = 0; i < 100'000; ++i) e = let(var("v", nullptr), x, tuple({e, x}));
  EXPECT_EQ(names(e), (Names{"x"}));
}

}  // namespace
}  // namespace relay
