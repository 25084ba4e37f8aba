// What the relations of operators on indices refuse, what their rules compute when they are
// interpreted, and that they take open dimensions.
#include <gtest/gtest.h>

#include "eval/evaluator.h"
#include "lower/interface/compute_rule.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

const std::string kIndices = "Tensor[(2, 3), int64]";
const std::string kTwoStarts = "(Tensor[(), int64], Tensor[(), int64])";
const std::string kThreeStarts = "(Tensor[(), int64], Tensor[(), int64], Tensor[(), int64])";
const std::string kImage = "Tensor[(1, 4, 6, 6), float32]";
const std::string kFlags = "Tensor[(2, 3), bool]";

const Refusal kRefusals[] = {
    {"argsort", {kMatrix}, "axis=2", "axis"},
    {"argsort", {kMatrix}, "axis=-9223372036854775808", "axis"},
    {"argsort", {kScalar}, "", "axis"},
    {"argsort", {kMatrix}, "dtype=\"float16\"", "index"},
    {"argsort", {kMatrix}, "dtype=\"int8\"", "index"},
    {"topk", {kMatrix}, "k=4", "k is more"},
    {"topk", {kMatrix}, "axis=3", "axis"},
    {"topk", {kMatrix}, "ret_type=\"all\"", "ret_type"},
    {"searchsorted", {kMatrix, "Tensor[(3, 3), float32]"}, "", "sorted_sequence"},
    {"searchsorted", {kScalar, kVector}, "", "sorted_sequence"},
    {"searchsorted", {kVector, kIndices}, "", "dtypes"},
    {"searchsorted", {kVector, kVector}, "dtype=\"bool\"", "index"},
    {"cumsum", {kMatrix}, "axis=2", "axis"},
    {"cumprod", {kFlags}, "axis=0", "bool"},
    {"scatter_elements", {kMatrix, kIndices, kMatrix}, "axis=2", "axis"},
    {"scatter_elements", {kMatrix, kMatrix, kMatrix}, "", "integers"},
    {"scatter_elements", {kMatrix, kIndices, kMatrix}, "reduction=\"sub\"", "reduction"},
    {"scatter_elements", {kMatrix, kIndices, kIndices}, "", "dtypes"},
    {"scatter_elements", {kMatrix, kIndices, "Tensor[(2, 2), float32]"}, "", "one shape"},
    {"scatter_elements",
     {kMatrix, "Tensor[(2, 4), int32]", "Tensor[(2, 4), float32]"},
     "",
     "shape"},
    {"scatter_elements", {kFlags, kIndices, kFlags}, "reduction=\"add\"", "bool"},
    {"update_slice", {kMatrix, kMatrix, "Tensor[(1,), int64]"}, "", "an integer"},
    {"update_slice", {kMatrix, kIndices, "int64"}, "", "dtypes"},
    {"update_slice", {kMatrix, kVector, "int64"}, "", "update does not fit"},
    {"update_slice", {kMatrix, "Tensor[(9, 3), float32]", "int64"}, "", "update does not fit"},
    {"update_slice", {kMatrix, kMatrix, "int64"}, "strides=[2]", "tuple of starts"},
    {"update_slice", {kMatrix, kMatrix, "()"}, "", "starts and strides"},
    {"update_slice", {kMatrix, "float32", kThreeStarts}, "", "starts and strides"},
    {"update_slice", {kMatrix, "float32", kTwoStarts}, "strides=[0, 1]", "starts and strides"},
    {"update_slice", {kMatrix, "float32", kTwoStarts}, "strides=[1, 1, 1]", "starts and strides"},
    {"update_slice", {kMatrix, "float32", "(Tensor[(), float32],)"}, "", "tuple of integers"},
    {"update_slice", {kMatrix, "Tensor[(9, 3), float32]", kTwoStarts}, "", "update does not fit"},
    {"update_slice",
     {kMatrix, "Tensor[(2, 3), float32]", kTwoStarts},
     "strides=[9]",
     "update does not fit"},
    {"update_slice", {kVector, kMatrix, "(Tensor[(), int64],)"}, "", "update does not fit"},
    {"update_slice", {kMatrix, "float32", "(Tensor[(), int64],)"}, "", "update does not fit"},
    {"scatter_nd", {kMatrix, "Tensor[(3, 4), int64]", kVector}, "", "first axis"},
    {"scatter_nd", {kMatrix, "int64", kVector}, "", "first axis"},
    {"scatter_nd", {kMatrix, "Tensor[(1, 4), int64]", kMatrix}, "", "updates do not fit"},
    {"scatter_nd", {kMatrix, kIndices, "Tensor[(3,), float32]"}, "mode=\"mean\"", "mode"},
    {"invert_permutation", {kVector}, "", "integers"},
    {"invert_permutation", {kIndices}, "", "vector"},
    {"arange", {}, "", "numbers"},
    {"arange", {}, "stop=4, step=0", "step"},
    {"arange", {}, "stop=4, step=0.0f", "step"},
    {"arange", {}, "stop=9223372036854775807", "absurdly"},
    {"meshgrid", {"(" + kVector + ", " + kMatrix + ")"}, "", "vectors"},
    {"meshgrid", {"(" + kVector + ", Tensor[(2,), int32])"}, "", "dtypes"},
    {"meshgrid", {"(" + kVector + ",)"}, "indexing=\"ik\"", "indexing"},
    {"unravel_index", {kMatrix, "Tensor[(3,), int64]"}, "", "integers"},
    {"unravel_index", {kIndices, kIndices}, "", "vector"},
    {"unravel_index", {kIndices, "Tensor[(1000,), int64]"}, "", "too many"},
    {"reverse_sequence", {kMatrix, "Tensor[(2,), int64]"}, "seq_axis=2", "seq_axis"},
    {"reverse_sequence", {kMatrix, "Tensor[(2,), int64]"}, "seq_axis=0", "differ"},
    {"reverse_sequence", {kMatrix, "Tensor[(3,), int64]"}, "", "for each sequence"},
    {"reverse_sequence", {kMatrix, "Tensor[(2,), bool]"}, "", "vector of numbers"},
    {"sequence_mask", {kMatrix, "Tensor[(3,), bool]"}, "", "vector of numbers"},
    {"one_hot", {"Tensor[(2,), bool]", "float32", "float32"}, "depth=2", "integers"},
    {"qnn.quantize",
     {kMatrix, "float32", "int32"},
     "rounding=\"DOWNWARD\"",
     "rounding is not known"},
    {"sequence_mask", {kMatrix, "Tensor[(3,), int32]"}, "axis=2", "axis"},
    {"sequence_mask", {kMatrix, "Tensor[(2,), int32]"}, "axis=0", "for each sequence"},
    {"sequence_mask", {kVector, "Tensor[(4,), int32]"}, "", "two dimensions"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"ij,jk->ik\"", "operands"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"ijk->i\"", "does not label"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"i->i\"", "does not label"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"i1->i\"", "letters"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"......ij\"", "letters"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"ij->k\"", "no operand"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"ij->ii\"", "twice"},
    {"einsum", {"(" + kMatrix + ",)"}, "equation=\"ii\"", "broadcast"},
    {"einsum", {"(" + kMatrix + ", " + kIndices + ")"}, "equation=\"ij,ij\"", "dtype"},
    {"collapse_sum_like", {kMatrix, kVector}, "", "broadcast"},
    {"collapse_sum_like", {kMatrix, "Tensor[(1, 2, 3), float32]"}, "", "broadcast"},
    {"collapse_sum_like", {kFlags, kFlags}, "", "bool"},
    {"collapse_sum_to", {kMatrix}, "shape=[-1]", "negative"},
    {"collapse_sum_to", {"Tensor[(1, 3), float32]"}, "shape=[2, 3]", "broadcast"},
    {"nn.depth_to_space", {kImage}, "block_size=3", "channels"},
    {"nn.depth_to_space", {kImage}, "block_size=0", "block_size"},
    {"nn.depth_to_space", {kImage}, "block_size=2, mode=\"CRD\"", "mode"},
    {"nn.space_to_depth", {kImage}, "block_size=4", "height"},
    {"nn.space_to_depth", {kImage}, "block_size=2, layout=\"CHWN\"", "layout"},
    {"nn.space_to_depth", {kMatrix}, "block_size=2", "image"},
    {"nn.upsampling", {kImage}, "scale_h=0.0f", "scale"},
    {"nn.upsampling", {kImage}, "method=\"magic\"", "method"},
    {"nn.upsampling", {"Tensor[(1, 4, 0, 6), float32]"}, "", "known and not zero"},
    {"adv_index", {"(" + kMatrix + ",)"}, "", "2 tensors"},
    {"adv_index", {"(" + kVector + ", " + kIndices + ", " + kIndices + ")"}, "", "more index"},
    {"adv_index", {"(" + kVector + ", " + kMatrix + ")"}, "", "integers"},
    {"nn.l2_normalize", {kMatrix}, "axis=[2]", "axis"},
    {"nn.l2_normalize", {kMatrix}, "axis=[1, -1]", "twice"},
    {"nn.l2_normalize", {kMatrix}, "eps=-1.0f", "eps"},
    {"nn.l2_normalize", {kIndices}, "", "floating"},
    {"nn.dilate", {kMatrix}, "strides=[2]", "each axis"},
    {"nn.dilate", {kMatrix}, "strides=[0, 1]", "stride"},
};

