// What ONNX models become: structure and types of the Relay program.
#include "frontend/onnx/onnx.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>

#include "frontend/test/model_builder.h"
#include "node/walk.h"
#include "ops/register_ops.h"

namespace relay {
namespace {

using test::D;
using test::GraphBuilder;
using test::ModelBuilder;

class OnnxImport : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }

  static ImportedModel import(const ModelBuilder& m, const OnnxOptions& options = {}) {
    return import_onnx_bytes(m.bytes(), "test.onnx", {}, options);
  }
  static Function main_of(const ImportedModel& m) { return m.module->find("main"); }
  static std::string result_type(const ImportedModel& m) {
    return to_string(main_of(m)->body->type);
  }
  // How often each operator is called.
  static std::map<std::string, int> calls(const ImportedModel& m) {
    std::map<std::string, int> out;
    post_order(
        main_of(m),
        [&](const Node& n) {
          if (auto* c = as<CallNode>(&n)) {
            if (auto* op = as<OpNode>(c->op)) ++out[op->name];
          }
        },
        family::program);
    return out;
  }
  // The first call of an operator.
  static Call find_call(const ImportedModel& m, std::string_view op) {
    Call found;
    post_order(
        main_of(m),
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (!found && c != nullptr && is_call_to(ref(*c), op)) found = ref(*c);
        },
        family::program);
    return found;
  }
  static std::string attr(const Call& c, const char* name) {
    return to_string(attr_value(c->attrs, name));
  }
};

TEST_F(OnnxImport, keeps_names_and_types_of_inputs) {
  ModelBuilder b;
  b.input("data/x:0", {2, 3}).node("Relu", {"data/x:0"}, {"y"}).output("y");
  ImportedModel m = import(b);
  EXPECT_EQ(main_of(m)->params.size(), 1u);
  EXPECT_EQ(main_of(m)->params[0]->name_hint, "data_x_0");
  EXPECT_EQ(m.input_names, std::vector<std::string>{"data/x:0"});
  EXPECT_EQ(m.output_names, std::vector<std::string>{"y"});
  EXPECT_EQ(to_string(main_of(m)->attrs.at(attr::kInputNames)), R"([["data_x_0", "data/x:0"]])");
  EXPECT_EQ(to_string(main_of(m)->attrs.at(attr::kOutputNames)), R"(["y"])");
  EXPECT_EQ(m.version, 17);
  EXPECT_EQ(m.producer, "test");
  EXPECT_EQ(m.source_hash.size(), 16u);
  EXPECT_EQ(result_type(m), "Tensor[(2, 3), float32]");
  EXPECT_EQ(find_call(m, "nn.relu")->span.describe(), "test.onnx: node y_node (Relu)");
}

TEST_F(OnnxImport, unnamed_nodes_are_placed_by_number_and_output) {
  ModelBuilder b;
  b.input("x", {2}).node("Relu", {"x"}, {"y"}).last_node()->clear_name();
  b.output("y");
  EXPECT_EQ(find_call(import(b), "nn.relu")->span.describe(), "test.onnx: node #0 (Relu) -> y");
}

TEST_F(OnnxImport, open_dimensions_become_named_ones) {
  ModelBuilder b;
  b.input("x", {"batch", 4}).input("y", {"batch", 4}).node("Add", {"x", "y"}, {"z"}).output("z");
  ImportedModel m = import(b);
  ASSERT_EQ(main_of(m)->type_params.size(), 1u);
  EXPECT_EQ(main_of(m)->type_params[0]->name_hint, "batch");
  EXPECT_EQ(result_type(m), "Tensor[(batch, 4), float32]");
  OnnxOptions fixed;
  fixed.shapes["y"] = {8, -1};
  ImportedModel f = import(b, fixed);
  EXPECT_TRUE(main_of(f)->type_params.empty());
  EXPECT_EQ(result_type(f), "Tensor[(8, 4), float32]");
}

