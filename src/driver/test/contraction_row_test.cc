// An operator from outside whose row states a contraction and nothing else about its computation: the contraction rule takes it,
// and it is quantised, differentiated and batched.
#include <gtest/gtest.h>

#include "driver/test/networks.h"
#include "eval/evaluator.h"
#include "ops/common.h"
#include "ops/contraction/derived.h"
#include "passes/gradient/batch_pass.h"
#include "passes/gradient/derivative_pass.h"

namespace relay {
namespace {

using driver_test::parse;

// y[m, g * N + n] = sum over k of x[m, g * K + k] * w[g, k, n].
OpInfo grouped_dense_row() {
  return ops::contraction_row({
      .name = "mylib.grouped_dense",
      .doc = "Groups of the data's columns by a matrix each.",
      .args = {{"data", "(m, g * k)."}, {"weight", "(g, k, n)."}},
      .relation = [](RelationContext& ctx) -> Type {
        const TensorTypeNode *x = ctx.tensor(0), *w = ctx.tensor(1);
        if (x == nullptr || w == nullptr) return nullptr;
        return tensor_type({x->shape[0], w->shape[0] * w->shape[2]}, x->dtype);
      },
      .contraction = [](const CallNode& c) -> std::optional<Contraction> {
        using Role = ContractionRole;
        const std::vector<Dim>&x = as<TensorTypeNode>(c.args[0]->type)->shape,
              &w = as<TensorTypeNode>(c.args[1]->type)->shape;
        Contraction out;
        out.dims = {
            {Role::Row, x[0]}, {Role::Group, w[0]}, {Role::Column, w[2]}, {Role::Reduced, w[1]}};
        out.operands = {{{{0}}, {{1, 3}}}, {{{1}}, {{3}}, {{2}}}};
        out.result = {{{0}}, {{1, 2}}};
        return out;
      },
      .examples = {{{"Tensor[(4, 6), float32]", "Tensor[(2, 3, 5), float32]"}, ""}},
      .expected = Absent::ByNumPy,
  });
}

class ContractionRow : public testing::Test {
 protected:
  ContractionRow() {
    initialize();
    OpRegistry::global().add(grouped_dense_row());
  }
  ~ContractionRow() override { OpRegistry::global().remove("mylib.grouped_dense"); }
};

constexpr int64_t kRows = 24, kGroups = 3, kColumns = 32, kInner = 16;
constexpr const char* kProgram = R"(
def @main(%x: Tensor[(24, 48), float32], %w: Tensor[(3, 16, 32), float32]) {
  mylib.grouped_dense(%x, %w)
})";

CompiledModule compiled(const Module& mod) {
  CompileOptions options;
  options.verify = true;
  options.target = "x86-64-v3 -num-threads=1";
  return compile(mod, options);
}

std::vector<Tensor> run_module(const Module& mod, const std::vector<Tensor>& args) {
  return compiled(mod).load({}).run("main", args, {});
}

double product(const Tensor& x, const Tensor& w, int64_t m, int64_t g, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < kInner; ++k) {
    sum += x.get_as_double((m * kGroups + g) * kInner + k) *
           w.get_as_double((g * kInner + k) * kColumns + n);
  }
  return sum;
}

TEST_F(ContractionRow, takes_the_contraction_rule) {
  Module mod = parse(kProgram);
  CompiledModule made = compiled(mod);
  ASSERT_EQ(made.kernels.size(), 1u);
  EXPECT_EQ(made.kernels[0].rule, "contraction") << made.kernels[0].schedule;
  const std::string text = to_string(made.kernels[0].composed);
  EXPECT_NE(text.find("group 3"), std::string::npos) << text;
  std::vector<Tensor> args = driver_test::arguments(mod);
  Tensor y = made.load({}).run("main", args, {}).at(0);
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t c = 0; c < kGroups * kColumns; ++c) {
      ASSERT_NEAR(y.get_as_double(m * kGroups * kColumns + c),
                  product(args[0], args[1], m, c / kColumns, c % kColumns), 1e-5);
    }
  }
}

