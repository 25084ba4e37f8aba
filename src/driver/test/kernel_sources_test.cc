// Kernels that a source offers instead of those that are composed of operators, through plan, artifact
// and run time: functions of a library, functions of the process, and tensor IR of two launches with
// working memory between them.
#include <gtest/gtest.h>

#include <filesystem>

#include "driver/compile.h"
#include "driver/test/networks.h"
#include "eval/evaluator.h"
#include "ir/op.h"
#include "lower/kernel_body.h"
#include "runtime/external_kernels.h"
#include "tir/compute.h"

namespace relay {
namespace {

using runtime::KernelLinkage;
using runtime::Opcode;

// The name of the operator that an expression calls; empty for any other.
std::string operator_of(const Expr& e) {
  auto* c = as<CallNode>(e);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op == nullptr ? std::string() : op->name;
}

// Calls a function for nn.relu of a matrix.
class Relu : public KernelSource {
 public:
  explicit Relu(KernelBody body) : body_(std::move(body)) {}
  std::string_view name() const override { return "test relu"; }
  std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
    auto* t = f.params.size() == 1 ? as<TensorTypeNode>(f.params[0]->type) : nullptr;
    if (operator_of(f.body) != "nn.relu" || t == nullptr || t->rank() != 2 ||
        as<CallNode>(f.body)->args[0].get() != f.params[0].get()) {
      return std::nullopt;
    }
    OfferedKernel out{body_};
    out.sizes = t->shape;
    return out;
  }

 private:
  KernelBody body_;
};

// Computes x * x + x in two launches, the squares in working memory.
class Squares : public KernelSource {
 public:
  std::string_view name() const override { return "test squares"; }
  std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
    if (f.params.size() != 1 || operator_of(f.body) != "add" ||
        operator_of(as<CallNode>(f.body)->args[0]) != "multiply") {
      return std::nullopt;
    }
    const TensorType type = cast<TensorTypeNode>(f.params[0]->type);
    OfferedKernel out{TirKernel{}};
    std::vector<tir::PrimExpr> shape;
    std::vector<tir::Var> sizes;
    for (const Dim& d : type->shape) {
      if (auto n = as_const(d)) {
        shape.push_back(tir::index(*n));
        continue;
      }
      out.sizes.push_back(d);
      sizes.push_back(tir::var("n" + std::to_string(sizes.size()), tir::kIndex));
      shape.push_back(sizes.back());
    }
    tir::Tensor x = tir::placeholder("x", type->dtype, shape),
                read = tir::placeholder("read", type->dtype, shape);
    tir::Tensor squares =
        tir::compute("squares", shape, [&](const tir::Indices& i) { return x(i) * x(i); });
    tir::Tensor y = tir::compute("y", shape, [&](const tir::Indices& i) { return read(i) + x(i); });
    std::get<TirKernel>(out.body).launches = {
        {tir::create_prim_func("squares", {x}, {squares}, sizes)},
        {tir::create_prim_func("sums", {x, read}, {y}, sizes)}};
    out.workspace = {type};
    out.launches = {{"", {0}, {2}}, {"", {0, 2}, {1}}};
    return out;
  }
};

CompileOptions with_source(std::shared_ptr<const KernelSource> source, int level) {
  CompileOptions options;
  options.opt_level = level;
  options.verify = true;
  options.num_threads = 2;
  options.kernel_sources = {std::move(source)};
  // Weights stay as they are, so that memory is that of the values in the text.
  options.disabled_pass = {"AlterOpLayout"};
  return options;
}

KernelBody library_relu() { return ExternalCall{RELAY_TEST_EXTERNAL_KERNELS, "relay_test_relu"}; }

size_t kernels_of(const CompiledModule& compiled, KernelLinkage linkage) {
  return static_cast<size_t>(
      std::ranges::count(compiled.program.kernels, linkage, &runtime::KernelInfo::linkage));
}

// The program from an artifact gives what the evaluator gives.
void expect_right(const Module& mod, const CompiledModule& compiled,
                  const std::vector<Tensor>& args) {
  std::string path =
      (std::filesystem::temp_directory_path() / "relay_kernel_sources_XXXXXX").string();
  ASSERT_NE(mkdtemp(path.data()), nullptr);
  compiled.write(path + "/model.so", false);
  runtime::Module loaded = runtime::Module::load(path + "/model.so");
  std::filesystem::remove_all(path);
  std::vector<Tensor> want;
  std::vector<runtime::Value> values(args.begin(), args.end());
  ASSERT_TRUE(runtime::flatten_tensors(Evaluator(mod).call("main", values), want));
  runtime::RunOptions poisoned;
  poisoned.poison = 0xAB;
  for (const runtime::RunOptions& options : {runtime::RunOptions{}, poisoned}) {
    std::vector<Tensor> got = loaded.run("main", args, options);
    ASSERT_EQ(got.size(), want.size());
    for (size_t t = 0; t < got.size(); ++t) {
      for (int64_t i = 0; i < want[t].num_elements(); ++i) {
        EXPECT_NEAR(got[t].get_as_double(i), want[t].get_as_double(i), 1e-4) << t << ", " << i;
      }
    }
  }
}

