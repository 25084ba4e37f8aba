#include "passes/pattern/dataflow_pattern.h"

#include "ir/op.h"
#include "passes/test/pass_test.h"

namespace relay {
namespace {

// The body of @main(%x, %y, %w).
Expr body(const std::string& text) {
  return pass_test::parse(
             "def @main(%x: Tensor[(2, 4), float32], %y: Tensor[(2, 4), float32], %w: Tensor[(4, "
             "4), float32]) { " +
             text + " }")
      ->find("main")
      ->body;
}

bool matches(const DFPattern& p, const std::string& text) {
  DFMatch m;
  return m.matches(p, body(text));
}

TEST(DataflowPattern, calls_and_parts) {
  DFPattern x = is_var("x"), c = is_constant();
  DFPattern p = is_op("nn.relu")(is_op("add")(x, c));
  DFMatch m;
  Expr e = body("nn.relu(add(%x, 1f))");
  ASSERT_TRUE(m.matches(p, e));
  EXPECT_EQ(as<VarNode>(m[x])->name_hint, "x");
  EXPECT_TRUE(isa<ConstantNode>(m[c]));
  EXPECT_TRUE(m[p] == e);
  EXPECT_FALSE(m.matches(p, body("nn.relu(add(%y, 1f))")));
  EXPECT_FALSE(m.matches(p, body("nn.relu(add(1f, %x))")));
  EXPECT_FALSE(m.matches(p, body("nn.relu(%x)")));
}

TEST(DataflowPattern, the_same_part_twice_is_one_expression) {
  DFPattern x = wildcard();
  DFPattern p = is_op("add")(x, x);
  EXPECT_TRUE(matches(p, "%0 = exp(%x); add(%0, %0)"));
  EXPECT_FALSE(matches(p, "add(%x, %y)"));
  EXPECT_FALSE(matches(p, "add(exp(%x), exp(%x))"));
}

TEST(DataflowPattern, alternatives_and_orders) {
  DFPattern x = is_var(), c = is_constant();
  DFPattern p = either_order(is_op("add"), x, c) | is_op("exp")(x);
  EXPECT_TRUE(matches(p, "add(%x, 1f)"));
  EXPECT_TRUE(matches(p, "add(1f, %x)"));
  EXPECT_TRUE(matches(p, "exp(%x)"));
  EXPECT_FALSE(matches(p, "add(%x, %y)"));
  EXPECT_EQ(p.root_operators(), (std::vector<std::string>{"add", "exp"}));
  EXPECT_TRUE((p | wildcard()).root_operators().empty());
}

TEST(DataflowPattern, a_failed_alternative_leaves_nothing_behind) {
  DFPattern x = wildcard(), y = wildcard();
  DFPattern p = is_op("add")(x, is_op("exp")(y)) | is_op("add")(is_op("exp")(x), y);
  DFMatch m;
  ASSERT_TRUE(m.matches(p, body("add(exp(%x), %y)")));
  EXPECT_EQ(as<VarNode>(m[x])->name_hint, "x");
  EXPECT_EQ(as<VarNode>(m[y])->name_hint, "y");
  EXPECT_FALSE(m.find(is_var()));
}

TEST(DataflowPattern, attributes_types_and_conditions) {
  DFPattern sum = is_op("sum")(wildcard());
  EXPECT_TRUE(matches(sum.has_attr("keepdims", AttrValue(true)), "sum(%x, keepdims=True)"));
  EXPECT_FALSE(matches(sum.has_attr("keepdims", AttrValue(true)), "sum(%x)"));
  EXPECT_FALSE(matches(sum.has_attr("no_such", AttrValue(true)), "sum(%x)"));
  EXPECT_TRUE(matches(wildcard().has_dtype(DType::Float(32)).has_shape({2, 4}), "exp(%x)"));
  EXPECT_FALSE(matches(wildcard().has_dtype(DType::Int(8)), "exp(%x)"));
  EXPECT_FALSE(matches(wildcard().has_shape({4, 4}), "exp(%x)"));
  DFPattern heavy =
      is_op_where([](const OpInfo& row) { return row.fusion == FusionClass::OutEWiseFusable; });
  EXPECT_TRUE(matches(heavy(wildcard(), wildcard()), "nn.dense(%x, %w)"));
  EXPECT_FALSE(matches(heavy(wildcard(), wildcard()), "add(%x, %y)"));
}

TEST(DataflowPattern, tuples_and_fields) {
  DFPattern x = is_var("x"), any = wildcard();
  EXPECT_TRUE(matches(is_op("concatenate")(is_tuple({x, any})), "concatenate((%x, %y))"));
  EXPECT_FALSE(matches(is_op("concatenate")(is_tuple({x})), "concatenate((%x, %y))"));
  DFPattern split = is_op("split")(any);
  EXPECT_TRUE(matches(is_tuple_get_item(split), "split(%x, indices_or_sections=2).1"));
  EXPECT_TRUE(matches(is_tuple_get_item(split, 1), "split(%x, indices_or_sections=2).1"));
  EXPECT_FALSE(matches(is_tuple_get_item(split, 0), "split(%x, indices_or_sections=2).1"));
}

TEST(DataflowPattern, this_very_expression) {
  Expr e = body("exp(%x)");
  DFMatch m;
  EXPECT_TRUE(m.matches(is_expr(e), e));
  EXPECT_FALSE(m.matches(is_expr(e), body("exp(%x)")));
}

TEST(DataflowPattern, dominators) {
  DFPattern parent = is_op("nn.dense")(wildcard(), wildcard());
  auto is_elementwise = [](const OpInfo& row) { return row.fusion <= FusionClass::Broadcast; };
  DFPattern path =
      is_op_where(is_elementwise)(wildcard()) | is_op_where(is_elementwise)(wildcard(), wildcard());
  DFPattern child = is_op("nn.relu")(wildcard());
  DFPattern p = dominates(parent, path, child);
  EXPECT_TRUE(matches(p, "nn.relu(nn.dense(%x, %w))"));
  EXPECT_TRUE(matches(p, "%0 = nn.dense(%x, %w); nn.relu(add(exp(%0), multiply(%0, 2f)))"));
  // Another way in, no parent, or something on the way that the path does not allow.
  EXPECT_FALSE(matches(p, "nn.relu(add(nn.dense(%x, %w), sum(%y, axis=[0])))"));
  EXPECT_FALSE(matches(p, "nn.relu(exp(%x))"));
  EXPECT_FALSE(matches(p, "nn.relu(nn.softmax(nn.dense(%x, %w)))"));
  EXPECT_FALSE(matches(p, "nn.relu(add(nn.dense(%x, %w), nn.dense(%y, %w)))"));
}

}  // namespace
}  // namespace relay
