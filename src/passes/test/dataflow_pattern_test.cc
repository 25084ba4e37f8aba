#include "passes/pattern/dataflow_pattern.h"

#include "base/codes/passes.h"
#include "ir/op.h"
#include "passes/pattern/partition_pattern.h"
#include "passes/pattern/rewrite_patterns.h"
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
  EXPECT_TRUE(matches(p, "%0 = nn.dense(%x, %w); nn.relu(add(exp(%0), multiply(%0, %0)))"));
  // Another way in, no parent, or something on the way that the path does not allow.
  EXPECT_FALSE(matches(p, "%0 = nn.dense(%x, %w); nn.relu(add(exp(%0), multiply(%0, 2f)))"));
  EXPECT_FALSE(matches(p, "nn.relu(add(nn.dense(%x, %w), exp(%y)))"));
  EXPECT_FALSE(matches(p, "nn.relu(add(nn.dense(%x, %w), sum(%y, axis=[0])))"));
  EXPECT_FALSE(matches(p, "nn.relu(exp(%x))"));
  EXPECT_FALSE(matches(p, "nn.relu(nn.softmax(nn.dense(%x, %w)))"));
  EXPECT_FALSE(matches(p, "nn.relu(add(nn.dense(%x, %w), nn.dense(%y, %w)))"));
}

TEST(DataflowPattern, a_pattern_may_contain_itself) {
  DFPattern x = is_var();
  DFPattern chain = recursive([&](const DFPattern& self) { return is_op("exp")(self) | x; });
  DFMatch m;
  ASSERT_TRUE(m.matches(chain, body("exp(exp(exp(%x)))")));
  EXPECT_EQ(m.find_all(x).size(), 1u);
  EXPECT_FALSE(m.matches(chain, body("exp(nn.relu(exp(%x)))")));
  DFPattern left = recursive([&](const DFPattern& self) { return self | x; });
  EXPECT_THROW(m.matches(left, body("exp(%x)")), UserError);
}

TEST(DataflowPattern, deep_programs_need_no_stack_and_no_square) {
  Expr e = var("x", tensor_type({dim(1)}, DType::Float(32)));
  for (int i = 0; i < 100000; ++i) e = call("exp", {e});
  DFPattern chain = recursive([](const DFPattern& self) { return is_op("exp")(self) | is_var(); });
  DFPattern path = dominates(is_var(), is_op("exp")(wildcard()), is_op("exp")(wildcard()));
  int found = 0;
  std::vector<PatternRewrite> rules;
  for (const DFPattern& p : {is_op("exp")(chain), path}) {
    rules.push_back({p,
                     [&](const Expr&, const Expr& post, const DFMatch&) {
                       ++found;
                       return post;
                     },
                     true});
  }
  EXPECT_TRUE(rewrite_patterns(rules, e) == e);
  EXPECT_EQ(found, 200000);
}

TEST(DataflowPattern, rewrites_end_when_nothing_changes) {
  DFPattern x = wildcard();
  PatternRewrite twice{is_op("exp")(is_op("exp")(x)),
                       [&](const Expr&, const Expr&, const DFMatch& m) { return m[x]; }};
  Expr out = rewrite_patterns({&twice, 1}, body("exp(exp(exp(exp(exp(%x)))))"));
  EXPECT_TRUE(is_call_to(out, "exp"));
  EXPECT_TRUE(isa<VarNode>(as<CallNode>(out)->args[0]));
  PatternRewrite endless{is_op("add")(wildcard(), wildcard()),
                         [](const Expr&, const Expr& post, const DFMatch&) {
                           auto& c = *as<CallNode>(post);
                           return call("add", {c.args[1], c.args[0]});
                         }};
  try {
    rewrite_patterns({&endless, 1}, body("add(%x, %y)"));
    ADD_FAILURE() << "it ended";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostics()[0].code, codes::pattern_endless.id);
  }
}

TEST(DataflowPattern, partitions_are_functions) {
  DFPattern p =
      is_op("nn.relu")(is_op("add")(is_op("nn.dense")(wildcard(), wildcard()), is_constant()));
  Expr e = body("exp(nn.relu(add(nn.dense(%x, %w), 1f)))");
  Expr out = partition_pattern(p, e, {}, nullptr);
  auto* inner = as<CallNode>(as<CallNode>(out)->args[0]);
  auto* f = as<FunctionNode>(inner->op);
  ASSERT_NE(f, nullptr);
  EXPECT_EQ(f->params.size(), 2u);
  EXPECT_TRUE(f->attrs.at("PartitionedFromPattern") ==
              AttrValue(std::string("nn.dense_add_nn.relu_")));
  // What is used elsewhere stays where it is.
  Expr shared = body("%0 = nn.dense(%x, %w); add(nn.relu(add(%0, 1f)), %0)");
  EXPECT_TRUE(partition_pattern(p, shared, {}, nullptr) == shared);
}

}  // namespace
}  // namespace relay
