// What bytecode tells of values and memory, beside the plan that it was written from.
#include "driver/program_flow.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/budget.h"
#include "driver/native_kernels.h"
#include "driver/test/networks.h"
#include "eval/evaluator.h"
#include "plan/plan.h"

namespace relay::driver_test {
namespace {

// Keeps the plan.
struct KeepPlan : StageObserver {
  plan::PlanProgram program;
  void plan(plan::PlanProgram& p) override { program = p; }
};

struct Compiled {
  KeepPlan plan;
  CompiledModule module;
  ProgramFlow flow;

  explicit Compiled(const std::string& text) {
    CompileOptions options;
    options.num_threads = 1;
    options.observers = {&plan};
    module = compile(parse(text), options);
    const int main = module.program.find_function("main");
    flow = program_flow(module.program, static_cast<size_t>(main), module.metadata);
  }
  const plan::PlanFunction& planned() const {
    return *std::ranges::find(plan.program.functions, "main", &plan::PlanFunction::name);
  }
};

// Two branches that are joined: three values are alive at once.
constexpr const char* kBranches =
    R"(def @main(%x: Tensor[(8, 16), float32], %w: Tensor[(16, 16), float32]) {
  let %a = nn.dense(%x, %w);
  let %b = nn.softmax(%a);
  let %c = nn.dense(%b, %w);
  let %d = nn.softmax(%c);
  let %e = nn.dense(%d, %w);
  nn.softmax(add(nn.dense(%e, %w), nn.dense(%b, %w)))
}
)";

TEST(ProgramFlow, calls_have_the_names_of_their_own_nodes) {
  const Compiled c(kBranches);
  std::vector<std::string> expected, found;
  for (const plan::Step& s : c.planned().steps) {
    if (s.kind != plan::StepKind::kernel) continue;
    const plan::ProgramKernel& k = c.plan.program.kernels[static_cast<size_t>(s.number)];
    expected.push_back(k.sites[static_cast<size_t>(s.text)].origin);
  }
  for (const FlowStep& s : c.flow.steps) found.push_back(s.name);
  EXPECT_EQ(found, expected);
  // Kernels are shared, names are not.
  EXPECT_LT(c.module.program.kernels.size(), std::set(found.begin(), found.end()).size());
}

TEST(ProgramFlow, memory_is_what_the_plan_says) {
  for (const char* text :
       {kBranches,
        // Parts of one tensor.
        R"(def @main(%x: Tensor[(8, 16), float32], %w: Tensor[(16, 16), float32]) {
  let %a = nn.softmax(nn.dense(%x, %w));
  let %b = nn.softmax(nn.dense(%a, %w));
  let %c = concatenate((%a, %b), axis=1);
  nn.dense(nn.softmax(%c), concatenate((%w, %w), axis=1))
}
)"}) {
    const Compiled c(text);
    EXPECT_EQ(c.flow.arena_bytes, c.planned().arena_bytes);
    ASSERT_EQ(c.flow.alive.size(), c.flow.steps.size());
    EXPECT_EQ(c.flow.alive[c.flow.peak()], c.planned().lower_bound);
    EXPECT_LE(c.flow.alive[c.flow.peak()], c.flow.arena_bytes);
    for (const FlowValue& v : c.flow.values) {
      if (v.home != FlowValue::Home::arena) continue;
      EXPECT_LE(v.offset + v.bytes, c.flow.arena_bytes);
      EXPECT_LE(v.first, v.last) << v.name;
    }
  }
}

TEST(ProgramFlow, steps_read_what_earlier_ones_write) {
  const Compiled c(kBranches);
  std::vector<int32_t> maker(c.flow.values.size(), -1);
  size_t parameters = 0;
  for (int32_t s = 0; s < static_cast<int32_t>(c.flow.steps.size()); ++s) {
    for (size_t v : c.flow.steps[static_cast<size_t>(s)].reads) {
      if (c.flow.values[v].home == FlowValue::Home::parameter) {
        ++parameters;
      } else {
        EXPECT_GE(maker[v], 0);
        EXPECT_LE(c.flow.values[v].first, s);
        EXPECT_GE(c.flow.values[v].last, s);
      }
    }
    for (size_t v : c.flow.steps[static_cast<size_t>(s)].writes) maker[v] = s;
  }
  EXPECT_GE(parameters, 2u);
}

