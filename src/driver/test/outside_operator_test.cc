// The operator of docs/adding_an_operator.md, registered from outside: text, evaluator, compiler.
// tests/python/test_guides.py compares the guide's code with this file.
#include <gtest/gtest.h>

#include "base/diagnostic_codes.h"
#include "driver/evaluate.h"
#include "driver/test/networks.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"

namespace mylib {
namespace {

using namespace relay;  // NOLINT

struct HardShrinkAttrs : AttrsOf<HardShrinkAttrs> {
  double lambd = 0.5;
  static AttrsList describe() {
    return {"mylib.attrs.HardShrinkAttrs",
            {attribute("lambd", &Self::lambd, "What is no further from zero becomes zero.")}};
  }
};

Type hard_shrink_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  if (!x->dtype.is_floating())
    return ctx.fail(codes::type_dtype, "needs a floating dtype", "float32", x->dtype.to_string());
  return Type(x);
}

tir::Tensor hard_shrink(const ComputeContext& ctx) {
  const tir::Tensor& x = ctx.inputs[0];
  double lambd = ctx.attrs<HardShrinkAttrs>().lambd;
  return tir::compute("T_hard_shrink", x->shape(), [&](const tir::Indices& i) {
    tir::PrimExpr v = x(i), size = tir::call("abs", v->dtype, {v});
    return tir::select(tir::gt(size, tir::imm_float(v->dtype, lambd)), v,
                       tir::imm_float(v->dtype, 0));
  });
}

OpInfo hard_shrink_row() {
  return {
      .name = "mylib.hard_shrink",
      .doc = "x where it is further than lambd from zero, else 0.",
      .args = {{"data", "The input."}},
      .attrs = &HardShrinkAttrs::static_info(),
      .fusion = FusionClass::ElemWise,
      .effect = Effect::Pure,
      .relation = hard_shrink_type,
      .compute = compute_rule(hard_shrink),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = Absent::Pending,
      .examples = {{.args = {"Tensor[(4,), float32]"},
                    .attrs = "lambd=1f",
                    .inputs = {{-2, -1, 0.5, 3}},
                    .results = {{-2, 0, 0, 3}}}},
      .expected = "by hand, from the sentence above",
  };
}

// Registers the operator for as long as it lives.
struct Registered {
  Registered() {
    initialize();
    OpRegistry::global().add(hard_shrink_row());
  }
  ~Registered() { OpRegistry::global().remove("mylib.hard_shrink"); }
};

constexpr const char* kProgram = R"(
def @main(%x: Tensor[(3, 5), float32]) {
  nn.relu(mylib.hard_shrink(add(%x, %x), lambd=0.75f))
})";

float expected(float x) { return 2 * x > 0.75f ? 2 * x : 0; }

void expect_right(const Tensor& got, const Tensor& x) {
  ASSERT_EQ(got.num_elements(), x.num_elements());
  for (int64_t i = 0; i < x.num_elements(); ++i)
    EXPECT_EQ(got.get_as_double(i), expected(static_cast<float>(x.get_as_double(i)))) << i;
}

TEST(OutsideOperator, runs_in_text_evaluator_and_compiler) {
  Registered op;
  Module mod = driver_test::parse(kProgram);
  Module again = infer_types(parse_module("again.relay", print_module(mod)));
  EXPECT_TRUE(structural_equal(mod, again));

  std::vector<Tensor> args = driver_test::arguments(mod);
  std::vector<Tensor> evaluated;
  runtime::flatten_tensors(Evaluator(mod).call("main", {runtime::Value(args[0])}), evaluated);
  expect_right(evaluated.at(0), args[0]);

  for (int level : {0, 3}) {
    CompileOptions options;
    options.opt_level = level;
    options.verify = true;
    CompiledModule compiled = compile(mod, options);
    expect_right(compiled.load({}).run("main", args, {}).at(0), args[0]);
    // Its fusion class makes one kernel of it and its neighbours at level 3.
    EXPECT_EQ(compiled.program.kernels.size(), level == 3 ? 1u : 3u);
  }
}

TEST(OutsideOperator, gives_what_its_row_expects) {
  Registered op;
  const OpExample example = OpRegistry::global().get("mylib.hard_shrink")->row->examples[0];
  Module mod = driver_test::parse("def @main(%x: " + example.args[0] +
                                  ") { mylib.hard_shrink(%x, " + example.attrs + ") }");
  Tensor x = driver_test::arguments(mod)[0];
  for (int64_t i = 0; i < x.num_elements(); ++i)
    x.set_from_double(i, example.inputs[0][static_cast<size_t>(i)]);
  std::vector<Tensor> out;
  runtime::flatten_tensors(Evaluator(mod).call("main", {runtime::Value(x)}), out);
  for (int64_t i = 0; i < x.num_elements(); ++i)
    EXPECT_EQ(out[0].get_as_double(i), example.results[0][static_cast<size_t>(i)]) << i;
}

TEST(OutsideOperator, a_program_outlives_its_registration) {
  Module mod;
  {
    Registered op;
    mod = driver_test::parse(kProgram);
  }
  std::vector<Tensor> args = driver_test::arguments(mod);
  expect_right(compile(mod, {}).load({}).run("main", args, {}).at(0), args[0]);
  EXPECT_THROW(driver_test::parse(kProgram), UserError);
}

TEST(OutsideOperator, its_relation_explains_what_it_refuses) {
  Registered op;
  try {
    driver_test::parse("def @main(%x: Tensor[(3,), int32]) { mylib.hard_shrink(%x) }");
    ADD_FAILURE() << "accepted";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("mylib.hard_shrink: needs a floating dtype"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace mylib
