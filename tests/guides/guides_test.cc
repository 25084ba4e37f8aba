// What the guides docs/adding_*.md add takes part in Relay like what was there. The sources are made of the guides' text
// (tools/guide_tree.py), and stand beside the rest of Relay as it is built.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <set>

#include "driver/evaluate.h"
#include "driver/model.h"
#include "driver/test/networks.h"
#include "frontend/onnx/onnx.h"
#include "frontend/test/model_builder.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/pass_list.h"

namespace relay {
namespace {

Tensor floats(const std::vector<float>& values) {
  Tensor out = Tensor::empty(DType::Float(32), {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    out.set_from_double(static_cast<int64_t>(i), values[i]);
  return out;
}

std::vector<float> numbers(const Tensor& t) {
  std::vector<float> out;
  for (int64_t i = 0; i < t.num_elements(); ++i)
    out.push_back(static_cast<float>(t.get_as_double(i)));
  return out;
}

std::vector<float> compiled(const Module& mod, const std::vector<float>& x) {
  CompileOptions options;
  options.verify = true;
  return numbers(compile(mod, options).load({}).run("main", {floats(x)}, {}).at(0));
}

TEST(Guides, an_operator_is_in_text_evaluator_and_compiler) {
  Module mod =
      driver_test::parse("def @main(%x: Tensor[(4), float32]) { nn.hard_shrink(%x, lambd=1f) }");
  EXPECT_TRUE(structural_equal(mod, infer_types(parse_module("again.relay", print_module(mod)))));
  std::vector<float> x{-2, -1, 0.5, 3}, want{-2, 0, 0, 3};
  std::vector<Tensor> evaluated;
  runtime::flatten_tensors(Evaluator(mod).call("main", {runtime::Value(floats(x))}), evaluated);
  EXPECT_EQ(numbers(evaluated.at(0)), want);
  EXPECT_EQ(compiled(mod, x), want);
  EXPECT_EQ(OpRegistry::global().get("nn.hard_shrink")->row->args[0].name, "data");
}

TEST(Guides, an_onnx_operator_is_imported) {
  initialize();
  test::ModelBuilder b;
  b.domain("com.example", 1);
  b.input("x", {4}).output("y");
  b.node("HardShrink", {"x"}, {"y"}, "com.example").attr_f("lambd", 1);
  Module mod = import_onnx_bytes(b.bytes(), "shrink.onnx").module;
  EXPECT_EQ(compiled(mod, {-2, -1, 0.5, 3}), (std::vector<float>{-2, 0, 0, 3}));
}

TEST(Guides, a_front_end_is_a_row_among_others) {
  const std::string path = testing::TempDir() + "guides_polynomial";
  std::ofstream(path) << "poly 1\n1 0 2\n";
  LoadedModel model = load_model(path);
  EXPECT_EQ(model.format, "poly");
  EXPECT_EQ(compiled(model.module, {0, 1, 3}), (std::vector<float>{1, 3, 19}));
  std::remove(path.c_str());
}

size_t constants_of(const Module& mod) {
  std::set<const Node*> seen;
  post_order(mod->find("main"), [&](const Node& n) {
    if (isa<ConstantNode>(&n)) seen.insert(&n);
  });
  return seen.size();
}

TEST(Guides, a_pass_runs_by_name_with_its_options) {
  const Pass& pass = find_pass("ShareConstants");
  Module mod = driver_test::parse("def @main(%x: float32) { add(add(add(%x, 2f), 2f), 3f) }");
  ASSERT_EQ(constants_of(mod), 3u);
  PassContext ctx;
  ctx.verify = true;
  EXPECT_TRUE(run_pass(mod, pass, ctx) == mod) << "small constants stay";
  ctx.config = {{"relay.ShareConstants.min_bytes", AttrValue(int64_t{1})}};
  Module shared = run_pass(mod, pass, ctx);
  EXPECT_EQ(constants_of(shared), 2u);
  EXPECT_TRUE(run_pass(shared, pass, ctx) == shared);
}

TEST(Guides, a_schedule_rule_takes_its_kernels) {
  Module small = driver_test::parse("def @main(%x: Tensor[(3), float32]) { add(%x, %x) }");
  CompiledModule out = compile(small, {});
  ASSERT_EQ(out.kernels.size(), 1u);
  EXPECT_EQ(out.kernels[0].rule, "few_elements");
  EXPECT_EQ(compiled(small, {1, 2, 3}), (std::vector<float>{2, 4, 6}));
  out = compile(driver_test::parse("def @main(%x: Tensor[(9), float32]) { add(%x, %x) }"), {});
  EXPECT_NE(out.kernels.at(0).rule, "few_elements");
  EXPECT_NE(out.kernels[0].declined.at(0).find("few_elements: takes only"), std::string::npos);
}

TEST(Guides, an_architecture_has_code) {
  EXPECT_EQ(parse_target("armv8-a").num_vector_registers, 32);
  EXPECT_EQ(parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76").cpu, "cortex-a76");
  EXPECT_THROW(parse_target("llvm -mtriple=aarch64-linux-gnu -mcpu=znver4"), UserError);
  EXPECT_THROW(parse_target("llvm -mtriple=aarch64-linux-gnu -mattr=+avx2"), UserError);
  Module mod = driver_test::parse(
      "def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {\n"
      "  nn.softmax(nn.relu(nn.dense(%x, %w))) }");
  CompileOptions options;
  options.target = "llvm -mtriple=aarch64-linux-gnu";
  options.verify = true;
  CompiledModule out = compile(mod, options);
  Elf64_Ehdr header;
  std::memcpy(&header, out.elf.data(), sizeof(header));
  EXPECT_EQ(header.e_machine, EM_AARCH64);
  EXPECT_NE(assembly_text(out, options).find("fmla\tv"), std::string::npos);
  EXPECT_EQ(out.info.features, (std::vector<std::string>{"neon", "fp-armv8"}));
  if (runtime::host_arch() != "aarch64") {
    // It can be looked at on any machine, and runs on its own.
    const auto program = out.load();
    EXPECT_EQ(program.function_names(), std::vector<std::string>{"main"});
    const Tensor square = Tensor::empty(DType::Float(32), {64, 64});
    try {
      program.run("main", {square, square});
      ADD_FAILURE() << "it ran";
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics()[0].code, "E0610") << e.what();
    }
  }
}

}  // namespace
}  // namespace relay