TEST_F(OnnxImport, words_for_not_known_are_no_names) {
  for (const char* word : {"?", "None", "none", "-1", "unk", "unknown", "*"}) {
    ModelBuilder b;
    b.input("x", {word, 3, word}).input("y", {4, word});
    b.node("Relu", {"x"}, {"z"}).node("Relu", {"y"}, {"w"}).output("z").output("w");
    ImportedModel m = import(b);
    EXPECT_EQ(main_of(m)->type_params.size(), 3u) << word;
    OnnxOptions fixed;
    fixed.shapes["x"] = {2, 3, 5};
    EXPECT_EQ(result_type(import(b, fixed)),
              "(Tensor[(2, 3, 5), float32], Tensor[(4, y_1), float32])")
        << word;
  }
  ModelBuilder named;
  named.input("x", {"unk__6", "unk__6"}).node("Relu", {"x"}, {"z"}).output("z");
  EXPECT_EQ(main_of(import(named))->type_params.size(), 1u);
}

TEST_F(OnnxImport, several_outputs_are_a_tuple) {
  ModelBuilder b;
  b.input("x", {4, 2}).node("Split", {"x"}, {"a", "b"}).attr("axis", 0).output("a").output("b");
  EXPECT_EQ(result_type(import(b)), "(Tensor[(2, 2), float32], Tensor[(2, 2), float32])");
}

TEST_F(OnnxImport, weights_are_constants_or_parameters) {
  ModelBuilder b;
  b.input("x", {2, 3}).weight("w", {3, 5}).node("MatMul", {"x", "w"}, {"y"}).output("y");
  ImportedModel frozen = import(b);
  EXPECT_TRUE(frozen.params.empty());
  auto* w = as<ConstantNode>(find_call(frozen, "nn.dense")->args[1]);
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->name_hint, "w");
  EXPECT_EQ(w->data.data<float>()[0], 0.5f);

  OnnxOptions options;
  options.freeze_params = false;
  ImportedModel open = import(b, options);
  EXPECT_EQ(main_of(open)->params.size(), 2u);
  EXPECT_EQ(open.params.count("w"), 1u);
  EXPECT_EQ(open.input_names, (std::vector<std::string>{"x", "w"}));
}

TEST_F(OnnxImport, initializer_that_is_also_an_input_is_a_weight) {
  ModelBuilder b;
  b.input("x", {2}).input("w", {2}).floats("w", {2}, {1, 2});
  b.node("Add", {"x", "w"}, {"y"}).output("y");
  EXPECT_EQ(main_of(import(b))->params.size(), 1u);
}

// ---- Shape arithmetic --------------------------------------------------------------------------

TEST_F(OnnxImport, shape_arithmetic_leaves_no_trace) {
  ModelBuilder b;
  b.input("x", {"n", 8, 6});
  b.node("Shape", {"x"}, {"s"});
  b.scalar("zero", 0).node("Gather", {"s", "zero"}, {"n"}).attr("axis", 0);
  b.ints("axes", {0}).node("Unsqueeze", {"n", "axes"}, {"n1"});
  b.ints("rest", {-1}).node("Concat", {"n1", "rest"}, {"target"}).attr("axis", 0);
  b.node("Reshape", {"x", "target"}, {"y"}).output("y");
  ImportedModel m = import(b);
  EXPECT_EQ(result_type(m), "Tensor[(n, 48), float32]");
  EXPECT_EQ(calls(m), (std::map<std::string, int>{{"reshape", 1}}));
}

TEST_F(OnnxImport, shape_arithmetic_evaluates_slices_casts_and_products) {
  ModelBuilder b;
  b.input("x", {2, 3, 4, 5});
  b.node("Shape", {"x"}, {"s"});
  b.node("Cast", {"s"}, {"s32"}).attr("to", int64_t{6});
  b.ints("start", {1}).ints("end", {100}).node("Slice", {"s32", "start", "end"}, {"tail"});
  b.node("ReduceProd", {"tail"}, {"p"}).attr("keepdims", 1);
  b.node("Cast", {"p"}, {"p64"}).attr("to", int64_t{7});
  b.ints("two", {2}).node("Concat", {"two", "p64"}, {"target"}).attr("axis", 0);
  b.node("Reshape", {"x", "target"}, {"y"}).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(2, 60), float32]");
}

