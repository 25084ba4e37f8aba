// What the guides docs/adding_*.md add takes part in Relay like what was there. The sources are made of the guides' text
// (tools/guide_tree.py), and stand beside the rest of Relay as it is built.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <mutex>
#include <set>

#include "abacus/abacus.h"
#include "driver/evaluate.h"
#include "driver/model.h"
#include "driver/test/networks.h"
#include "frontend/onnx/onnx.h"
#include "frontend/test/model_builder.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/pass_list.h"
#include "slide_rule/slide_rule.h"

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
  EXPECT_EQ(parse_target("la64").num_vector_registers, 16);
  EXPECT_EQ(parse_target("llvm -mtriple=loongarch64-linux-gnu -mcpu=la464").cpu, "la464");
  EXPECT_THROW(parse_target("llvm -mtriple=loongarch64-linux-gnu -mcpu=znver4"), UserError);
  EXPECT_THROW(parse_target("llvm -mtriple=loongarch64-linux-gnu -mattr=+avx2"), UserError);
  Module mod = driver_test::parse(
      "def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32]) {\n"
      "  nn.softmax(nn.relu(nn.dense(%x, %w))) }");
  CompileOptions options;
  options.target = "loongarch64-linux";
  options.verify = true;
  CompiledModule out = compile(mod, options);
  Elf64_Ehdr header;
  std::memcpy(&header, out.elf.data(), sizeof(header));
  EXPECT_EQ(header.e_machine, EM_LOONGARCH);
  EXPECT_NE(assembly_text(out, options).find("fmadd.s"), std::string::npos);
  EXPECT_EQ(out.info.features, (std::vector<std::string>{"f", "d", "ual"}));
  if (runtime::host_arch() != "loongarch64") {
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

void register_abacus() {
  static std::once_flag once;
  std::call_once(once, [] {
    initialize();
    abacus::register_kind();
  });
}

CompileOptions for_abacus() {
  register_abacus();
  CompileOptions out;
  out.target = "abacus -lanes=2";
  out.verify = true;
  return out;
}

std::string refused(const std::string& target, const std::string& text) {
  CompileOptions options = for_abacus();
  options.target = target;
  try {
    compile(driver_test::parse(text), options);
  } catch (const UserError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Guides, a_kind_of_target_schedules_lowers_and_compiles) {
  Module mod =
      driver_test::parse("def @main(%x: Tensor[(8), float32]) { add(multiply(%x, 2f), 1f) }");
  CompiledModule out = compile(mod, for_abacus());
  ASSERT_EQ(out.kernels.size(), 1u);
  EXPECT_EQ(out.target, "abacus: " + least_target().cpu + ", 64-bit vectors, " +
                            std::to_string(least_target().num_cores) + " cores");
  EXPECT_EQ(out.kernels[0].rule, "rods");
  EXPECT_EQ(out.kernels[0].schedule, "rods of 2 elements");
  // Its pass left no product, and indices are of its width.
  size_t products = 0, wide = 0;
  post_order(out.kernels[0].lowered->body, [&](const Node& n) {
    auto* binary = as<tir::BinaryNode>(&n);
    if (binary == nullptr) return;
    products += binary->op == tir::BinaryOp::Mul && binary->dtype.is_floating();
    wide += binary->dtype == tir::kIndex;
  });
  EXPECT_EQ(products, 0u);
  EXPECT_EQ(wide, 0u);
  EXPECT_EQ(llvm_ir_text(out, for_abacus()).find("abacus of 2 lanes\n"), 0u);
  const std::vector<float> x{1, -2, 3, 4, 5, 6, 7, 0.5}, want{3, -3, 7, 9, 11, 13, 15, 2};
  EXPECT_EQ(numbers(out.load({}).run("main", {floats(x)}, {}).at(0)), want);
  // Rules of processors are not asked.
  out =
      compile(driver_test::parse("def @main(%x: Tensor[(7), float32]) { sum(%x) }"), for_abacus());
  EXPECT_EQ(out.kernels.at(0).rule, "loops");
  EXPECT_EQ(out.kernels[0].declined.size(), 1u);
  EXPECT_EQ(numbers(out.load({}).run("main", {floats({1, 2, 3, 4, 5, 6, 7})}, {}).at(0)),
            std::vector<float>{28});
}

TEST(Guides, an_external_backend_computes_what_it_offers) {
  static std::once_flag once;
  std::call_once(once, slide_rule::register_backend);
  using runtime::KernelLinkage;
  auto linkages = [](const CompiledModule& m) {
    std::vector<KernelLinkage> out;
    for (const runtime::KernelInfo& k : m.program.kernels) out.push_back(k.linkage);
    return out;
  };
  const std::vector<float> x{1, -2, 3}, y{5, 6, -7}, product{5, -12, -21}, square{1, 4, 9};
  Module mod = driver_test::parse(
      "def @main[n: Dim](%x: Tensor[(n,), float32], %y: Tensor[(n,), float32]) { "
      "multiply(%x, %y) }");
  CompiledModule out = compile(mod, {});
  EXPECT_EQ(linkages(out), std::vector<KernelLinkage>{KernelLinkage::host});
  EXPECT_EQ(out.kernels.at(0).source, "slide rule: one product after the other");
  EXPECT_EQ(numbers(out.load({}).run("main", {floats(x), floats(y)}, {}).at(0)), product);
  // What it does not offer is Relay's.
  mod = driver_test::parse("def @main(%x: Tensor[(3), float32]) { multiply(%x, %x) }");
  out = compile(mod, {});
  EXPECT_EQ(linkages(out), std::vector<KernelLinkage>{KernelLinkage::generated});
  EXPECT_EQ(numbers(out.load({}).run("main", {floats(x)}, {}).at(0)), square);
}

TEST(Guides, a_kind_of_target_refuses_what_it_has_not) {
  const std::string plain = "def @main(%x: Tensor[(8), float32]) { add(%x, %x) }";
  auto has = [](const std::string& text, const std::string& code, const std::string& part) {
    EXPECT_NE(text.find(code), std::string::npos) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  has(refused("abacus -lanes=3", plain), "E0403", "-lanes=1, -lanes=2 or -lanes=4");
  has(refused("abacus -mcpu=znver4", plain), "E0406", "-mcpu=znver4 belongs to cpu");
  has(refused("native -lanes=2", plain), "E0406", "-lanes=2 belongs to abacus");
  has(refused("native; abacus -lanes=2", plain), "E0401", "'abacus' cannot be a device");
  has(refused("abacus", "def @main(%x: Tensor[(8), float32]) { erf(%x) }"), "E0401", "calls erf");
  has(refused("abacus", "def @main(%x: Tensor[(65536, 65536), int8]) { add(%x, %x) }"), "E0408",
      "4294967296 elements");
  try {
    abacus::register_kind();
    ADD_FAILURE() << "it is registered twice";
  } catch (const UserError& e) {
    has(e.what(), "E0407", "it is registered already");
  }
}

}  // namespace
}  // namespace relay
