// No kernel reads or writes beside its buffers, or lets old memory into its results.
#include "driver/test/guarded_kernels.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "ops/test/programs.h"

namespace relay {
namespace {

using driver_test::GuardedKernels;

// Shapes that no vector length, tile or unroll factor divides, and some that all do.
constexpr const char* kPrograms[] = {
    "def @main(%x: Tensor[(37), float32], %y: Tensor[(37), float32]) { nn.relu(add(%x, %y)) }",
    "def @main(%x: Tensor[(5, 1, 7), float32], %y: Tensor[(3, 1), float32]) { tanh(add(%x, %y)) }",
    "def @main(%x: Tensor[(13, 29), float32], %w: Tensor[(17, 29), float32]) { nn.dense(%x, %w) }",
    "def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32], %b: Tensor[(64), "
    "float32]) { nn.relu(add(nn.dense(%x, %w), %b)) }",
    "def @main(%x: Tensor[(3, 7, 19), float32], %y: Tensor[(3, 19, 11), float32]) { "
    "nn.batch_matmul(%x, %y) }",
    "def @main(%x: Tensor[(1, 5, 11, 13), float32], %w: Tensor[(7, 5, 3, 3), float32]) { "
    "nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=7, kernel_size=[3, 3])) }",
    "def @main(%x: Tensor[(1, 16, 14, 14), float32], %w: Tensor[(32, 16, 1, 1), float32]) { "
    "nn.conv2d(%x, %w, padding=[0, 0, 0, 0], channels=32, kernel_size=[1, 1]) }",
    "def @main(%x: Tensor[(1, 6, 9, 9), float32], %w: Tensor[(6, 1, 3, 3), float32]) { "
    "nn.conv2d(%x, %w, strides=[2, 2], padding=[1, 1, 1, 1], groups=6, channels=6, "
    "kernel_size=[3, 3]) }",
    "def @main(%x: Tensor[(1, 3, 10, 10), float32]) { "
    "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]) }",
    "def @main(%x: Tensor[(9, 31), float32]) { nn.softmax(%x) }",
    "def @main(%x: Tensor[(4, 6, 35), float32]) { (sum(%x, axis=[2]), max(%x, axis=[0, 1])) }",
    "def @main(%x: Tensor[(23, 41), float32]) { transpose(%x, axes=[1, 0]) }",
    "def @main(%x: Tensor[(3, 5), int8], %y: Tensor[(3, 5), int8]) { add(%x, %y) }",
    "def @main(%x: Tensor[(3, 5), float32], %y: Tensor[(2, 5), float32]) { "
    "concatenate((%x, %y), axis=0) }",
    "def @main(%x: Tensor[(67), float16]) { exp(%x) }",
    // Borders wider than a vector, in rows and in lanes.
    "def @main(%x: Tensor[(1, 40, 24, 32), float32], %w: Tensor[(9, 9, 32, 1), float32]) { "
    "nn.conv2d(%x, %w, padding=[4, 4, 4, 4], channels=32, groups=32, kernel_size=[9, 9], "
    "data_layout=\"NHWC\", kernel_layout=\"HWOI\") }",
    "def @main(%x: Tensor[(9, 67), float32]) { "
    "nn.pad(%x, 1f, pad_width=[[50, 30], [100, 3000]]) }",
    "def @main(%x: Tensor[(9, 67), float32], %y: Tensor[(9, 200), float32], %z: Tensor[(9, 5), "
    "float32]) { tanh(concatenate((%x, %y, %z), axis=1)) }",
};

// Loops that store to rows, parts of rows and blocks of a table; its sizes stand for @ROWS and @COLUMNS.
constexpr const char* kLoops[] = {
    // Elements at indices that an iteration computes.
    R"(def @main@DIMS(%x: Tensor[(@ROWS, @COLUMNS), float64], %n: int64) {
  let %loop: fn (int64, Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] =
    fn (%i: int64, %y: Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] {
    if (less(%i, %n)) {
      let %r = take(%y, floor_mod(%i, 5i64), axis=0);
      let %z = update_slice(%y, expand_dims(multiply(%r, 0.5f64)), (subtract(%n, %i), 0i64));
      %loop(add(%i, 1i64), %z)
    } else { %y } };
  %loop(0i64, %x)
})",
    // A block of its neighbours.
    R"(def @main@DIMS(%x: Tensor[(@ROWS, @COLUMNS), float64], %n: int64) {
  let %loop: fn (int64, Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] =
    fn (%i: int64, %y: Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] {
    if (less(%i, %n)) {
      let %a = strided_slice(%y, begin=[0, 0], end=[-2, -1], strides=[1, 1]);
      let %b = strided_slice(%y, begin=[2, 1], end=[1000, 1000], strides=[1, 1]);
      let %z = update_slice(%y, multiply(add(%a, %b), 0.5f64), (1i64, 1i64));
      %loop(add(%i, 1i64), %z)
    } else { %y } };
  %loop(0i64, %x)
})",
    // All of it, of one of its rows.
    R"(def @main@DIMS(%x: Tensor[(@ROWS, @COLUMNS), float64], %n: int64) {
  let %loop: fn (int64, Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] =
    fn (%i: int64, %y: Tensor[(@ROWS, @COLUMNS), float64]) -> Tensor[(@ROWS, @COLUMNS), float64] {
    if (less(%i, %n)) {
      %loop(add(%i, 1i64), subtract(%y, take(%y, floor_mod(%i, 3i64), axis=0)))
    } else { %y } };
  %loop(0i64, %x)
})"};