TEST_F(OnnxImport, shape_becomes_a_tensor_when_it_is_data) {
  ModelBuilder b;
  b.input("x", {2, 3}).node("Shape", {"x"}, {"s"}).output("s");
  ImportedModel m = import(b);
  auto* c = as<ConstantNode>(main_of(m)->body);
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(c->data.data<int64_t>()[1], 3);
}

TEST_F(OnnxImport, expand_to_an_open_dimension_repeats_only_known_ones) {
  ModelBuilder b;
  b.input("x", {"n", 1}).node("Shape", {"x"}, {"s"});
  b.ints("five", {5}).ints("begin", {0}).ints("end", {1});
  b.node("Slice", {"s", "begin", "end"}, {"n"});
  b.node("Concat", {"n", "five"}, {"target"}).attr("axis", 0);
  b.node("Expand", {"x", "target"}, {"y"}).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(n, 5), float32]");
}

TEST_F(OnnxImport, range_and_constant_of_shape_are_known) {
  ModelBuilder b;
  b.scalar("a", 2).scalar("b", 11).scalar("c", 3).node("Range", {"a", "b", "c"}, {"r"});
  b.node("ConstantOfShape", {"r"}, {"y"}).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(2, 5, 8), float32]");
}

// ---- Operators ---------------------------------------------------------------------------------

TEST_F(OnnxImport, conv_carries_its_window) {
  ModelBuilder b;
  b.input("x", {1, 3, 10, 10}).weight("w", {8, 3, 3, 3}).weight("bias", {8});
  b.node("Conv", {"x", "w", "bias"}, {"y"}).attr("strides", std::vector<int64_t>{2, 2});
  b.attr("pads", {0, 1, 2, 3}).output("y");
  ImportedModel m = import(b);
  Call c = find_call(m, "nn.conv2d");
  EXPECT_EQ(attr(c, "strides"), "[2, 2]");
  EXPECT_EQ(attr(c, "padding"), "[0, 1, 2, 3]");
  EXPECT_EQ(calls(m)["nn.bias_add"], 1);
  EXPECT_EQ(result_type(m), "Tensor[(1, 8, 5, 6), float32]");
}

TEST_F(OnnxImport, auto_pad_puts_the_odd_element_last_or_first) {
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"}) {
    ModelBuilder b;
    b.input("x", {1, 1, 6, 6}).weight("w", {1, 1, 2, 2});
    b.node("Conv", {"x", "w"}, {"y"}).attr_s("auto_pad", mode).output("y");
    ImportedModel m = import(b);
    bool upper = std::string(mode) == "SAME_UPPER";
    EXPECT_EQ(attr(find_call(m, "nn.conv2d"), "padding"), upper ? "[0, 0, 1, 1]" : "[1, 1, 0, 0]");
    EXPECT_EQ(result_type(m), "Tensor[(1, 1, 6, 6), float32]");
  }
}

TEST_F(OnnxImport, grouped_and_depthwise_convolution) {
  ModelBuilder b;
  b.input("x", {1, 8, 6, 6}).weight("w", {8, 1, 3, 3});
  b.node("Conv", {"x", "w"}, {"y"}).attr("group", 8).output("y");
  ImportedModel m = import(b);
  EXPECT_EQ(attr(find_call(m, "nn.conv2d"), "groups"), "8");
  EXPECT_EQ(result_type(m), "Tensor[(1, 8, 4, 4), float32]");
}

