#include "passes/placement/choose_devices.h"

#include <gtest/gtest.h>

#include "ir/devices.h"
#include "node/walk.h"
#include "ops/test/parse.h"
#include "passes/fusion/fuse_ops.h"
#include "passes/pipelines.h"

namespace relay {
namespace {

// The program behind FuseOps, and the pass, for a device that supports what `supports` says.
std::string chosen(const std::string& text, bool supports = true) {
  PassContext ctx;
  ctx.verify = true;
  ctx.device_choice = DeviceChoice{{kDLOpenCL, 0}, [=](const FunctionNode&) { return supports; }};
  const Module fused = run_pass(test::parse(text), kFuseOps, ctx);
  return print_module(run_pass(fused, kChooseDevices, ctx));
}

size_t kernels_there(const std::string& text) {
  const std::string what = " device=\"opencl:0\"";
  size_t n = 0;
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++n;
  return n;
}

TEST(ChooseDevices, large_kernels_go_to_the_device) {
  const std::string text =
      "def @main(%x: Tensor[(100, 100), float32]) { nn.softmax(nn.dense(%x, %x)) }";
  EXPECT_EQ(kernels_there(chosen(text)), 2u) << chosen(text);
  EXPECT_EQ(kernels_there(chosen(text, /*supports=*/false)), 0u);
}

TEST(ChooseDevices, symbolic_sizes_are_large) {
  EXPECT_EQ(kernels_there(chosen("def @main[n: Dim](%x: Tensor[(n,), float32]) { exp(%x) }")), 1u);
}

TEST(ChooseDevices, small_kernels_follow_their_operands) {
  EXPECT_EQ(kernels_there(chosen("def @main(%x: Tensor[(16,), float32]) { nn.softmax(%x) }")), 0u);
  // The mean of a large tensor, and what is computed of the mean.
  const std::string there = chosen(
      "def @main(%x: Tensor[(100, 100), float32]) {\n"
      "  nn.softmax(sum(%x, axis=[0])) }");
  EXPECT_EQ(kernels_there(there), 2u) << there;
}

TEST(ChooseDevices, scalars_and_strings_stay_on_the_host) {
  EXPECT_EQ(kernels_there(chosen("def @main(%x: Tensor[(100, 100), float32]) { sum(%x) }")), 0u);
  EXPECT_EQ(kernels_there(chosen("def @main(%x: Tensor[(100, 100), float32]) { argwhere(%x) }")),
            0u);
}

// The devices of the kernels that call the operators, behind all passes, for a device that supports all but nn.nll_loss.
std::string device_of_kernel(const std::string& text, const std::string& op) {
  PassContext ctx;
  ctx.verify = true;
  ctx.device_choice = DeviceChoice{{kDLOpenCL, 0}, [](const FunctionNode& primitive) {
                                     auto* c = as<CallNode>(primitive.body);
                                     return as<OpNode>(c->op)->name != "nn.nll_loss";
                                   }};
  const Module placed = run_passes(test::parse(text), optimize_pipeline(), ctx);
  std::string out = "none";
  post_order(placed, [&](const Node& n) {
    auto* f = as<FunctionNode>(&n);
    auto* c = f == nullptr || !f->is_primitive() ? nullptr : as<CallNode>(f->body);
    auto* called = c == nullptr ? nullptr : as<OpNode>(c->op);
    if (called != nullptr && called->name == op) out = kernel_device(*f).to_string();
  });
  return out;
}

TEST(ChooseDevices, kernels_without_a_device_follow_their_operands_where_it_supports_them) {
  const std::string loss =
      "def @main(%x: Tensor[(200, 100), float32], %t: Tensor[(200,), int32],\n"
      "          %w: Tensor[(100,), float32]";
  const std::string after =
      ") {\n"
      "  let %a = exp(%x);\n"
      "  (tanh(%a), sum(%a), nn.nll_loss(%a, %t, %w)) }";
  EXPECT_EQ(device_of_kernel(loss + after, "tanh"), "opencl:0");
  EXPECT_EQ(device_of_kernel(loss + after, "sum"), "opencl:0");
  EXPECT_EQ(device_of_kernel(loss + after, "nn.nll_loss"), "cpu");
  // One whose operand and whose result are on the device.
  const std::string only = loss +
                           ", param_devices=[[\"x\", \"opencl:0\"]], "
                           "result_devices=[[0, \"opencl:0\"]]) { nn.nll_loss(%x, %t, %w) }";
  EXPECT_EQ(device_of_kernel(only, "nn.nll_loss"), "cpu");
}

TEST(ChooseDevices, a_missing_operator_is_a_reason_before_the_size) {
  PassContext ctx;
  const Module fused = run_pass(
      test::parse("def @main(%x: Tensor[(16,), float32]) { nn.softmax(%x) }"), kFuseOps, ctx);
  auto reason = [&](bool supports) {
    const DeviceChoice choice{{kDLOpenCL, 0}, [=](const FunctionNode&) { return supports; }};
    return stays_because(choice, *as<FunctionNode>(as<CallNode>(fused->functions[0]->body)->op));
  };
  EXPECT_EQ(reason(false), "the device has no code for one of its operators");
  EXPECT_EQ(reason(true), "copies of its 32 elements take longer than it does");
}

TEST(ChooseDevices, a_program_without_a_choice_stays_what_it_is) {
  PassContext ctx;
  const Module fused = run_pass(
      test::parse("def @main(%x: Tensor[(100, 100), float32]) { exp(%x) }"), kFuseOps, ctx);
  EXPECT_EQ(run_pass(fused, kChooseDevices, ctx).get(), fused.get());
}

TEST(ChooseDevices, a_program_that_was_placed_stays_what_it_is) {
  PassContext ctx;
  ctx.device_choice = DeviceChoice{{kDLOpenCL, 0}, [](const FunctionNode&) { return true; }};
  const Module placed =
      run_passes(test::parse("def @main(%x: Tensor[(100, 100), float32]) {\n"
                             "  exp(on_device(nn.softmax(%x), virtual_device=\"opencl\")) }"),
                 optimize_pipeline(), ctx);
  EXPECT_EQ(kernels_there(print_module(placed)), 1u) << print_module(placed);
}

}  // namespace
}  // namespace relay
