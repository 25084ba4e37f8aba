// What a provider tells of kernels, and which variants it gives.
#include "lower/kernel_provider.h"

#include <gtest/gtest.h>

#include "analysis/primitives.h"
#include "lower/kernel_body.h"
#include "ops/test/parse.h"

namespace relay {
namespace {

// The primitive functions that @main calls, in the order of the text.
std::vector<Function> primitives(const std::string& text) {
  Module mod = test::parse(text);
  std::vector<Function> out;
  post_order_outside_primitives(mod->find("main")->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    if (auto* f = c == nullptr ? nullptr : primitive_of(*c)) out.push_back(ref(*f));
  });
  return out;
}

Function primitive(const std::string& params, const std::string& body) {
  std::string args;
  for (size_t at = params.find('%'); at != std::string::npos; at = params.find('%', at + 1)) {
    args += (args.empty() ? "" : ", ") + params.substr(at, params.find(':', at) - at);
  }
  return primitives("def @main(" + params + ") { (fn (" + params + ", Primitive=1) { " + body +
                    " })(" + args + ") }")
      .at(0);
}

const char* const kMatrices = "%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]";

std::string refusal(KernelProvider& provider, int32_t kernel, const VariantRequest& request) {
  try {
    provider.variant(kernel, request);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}

TEST(KernelProvider, a_signature_says_what_a_kernel_takes_and_gives) {
  KernelProvider provider;
  const KernelSignature& s =
      provider.signature(provider.add(primitive(kMatrices, "nn.relu(nn.dense(%x, %w))")));
  ASSERT_EQ(s.inputs.size(), 2u);
  ASSERT_EQ(s.results.size(), 1u);
  EXPECT_EQ(s.inputs[1].shape, (std::vector<int64_t>{16, 16}));
  EXPECT_EQ(s.results[0].bytes, 4 * 16 * 4);
  EXPECT_TRUE(s.results[0].takes_strides);
  EXPECT_TRUE(s.in_place.empty());
  EXPECT_TRUE(s.workspace.empty());
  EXPECT_EQ(s.launches.size(), 1u);
  EXPECT_FALSE(s.scalar.has_value());
  EXPECT_GT(s.flops, 2 * 4 * 16 * 16 - 1);
}

TEST(KernelProvider, scalar_kernels_have_a_form_for_registers) {
  KernelProvider provider;
  const KernelSignature& s = provider.signature(
      provider.add(primitive("%a: int64, %b: int64", "add(multiply(%a, %b), %a)")));
  ASSERT_TRUE(s.scalar.has_value());
  EXPECT_EQ(s.scalar->instructions.size(), 2u);
}

TEST(KernelProvider, equal_requests_are_one_variant_and_only_they_are_scheduled) {
  ProviderOptions options;
  int scheduled = 0;
  options.observer = [&](std::string_view stage, tir::PrimFunc f) {
    scheduled += stage == "schedule" ? 1 : 0;
    return f;
  };
  KernelProvider provider(std::move(options));
  const int32_t relu = provider.add(primitive("%x: Tensor[(4,), float32]", "nn.relu(%x)"));
  provider.add(primitive("%x: Tensor[(4,), float32]", "exp(%x)"));
  const int32_t dense = provider.variant(relu),
                part = provider.variant(relu, {.within = {{}, {9}}});
  EXPECT_NE(dense, part);
  EXPECT_EQ(provider.variant(relu), dense);
  EXPECT_EQ(provider.variant(relu, {.within = {{}, {9}}}), part);
  EXPECT_NE(provider.variant_signature(dense).name, provider.variant_signature(part).name);
  provider.schedule();
  EXPECT_EQ(scheduled, 2);
  provider.lower(part);
  EXPECT_EQ(scheduled, 2);
  EXPECT_TRUE(std::get<TirKernel>(provider.body(part)).launches[0].lowered);
  EXPECT_FALSE(std::get<TirKernel>(provider.body(dense)).launches[0].lowered);
}

TEST(KernelProvider, results_may_take_the_memory_of_some_inputs) {
  KernelProvider provider;
  const int32_t add = provider.add(
      primitive("%a: Tensor[(4,), float32], %b: Tensor[(1,), float32]", "add(%a, %b)"));
  EXPECT_EQ(provider.aliasing(add, 0), Aliasing::same_index);
  EXPECT_EQ(provider.aliasing(add, 1), Aliasing::none);
  const int32_t scatter = provider.add(primitive(
      "%d: Tensor[(4, 3), float32], %i: Tensor[(1, 3), int64], %u: Tensor[(1, 3), float32]",
      "scatter_elements(%d, %i, %u, axis=0)"));
  EXPECT_EQ(provider.aliasing(scatter, 0), Aliasing::written_over);
  EXPECT_EQ(refusal(provider, scatter, {.in_place = 0}), "");
}

TEST(KernelProvider, must_fail_E0405_variants_that_a_kernel_cannot_give) {
  KernelProvider provider;
  const int32_t product = provider.add(primitive(kMatrices, "nn.dense(%x, %w)"));
  const std::string in_place = refusal(provider, product, {.in_place = 0});
  EXPECT_NE(in_place.find("E0405"), std::string::npos) << in_place;
  EXPECT_NE(in_place.find("fused_nn_dense has no variant whose result takes"), std::string::npos);
  const std::string elsewhere = refusal(provider, product, {.device = {2, 0}});
  EXPECT_NE(elsewhere.find("E0405"), std::string::npos) << elsewhere;
  EXPECT_NE(elsewhere.find("for cuda"), std::string::npos) << elsewhere;

  // Of a source: dense buffers only.
  struct Everything : KernelSource {
    std::string_view name() const override { return "a library"; }
    std::optional<OfferedKernel> offer(const FunctionNode&, const Target&) const override {
      return OfferedKernel{ExternalCall{"liba.so", "f"}};
    }
  };
  ProviderOptions options;
  options.sources = {std::make_shared<Everything>()};
  KernelProvider outside(std::move(options));
  const int32_t kernel = outside.add(primitive("%x: Tensor[(4,), float32]", "nn.relu(%x)"));
  EXPECT_FALSE(outside.signature(kernel).results[0].takes_strides);
  EXPECT_EQ(outside.signature(kernel).entry.symbol, "f");
  EXPECT_EQ(refusal(outside, kernel, {}), "");
  const std::string strides = refusal(outside, kernel, {.within = {{}, {9}}});
  EXPECT_NE(strides.find("E0405"), std::string::npos) << strides;
  EXPECT_NE(strides.find("a library"), std::string::npos) << strides;
}

}  // namespace
}  // namespace relay