TEST_F(ContractionRow, is_quantised) {
  Module mod = parse(R"(
def @main(%x: Tensor[(24, 48), uint8], %w: Tensor[(3, 16, 32), int8]) {
  mylib.grouped_dense(qnn.dequantize(%x, 0.5f, 7), qnn.dequantize(%w, 0.25f, 0))
})");
  CompileOptions options;
  options.target = "x86-64-v4 -num-threads=1";
  const std::string optimised = print_module(optimize(mod, options));
  EXPECT_EQ(optimised.find("mylib.grouped_dense"), std::string::npos) << optimised;
  EXPECT_NE(optimised.find("nn.batch_matmul"), std::string::npos) << optimised;
  std::vector<Tensor> args = driver_test::arguments(mod);
  driver_test::fill(args[0], 0, 255, 3);
  driver_test::fill(args[1], -127, 127, 4);
  Tensor x = Tensor::empty(DType::Float(32), args[0].shape()),
         w = Tensor::empty(DType::Float(32), args[1].shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    x.set_from_double(i, 0.5 * (args[0].get_as_double(i) - 7));
  }
  for (int64_t i = 0; i < w.num_elements(); ++i) {
    w.set_from_double(i, 0.25 * args[1].get_as_double(i));
  }
  Tensor y = run_module(mod, args).at(0);
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t c = 0; c < kGroups * kColumns; ++c) {
      const double want = product(x, w, m, c / kColumns, c % kColumns);
      ASSERT_NEAR(y.get_as_double(m * kGroups * kColumns + c), want, 1e-5 * (1 + std::abs(want)));
    }
  }
}

TEST_F(ContractionRow, is_differentiated) {
  Module mod = parse(kProgram);
  Module with = add_first_order_gradient(mod, mod->find("main"), "gradient");
  std::vector<Tensor> args = driver_test::arguments(mod);
  std::vector<runtime::Value> values(args.begin(), args.end());
  std::vector<Tensor> out;
  runtime::flatten_tensors(Evaluator(with).call("gradient", values), out);
  ASSERT_EQ(out.size(), 3u);
  // The sum of all results: each element of x is multiplied with the sum of its columns' weights.
  for (int64_t m = 0; m < kRows; ++m) {
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int64_t k = 0; k < kInner; ++k) {
        double want = 0;
        for (int64_t n = 0; n < kColumns; ++n)
          want += args[1].get_as_double((g * kInner + k) * kColumns + n);
        ASSERT_NEAR(out[1].get_as_double((m * kGroups + g) * kInner + k), want, 1e-4);
      }
    }
  }
  for (int64_t g = 0; g < kGroups; ++g) {
    for (int64_t k = 0; k < kInner; ++k) {
      double want = 0;
      for (int64_t m = 0; m < kRows; ++m)
        want += args[0].get_as_double((m * kGroups + g) * kInner + k);
      for (int64_t n = 0; n < kColumns; ++n)
        ASSERT_NEAR(out[2].get_as_double((g * kInner + k) * kColumns + n), want, 1e-4);
    }
  }
}

TEST_F(ContractionRow, is_batched) {
  Module mod = parse(kProgram);
  CompileOptions defaults;
  PassContext ctx = pass_context(defaults);
  BatchOptions options;
  options.in_axes = std::vector<BatchAxes>{{.axis = 0}, {.axis = std::nullopt}};
  Module with = add_batched(mod, "main", options, "batched", ctx);
  const std::string text = print_module(with);
  const Function batched = with->find("batched");
  std::vector<Tensor> args = driver_test::arguments(mod);
  constexpr int64_t kLanes = 2;
  Tensor lanes = Tensor::empty(DType::Float(32), {kLanes, kRows, kGroups * kInner});
  driver_test::fill(lanes, -1, 1, 9);
  std::vector<Tensor> out;
  runtime::flatten_tensors(
      Evaluator(with).call("batched", {runtime::Value(lanes), runtime::Value(args[1])}), out);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    Tensor one = Tensor::empty(DType::Float(32), {kRows, kGroups * kInner});
    for (int64_t i = 0; i < one.num_elements(); ++i)
      one.set_from_double(i, lanes.get_as_double(lane * one.num_elements() + i));
    for (int64_t m = 0; m < kRows; ++m) {
      for (int64_t c = 0; c < kGroups * kColumns; ++c) {
        ASSERT_NEAR(out.at(0).get_as_double((lane * kRows + m) * kGroups * kColumns + c),
                    product(one, args[1], m, c / kColumns, c % kColumns), 1e-5);
      }
    }
  }
  // Lanes are rows of one call.
  EXPECT_NE(text.find("mylib.grouped_dense"), std::string::npos) << text;
  EXPECT_EQ(text.find("while"), std::string::npos) << text;
}

}  // namespace
}  // namespace relay