TEST(ProgramFlow, memory_that_a_loop_reads_lives_as_long_as_the_loop) {
  const Compiled c(
      R"(def @main(%x: Tensor[(8, 16), float32], %w: Tensor[(16, 16), float32], %n: int32) {
  let %a = nn.softmax(nn.dense(%x, %w));
  let %loop = fn (%i: int32, %y: Tensor[(8, 16), float32]) -> Tensor[(8, 16), float32] {
    if (less(%i, %n)) { %loop(add(%i, 1), nn.softmax(nn.dense(add(%y, %a), %w))) } else { %y }
  };
  %loop(0, %a)
}
)");
  for (const FlowStep& s : c.flow.steps) EXPECT_FALSE(s.name.empty());
  for (int64_t bytes : c.flow.alive) {
    EXPECT_GE(bytes, 0);
    EXPECT_LE(bytes, c.flow.arena_bytes);
  }
}

// ---- driver/native_kernels.h

std::vector<runtime::Value> values(const Module& mod) {
  const std::vector<Tensor> tensors = arguments(mod);
  return {tensors.begin(), tensors.end()};
}

constexpr const char* kOperators =
    R"(def @main(%x: Tensor[(64, 128), float32], %w: Tensor[(96, 128), float32],
    %i: Tensor[(1, 4, 40, 40), float32], %k: Tensor[(8, 4, 3, 3), float32]) {
  let %d = nn.softmax(nn.dense(%x, %w));
  let %c = nn.relu(nn.conv2d(%i, %k, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]));
  (%d, %c, sum(%c), argsort(%x))
}
)";

TEST(NativeKernels, compute_what_the_interpreter_computes) {
  const Module mod = parse(kOperators);
  const std::vector<runtime::Value> args = values(mod);
  std::vector<Tensor> want, got, again;
  runtime::flatten_tensors(Evaluator(mod).call("main", args), want);
  int compiled = 0;
  EvalOptions options;
  const NativeKernels native(2);
  options.compile_kernel = [&, make = native.compiler()](const tir::PrimFunc& kernel) {
    auto out = make(kernel);
    compiled += out != nullptr ? 1 : 0;
    return out;
  };
  runtime::flatten_tensors(Evaluator(mod, options).call("main", args), got);
  runtime::flatten_tensors(Evaluator(mod, options).call("main", args), again);
  // The product and the convolution, in each of the two runs; what is small is interpreted.
  EXPECT_EQ(compiled, 4);
  ASSERT_EQ(got.size(), want.size());
  for (size_t t = 0; t < want.size(); ++t) {
    EXPECT_TRUE(bit_equal(got[t], again[t]));
    for (int64_t e = 0; e < want[t].num_elements(); ++e)
      ASSERT_NEAR(got[t].get_as_double(e), want[t].get_as_double(e), 2e-4) << t;
  }
}

TEST(NativeKernels, print_in_every_run) {
  // The tensor is large enough that the kernel would be compiled.
  const Module mod = parse(R"(def @main(%x: Tensor[(1000, 1000), float32]) {
  let %a = debug.print(("sum ", %x));
  %x
}
)");
  EvalOptions options;
  options.compile_kernel = NativeKernels(1).compiler();
  for (int run = 0; run < 2; ++run) {
    testing::internal::CaptureStdout();
    Evaluator(mod, options).call("main", values(mod));
    std::fflush(stdout);
    EXPECT_TRUE(testing::internal::GetCapturedStdout().starts_with("sum ["));
  }
}

TEST(NativeKernels, end_at_the_limits_of_the_thread) {
  const Module mod = parse(R"(def @main(%x: Tensor[(1000, 4000), float32]) {
  nn.dense(nn.dense(%x, %x), nn.dense(%x, %x))
}
)");
  EvalOptions options;
  options.compile_kernel = NativeKernels(1).compiler();
  BudgetLimits limits;
  limits.seconds = 0.3;
  limits.kind = BudgetKind::run;
  const BudgetScope scope(limits);
  EXPECT_THROW(Evaluator(mod, options).call("main", values(mod)), RuntimeError);
}

}  // namespace
}  // namespace relay::driver_test