TEST_F(OnnxImport, transposed_convolution_meets_its_output_shape) {
  ModelBuilder b;
  b.input("x", {1, 4, 4, 4}).weight("w", {4, 2, 3, 3});
  b.node("ConvTranspose", {"x", "w"}, {"y"}).attr("strides", std::vector<int64_t>{2, 2});
  b.attr("output_shape", std::vector<int64_t>{8, 8}).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(1, 2, 8, 8), float32]");
}

TEST_F(OnnxImport, ceil_mode_pools_pad_at_the_end) {
  ModelBuilder b;
  b.input("x", {1, 1, 6, 6});
  b.node("MaxPool", {"x"}, {"y"}).attr("kernel_shape", std::vector<int64_t>{3, 3});
  b.attr("strides", std::vector<int64_t>{2, 2}).attr("ceil_mode", 1).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(1, 1, 3, 3), float32]");
}

TEST_F(OnnxImport, gemm_with_a_transposed_weight_is_dense) {
  ModelBuilder b;
  b.input("x", {2, 3}).weight("w", {5, 3}).weight("c", {5});
  b.node("Gemm", {"x", "w", "c"}, {"y"}).attr("transB", 1).output("y");
  EXPECT_EQ(calls(import(b)), (std::map<std::string, int>{{"nn.bias_add", 1}, {"nn.dense", 1}}));
}

TEST_F(OnnxImport, constant_right_sides_are_transposed_once) {
  ModelBuilder b;
  b.input("x", {4, 2, 3})
      .floats("w", {3, 2}, {1, 2, 3, 4, 5, 6})
      .floats("v", {2, 3}, std::vector<float>(6));
  b.node("MatMul", {"x", "w"}, {"a"}).node("MatMul", {"a", "v"}, {"c"});
  b.node("MatMul", {"c", "w"}, {"y"}).output("y");
  ImportedModel m = import(b);
  EXPECT_EQ(calls(m), (std::map<std::string, int>{{"nn.dense", 3}}));
  auto* last = as<CallNode>(main_of(m)->body);
  auto* w = as<ConstantNode>(last->args[1]);
  EXPECT_EQ(w->data.data<float>()[1], 3.0f);
  EXPECT_EQ(find_call(m, "nn.dense")->args[1], last->args[1]);
  EXPECT_EQ(result_type(m), "Tensor[(4, 2, 2), float32]");
}

TEST_F(OnnxImport, matmul_of_every_rank) {
  struct Case {
    std::vector<D> a, b;
    const char* type;
  };
  for (const Case& c : {Case{{3}, {3}, "float32"}, Case{{2, 3}, {3}, "Tensor[(2,), float32]"},
                        Case{{3}, {3, 4}, "Tensor[(4,), float32]"},
                        Case{{5, 2, 3}, {3, 4}, "Tensor[(5, 2, 4), float32]"},
                        Case{{5, 2, 3}, {5, 3, 4}, "Tensor[(5, 2, 4), float32]"},
                        Case{{7, 1, 2, 3}, {5, 3, 4}, "Tensor[(7, 5, 2, 4), float32]"},
                        Case{{2, 3}, {5, 3, 4}, "Tensor[(5, 2, 4), float32]"},
                        Case{{"n", 12, 8, 3}, {"n", 12, 3, 8}, "Tensor[(n, 12, 8, 8), float32]"},
                        Case{{"n", "s", 3}, {3, 4}, "Tensor[(n, s, 4), float32]"}}) {
    ModelBuilder b;
    b.input("a", c.a).input("b", c.b).node("MatMul", {"a", "b"}, {"y"}).output("y");
    EXPECT_EQ(result_type(import(b)), c.type);
  }
}

TEST_F(OnnxImport, softmax_before_opset_13_flattens) {
  for (int64_t opset : {11, 13}) {
    ModelBuilder b(opset);
    b.input("x", {2, 3, 4}).node("Softmax", {"x"}, {"y"}).attr("axis", 1).output("y");
    EXPECT_EQ(calls(import(b))["reshape"], opset == 11 ? 2 : 0);
  }
}