Tensor numbers(const std::vector<int64_t>& shape) {
  Tensor t = Tensor::empty(DType::Float(32), shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    t.set_from_double(i, static_cast<double>(i * 7 % 11) - 5);
  }
  return t;
}

constexpr const char* kRelu = R"(
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {
  nn.dense(nn.relu(nn.dense(nn.relu(%x), %w)), %w)
})";

TEST(KernelSources, a_function_of_a_library_goes_through_plan_artifact_and_run_time) {
  Module mod = driver_test::parse(kRelu);
  for (int level : {0, 3}) {
    CompiledModule compiled =
        compile(mod, with_source(std::make_shared<Relu>(library_relu()), level));
    // At level 3 the second is part of the product before it.
    EXPECT_EQ(kernels_of(compiled, KernelLinkage::library), 1u);
    EXPECT_NE(compiled.metadata.find("test relu"), std::string::npos);
    expect_right(mod, compiled, {numbers({4, 16}), numbers({16, 16})});
  }
}

TEST(KernelSources, a_function_of_open_sizes_gets_them) {
  Module mod = driver_test::parse(
      "def @main[n: Dim](%x: Tensor[(n, 16), float32], %w: Tensor[(16, 16), float32]) { "
      "nn.dense(nn.relu(%x), %w) }");
  CompiledModule compiled = compile(mod, with_source(std::make_shared<Relu>(library_relu()), 3));
  EXPECT_EQ(kernels_of(compiled, KernelLinkage::library), 1u);
  for (int64_t n : {1, 5, 3}) expect_right(mod, compiled, {numbers({n, 16}), numbers({16, 16})});
}

