// The whole compiler on a small network: what it reports, what it writes, and that every path to
// compile gives the same numbers.
#include "driver/compile.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/budget.h"
#include "codegen/kernel_cache.h"
#include "driver/evaluate.h"
#include "driver/machine_limits.h"
#include "driver/test/networks.h"
#include "runtime/cpu.h"
#include "tir/lower_loops.h"

namespace relay {
namespace {

using driver_test::parse;

// A convolution with a residual connection, poolings, a softmax over a dense layer.
constexpr const char* kNetwork = R"(
def @main(%x: Tensor[(1, 3, 12, 12), float32], %w1: Tensor[(8, 3, 3, 3), float32],
          %b1: Tensor[(8), float32], %w2: Tensor[(8, 8, 3, 3), float32],
          %w3: Tensor[(5, 8), float32]) {
  let %a = nn.relu(nn.bias_add(nn.conv2d(%x, %w1, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]), %b1));
  let %p = nn.max_pool2d(%a, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0]);
  let %c = nn.conv2d(%p, %w2, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  let %r = nn.relu(add(%c, %p));
  let %g = nn.batch_flatten(nn.global_avg_pool2d(%r));
  nn.softmax(nn.dense(%g, %w3))
}
)";

CompileOptions at_level(int level, const std::string& target = "native") {
  CompileOptions o;
  o.opt_level = level;
  o.target = target;
  o.verify = true;
  return o;
}

const Module& network() {
  static const Module mod = parse(kNetwork);
  return mod;
}

std::vector<Tensor> run(const CompiledModule& compiled, int threads = 1,
                        std::optional<uint8_t> poison = {}) {
  runtime::LoadOptions load;
  load.num_threads = threads;
  runtime::RunOptions options;
  options.poison = poison;
  return compiled.load(load).run("main", driver_test::arguments(network()), options);
}

void expect_close(const std::vector<Tensor>& got, const std::vector<Tensor>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].num_elements(), want[i].num_elements());
    for (int64_t j = 0; j < got[i].num_elements(); ++j) {
      double w = want[i].get_as_double(j);
      ASSERT_NEAR(got[i].get_as_double(j), w, 1e-5 * (1 + std::abs(w))) << i << " " << j;
    }
  }
}

std::vector<Tensor> reference() {
  std::vector<runtime::Value> args;
  for (const Tensor& t : driver_test::arguments(network())) args.emplace_back(t);
  std::vector<Tensor> out;
  runtime::flatten_tensors(Evaluator(network()).call("main", args), out);
  return out;
}

// A folder that goes with the test.
class Folder {
 public:
  Folder() {
    path_ = std::filesystem::temp_directory_path() / ("relay_driver_" + std::to_string(getpid()));
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  size_t size() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Stages : public StageObserver {
 public:
  void bytecode(Bytecode& bytecode) override { functions = bytecode.program.functions.size(); }
  tir::PrimFunc kernel(std::string_view stage, tir::PrimFunc f) override {
    std::lock_guard<std::mutex> lock(mutex);
    seen[f->name].emplace_back(stage);
    return f;
  }
  size_t functions = 0;
  std::map<std::string, std::vector<std::string>> seen;

 private:
  std::mutex mutex;
};

TEST(Compile, kernels_come_from_the_cache_the_second_time) {
  std::string pattern = (std::filesystem::temp_directory_path() / "relay_cache_XXXXXX").string();
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  CompileOptions options = at_level(3);
  std::string elf = compile(network(), options).elf;
  for (int round = 0; round < 2; ++round) {
    options.cache = std::make_shared<KernelCache>(pattern + "/relay", 1 << 20);
    EXPECT_EQ(compile(network(), options).elf, elf);
    EXPECT_EQ(options.cache->counts().hits == 0, round == 0);
    EXPECT_EQ(options.cache->counts().misses == 0, round == 1);
  }
  std::filesystem::remove_all(pattern);
}

TEST(Compile, equal_kernels_are_one_though_they_end_for_different_reasons) {
  // The first sum's consumer stops it; nothing follows the second.
  Module mod = parse(R"(
def @main(%x: Tensor[(4, 8), float32], %w: Tensor[(8, 8), float32]) {
  let %a = nn.dense(%x, %w);
  let %b = nn.dense(nn.softmax(%a), %w);
  %b
}
)");
  CompiledModule compiled = compile(mod, at_level(3));
  auto sums = std::count_if(compiled.kernels.begin(), compiled.kernels.end(), [](const auto& k) {
    return k.name.find("dense") != std::string::npos;
  });
  EXPECT_EQ(sums, 1);
  for (const CompiledKernel& k : compiled.kernels) {
    if (k.name.find("dense") == std::string::npos) continue;
    ASSERT_EQ(k.sites.size(), 2U);
    EXPECT_NE(k.sites[0].ends.find("nn.softmax"), std::string::npos);
    EXPECT_EQ(k.sites[1].ends, "");
    EXPECT_NE(k.rule, "");
    EXPECT_FALSE(k.declined.empty());
  }
}

TEST(Compile, observers_see_every_stage_of_every_kernel) {
  Stages stages;
  CompileOptions options = at_level(3);
  options.observers = {&stages};
  CompiledModule compiled = compile(network(), options);
  EXPECT_EQ(stages.functions, compiled.program.functions.size());
  std::vector<std::string> order = {"compose", "schedule"};
  for (const tir::LoweringPass& pass : tir::lowering_passes()) order.emplace_back(pass.name);
  ASSERT_EQ(stages.seen.size(), compiled.kernels.size());
  for (const auto& [kernel, seen] : stages.seen) EXPECT_EQ(seen, order) << kernel;
}

TEST(Compile, reports_its_phases_and_passes) {
  std::vector<std::string> seen;
  CompileOptions o = at_level(3);
  o.progress = [&](std::string_view phase, int64_t done, int64_t total) {
    EXPECT_TRUE(total == 0 || done <= total);
    if (seen.empty() || seen.back() != phase) seen.emplace_back(phase);
  };
  CompiledModule compiled = compile(network(), o);
  std::vector<std::string> names;
  for (const Phase& p : compiled.phases) {
    names.push_back(p.name);
    EXPECT_GE(p.seconds, 0);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"optimize", "plan", "lower", "generate", "link"}));
  EXPECT_EQ(seen, names);
  EXPECT_FALSE(compiled.passes.empty());
  EXPECT_EQ(compiled.kernels.size(), compiled.program.kernels.size());
  EXPECT_GT(compiled.arena_bytes(), 0);
}