TEST_F(OnnxImport, axes_are_attributes_or_inputs) {
  ModelBuilder a(12);
  a.input("x", {2, 1, 3}).node("Squeeze", {"x"}, {"s"}).attr("axes", std::vector<int64_t>{1});
  a.node("ReduceSum", {"s"}, {"y"}).attr("axes", std::vector<int64_t>{0}).attr("keepdims", 0);
  a.output("y");
  ModelBuilder b(13);
  b.input("x", {2, 1, 3}).ints("one", {1}).ints("zero", {0}).node("Squeeze", {"x", "one"}, {"s"});
  b.node("ReduceSum", {"s", "zero"}, {"y"}).attr("keepdims", 0).output("y");
  EXPECT_EQ(result_type(import(a)), "Tensor[(3,), float32]");
  EXPECT_EQ(result_type(import(b)), "Tensor[(3,), float32]");
}

TEST_F(OnnxImport, slices_backwards) {
  ModelBuilder b;
  b.input("x", {5}).ints("start", {-1}).ints("end", {-100}).ints("axes", {0}).ints("steps", {-2});
  b.node("Slice", {"x", "start", "end", "axes", "steps"}, {"y"}).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(3,), float32]");
}

TEST_F(OnnxImport, einsum_is_a_matrix_product) {
  ModelBuilder b;
  b.input("x", {2, 3, 4, 5}).input("y", {2, 6, 4, 5});
  b.node("Einsum", {"x", "y"}, {"z"}).attr_s("equation", "bqhd,bkhd->bhqk").output("z");
  ImportedModel m = import(b);
  EXPECT_EQ(calls(m)["nn.batch_matmul"], 1);
  EXPECT_EQ(result_type(m), "Tensor[(2, 4, 3, 6), float32]");
}

TEST_F(OnnxImport, lstm_computes_the_inputs_of_all_steps_at_once) {
  ModelBuilder b;
  b.input("x", {5, 2, 3}).weight("w", {1, 16, 3}).weight("r", {1, 16, 4}).weight("b", {1, 32});
  b.node("LSTM", {"x", "w", "r", "b"}, {"y", "yh", "yc"}).attr("hidden_size", 4);
  b.output("y").output("yh").output("yc");
  ImportedModel m = import(b);
  // One for all steps, and one in the loop; the steps' results are written line by line.
  EXPECT_EQ(calls(m)["nn.dense"], 1 + 1);
  EXPECT_EQ(calls(m)["update_slice"], 1);
  EXPECT_EQ(result_type(m),
            "(Tensor[(5, 1, 2, 4), float32], Tensor[(1, 2, 4), float32], Tensor[(1, 2, 4), "
            "float32])");
}

TEST_F(OnnxImport, bidirectional_gru_stacks_its_directions) {
  for (int64_t linear : {0, 1}) {
    ModelBuilder b;
    b.input("x", {5, 2, 3}).weight("w", {2, 12, 3}).weight("r", {2, 12, 4}).weight("b", {2, 24});
    b.node("GRU", {"x", "w", "r", "b"}, {"y", "yh"}).attr("hidden_size", 4);
    b.attr_s("direction", "bidirectional").attr("linear_before_reset", linear);
    b.output("y").output("yh");
    EXPECT_EQ(result_type(import(b)),
              "(Tensor[(5, 2, 2, 4), float32], Tensor[(2, 2, 4), float32])");
  }
}

TEST_F(OnnxImport, rnn_with_fixed_whole_lengths) {
  ModelBuilder b;
  b.input("x", {4, 2, 3}).weight("w", {1, 5, 3}).weight("r", {1, 5, 5});
  auto* t = b.graph()->add_initializer();
  t->set_name("lens");
  t->set_data_type(::onnx::TensorProto::INT32);
  t->add_dims(2);
  t->add_int32_data(4);
  t->add_int32_data(4);
  b.node("RNN", {"x", "w", "r", "", "lens"}, {"y"}).attr("hidden_size", 5).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(4, 1, 2, 5), float32]");
}