void relu_of_the_process(void* const* buffers, const int64_t* dims, const relay_kernel_context*) {
  auto* x = static_cast<const float*>(buffers[0]);
  auto* y = static_cast<float*>(buffers[1]);
  for (int64_t i = 0; i < dims[0] * dims[1]; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

TEST(KernelSources, a_function_of_the_process_is_found_by_its_name) {
  runtime::register_host_kernel("test.relu", relu_of_the_process);
  Module mod = driver_test::parse(kRelu);
  CompiledModule compiled =
      compile(mod, with_source(std::make_shared<Relu>(HostFunction{"test.relu"}), 3));
  EXPECT_EQ(kernels_of(compiled, KernelLinkage::host), 1u);
  expect_right(mod, compiled, {numbers({4, 16}), numbers({16, 16})});
  runtime::register_host_kernel("test.relu", nullptr);
}

TEST(KernelSources, must_fail_E0619_functions_that_are_not_there) {
  Module mod = driver_test::parse(kRelu);
  const KernelBody bodies[] = {ExternalCall{"librelay_absent.so", "relay_test_relu"},
                               ExternalCall{RELAY_TEST_EXTERNAL_KERNELS, "relay_absent"},
                               HostFunction{"test.absent"}};
  for (const KernelBody& body : bodies) {
    CompiledModule compiled = compile(mod, with_source(std::make_shared<Relu>(body), 3));
    try {
      compiled.load();
      FAIL() << "is loaded";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("E0619"), std::string::npos) << e.what();
    }
  }
  // An artifact from elsewhere may name a path.
  CompiledModule compiled = compile(mod, with_source(std::make_shared<Relu>(library_relu()), 3));
  for (runtime::KernelInfo& k : compiled.program.kernels) {
    if (k.linkage == KernelLinkage::library) k.library = "lib/../" + k.library;
  }
  EXPECT_THROW(compiled.load(), UserError);
}

size_t concatenations(const CompiledModule& compiled) {
  return static_cast<size_t>(std::ranges::count_if(compiled.kernels, [](const auto& k) {
    return k.name.find("concatenate") != std::string::npos;
  }));
}

TEST(KernelSources, kernels_of_dense_buffers_are_joined_only_without_gaps) {
  for (int axis : {0, 1}) {
    // It writes a part of the value, and it reads one.
    for (const char* parts : {"let %a = nn.relu(%x); let %b = nn.dense(%x, %w);",
                              "let %a = nn.dense(%x, %w); let %b = nn.dense(nn.relu(%a), %w);"}) {
      Module mod = driver_test::parse(
          std::string("def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) { ") +
          parts + " negative(concatenate((%a, %b), axis=" + std::to_string(axis) + ")) }");
      CompiledModule compiled =
          compile(mod, with_source(std::make_shared<Relu>(library_relu()), 0));
      EXPECT_EQ(kernels_of(compiled, KernelLinkage::library), 1u);
      EXPECT_EQ(concatenations(compiled), 0u) << parts << axis;
      expect_right(mod, compiled, {numbers({4, 16}), numbers({16, 16})});
    }
  }
}

TEST(KernelSources, two_launches_share_working_memory_of_open_size) {
  Module mod = driver_test::parse(
      "def @main[n: Dim](%x: Tensor[(n, 3), float32], %w: Tensor[(3, 3), float32]) { "
      "nn.dense(add(multiply(%x, %x), %x), %w) }");
  struct Seen : StageObserver {
    void plan(plan::PlanProgram& p) override { text = plan::to_string(p); }
    std::string text;
  } seen;
  CompileOptions options = with_source(std::make_shared<Squares>(), 3);
  options.observers = {&seen};
  CompiledModule compiled = compile(mod, options);
  const runtime::Function& main =
      compiled.program.functions[static_cast<size_t>(compiled.program.find_function("main"))];
  EXPECT_EQ(std::ranges::count(main.code, Opcode::alloc_place, &runtime::Instruction::op), 2);
  ASSERT_EQ(compiled.arenas.size(), 1u);
  // The squares and the sums, of which each is as large as the input.
  EXPECT_EQ(compiled.arenas[0].formula, "2*align64(12*n)") << seen.text;
  for (int64_t n : {1, 7, 2}) expect_right(mod, compiled, {numbers({n, 3}), numbers({3, 3})});
}

// In a loop, and in a function of which several frames are there at once, it is memory of its own in each round.
TEST(KernelSources, working_memory_of_open_size_in_loops_and_functions) {
  struct Seen : StageObserver {
    void plan(plan::PlanProgram& p) override {
      for (const plan::PlanFunction& f : p.functions) {
        for (const plan::Step& s : f.steps) {
          if (s.kind != plan::StepKind::kernel || s.results.size() < 2) continue;
          places.push_back(f.value(s.results[1]).place);
          loops |=
              std::ranges::find(f.steps, plan::StepKind::loop, &plan::Step::kind) != f.steps.end();
        }
      }
    }
    std::vector<plan::Place> places;
    bool loops = false;
  };
  const std::string type = "Tensor[(n, 3), float32]", squares = "add(multiply(%x, %x), %x)";
  const std::string head = "[n: Dim](%x: " + type + ", %i: int32) -> " + type + " { ";
  struct Case {
    std::string text;
    bool loops;
  };
  for (const Case& c :
       {Case{"def @main" + head + "if (less(%i, 3)) { @main(" + squares +
                 ", add(%i, 1)) } else { %x } }",
             true},
        Case{"def @f" + head + "if (less(%i, 3)) { negative(@f(" + squares +
                 ", add(%i, 1))) } else { %x } }\ndef @main" + head + "@f(%x, %i) }",
             false}}) {
    Module mod = driver_test::parse(c.text);
    Seen seen;
    CompileOptions options = with_source(std::make_shared<Squares>(), 3);
    options.observers = {&seen};
    CompiledModule compiled = compile(mod, options);
    EXPECT_EQ(seen.places, (std::vector<plan::Place>{plan::Place::object})) << c.text;
    EXPECT_EQ(seen.loops, c.loops);
    for (int64_t n : {1, 7, 2}) {
      // No round, one, and three.
      for (double i : {3.0, 2.0, 0.0}) {
        expect_right(mod, compiled, {numbers({n, 3}), Tensor::scalar(i, DType::Int(32))});
      }
    }
  }
}

TEST(KernelSources, working_memory_of_known_size_is_in_the_arena) {
  Module mod = driver_test::parse(
      "def @main(%x: Tensor[(8, 4), float32], %w: Tensor[(4, 4), float32]) { "
      "let %a = add(multiply(%x, %x), %x); nn.dense(nn.dense(%a, %w), %w) }");
  CompiledModule compiled = compile(mod, with_source(std::make_shared<Squares>(), 3));
  std::vector<std::string> launches;
  for (const CompiledKernel& k : compiled.kernels) {
    if (k.source.find("test squares") != std::string::npos) launches.push_back(k.name);
  }
  ASSERT_EQ(launches.size(), 2u);
  EXPECT_NE(launches[0], launches[1]);
  // The squares are gone when the first product is written.
  ASSERT_EQ(compiled.arenas.size(), 1u);
  EXPECT_EQ(compiled.arenas[0].arena_bytes, 2 * 128);
  expect_right(mod, compiled, {numbers({8, 4}), numbers({4, 4})});
}

}  // namespace
}  // namespace relay