TEST(Compile, every_level_agrees_with_the_evaluator) {
  std::vector<Tensor> want = reference();
  for (int level = 0; level <= 3; ++level) {
    SCOPED_TRACE(level);
    expect_close(run(compile(network(), at_level(level))), want);
  }
}

// The tree of such a match would be far larger than the match, so CompileMatch leaves it.
TEST(Compile, matches_with_nested_patterns_need_no_pass) {
  Module mod = parse(R"(
type Nat { Z, S(Nat), }
def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {
  let %n = S(S(Z));
  match (((%n, %x), (S(Z), %y))) {
    ((S(S(S(_))), %a), _) => { %a },
    ((S(_), %a), (Z, %b)) => { add(%a, %b) },
    ((S(S(Z)), %a), (S(_), %b)) => { subtract(%a, %b) },
    (_, (_, %b)) => { %b },
  }
})");
  std::vector<Tensor> args = driver_test::arguments(mod);
  std::vector<Tensor> want;
  runtime::flatten_tensors(Evaluator(mod).call("main", {args[0], args[1]}), want);
  for (int level : {0, 3}) {
    CompileOptions o = at_level(level);
    o.disabled_pass = {"CompileMatch", "PartialEvaluate"};
    expect_close(compile(mod, o).load({}).run("main", args, {}), want);
  }
}

TEST(Compile, must_fail_E0306_without_a_form_that_the_compiler_takes) {
  Module branches = parse(R"(
def @main(%c: bool, %x: Tensor[(2), float32]) { if (%c) { exp(%x) } else { %x } })");
  for (const Module& mod : {network(), branches, parse("def @main(%x: float32) { exp(%x) }")}) {
    for (const char* pass : {"ToANormalForm", "FuseOps"}) {
      for (int level = 0; level <= 3; ++level) {
        SCOPED_TRACE(std::string(pass) + " " + std::to_string(level));
        CompileOptions o = at_level(level);
        o.disabled_pass = {pass};
        try {
          compile(mod, o);
          ADD_FAILURE() << "is compiled";
        } catch (const UserError& e) {
          EXPECT_EQ(e.diagnostics().front().code, "E0306") << e.what();
          EXPECT_NE(std::string(e.what()).find(pass), std::string::npos) << e.what();
        }
      }
    }
  }
}

TEST(Compile, every_target_that_this_machine_runs_agrees) {
  std::vector<Tensor> want = reference();
  for (const std::string& target : driver_test::runnable_target_names()) {
    SCOPED_TRACE(target);
    CompiledModule compiled = compile(network(), at_level(3, target));
    EXPECT_NE(compiled.target.find(target), std::string::npos);
    expect_close(run(compiled), want);
  }
}