// ---- Control flow and functions ----------------------------------------------------------------

void branch(::onnx::GraphProto* g, const char* op) {
  GraphBuilder b(g);
  b.node(op, {"x"}, {std::string(op) + "_out"}).output(std::string(op) + "_out");
}

TEST_F(OnnxImport, if_with_a_known_condition_is_inlined) {
  ModelBuilder b;
  b.input("x", {2});
  auto* t = b.graph()->add_initializer();
  t->set_name("c");
  t->set_data_type(::onnx::TensorProto::BOOL);
  t->add_int32_data(1);
  b.node("If", {"c"}, {"y"});
  branch(b.attr_graph("then_branch"), "Relu");
  branch(b.attr_graph("else_branch"), "Tanh");
  b.output("y");
  EXPECT_EQ(calls(import(b)), (std::map<std::string, int>{{"nn.relu", 1}}));
}

TEST_F(OnnxImport, if_on_data_stays) {
  ModelBuilder b;
  b.input("x", {2}).input("c", {}, ::onnx::TensorProto::BOOL).node("If", {"c"}, {"y"});
  branch(b.attr_graph("then_branch"), "Relu");
  branch(b.attr_graph("else_branch"), "Tanh");
  b.output("y");
  ImportedModel m = import(b);
  EXPECT_TRUE(isa<IfNode>(main_of(m)->body));
}

void loop_body(::onnx::GraphProto* g, bool scan) {
  GraphBuilder b(g);
  b.input("i", {}, ::onnx::TensorProto::INT64).input("go", {}, ::onnx::TensorProto::BOOL);
  b.input("v", {2});
  b.node("Identity", {"go"}, {"go_out"}).node("Add", {"v", "v"}, {"v_out"});
  b.output("go_out").output("v_out");
  if (scan) b.node("Relu", {"v_out"}, {"seen"}).output("seen");
}

TEST_F(OnnxImport, counted_loop_is_a_recursive_function) {
  ModelBuilder b;
  b.input("x", {2}).scalar("n", 3).node("Loop", {"n", "", "x"}, {"y", "scan"});
  loop_body(b.attr_graph("body"), true);
  b.output("y").output("scan");
  ImportedModel m = import(b);
  EXPECT_EQ(calls(m)["nn.relu"], 1);
  EXPECT_EQ(calls(m)["update_slice"], 1);
  EXPECT_EQ(result_type(m), "(Tensor[(2,), float32], Tensor[(3, 2), float32])");
}

TEST_F(OnnxImport, loop_of_unknown_length_is_a_recursive_function) {
  ModelBuilder b;
  b.input("x", {2}).input("n", {}, ::onnx::TensorProto::INT64);
  b.node("Loop", {"n", "", "x"}, {"y"});
  loop_body(b.attr_graph("body"), false);
  b.output("y");
  ImportedModel m = import(b);
  EXPECT_EQ(result_type(m), "Tensor[(2,), float32]");
  EXPECT_TRUE(isa<LetNode>(main_of(m)->body));
}

TEST_F(OnnxImport, scan_is_a_recursive_function) {
  ModelBuilder b;
  b.input("s", {2}).input("x", {4, 2}).node("Scan", {"s", "x"}, {"last", "all"});
  b.attr("num_scan_inputs", 1);
  GraphBuilder body(b.attr_graph("body"));
  body.input("a", {2}).input("e", {2}).node("Add", {"a", "e"}, {"sum"});
  body.node("Identity", {"sum"}, {"copy"}).output("sum").output("copy");
  b.output("last").output("all");
  ImportedModel m = import(b);
  EXPECT_EQ(calls(m)["update_slice"], 1);
  EXPECT_EQ(result_type(m), "(Tensor[(2,), float32], Tensor[(4, 2), float32])");
}

