#include "analysis/value_order.h"

#include <gtest/gtest.h>

#include "ops/test/parse.h"

namespace relay {
namespace {

// The calls of operators in a scope, by name, and the other expressions by their kind.
std::string values(const ValueOrder& order, size_t scope) {
  std::string out;
  for (const ExprNode* e : order.of_scope.at(scope)) {
    auto* call = as<CallNode>(e);
    auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
    out += (out.empty() ? "" : " ") + (op != nullptr ? op->name : std::string(e->info().name));
  }
  return out;
}

struct Ordered {
  explicit Ordered(const std::string& text, bool flatten = true)
      : mod(test::parse(text)),
        scopes(analyze_scopes(*mod->functions[0].get())),
        order(order_values(scopes, flatten)) {}
  Module mod;
  ScopeTree scopes;
  ValueOrder order;
};

TEST(ValueOrder, operands_come_first_and_each_expression_once) {
  Ordered o("def @main(%x: float32) { %0 = exp(%x); %1 = add(%0, %0); multiply(%1, %0) }");
  EXPECT_EQ(values(o.order, 0), "exp add multiply");
}

TEST(ValueOrder, what_one_branch_uses_is_computed_there) {
  Ordered o(
      "def @main(%c: bool, %x: float32) { %0 = exp(%x); %1 = negative(%x);\n"
      "  if (%c) { add(%0, %1) } else { %1 } }");
  EXPECT_EQ(values(o.order, 0), "negative relay.If");
  EXPECT_EQ(values(o.order, 1), "exp add");
  EXPECT_EQ(values(o.order, 2), "");
}

TEST(ValueOrder, the_body_of_a_let_stands_behind_it_or_in_its_own_scope) {
  const char* text =
      "def @main(%x: float32) { let %a = exp(%x); let %b = negative(%a); add(%b, %a) }";
  Ordered flat(text), nested(text, /*flatten=*/false);
  EXPECT_EQ(values(flat.order, 0), "exp relay.Let negative relay.Let add");
  EXPECT_EQ(values(nested.order, 0), "exp relay.Let");
  EXPECT_EQ(values(nested.order, 1), "negative relay.Let");
  EXPECT_EQ(values(nested.order, 2), "add");
}

TEST(ValueOrder, a_body_that_is_a_leaf_is_a_value_of_the_function) {
  Ordered o("def @main(%x: float32) { %x }");
  EXPECT_EQ(values(o.order, 0), "relay.Var");
}

}  // namespace
}  // namespace relay
