// Walks every row of the registry.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lower/interface/compute_rule.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

std::vector<Op> all_ops() {
  register_ops();
  return OpRegistry::global().all();
}

bool is_excused(const OpInfo& row, std::string_view column) {
  return std::any_of(row.absent.begin(), row.absent.end(),
                     [&](const auto& entry) { return entry.first == column; });
}

TEST(Registry, is_filled_once) {
  size_t count = all_ops().size();
  register_ops();
  EXPECT_EQ(OpRegistry::global().all().size(), count);
  EXPECT_GE(count, 120u);
}

TEST(Registry, every_row_has_its_columns_or_a_reason) {
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    SCOPED_TRACE(std::string(row.name));
    EXPECT_FALSE(row.doc.empty());
    EXPECT_NE(row.relation, nullptr);
    EXPECT_TRUE(row.compute != nullptr || is_excused(row, "compute"));
    EXPECT_TRUE(!row.examples.empty() || is_excused(row, "examples"));
    std::set<std::string_view> names;
    for (const ArgInfo& arg : row.args) {
      EXPECT_FALSE(arg.doc.empty()) << arg.name;
      EXPECT_TRUE(names.insert(arg.name).second) << arg.name << " is there twice";
    }
  }
}

TEST(Registry, every_example_type_checks_and_computes) {
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    for (const OpExample& example : row.examples) {
      std::string text = program_of(row.name, example.args, example.attrs);
      SCOPED_TRACE(text);
      EXPECT_EQ(example.args.size(), row.args.size());
      try {
        Module mod = infer(row.name, example.args, example.attrs);
        const auto* call = as<CallNode>(as<FunctionNode>(mod->find("main"))->body);
        ASSERT_NE(call, nullptr);
        if (row.compute == nullptr) continue;
        // The rule's tensors have the shapes and dtypes that the relation promised.
        std::vector<tir::Tensor> inputs;
        DimScope dims;
        for (const Expr& arg : call->args) {
          auto types = flatten_tensor_types(arg->type);
          ASSERT_TRUE(types.has_value());
          for (const TensorType& t : *types) {
            inputs.push_back(tir::placeholder("x" + std::to_string(inputs.size()), t->dtype,
                                              dims.lower(t->shape)));
          }
        }
        std::vector<tir::Tensor> outputs = compute_call(*call, inputs, dims);
        auto promised = flatten_tensor_types(call->type);
        ASSERT_EQ(outputs.size(), promised->size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(outputs[i]->dtype, (*promised)[i]->dtype);
          ASSERT_EQ(outputs[i]->rank(), (*promised)[i]->rank());
          for (size_t d = 0; d < outputs[i]->shape().size(); ++d) {
            EXPECT_EQ(tir::as_int(outputs[i]->shape()[d]), as_const((*promised)[i]->shape[d]));
          }
        }
        EXPECT_TRUE(tir::create_prim_func("main", inputs, outputs));
      } catch (const UserError& e) {
        ADD_FAILURE() << e.what();
      }
    }
  }
}

}  // namespace
}  // namespace relay
