// Models that must be refused: each with its code, without a crash, and within a budget.
#include <gtest/gtest.h>

#include <random>

#include "frontend/onnx/onnx.h"
#include "frontend/test/model_builder.h"
#include "ops/register_ops.h"

namespace relay {
namespace {

using test::D;
using test::GraphBuilder;
using test::ModelBuilder;

class OnnxErrors : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_ops(); }

  static std::vector<Diagnostic> errors(const std::string& bytes, const OnnxOptions& options = {}) {
    try {
      import_onnx_bytes(bytes, "bad.onnx", {}, options);
    } catch (const UserError& e) {
      return e.diagnostics();
    }
    ADD_FAILURE() << "the model was accepted";
    return {Diagnostic()};
  }
  static std::vector<Diagnostic> errors(const ModelBuilder& m, const OnnxOptions& options = {}) {
    return errors(m.bytes(), options);
  }
  static std::string code(const ModelBuilder& m, const OnnxOptions& options = {}) {
    auto all = errors(m, options);
    return all.empty() ? "" : std::string(all[0].code);
  }
};

TEST_F(OnnxErrors, unknown_operators_are_listed_together_E0501) {
  ModelBuilder b;
  b.domain("com.example", 3).input("x", {2});
  b.node("Frobnicate", {"x"}, {"a"}, "com.example");
  b.node("Frobnicate", {"a"}, {"b"}, "com.example");
  b.node("Sofmax", {"b"}, {"c"}).output("c");
  auto all = errors(b);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].code, "E0501");
  std::string text = all[0].render() + all[1].render();
  for (const char* part : {"Frobnicate", "com.example opset 3", "a_node", "b_node", "Sofmax",
                           "did you mean Softmax", "FLOAT"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(OnnxErrors, unknown_operator_in_a_branch_E0501) {
  ModelBuilder b;
  b.input("c", {}, ::onnx::TensorProto::BOOL).node("If", {"c"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    GraphBuilder g(b.attr_graph(name));
    g.node("Nothing", {}, {"r"}).output("r");
  }
  b.output("y");
  EXPECT_EQ(code(b), "E0501");
}

TEST_F(OnnxErrors, operator_newer_than_the_opset_E0501) {
  ModelBuilder b(9);
  b.input("x", {2}).node("Mish", {"x"}, {"y"}).output("y");
  EXPECT_EQ(code(b), "E0501");
}

TEST_F(OnnxErrors, operator_older_than_its_oldest_row_E0501) {
  ModelBuilder b(6);
  b.input("x", {2}).node("Relu", {"x"}, {"r"}).node("Acos", {"r"}, {"y"}).output("y");
  auto all = errors(b);
  EXPECT_EQ(all[0].code, "E0501");
  EXPECT_NE(all[0].render().find("opset 7 or newer"), std::string::npos) << all[0].render();
}

TEST_F(OnnxErrors, truncated_models_E0502) {
  ModelBuilder b;
  b.input("x", {64}).weight("w", {64}).node("Add", {"x", "w"}, {"y"}).output("y");
  std::string bytes = b.bytes();
  EXPECT_EQ(errors("")[0].code, "E0502");
  EXPECT_EQ(errors("not a model")[0].code, "E0502");
  EXPECT_EQ(errors(bytes.substr(0, bytes.size() / 2))[0].code, "E0502");
  EXPECT_EQ(errors(std::string(20, '\xff'))[0].code, "E0502");
  // A length of 2^63 - 1.
  EXPECT_EQ(errors(std::string("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10))[0].code, "E0502");
  ::onnx::ModelProto empty;
  empty.set_ir_version(8);
  EXPECT_EQ(errors(empty.SerializeAsString())[0].code, "E0502");
}

TEST_F(OnnxErrors, opset_out_of_range_E0503) {
  for (int64_t opset : {int64_t{0}, int64_t{999}, int64_t{-1}}) {
    ModelBuilder b(opset);
    b.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
    EXPECT_EQ(code(b), "E0503");
  }
  ModelBuilder none;
  none.model().clear_opset_import();
  none.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(code(none), "E0503");
}

TEST_F(OnnxErrors, bad_attributes_E0504) {
  auto conv = [](const char* name, std::vector<int64_t> v) {
    ModelBuilder b;
    b.input("x", {1, 2, 5, 5}).weight("w", {4, 2, 3, 3});
    b.node("Conv", {"x", "w"}, {"y"}).attr(name, v).output("y");
    return code(b);
  };
  EXPECT_EQ(conv("strides", {0, 1}), "E0504");
  EXPECT_EQ(conv("strides", {1}), "E0504");
  EXPECT_EQ(conv("dilations", {-1, 1}), "E0504");
  EXPECT_EQ(conv("pads", {-1, 0, 0, 0}), "E0504");
  ModelBuilder type;
  type.input("x", {2, 2}).node("Softmax", {"x"}, {"y"}).attr_s("axis", "one").output("y");
  EXPECT_EQ(code(type), "E0504");
  ModelBuilder axis;
  axis.input("x", {2, 2}).node("Softmax", {"x"}, {"y"}).attr("axis", 7).output("y");
  EXPECT_EQ(code(axis), "E0504");
  ModelBuilder group;
  group.input("x", {1, 2, 5, 5}).weight("w", {4, 2, 3, 3});
  group.node("Conv", {"x", "w"}, {"y"}).attr("group", 0).output("y");
  EXPECT_EQ(code(group), "E0504");
}

TEST_F(OnnxErrors, shapes_from_data_E0505) {
  ModelBuilder b;
  b.input("x", {4}).input("s", {"k"}, ::onnx::TensorProto::INT64);
  b.node("Reshape", {"x", "s"}, {"y"}).output("y");
  auto all = errors(b);
  EXPECT_EQ(all[0].code, "E0505");
  EXPECT_NE(all[0].render().find("y_node"), std::string::npos);
  EXPECT_NE(all[0].render().find("--input"), std::string::npos);
}

TEST_F(OnnxErrors, limits_E0506) {
  OnnxOptions few;
  few.max_nodes = 10;
  ModelBuilder chain;
  chain.input("v0", {2});
  for (int i = 0; i < 20; ++i) {
    chain.node("Relu", {"v" + std::to_string(i)}, {"v" + std::to_string(i + 1)});
  }
  chain.output("v20");
  EXPECT_EQ(code(chain, few), "E0506");

  ModelBuilder range;  // a folding bomb
  range.scalar("a", 0).scalar("b", int64_t{1} << 40).scalar("c", 1);
  range.node("Range", {"a", "b", "c"}, {"y"}).output("y");
  EXPECT_EQ(code(range), "E0506");

  // A list that is longer than a shape can be is never made.
  ModelBuilder shape;
  shape.input("x", {4}).ints("n", {int64_t{1} << 40}).node("ConstantOfShape", {"n"}, {"s"});
  shape.node("Cast", {"s"}, {"i"}).attr("to", int64_t{::onnx::TensorProto::INT64});
  shape.node("Reshape", {"x", "i"}, {"y"}).output("y");
  EXPECT_EQ(code(shape), "E0506");

  ModelBuilder tile;
  tile.input("x", {4}).ints("n", {int64_t{1} << 58}).node("Tile", {"x", "n"}, {"y"}).output("y");
  EXPECT_EQ(code(tile), "E0506");
}

// If nodes nested to a depth; protobuf itself needs the stack to write them.
std::string nested(int levels) {
  ModelBuilder b;
  b.input("c", {}, ::onnx::TensorProto::BOOL).input("x", {2});
  ::onnx::GraphProto* g = b.graph();
  for (int depth = 0; depth < levels; ++depth) {
    GraphBuilder at(g);
    at.node("If", {"c"}, {"r" + std::to_string(depth)});
    at.output("r" + std::to_string(depth));
    GraphBuilder other(at.attr_graph("else_branch"));
    other.node("Relu", {"x"}, {"e" + std::to_string(depth)});
    other.output("e" + std::to_string(depth));
    g = at.attr_graph("then_branch");
  }
  GraphBuilder(g).node("Relu", {"x"}, {"last"}).output("last");
  return b.bytes();
}

TEST_F(OnnxErrors, deep_subgraphs_E0506) {
  EXPECT_NO_THROW(import_onnx_bytes(nested(10), "deep.onnx"));
  EXPECT_EQ(errors(nested(30))[0].code, "E0506");
}

TEST_F(OnnxErrors, inlining_bomb_E0506) {
  // Each function calls the one below it twice: 2^16 nodes.
  ModelBuilder b;
  b.domain("local", 1);
  for (int i = 0; i < 16; ++i) {
    auto* f = b.model().add_functions();
    f->set_name("F" + std::to_string(i));
    f->set_domain("local");
    f->add_input("a");
    f->add_output("c");
    f->add_opset_import()->set_version(17);
    auto* o = f->add_opset_import();
    o->set_domain("local");
    o->set_version(1);
    for (int k = 0; k < 2; ++k) {
      auto* n = f->add_node();
      n->set_op_type(i == 0 ? "Relu" : "F" + std::to_string(i - 1));
      if (i > 0) n->set_domain("local");
      n->add_input(k == 0 ? "a" : "b");
      n->add_output(k == 0 ? "b" : "c");
    }
  }
  b.input("x", {2}).node("F15", {"x"}, {"y"}, "local").output("y");
  OnnxOptions options;
  options.max_nodes = 20000;
  EXPECT_EQ(code(b, options), "E0506");
}

TEST_F(OnnxErrors, function_that_calls_itself_E0506) {
  ModelBuilder b;
  b.domain("local", 1);
  auto* f = b.model().add_functions();
  f->set_name("F");
  f->set_domain("local");
  f->add_input("a");
  f->add_output("b");
  auto* n = f->add_node();
  n->set_op_type("F");
  n->set_domain("local");
  n->add_input("a");
  n->add_output("b");
  b.input("x", {2}).node("F", {"x"}, {"y"}, "local").output("y");
  EXPECT_EQ(code(b), "E0506");
}

TEST_F(OnnxErrors, ill_formed_graphs_E0507) {
  ModelBuilder dangling;
  dangling.input("x", {2}).node("Add", {"x", "ghost"}, {"y"}).output("y");
  EXPECT_EQ(code(dangling), "E0507");
  ModelBuilder twice;
  twice.input("x", {2}).node("Relu", {"x"}, {"y"}).node("Tanh", {"x"}, {"y"}).output("y");
  EXPECT_EQ(code(twice), "E0507");
  ModelBuilder cycle;
  cycle.input("x", {2}).node("Add", {"x", "b"}, {"a"}).node("Relu", {"a"}, {"b"}).output("b");
  EXPECT_EQ(code(cycle), "E0507");
  ModelBuilder output;
  output.input("x", {2}).node("Relu", {"x"}, {"y"}).output("z");
  EXPECT_EQ(code(output), "E0507");
  ModelBuilder missing;
  missing.input("x", {2}).node("Add", {"x"}, {"y"}).output("y");
  EXPECT_EQ(code(missing), "E0507");
}

TEST_F(OnnxErrors, bad_tensors_E0508) {
  auto with_dims = [](std::vector<int64_t> dims, int type = ::onnx::TensorProto::FLOAT) {
    ModelBuilder b;
    auto* t = b.graph()->add_initializer();
    t->set_name("w");
    t->set_data_type(type);
    for (int64_t d : dims) t->add_dims(d);
    t->set_raw_data(std::string(8, 'x'));
    b.input("x", {2}).node("Add", {"x", "w"}, {"y"}).output("y");
    return code(b);
  };
  EXPECT_EQ(with_dims({3}), "E0508");
  EXPECT_EQ(with_dims({-2}), "E0508");
  EXPECT_EQ(with_dims({int64_t{1} << 40, int64_t{1} << 40}), "E0508");
  EXPECT_EQ(with_dims({int64_t{1} << 62, 0, int64_t{1} << 62}), "E0508");
  EXPECT_EQ(with_dims(std::vector<int64_t>(100000, 1)), "E0508");
  EXPECT_EQ(with_dims({2}, ::onnx::TensorProto::STRING), "E0508");
  EXPECT_EQ(with_dims({2}, 12345), "E0508");
  ModelBuilder input;
  input.input("x", {D(int64_t{1} << 40), D(int64_t{1} << 40)});
  input.node("Relu", {"x"}, {"y"}).output("y");
  EXPECT_EQ(code(input), "E0508");
}

TEST_F(OnnxErrors, external_data_of_bytes_E0509) {
  ModelBuilder b;
  auto* t = b.graph()->add_initializer();
  t->set_name("w");
  t->set_data_type(::onnx::TensorProto::FLOAT);
  t->add_dims(2);
  t->set_data_location(::onnx::TensorProto::EXTERNAL);
  auto* e = t->add_external_data();
  e->set_key("location");
  e->set_value("w.bin");
  b.input("x", {2}).node("Add", {"x", "w"}, {"y"}).output("y");
  EXPECT_EQ(code(b), "E0509");
}

TEST_F(OnnxErrors, options_that_do_not_fit_E0510) {
  ModelBuilder b;
  b.input("x", {"n", 3}).node("Relu", {"x"}, {"y"}).output("y");
  OnnxOptions name, rank, fixed;
  name.shapes["z"] = {1, 3};
  rank.shapes["x"] = {1};
  fixed.shapes["x"] = {1, 4};
  EXPECT_EQ(code(b, name), "E0510");
  EXPECT_EQ(code(b, rank), "E0510");
  EXPECT_EQ(code(b, fixed), "E0510");
  ModelBuilder unknown;
  unknown.input("x", {2}).node("Relu", {"x"}, {"y"}).output("y");
  unknown.graph()->mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  EXPECT_EQ(code(unknown), "E0505");
}

TEST_F(OnnxErrors, shapes_that_do_not_fit_name_node_and_both_shapes) {
  ModelBuilder b;
  b.input("x", {2, 3}).input("w", {4, 5}).input("v", {7});
  b.node("Add", {"x", "w"}, {"sum"}).node("MatMul", {"x", "w"}, {"product"});
  b.node("Relu", {"sum"}, {"after"}).node("Add", {"w", "v"}, {"third"});
  b.output("after").output("product").output("third");
  auto all = errors(b);
  // The Relu behind the first error is not reported again.
  ASSERT_EQ(all.size(), 3u);
  std::string text = all[0].render();
  for (const char* part :
       {"sum_node (Add)", "Tensor[(2, 3), float32]", "Tensor[(4, 5), float32]"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

TEST_F(OnnxErrors, hostile_names_are_shown_escaped_and_cut) {
  ModelBuilder b;
  std::string name = "\x1b[31m%n$(rm)\n";
  b.input("x", {2}).node("Bad" + name + std::string(100000, 'a'), {"x"}, {"y"}).output("y");
  std::string text = errors(b)[0].render();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_LT(text.size(), 20000u);
}

TEST_F(OnnxErrors, mutated_models_never_crash) {
  ModelBuilder b;
  b.input("x", {"n", 3, 8, 8}).weight("w", {4, 3, 3, 3}).weight("bias", {4});
  b.node("Conv", {"x", "w", "bias"}, {"c"}).attr("pads", {1, 1, 1, 1});
  b.node("Relu", {"c"}, {"r"}).node("GlobalAveragePool", {"r"}, {"p"});
  b.node("Flatten", {"p"}, {"f"}).weight("fc", {4, 10}).node("MatMul", {"f", "fc"}, {"m"});
  b.node("Shape", {"m"}, {"s"}).node("Reshape", {"m", "s"}, {"q"});
  b.node("Softmax", {"q"}, {"y"}).attr("axis", 1).output("y");
  const std::string good = b.bytes();
  EXPECT_NO_THROW(import_onnx_bytes(good, "good.onnx"));
  constexpr unsigned kSeed = 20240607;
  std::mt19937 random(kSeed);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0; --edits) {
      size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 8);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random()));
      }
    }
    OnnxOptions options;
    options.max_seconds = 5;
    try {
      import_onnx_bytes(bytes, "mutated.onnx", {}, options);
    } catch (const UserError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 100) << "seed " << kSeed;
}

}  // namespace
}  // namespace relay
