// Which functions become host code, and what is built for them.
#include "vm/host_code.h"

#include <algorithm>

#include "hostcode/verify.h"
#include "lower/lower_program.h"
#include "plan/make_plan.h"
#include "vm/test/run_program.h"

namespace relay {
namespace {

using hostcode::FunctionKind;

struct Built {
  explicit Built(const std::string& text, const NativeLimits& limits = {}) {
    const Module lowered = vm_test::Compiled(text).lowered;
    LoweredProgram kernels(lowered, std::make_shared<KernelProvider>());
    plan = plan::make_plan(lowered, kernels);
    code = build_host_code(plan, limits);
    hostcode::verify(code.program);
  }

  // By the name of a function of the program.
  std::string reason(const std::string& name) const {
    auto f = std::ranges::find(plan.functions, name, &plan::PlanFunction::name);
    return f == plan.functions.end()
               ? "there is no such function"
               : code.reasons[static_cast<size_t>(f - plan.functions.begin())];
  }
  int64_t count(FunctionKind kind) const {
    return std::ranges::count(code.program.functions, kind, &hostcode::Function::kind);
  }

  plan::PlanProgram plan;
  HostCode code;
};

constexpr const char* kNumerals = R"(
def @compose(%f: fn (int64) -> int64, %g: fn (int64) -> int64) -> fn (int64) -> int64 {
  fn (%x: int64) -> int64 { %f(%g(%x)) }
}
def @main(%n: int64) -> int64 {
  let %one = fn (%x: int64) -> int64 { %x + %n };
  let %two = @compose(%one, %one);
  let %four = @compose(%two, %two);
  if (%n > 0i64) { %four(%n) } else { %two(%n) }
})";

TEST(HostCodeOfPlans, only_functions_that_the_interpreter_calls_have_entries) {
  Built built(kNumerals);
  const int64_t bodies = built.count(FunctionKind::body);
  EXPECT_EQ(bodies, static_cast<int64_t>(built.plan.functions.size()));
  EXPECT_GE(built.count(FunctionKind::closure), 2);
  EXPECT_EQ(built.count(FunctionKind::entry), 1);
  EXPECT_EQ(static_cast<int64_t>(built.code.program.entries.size()),
            built.count(FunctionKind::entry));
}

TEST(HostCodeOfPlans, closures_that_interpreted_code_or_callers_may_call_have_entries) {
  Built called(R"(
def @apply(%x: Tensor[(3,), float32], %f: fn (int64) -> int64, %n: int64) -> (Tensor[(3,), float32], int64) {
  (exp(%x), %f(%n))
}
def @main(%x: Tensor[(3,), float32], %n: int64) -> (Tensor[(3,), float32], int64) {
  @apply(%x, if (%n > 0i64) { fn (%a: int64) -> int64 { if (%a > 9i64) { %n } else { %a } } } else { fn (%a: int64) -> int64 { %a } }, %n)
})");
  EXPECT_NE(called.reason("apply"), "");
  EXPECT_EQ(called.count(FunctionKind::closure), 2);
  EXPECT_EQ(called.count(FunctionKind::entry), 2);
  Built given(R"(
def @main(%n: int64) -> fn (int64) -> int64 {
  if (%n > 0i64) { fn (%a: int64) -> int64 { %a * %n } } else { fn (%a: int64) -> int64 { %a } }
})");
  EXPECT_EQ(given.count(FunctionKind::entry), 1 + given.count(FunctionKind::closure));
}

TEST(HostCodeOfPlans, a_refusal_is_the_reason_of_what_would_be_native) {
  Built built(kNumerals, {.refused = "it is switched off"});
  EXPECT_TRUE(built.code.program.empty());
  EXPECT_EQ(built.reason("main"), "it is switched off");
}

TEST(HostCodeOfPlans,
     functions_and_closures_with_more_parameters_than_the_target_takes_are_interpreted) {
  const std::string text = R"(
def @sum(%a: int64, %b: int64, %c: int64) -> int64 { if (%a > 0i64) { @sum(%a - 1i64, %b, %c + %b) } else { %c } }
def @apply(%f: fn (int64, int64, int64) -> int64, %n: int64) -> int64 { %f(%n, %n, %n) }
def @main(%n: int64) -> int64 { if (%n > 0i64) { @apply(@sum, %n) } else { @sum(%n, 2i64, 3i64) } })";
  EXPECT_EQ(Built(text, {.most_params = 3}).reason("sum"), "");
  const Built few(text, {.most_params = 2});
  EXPECT_TRUE(few.reason("sum").find("too many parameters") != std::string::npos);
  EXPECT_TRUE(few.reason("apply").find("too many parameters") != std::string::npos);
}

// A function that calls another a thousand functions away.
std::string chain(int count, const std::string& last) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += "def @f" + std::to_string(i) + "(%n: int64) -> int64 { if (%n > 0i64) { @f" +
            std::to_string(i + 1) + "(%n - 1i64) } else { %n } }\n";
  }
  return text + "def @f" + std::to_string(count) + "(%n: int64) -> int64 {" + last +
         "}\ndef @main(%n: int64) -> int64 { @f0(%n) }";
}

TEST(HostCodeOfPlans, callers_of_interpreted_functions_are_interpreted) {
  constexpr int kCount = 300;
  const std::string end = std::to_string(kCount), before = std::to_string(kCount - 1);
  Built interpreted(
      chain(kCount, "cast(sum(full(%n, shape=(3,), dtype=\"int64\")), dtype=\"int64\")"));
  EXPECT_NE(interpreted.reason("f" + end), "");
  EXPECT_EQ(interpreted.reason("f" + before), "it calls @f" + end + ", which is interpreted");
  EXPECT_EQ(interpreted.reason("main"), "it calls @f0, which is interpreted");
  Built native(chain(kCount, "%n * %n"));
  EXPECT_EQ(native.count(FunctionKind::body), kCount + 2);
}

// A closure gives a word, and so does all that is in tail position before it.
TEST(HostCodeOfPlans, tail_calls_share_the_form_of_the_result) {
  Built built(chain(5, "let %f = fn (%x: int64) -> int64 { %x + %n }; %f(%n)"));
  auto f0 = std::ranges::find(built.code.program.functions, "f0", &hostcode::Function::name);
  ASSERT_NE(f0, built.code.program.functions.end());
  EXPECT_FALSE(f0->signature.result.has_value());
  EXPECT_EQ(built.reason("f0"), "");
}

TEST(HostCodeOfPlans, large_functions_are_interpreted) {
  std::string body = "let %x0 = %n;\n";
  constexpr int kCount = 1500;
  for (int i = 0; i < kCount; ++i) {
    const std::string x = "%x" + std::to_string(i);
    body += "let %x" + std::to_string(i + 1) + " = if (" + x + " > " + std::to_string(i) +
            "i64) { " + x + " - 1i64 } else { " + x + " + %n };\n";
  }
  Built built("def @main(%n: int64) -> int64 {\n" + body + "%x" + std::to_string(kCount) + "\n}");
  EXPECT_EQ(built.reason("main"), "it is too large for native code");
}

}  // namespace
}  // namespace relay