TEST_F(OnnxImport, sequences_are_lists_at_import) {
  ModelBuilder b;
  b.input("x", {6, 2}).node("SplitToSequence", {"x"}, {"s"}).attr("axis", 0);
  b.scalar("one", 1).node("SequenceAt", {"s", "one"}, {"row"});
  b.node("SequenceInsert", {"s", "row"}, {"t"});
  b.node("ConcatFromSequence", {"t"}, {"y"}).attr("axis", 0).output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(7, 2), float32]");
}

TEST_F(OnnxImport, local_functions_are_inlined_with_their_attributes) {
  ModelBuilder b;
  b.domain("local", 1);
  auto* f = b.model().add_functions();
  f->set_name("Leaky");
  f->set_domain("local");
  f->add_input("a");
  f->add_output("b");
  f->add_attribute("slope");
  f->add_opset_import()->set_version(17);
  auto* n = f->add_node();
  n->set_op_type("LeakyRelu");
  n->add_input("a");
  n->add_output("b");
  auto* a = n->add_attribute();
  a->set_name("alpha");
  a->set_type(::onnx::AttributeProto::FLOAT);
  a->set_ref_attr_name("slope");
  b.input("x", {2}).node("Leaky", {"x"}, {"y"}, "local").attr_f("slope", 0.25f).output("y");
  EXPECT_EQ(attr(find_call(import(b), "nn.leaky_relu"), "alpha"), "0.25f");
}

TEST_F(OnnxImport, quantised_operators_are_spelt_out) {
  ModelBuilder b;
  b.input("x", {2, 3}).floats("scale", {}, {0.5f});
  b.node("QuantizeLinear", {"x", "scale"}, {"q"}).node("DequantizeLinear", {"q", "scale"}, {"y"});
  b.output("y");
  EXPECT_EQ(result_type(import(b)), "Tensor[(2, 3), float32]");
}

// ---- Files -------------------------------------------------------------------------------------

class OnnxFiles : public OnnxImport {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "onnx_files_" + std::to_string(::getpid());
    ASSERT_EQ(std::system(("mkdir -p " + folder_ + "/sub").c_str()), 0);
  }
  void TearDown() override { std::system(("rm -rf " + folder_).c_str()); }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  // A model whose weight of 4 floats lies in `location`.
  std::string external_model(const std::string& location, const std::string& offset = "0",
                             const std::string& length = "16") const {
    ModelBuilder b;
    auto* t = b.graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(::onnx::TensorProto::FLOAT);
    t->add_dims(4);
    t->set_data_location(::onnx::TensorProto::EXTERNAL);
    for (auto [k, v] : {std::pair<std::string, std::string>{"location", location},
                        {"offset", offset},
                        {"length", length}}) {
      auto* e = t->add_external_data();
      e->set_key(k);
      e->set_value(v);
    }
    b.input("x", {4}).node("Add", {"x", "w"}, {"y"}).output("y");
    write("model.onnx", b.bytes());
    return folder_ + "/model.onnx";
  }
  std::string folder_;
};

TEST_F(OnnxFiles, aligned_weights_are_mapped) {
  ModelBuilder b;
  b.input("x", {256}).weight("w", {256}, 3.0f).node("Add", {"x", "w"}, {"y"}).output("y");
  // Padding names move the payload through all alignments.
  bool mapped = false;
  for (int i = 0; i < 4; ++i) {
    b.model().set_domain(std::string(static_cast<size_t>(i), 'd'));
    write("m.onnx", b.bytes());
    ImportedModel m = import_onnx_file(folder_ + "/m.onnx");
    auto* w = as<ConstantNode>(find_call(m, "add")->args[1]);
    ASSERT_NE(w, nullptr);
    EXPECT_EQ(w->data.data<float>()[255], 3.0f);
    mapped |= w->data.read_only();
  }
  EXPECT_TRUE(mapped);
}

