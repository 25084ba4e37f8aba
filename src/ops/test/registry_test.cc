// Walks every row of the registry, and asks relations to refuse what they must.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/diagnostic.h"
#include "ir/text/text.h"
#include "lower/interface/compute_rule.h"
#include "ops/register_ops.h"
#include "types/infer.h"

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

// A function that applies an operator to parameters of the given types.
std::string program_of(std::string_view op, const std::vector<std::string>& args,
                       const std::string& attrs) {
  std::string params, call;
  for (size_t i = 0; i < args.size(); ++i) {
    std::string name = "%a" + std::to_string(i);
    params += (i > 0 ? ", " : "") + name + ": " + args[i];
    call += (i > 0 ? ", " : "") + name;
  }
  if (!attrs.empty()) call += (call.empty() ? "" : ", ") + attrs;
  return "#[version = \"0.0.5\"]\ndef @main(" + params + ") { " + std::string(op) + "(" + call +
         ") }\n";
}

Module infer(std::string_view op, const std::vector<std::string>& args, const std::string& attrs) {
  register_ops();
  return infer_types(parse_module("a.relay", program_of(op, args, attrs)));
}

std::string error_of(std::string_view op, const std::vector<std::string>& args,
                     const std::string& attrs) {
  try {
    infer(op, args, attrs);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
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

TEST(Relations, refuse_what_does_not_fit) {
  struct Case {
    const char* op;
    std::vector<std::string> args;
    const char* attrs;
  };
  const std::string t = "Tensor[(2, 3), float32]", i = "Tensor[(2, 3), int32]",
                    image = "Tensor[(1, 4, 8, 8), float32]",
                    kernel = "Tensor[(4, 4, 3, 3), float32]";
  const Case cases[] = {
      {"add", {t, "Tensor[(4, 3), float32]"}, ""},
      {"add", {t, i}, ""},
      {"exp", {i}, ""},
      {"sum", {t}, "axis=[2]"},
      {"nn.softmax", {t}, "axis=5"},
      {"nn.softmax", {t}, "axis=-9223372036854775808"},
      {"nn.dense", {t, "Tensor[(5, 4), float32]"}, ""},
      {"nn.batch_matmul", {"Tensor[(2, 3, 4), float32]", "Tensor[(2, 5, 3), float32]"}, ""},
      {"nn.conv2d", {image, kernel}, "strides=[0, 1]"},
      {"nn.conv2d", {image, kernel}, "dilation=[0, 1]"},
      {"nn.conv2d", {image, kernel}, "groups=0"},
      {"nn.conv2d", {image, kernel}, "groups=3"},
      {"nn.conv2d", {image, "Tensor[(4, 4, 9, 9), float32]"}, ""},
      {"nn.conv2d", {image, kernel}, "data_layout=\"NCQQ\""},
      {"nn.max_pool2d", {image}, "pool_size=[9, 9]"},
      {"nn.max_pool2d", {image}, "pool_size=[2, 2], strides=[0, 0]"},
      {"reshape", {t}, "newshape=[4, 2]"},
      {"reshape", {t}, "newshape=[-1, -1]"},
      {"reshape", {t}, "newshape=[-9]"},
      {"transpose", {t}, "axes=[0, 0]"},
      {"squeeze", {t}, "axis=[0]"},
      {"strided_slice", {t}, "begin=[0], end=[2], strides=[0]"},
      {"nn.pad", {t, "float32"}, "pad_width=[[1, 1]]"},
      {"zeros", {}, "shape=[-1], dtype=\"float32\""},
      {"zeros", {}, "shape=[4611686018427387904, 4], dtype=\"float32\""},
  };
  for (const Case& c : cases) {
    std::string error = error_of(c.op, c.args, c.attrs);
    // By the relation or the attribute checks: an unreadable case would prove nothing.
    EXPECT_TRUE(error.find("E02") != std::string::npos || error.find("E08") != std::string::npos)
        << program_of(c.op, c.args, c.attrs) << error;
  }
}

}  // namespace
}  // namespace relay
