// What the column `contraction` says of an operator is what its compute rule does.
#include <gtest/gtest.h>

#include "ir/contraction.h"
#include "lower/interface/compute_rule.h"
#include "node/walk.h"
#include "ops/test/programs.h"
#include "tir/block_contraction.h"
#include "tir/schedule/loop_tree.h"

namespace relay {
namespace {

// The sum that a call's compute rule makes: the result, or what it is a cast of.
const tir::TensorNode* sum_of(const tir::TensorNode* t) {
  while (t != nullptr && !t->bodies.empty() && !isa<tir::ReduceNode>(t->bodies[0])) {
    t = t->inputs.size() == 1 ? as<tir::TensorNode>(t->inputs[0]) : nullptr;
  }
  return t != nullptr && t->bodies.empty() ? nullptr : t;
}

tir::Indices variables_of(const std::vector<tir::IterVar>& axes) {
  tir::Indices out;
  for (const tir::IterVar& axis : axes) out.push_back(axis->var);
  return out;
}

struct Checked {
  size_t dims = 0, windows = 0, groups = 0;
};

// Each index of each factor moves with the iterations that the column names for its axis, and with no other.
Checked check_call(const CallNode& call) {
  auto c = contraction_of(call);
  EXPECT_TRUE(c.has_value());
  if (!c) return {};
  std::vector<tir::Tensor> inputs;
  std::vector<TensorType> types;
  DimScope scope;
  for (const Expr& arg : call.args) {
    auto tensors = flatten_tensor_types(arg->type);
    for (const TensorType& t : *tensors) {
      inputs.push_back(
          tir::placeholder("x" + std::to_string(inputs.size()), t->dtype, scope.lower(t->shape)));
      types.push_back(t);
    }
  }
  auto outputs = compute_call(call, inputs, scope);
  const tir::TensorNode* sum = sum_of(outputs[0].get());
  if (sum == nullptr) {
    EXPECT_EQ(c->count(ContractionRole::Reduced), 0u) << "nothing is summed";
    return {};
  }
  const auto& reduce = *as<tir::ReduceNode>(sum->bodies[0]);
  std::vector<tir::IterVar> iters = sum->axes;
  iters.insert(iters.end(), reduce.axes.begin(), reduce.axes.end());
  auto roles = c->iteration_roles();
  EXPECT_EQ(iters.size(), roles.size());
  auto stated = tir::state_contraction(
      sum->dims, iters, tir::store(sum->buffer, variables_of(sum->axes), reduce.source[0]));
  for (size_t i = 0; i < iters.size(); ++i)
    EXPECT_EQ(role_of(*stated, iters[i]->var), roles[i]) << i;

  // The iteration of each dimension.
  std::vector<const Node*> variable(c->dims.size());
  for (size_t a = 0; a < c->result.size(); ++a) {
    for (size_t d : c->result[a].dims) variable[d] = iters[a]->var.get();
  }
  size_t at = c->result.size();
  for (size_t d = 0; d < c->dims.size(); ++d) {
    if (is_summed(c->dims[d].role)) variable[d] = iters[at++]->var.get();
  }
  std::vector<const tir::LoadNode*> loads;
  post_order(reduce.source[0], [&](const Node& n) {
    if (auto* l = as<tir::LoadNode>(&n)) loads.push_back(l);
  });
  EXPECT_EQ(loads.size(), c->operands.size());
  for (size_t k = 0; k < loads.size(); ++k) {
    EXPECT_EQ(loads[k]->indices.size(), c->operands[k].size());
    for (size_t a = 0; a < c->operands[k].size(); ++a) {
      const Contraction::Axis& axis = c->operands[k][a];
      for (size_t d = 0; d < c->dims.size(); ++d) {
        // Of a transposed convolution the sum runs over the data with gaps between the elements: positions there are the
        // result's, and move with the taps.
        bool gaps = false;
        if (c->transposed() && k == 0 && c->dims[d].role == ContractionRole::Window) {
          const Contraction::Axis& window = c->result[c->axes_of(c->result, d)[0]];
          gaps = axis.has(window.dims[0]);
        }
        bool expected = gaps;
        for (size_t e : axis.dims) expected |= variable[e] == variable[d];
        EXPECT_EQ(
            tir::uses_var(loads[k]->indices[a], static_cast<const tir::VarNode*>(variable[d])),
            expected)
            << "operand " << k << " axis " << a << " dimension " << d;
      }
      if (axis.blocked() || axis.window || axis.dims.empty()) continue;
      Dim size = dim(1);
      for (size_t d : axis.dims) size = size * c->dims[d].extent;
      EXPECT_TRUE(dim_equal(size, types[k]->shape[a])) << "operand " << k << " axis " << a;
    }
  }
  return {c->dims.size(), c->count(ContractionRole::Window), c->count(ContractionRole::Group)};
}

TEST(Contraction, is_what_the_compute_rule_does) {
  register_ops();
  size_t operators = 0, windows = 0, groups = 0;
  for (const Op& op : OpRegistry::global().all()) {
    if (!op->row->contraction) continue;
    ++operators;
    for (const OpExample& example : op->row->examples) {
      SCOPED_TRACE(program_of(op->name, example.args, example.attrs));
      Module mod = infer(op->name, example.args, example.attrs);
      Checked found = check_call(*as<CallNode>(as<FunctionNode>(mod->find("main"))->body));
      windows += found.windows;
      groups += found.groups;
    }
  }
  EXPECT_GE(operators, 11u);
  EXPECT_GE(windows, 12u);
  EXPECT_GE(groups, 1u);
}

Checked check(const std::string& op, const std::vector<std::string>& args,
              const std::string& attrs) {
  SCOPED_TRACE(program_of(op, args, attrs));
  Module mod = infer(op, args, attrs);
  return check_call(*as<CallNode>(as<FunctionNode>(mod->find("main"))->body));
}

TEST(Contraction, of_layouts_blocks_and_groups) {
  register_ops();
  std::string image = "Tensor[(2, 9, 8, 12), float32]";
  check("nn.conv2d", {image, "Tensor[(2, 3, 3, 12, 4), float32]"},
        "data_layout=\"NHWC\", kernel_layout=\"OHWI4o\", channels=7");
  check("nn.conv2d", {image, "Tensor[(8, 3, 3, 3), float32]"},
        "data_layout=\"NHWC\", kernel_layout=\"OIHW\", groups=4, dilation=[2, 2]");
  check("nn.conv2d_transpose", {"Tensor[(1, 4, 5, 5), float32]", "Tensor[(4, 3, 3, 3), float32]"},
        "groups=2, strides=[2, 2]");
  check("nn.batch_matmul", {"Tensor[(1, 5, 3), float32]", "Tensor[(4, 5, 2), float32]"},
        "transpose_a=True");
}

}  // namespace
}  // namespace relay