TEST_F(OnnxFiles, large_weights_of_any_alignment_are_read) {
  constexpr int64_t kRows = 300, kColumns = 100;
  ModelBuilder b;
  b.input("x", {1, kRows}).input("y", {kRows, kColumns});
  b.weight("w", {kRows, kColumns}).weight("v", {kRows, kColumns}, 7.0f);
  // A different value in the corner tells a transposed matrix.
  auto* w = b.graph()->mutable_initializer(0)->mutable_raw_data();
  float corner = 9.0f;
  w->replace((kColumns - 1) * sizeof(float), sizeof corner, reinterpret_cast<const char*>(&corner),
             sizeof corner);
  b.node("MatMul", {"x", "w"}, {"p"}).node("Add", {"y", "v"}, {"q"}).output("p").output("q");
  for (int i = 0; i < 4; ++i) {
    b.model().set_domain(std::string(static_cast<size_t>(i), 'd'));
    write("m.onnx", b.bytes());
    ImportedModel m = import_onnx_file(folder_ + "/m.onnx");
    auto* transposed = as<ConstantNode>(find_call(m, "nn.dense")->args[1]);
    auto* added = as<ConstantNode>(find_call(m, "add")->args[1]);
    EXPECT_EQ(transposed->data.data<float>()[(kColumns - 1) * kRows], 9.0f);
    EXPECT_EQ(transposed->data.data<float>()[0], 0.5f);
    EXPECT_EQ(added->data.data<float>()[kRows * kColumns - 1], 7.0f);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(added->data.data()) % sizeof(float), 0u);
  }
}

TEST_F(OnnxFiles, external_data_is_read_from_the_folder) {
  float data[4] = {1, 2, 3, 4};
  write("sub/w.bin", std::string(reinterpret_cast<char*>(data), 16));
  ImportedModel m = import_onnx_file(external_model("sub/./w.bin"));
  auto* w = as<ConstantNode>(find_call(m, "add")->args[1]);
  EXPECT_EQ(w->data.data<float>()[3], 4.0f);
}

TEST_F(OnnxFiles, external_data_elsewhere_is_refused_E0509) {
  float data[4] = {1, 2, 3, 4};
  std::string bytes(reinterpret_cast<char*>(data), 16);
  write("w.bin", bytes);
  ASSERT_EQ(::symlink("w.bin", (folder_ + "/link.bin").c_str()), 0);
  ASSERT_EQ(::symlink(".", (folder_ + "/dirlink").c_str()), 0);
  ASSERT_EQ(::link((folder_ + "/w.bin").c_str(), (folder_ + "/sub/hard.bin").c_str()), 0);
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  write("short.bin", "1234");
  const std::string nul("w.bin\0x", 7);
  for (const std::string& location :
       {std::string("../w.bin"), std::string("/etc/passwd"), std::string("sub/../../w.bin"), nul,
        std::string("link.bin"), std::string("dirlink/short.bin"), std::string("sub/hard.bin"),
        std::string("fifo"), std::string("sub"), std::string(""), std::string("missing.bin"),
        std::string("short.bin"), std::string("/dev/zero")}) {
    try {
      import_onnx_file(external_model(location));
      ADD_FAILURE() << "accepted " << location;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E0509") << location << "\n" << e.what();
    }
  }
  write("one.bin", bytes);
  for (const char* offset : {"4", "99999999999999999999", "-1", "9223372036854775807"}) {
    EXPECT_THROW(import_onnx_file(external_model("one.bin", offset)), UserError) << offset;
  }
}

TEST_F(OnnxFiles, missing_and_special_files_are_refused_E0511) {
  for (const std::string& path : {folder_ + "/none.onnx", folder_, std::string("/dev/zero")}) {
    try {
      import_onnx_file(path);
      ADD_FAILURE() << "accepted " << path;
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E0511") << e.what();
    }
  }
}

}  // namespace
}  // namespace relay
