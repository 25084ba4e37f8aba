#include "passes/placement/plan_devices.h"

#include <gtest/gtest.h>

#include "ops/test/parse.h"
#include "passes/pipelines.h"

namespace relay {
namespace {

std::string planned(const std::string& text) {
  PassContext ctx;
  ctx.verify = true;
  return print_module(run_pass(test::parse(text), kPlanDevices, ctx));
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

const std::string kTo = "src_virtual_device=\"cpu\", dst_virtual_device=\"cuda:0\"";
const std::string kBack = "src_virtual_device=\"cuda:0\", dst_virtual_device=\"cpu\"";

TEST(PlanDevices, a_program_of_the_host_stays_what_it_is) {
  PassContext ctx;
  const Module mod = test::parse("def @main(%x: Tensor[(4,), float32]) { exp(%x) }");
  EXPECT_EQ(run_pass(mod, kPlanDevices, ctx).get(), mod.get());
}

TEST(PlanDevices, what_is_annotated_is_there_and_all_else_on_the_host) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  let %a = on_device(exp(negative(%x)), virtual_device=\"cuda\");\n"
      "  add(%a, %a) }");
  EXPECT_EQ(count(out, "on_device"), 0u) << out;
  EXPECT_EQ(count(out, kTo), 1u) << out;    // negative is computed for exp
  EXPECT_EQ(count(out, kBack), 1u) << out;  // one copy for both operands of add
}

TEST(PlanDevices, values_stay_between_operators_of_one_device) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  let %a = on_device(exp(%x), virtual_device=\"cuda\");\n"
      "  on_device(add(%a, %a), virtual_device=\"cuda\") }");
  EXPECT_EQ(count(out, "device_copy"), 2u) << out;
}

TEST(PlanDevices, constrain_result_keeps_what_follows_there) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  let %a = on_device(exp(%x), virtual_device=\"cuda\", constrain_result=True);\n"
      "  add(%a, %a) }");
  EXPECT_EQ(count(out, kTo), 1u) << out;
  // The sum is there, too, and comes back as the result.
  EXPECT_LT(out.find("add"), out.find(kBack)) << out;
}

TEST(PlanDevices, tuples_and_constants) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32]) {\n"
      "  let %a = on_device(concatenate((%x, %y, %x), axis=0), virtual_device=\"cuda\");\n"
      "  on_device(multiply(%a, 2f), virtual_device=\"cuda\") }");
  EXPECT_EQ(count(out, kTo), 2u) << out;  // %x once, 2f not at all
  EXPECT_EQ(count(out, kBack), 1u) << out;
}

TEST(PlanDevices, data_is_on_one_device_with_its_tensors) {
  const std::string out = planned(R"(
type List[A] { Cons(A, List[A]), Nil, }
def @last(%l: List[Tensor[(4,), float32]], %d: Tensor[(4,), float32]) -> Tensor[(4,), float32] {
  match (%l) { Cons(%h, %t) => @last(%t, %h), Nil => %d, }
}
def @main(%x: Tensor[(4,), float32]) {
  @last(Cons(on_device(exp(%x), virtual_device="cuda"), Cons(%x, Nil)), %x)
})");
  // Nothing says that the list is on the device: its element is copied back.
  EXPECT_EQ(count(out, kTo), 1u) << out;
  EXPECT_EQ(count(out, kBack), 1u) << out;
}

TEST(PlanDevices, must_fail_a_copy_from_where_the_value_is_not) {
  try {
    planned(
        "def @main(%x: Tensor[(4,), float32]) {\n"
        "  device_copy(%x, src_virtual_device=\"cuda\", dst_virtual_device=\"cpu\") }");
    FAIL() << "it is planned";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0409"), std::string::npos) << e.what();
  }
}

TEST(PlaceKernels, kernels_say_their_device) {
  PassContext ctx;
  ctx.verify = true;
  ctx.disabled_pass.insert("FoldConstant");
  const std::string out = print_module(run_passes(
      test::parse(
          "def @main(%x: Tensor[(4,), float32]) {\n"
          "  let %a = on_device(exp(%x), virtual_device=\"cuda\");\n"
          "  let %b = on_device(ones(shape=[4], dtype=\"float32\"), virtual_device=\"cuda\");\n"
          "  exp(on_device(add(%a, %b), virtual_device=\"cuda\")) }"),
      optimize_pipeline(), ctx));
  EXPECT_EQ(count(out, "on_device("), 0u) << out;
  EXPECT_EQ(count(out, "device_copy("), 2u) << out;
  EXPECT_GE(count(out, "device=\"cuda:0\""), 1u) << out;
}

TEST(PlanDevices, a_result_that_is_constrained_stays_there) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  let %a = on_device(exp(%x), virtual_device=\"cuda\", constrain_result=True);\n"
      "  (%a, on_device(negative(%a), virtual_device=\"cuda\"), %x) }");
  EXPECT_EQ(count(out, kTo), 1u) << out;
  EXPECT_EQ(count(out, kBack), 1u) << out;  // of negative, which says nothing of its result
  EXPECT_NE(out.find("result_devices=[[0, \"cuda:0\"]]"), std::string::npos) << out;
}

TEST(PlanDevices, attributes_place_inputs_and_results) {
  const std::string out = planned(
      "def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32],\n"
      "          param_devices=[[\"x\", \"cuda\"]], result_devices=[[1, \"cuda\"]]) {\n"
      "  let %a = on_device(add(%x, %y), virtual_device=\"cuda\");\n"
      "  (%a, %a, %x) }");
  EXPECT_EQ(count(out, kTo), 1u) << out;    // %y
  EXPECT_EQ(count(out, kBack), 2u) << out;  // the first result, and %x as the third
}

std::string optimized(const std::string& text) {
  PassContext ctx;
  ctx.verify = true;
  return print_module(run_passes(test::parse(text), optimize_pipeline(), ctx));
}

// Results of one kernel are on one device, and count as one each.
TEST(PlaceKernels, results_of_a_kernel_of_several_are_numbered_one_by_one) {
  const std::string out = optimized(
      "def @main(%x: Tensor[(4, 4), float32], param_devices=[[\"x\", \"cuda\"]],\n"
      "          result_devices=[[0, \"cuda\"], [1, \"cuda\"]]) {\n"
      "  (topk(%x, k=2), tanh(%x), exp(%x)) }");
  EXPECT_EQ(count(out, kTo), 0u) << out;
  EXPECT_EQ(count(out, kBack), 2u) << out;  // of tanh and exp
}

TEST(PlaceKernels, attributes_alone_make_copies) {
  const std::string out = optimized(
      "def @main(%x: Tensor[(4,), float32], %y: Tensor[(4,), float32],\n"
      "          param_devices=[[\"x\", \"cuda\"]], result_devices=[[1, \"cuda\"]]) {\n"
      "  (%x, %y) }");
  EXPECT_EQ(count(out, kTo), 1u) << out;
  EXPECT_EQ(count(out, kBack), 1u) << out;
}

}  // namespace
}  // namespace relay
