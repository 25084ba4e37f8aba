// Walks every row of the registry.
#include <gtest/gtest.h>

#include <iostream>
#include <set>

#include "lower/interface/compute_rule.h"
#include "lower/interface/kernel_end.h"
#include "node/structural.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

constexpr size_t kPendingGradients = 0;

TEST(Registry, is_filled_once) {
  size_t count = all_ops().size();
  register_ops();
  EXPECT_EQ(OpRegistry::global().all().size(), count);
  EXPECT_GE(count, 120u);
}

TEST(Registry, every_row_says_something_in_every_column) {
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    SCOPED_TRACE(row.name);
    EXPECT_EQ(missing_columns(row), std::vector<std::string_view>());
    std::set<std::string_view> names;
    for (const ArgInfo& arg : row.args) {
      EXPECT_TRUE(names.insert(arg.name).second) << arg.name << " is there twice";
    }
    if (row.attrs == nullptr) continue;
    names.clear();
    for (const Field& field : row.attrs->fields) {
      EXPECT_FALSE(field.doc.empty()) << field.name;
      EXPECT_TRUE(names.insert(field.name).second) << field.name << " is there twice";
    }
  }
}

// Gradients that are due: the number only goes down. An operator with a definition has that one's.
TEST(Registry, gradients_pending_are_counted) {
  size_t pending = 0;
  for (const Op& op : all_ops())
    pending +=
        !op->row->gradient && op->row->gradient.reason() == Absent::Pending && !op->row->definition;
  std::cout << pending << " of " << all_ops().size() << " operators have no gradient yet\n";
  EXPECT_LE(pending, kPendingGradients);
}

TEST(Registry, reasons_are_sentences) {
  for (int r = 0; r <= static_cast<int>(Absent::ByNumPy); ++r)
    EXPECT_GT(to_string(static_cast<Absent>(r)).size(), 5u) << r;
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
        if (row.definition) {
          Expr defined = row.definition(*call);
          EXPECT_TRUE(structural_equal(defined->type, call->type)) << to_string(defined->type);
          if (!row.compute) continue;
        }
        // Where the shape is data-dependent, the evaluator runs the rule: tests/python/test_oracles.py.
        if (data_decides_shape(row)) continue;
        // The rule's tensors have the shapes and dtypes that the relation promised.
        std::vector<tir::Tensor> inputs;
        DimScope dims;
        for (const Expr& arg : call->args) {
          auto types = flatten_tensor_types(arg->type);
          ASSERT_TRUE(types.has_value());
          for (const TensorType& t : *types) {
            inputs.push_back(tir::placeholder("x" + std::to_string(inputs.size()),
                                              t->dtype.storage(), dims.lower(t->shape)));
          }
        }
        std::vector<tir::Tensor> outputs = compute_call(*call, inputs, dims);
        auto promised = flatten_tensor_types(call->type);
        ASSERT_EQ(outputs.size(), promised->size());
        for (size_t i = 0; i < outputs.size(); ++i) {
          EXPECT_EQ(outputs[i]->dtype, (*promised)[i]->dtype.storage());
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

// What kernels check, and the functions that they call, against the column.
TEST(Registry, a_row_says_whether_a_run_may_end_in_its_calls) {
  size_t ending = 0, others = 0;
  for (const Op& op : all_ops()) {
    const OpInfo& row = *op->row;
    if (!row.compute) continue;
    for (const OpExample& example : row.examples) {
      SCOPED_TRACE(program_of(row.name, example.args, example.attrs));
      Module mod = infer(row.name, example.args, example.attrs);
      const auto& call = *as<CallNode>(as<FunctionNode>(mod->find("main"))->body);
      bool ends = kernel_may_end_run(call);
      EXPECT_EQ(row.may_end_run != nullptr && row.may_end_run(call), ends);
      ++(ends ? ending : others);
    }
  }
  EXPECT_GE(ending, 20u);
  EXPECT_GE(others, 200u);
}

// Sizes that only a run can tell may differ.
TEST(Registry, a_run_may_end_where_sizes_are_assumed) {
  auto of = [](const std::vector<std::string>& args) {
    Module mod = infer("add", args, "", "n: Dim, m: Dim");
    return may_end_run(*as<CallNode>(as<FunctionNode>(mod->find("main"))->body));
  };
  EXPECT_TRUE(of({"Tensor[(n), float32]", "Tensor[(m), float32]"}));
  EXPECT_FALSE(of({"Tensor[(n), float32]", "Tensor[(n), float32]"}));
}

}  // namespace
}  // namespace relay
