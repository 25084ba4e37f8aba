// Watched runs: what the watcher of the evaluator and of compiled code sees.
#include "driver/watched_run.h"

#include <gtest/gtest.h>

#include "driver/find_nan.h"
#include "driver/test/networks.h"
#include "driver/value_difference.h"

namespace relay::driver_test {
namespace {

using runtime::Value;

constexpr const char* kProgram = R"(def @double(%v: Tensor[(2, 3), float32]) { add(%v, %v) }
def @main(%x: Tensor[(2, 3), float32]) {
  let %a = @double(%x);
  let %b = log(nn.relu(%a));
  nn.softmax(%b, axis=1)
}
)";

// Keeps what it is told, with copies of the tensors.
struct Record : CallWatcher {
  struct Row {
    WatchedCall call;
    std::vector<Tensor> inputs, outputs;
  };
  std::vector<Row> rows;
  std::vector<std::string> functions;
  void before(const WatchedCall& c) override {
    rows.push_back({c, {}, {}});
    for (const Tensor& t : c.inputs) rows.back().inputs.push_back(t.copy());
  }
  void after(const WatchedCall& c) override {
    for (const Tensor& t : c.outputs) rows.back().outputs.push_back(t.copy());
  }
  void entered(const WatchedFrame& f) override {
    functions.push_back(f.function + " at " + f.place + " in " + std::to_string(f.depth));
  }
};

TEST(WatchedRun, the_evaluator_shows_operators_in_their_functions) {
  const Module mod = parse(kProgram);
  Record record;
  watch_evaluator(mod, {})->run("main", {arguments(mod)[0]}, record);
  std::vector<std::string> seen;
  for (const Record::Row& r : record.rows) {
    seen.push_back(r.call.operation + " " + r.call.node + " in " + r.call.function + " " +
                   std::to_string(r.call.depth));
    EXPECT_EQ(r.outputs.size(), 1u);
  }
  EXPECT_EQ(seen, (std::vector<std::string>{
                      "add test.relay:2:44 in double 2", "nn.relu test.relay:5:16 in main 1",
                      "log test.relay:5:12 in main 1", "nn.softmax test.relay:6:3 in main 1"}));
  EXPECT_EQ(record.functions,
            (std::vector<std::string>{"main at  in 1", "double at test.relay:4:12 in 2"}));
}

TEST(WatchedRun, kernels_show_the_values_of_the_evaluator) {
  const Module mod = parse(kProgram);
  const std::vector<Value> args{arguments(mod)[0]};
  Record record, reference;
  CompileOptions options;
  options.num_threads = 1;
  CompiledWatch compiled(mod, options);
  compiled.run("main", args, record);
  watch_evaluator(mod, {})->run("main", args, reference);
  ASSERT_FALSE(record.rows.empty());
  EXPECT_FALSE(difference(record.rows[0].inputs[0], args[0].tensor(), {}).differs());
  EXPECT_FALSE(
      difference(record.rows.back().outputs[0], reference.rows.back().outputs[0], {}).differs());
  EXPECT_NE(record.rows.back().call.primitive, nullptr);
  EXPECT_EQ(record.rows.back().call.line, 6u);
}

TEST(WatchedRun, open_sizes_are_those_of_the_call) {
  const Module mod =
      parse("def @main[n: Dim](%x: Tensor[(n, 4), float32]) { nn.softmax(exp(%x), axis=1) }");
  CompileOptions options;
  options.num_threads = 1;
  CompiledWatch compiled(mod, options);
  for (int64_t n : {1, 5}) {
    Record record;
    Tensor x = Tensor::empty(DType::Float(32), {n, 4});
    fill(x, -1, 1, 1);
    compiled.run("main", {x}, record);
    ASSERT_FALSE(record.rows.empty());
    EXPECT_EQ(record.rows.back().outputs[0].dim(0), n);
  }
}

TEST(WatchedRun, an_exception_of_the_watcher_ends_the_run) {
  const Module mod = parse(kProgram);
  struct Stop {};
  struct Thrower : CallWatcher {
    void after(const WatchedCall&) override { throw Stop(); }
  } thrower;
  CompileOptions options;
  options.num_threads = 1;
  CompiledWatch compiled(mod, options);
  const std::vector<Value> args{arguments(mod)[0]};
  Record record;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW(compiled.run("main", args, thrower), Stop);
    EXPECT_THROW(watch_evaluator(mod, {})->run("main", args, thrower), Stop);
  }
  compiled.run("main", args, record);
  EXPECT_FALSE(record.rows.empty());
}

TEST(FindNan, names_the_operator_that_makes_it) {
  const Module mod = parse("def @main(%x: Tensor[(2, 3), float32]) { log(nn.relu(%x)) }");
  Tensor x = Tensor::empty(DType::Float(32), {2, 3});
  fill(x, 0.5, 1, 1);
  for (bool bad : {false, true}) {
    if (bad) x.set_from_double(4, -1);
    for (bool compiled : {false, true}) {
      CompileOptions options;
      options.num_threads = 1;
      std::unique_ptr<WatchedProgram> program;
      if (compiled) {
        program = std::make_unique<CompiledWatch>(mod, options);
      } else {
        program = watch_evaluator(mod, {});
      }
      const NanReport report = find_nan(*program, "main", {x});
      ASSERT_EQ(report.events.size(), bad ? 1u : 0u);
      if (!bad) continue;
      EXPECT_EQ(report.events[0].operation, "log");
      EXPECT_TRUE(report.events[0].node.starts_with("test.relay:2:")) << report.events[0].node;
      EXPECT_FALSE(report.events[0].is_nan);
      EXPECT_EQ(report.events[0].inputs[0].get_as_double(4), 0);
      ASSERT_TRUE(report.events[0].program);
    }
  }
}

TEST(Difference, numbers_that_are_not_finite_and_other_types) {
  const double nan = std::nan(""), inf = HUGE_VAL;
  auto vector = [](std::initializer_list<double> values) {
    Tensor t = Tensor::empty(DType::Float(32), {static_cast<int64_t>(values.size())});
    int64_t i = 0;
    for (double v : values) t.set_from_double(i++, v);
    return t;
  };
  EXPECT_FALSE(difference(vector({1, nan, inf}), vector({1, nan, inf}), {}).differs());
  EXPECT_EQ(difference(vector({1, nan, inf}), vector({1, 2, -inf}), {}).count, 2);
  EXPECT_FALSE(difference(vector({100, 1e-4}), vector({100, 0}), {}).differs());
  EXPECT_TRUE(difference(vector({100, 1}), vector({100, 0}), {}).differs());
  EXPECT_FALSE(difference(vector({1}), vector({1, 2}), {}).same_type);
  EXPECT_EQ(difference(vector({1, 3}), vector({1, 2}), {}).text(vector({1, 2})),
            "1 of 2 elements differs, worst (1): 3 instead of 2");
}

}  // namespace
}  // namespace relay::driver_test