std::string loop_of(std::string text, bool open) {
  auto put = [&](const std::string& name, const std::string& with) {
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, name.size(), with);
  };
  put("@DIMS", open ? "[n: Dim]" : "");
  put("@ROWS", open ? "n" : "11");
  put("@COLUMNS", open ? "n" : "37");
  return text;
}

struct Way {
  const char* target;
  int level;
};
void PrintTo(const Way& way, std::ostream* out) { *out << way.target << ", level " << way.level; }

class Guarded : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    initialize();
    auto runnable = driver_test::runnable_target_names();
    if (std::find(runnable.begin(), runnable.end(), GetParam().target) == runnable.end()) {
      GTEST_SKIP() << "this machine does not run code for " << GetParam().target;
    }
  }
};

TEST_P(Guarded, programs) {
  GuardedKernels kernels(GetParam().target, GetParam().level);
  for (const char* text : kPrograms) kernels.add(driver_test::parse(text), text);
  EXPECT_GE(kernels.size(), std::size(kPrograms));
  kernels.check();
}

TEST_P(Guarded, loops) {
  GuardedKernels kernels(GetParam().target, GetParam().level);
  for (const char* text : kLoops) {
    for (bool open : {false, true}) {
      // Without passes the operators of a loop are kernels, of several sizes.
      if (open && GetParam().level == 0) continue;
      const std::string program = loop_of(text, open);
      kernels.add(driver_test::parse(program), program, 3, 7, {}, open ? 13 : 0);
    }
  }
  EXPECT_GE(kernels.size(), GetParam().level == 0 ? 0u : 2 * std::size(kLoops));
  kernels.check();
}

// What the pass on accesses is for: without it the verifier refuses the kernel.
TEST(GuardAccesses, a_border_of_many_rows_needs_it) {
  struct Before : StageObserver {
    tir::PrimFunc kernel(std::string_view stage, tir::PrimFunc f) override {
      if (stage == "Simplify") last = f;
      return stage == "GuardAccesses" && skip ? last : f;
    }
    tir::PrimFunc last;
    bool skip = false;
  } before;
  CompileOptions options;
  options.target = "x86-64-v4";
  options.num_threads = 2;
  options.observers = {&before};
  Module mod =
      optimize(driver_test::parse("def @main(%x: Tensor[(1, 40, 24, 32), float32]) { "
                                  "nn.pad(%x, 0f, pad_width=[[0, 0], [4, 4], [4, 4], [0, 0]]) }"),
               options);
  for (bool skip : {false, true}) {
    before.skip = skip;
    Bytecode bytecode = make_bytecode(mod, options);
    ASSERT_EQ(bytecode.kernels.size(), 1u);
    if (skip) {
      EXPECT_THROW(lower_kernels(bytecode), InternalError);
    } else {
      EXPECT_NO_THROW(lower_kernels(bytecode));
    }
  }
}

TEST_P(Guarded, the_examples_of_every_operator) {
  GuardedKernels kernels(GetParam().target, GetParam().level);
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    // What writes to the world calls functions of the runtime.
    if (row.compute == nullptr || data_decides_shape(row) || row.effect == Effect::Io) continue;
    for (const OpExample& e : row.examples) {
      // The words of strings are addresses, which are not guarded.
      auto is_string = [](const std::string& arg) { return arg.find("string") != arg.npos; };
      if (row.name == "text.format" || std::ranges::any_of(e.args, is_string)) continue;
      kernels.add(infer(row.name, e.args, e.attrs), program_of(row.name, e.args, e.attrs), e.low,
                  e.high, e.inputs);
    }
  }
  EXPECT_GE(kernels.size(), 100u);
  kernels.check();
}

INSTANTIATE_TEST_SUITE_P(Ways, Guarded,
                         testing::Values(Way{"x86-64-v2", 0}, Way{"x86-64-v3", 3},
                                         Way{"x86-64-v4", 0}, Way{"x86-64-v4", 3}),
                         [](const auto& info) {
                           std::string name = info.param.target;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + "_level" + std::to_string(info.param.level);
                         });

}  // namespace
}  // namespace relay