TEST(Compile, one_thread_and_two_give_the_same_bits) {
  for (int level : {0, 3}) {
    CompiledModule compiled = compile(network(), at_level(level));
    EXPECT_TRUE(bit_equal(run(compiled, 1)[0], run(compiled, 2)[0])) << level;
    // Also when the code was made for one thread.
    CompileOptions one = at_level(level);
    one.num_threads = 1;
    EXPECT_TRUE(bit_equal(run(compile(network(), one), 1)[0], run(compiled, 2)[0])) << level;
  }
}

TEST(Compile, what_was_in_memory_before_does_not_matter) {
  for (int level : {0, 3}) {
    CompiledModule compiled = compile(network(), at_level(level));
    Tensor zeros = run(compiled, 2, uint8_t{0})[0], ones = run(compiled, 2, uint8_t{0xff})[0];
    EXPECT_TRUE(bit_equal(zeros, ones)) << level;
  }
}

// Only a pass may say that nothing reads what a kernel gives.
TEST(Compile, a_program_that_calls_a_result_unwritten_gets_it_written) {
  const Module mod = parse(R"(
def @main() -> Tensor[(4), float32] {
  let %f = fn (Primitive=1, Unwritten=1) -> Tensor[(4), float32] { full(2f, shape=[4]) };
  %f()
}
)");
  for (int level : {0, 3}) {
    runtime::RunOptions options;
    options.poison = uint8_t{0xff};
    const auto out = compile(mod, at_level(level)).load({}).run("main", {}, options);
    EXPECT_EQ(out[0].get_as_double(3), 2.0) << level;
  }
}

TEST(Compile, the_same_program_gives_the_same_bytes) {
  Folder folder;
  for (const char* name : {"a.so", "b.so"}) {
    compile(parse(kNetwork), at_level(3)).write(folder / name, false);
  }
  EXPECT_EQ(bytes_of(folder / "a.so"), bytes_of(folder / "b.so"));
}

TEST(Compile, an_artifact_runs_and_tells_where_it_came_from) {
  Folder folder;
  CompileOptions o = at_level(2, "x86-64-v2");
  o.source_name = "some/folder/net.relay";
  o.source_hash = "0123456789abcdef";
  compile(network(), o).write(folder / "net.so", false);
  runtime::Module module = runtime::Module::load(folder / "net.so");
  expect_close(module.run("main", driver_test::arguments(network())), reference());
  nlohmann::json meta = nlohmann::json::parse(module.metadata());
  EXPECT_EQ(meta["source"], "net.relay");
  EXPECT_EQ(meta["source_hash"], o.source_hash);
  EXPECT_EQ(meta["opt_level"], 2);
  EXPECT_TRUE(meta["compiler"].get<std::string>().starts_with("relay "));
  EXPECT_TRUE(meta["target"].get<std::string>().starts_with("x86-64-v2"));
  EXPECT_EQ(meta["kernels"].size(), module.program().kernels.size());
}

TEST(Compile, writing_replaces_a_file_only_when_told_to_and_leaves_nothing_else) {
  Folder folder;
  CompiledModule compiled = compile(network(), at_level(1));
  std::ofstream(folder / "net.so") << "precious";
  EXPECT_THROW(compiled.write(folder / "net.so", false), UserError);
  EXPECT_EQ(bytes_of(folder / "net.so"), "precious");
  EXPECT_THROW(compiled.write(folder / "no/such/folder.so", true), UserError);
  compiled.write(folder / "net.so", true);
  EXPECT_NO_THROW(runtime::Module::load(folder / "net.so"));
  EXPECT_EQ(folder.size(), 1u);
}

TEST(Compile, must_fail_E0303_cancelled) {
  for (int at : {0, 1, 8}) {
    int asked = 0;
    BudgetLimits limits;
    limits.cancelled = [&] { return asked++ >= at; };
    Module mod = network();
    try {
      BudgetScope scope(limits);
      compile(mod, at_level(3));
      FAIL() << "was not cancelled";
    } catch (const UserError& e) {
      EXPECT_EQ(e.diagnostics().front().code, "E0303");
    }
  }
}

TEST(Compile, text_of_code_is_there_for_people) {
  CompileOptions o = at_level(3);
  CompiledModule compiled = compile(network(), o);
  EXPECT_NE(llvm_ir_text(compiled, o).find("define "), std::string::npos);
  EXPECT_NE(assembly_text(compiled, o).find("ret"), std::string::npos);
}

TEST(Compile, the_machines_peak_is_measured) {
  double one = measure_peak_gflops(1);
  EXPECT_GT(one, 1);
  EXPECT_LT(one, 10000);
}

}  // namespace
}  // namespace relay
