// An operator that is registered from outside, in text, evaluator and compiler.
#include <gtest/gtest.h>

#include "driver/evaluate.h"
#include "driver/test/hard_shrink.h"
#include "node/structural.h"

namespace mylib {
namespace {

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

TEST(OutsideOperator, what_no_pass_has_replaced_is_named) {
  Registered op;
  OpInfo row = hard_shrink_row();
  row.name = "mylib.replaced";
  row.compute = Absent::Replaced;
  OpRegistry::global().add(std::move(row));
  Module mod = driver_test::parse("def @main(%x: Tensor[(3,), float32]) { mylib.replaced(%x) }");
  OpRegistry::global().remove("mylib.replaced");
  try {
    compile(mod, {});
    ADD_FAILURE() << "compiled";
  } catch (const UserError& e) {
    std::string what = e.what();
    EXPECT_NE(what.find("E0401"), std::string::npos) << what;
    EXPECT_NE(what.find("a pass replaces the operator"), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace mylib