TEST(Indexing, relations_refuse_what_does_not_fit) {
  for (const Refusal& c : kRefusals) expect_refused(c);
}

TEST(Indexing, rules_take_open_dimensions) {
  const std::string n = "Tensor[(n, 3), float32]", m = "Tensor[(m, 3), int64]",
                    u = "Tensor[(m, 3), float32]";
  const Refusal cases[] = {
      {"argsort", {n}, "axis=0", ""},
      {"topk", {n}, "axis=0, k=2", ""},
      {"searchsorted", {"Tensor[(n,), float32]", "Tensor[(m,), float32]"}, "", ""},
      {"cumsum", {n}, "axis=0", ""},
      {"cumsum", {n}, "", ""},
      {"scatter_elements", {n, m, u}, "", ""},
      {"scatter_nd", {n, "Tensor[(1, m), int64]", u}, "", ""},
      {"shape_of", {n}, "", ""},
      {"reverse_sequence", {n, "Tensor[(n,), int32]"}, "", ""},
      {"einsum", {"(" + n + ", " + u + ")"}, "equation=\"ik,jk->ij\"", ""},
      {"nn.dilate", {n}, "strides=[2, 2]", ""},
  };
  for (const Refusal& c : cases) {
    SCOPED_TRACE(program_of(c.op, c.args, c.attrs, "n: Dim, m: Dim"));
    try {
      Module mod = infer(c.op, c.args, c.attrs, "n: Dim, m: Dim");
      auto* call = as<CallNode>(as<FunctionNode>(mod->find("main"))->body);
      ASSERT_NE(call, nullptr);
      std::vector<tir::Tensor> inputs;
      DimScope dims;
      for (const Expr& arg : call->args) {
        auto tensors = flatten_tensor_types(arg->type);
        ASSERT_TRUE(tensors.has_value());
        for (const TensorType& t : *tensors)
          inputs.push_back(tir::placeholder("x" + std::to_string(inputs.size()), t->dtype,
                                            dims.lower(t->shape)));
      }
      EXPECT_TRUE(tir::create_prim_func("main", inputs, compute_call(*call, inputs, dims)));
    } catch (const UserError& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

runtime::Tensor integers(const std::vector<int64_t>& shape, const std::vector<int64_t>& values) {
  runtime::Tensor t = runtime::Tensor::empty(runtime::DType::Int(32), runtime::Shape(shape));
  for (size_t i = 0; i < values.size(); ++i) t.set_from_int(static_cast<int64_t>(i), values[i]);
  return t;
}

struct Line {
  const char* op;
  const char* attrs;
  std::vector<std::vector<int64_t>> args;  // vectors of int32
  std::vector<int64_t> result;
};

runtime::Tensor evaluate(const Line& line) {
  std::vector<std::string> types;
  std::vector<runtime::Value> args;
  for (const std::vector<int64_t>& values : line.args) {
    auto n = static_cast<int64_t>(values.size());
    types.push_back("Tensor[(" + std::to_string(n) + ",), int32]");
    args.emplace_back(integers({n}, values));
  }
  return Evaluator(infer(line.op, types, line.attrs)).call("main", args).tensor();
}

TEST(Indexing, rules_written_as_statements_are_interpreted) {
  const Line lines[] = {
      {"argsort", "", {{3, 1, 2, 1, 3}}, {1, 3, 2, 0, 4}},
      {"argsort", "is_ascend=False", {{3, 1, 2, 1, 3}}, {0, 4, 2, 1, 3}},
      {"sort", "", {{5, -1, 7, 0, 0, 9, -3}}, {-3, -1, 0, 0, 5, 7, 9}},
      {"sort", "", {{}}, {}},
      {"topk", "k=2, ret_type=\"values\"", {{5, 9, 7}}, {9, 7}},
      {"topk", "k=2, ret_type=\"indices\", is_ascend=True", {{5, 9, 7}}, {0, 2}},
      {"searchsorted", "", {{1, 3, 3, 5}, {0, 3, 6}}, {0, 1, 4}},
      {"searchsorted", "right=True", {{1, 3, 3, 5}, {0, 3, 6}}, {0, 3, 4}},
      {"cumsum", "axis=0", {{1, 2, 3}}, {1, 3, 6}},
      {"cumprod", "exclusive=True", {{4, 2, 3}}, {1, 4, 8}},
      {"scatter_elements", "", {{1, 2, 3}, {-1, 0}, {8, 9}}, {9, 2, 8}},
      {"scatter_elements", "reduction=\"mean\"", {{1, 2, 3}, {1, 1}, {3, 4}}, {1, 3, 3}},
      {"invert_permutation", "", {{2, 0, 1}}, {1, 2, 0}},
  };
  for (const Line& line : lines) {
    SCOPED_TRACE(std::string(line.op) + " " + line.attrs);
    runtime::Tensor got = evaluate(line);
    ASSERT_EQ(got.num_elements(), static_cast<int64_t>(line.result.size()));
    for (size_t i = 0; i < line.result.size(); ++i)
      EXPECT_EQ(got.get_as_int(static_cast<int64_t>(i)), line.result[i]) << i;
  }
}

TEST(Indexing, an_index_outside_the_data_is_an_error_at_run_time) {
  const Line lines[] = {{"scatter_elements", "", {{1, 2, 3}, {0, 3}, {8, 9}}, {}},
                        {"scatter_elements", "", {{1, 2, 3}, {0, -4}, {8, 9}}, {}},
                        {"invert_permutation", "", {{0, 3, 1}}, {}}};
  for (const Line& line : lines) {
    SCOPED_TRACE(line.op);
    try {
      evaluate(line);
      ADD_FAILURE() << "no error";
    } catch (const RuntimeError& e) {
      EXPECT_NE(std::string(e.what()).find("E0605"), std::string::npos) << e.what();
    }
  }
}

}  // namespace
}  // namespace relay
