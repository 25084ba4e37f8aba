// What a provider tells of kernels, and which variants it gives.
#include "lower/kernel_provider.h"

#include <gtest/gtest.h>

#include "analysis/primitives.h"
#include "lower/kernel_body.h"
#include "ops/test/parse.h"
#include "target/target_kind.h"
#include "tir/compute.h"
#include "tir/lower_loops.h"

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
  EXPECT_EQ(provider.aliasing(add, {.input = 0}), Aliasing::same_index);
  EXPECT_EQ(provider.aliasing(add, {.input = 1}), Aliasing::none);
  const int32_t scatter = provider.add(primitive(
      "%d: Tensor[(4, 3), float32], %i: Tensor[(1, 3), int64], %u: Tensor[(1, 3), float32]",
      "scatter_elements(%d, %i, %u, axis=0)"));
  EXPECT_EQ(provider.aliasing(scatter, {.input = 0}), Aliasing::written_over);
  EXPECT_EQ(refusal(provider, scatter, {.in_place = {{.input = 0}}}), "");
}

TEST(KernelProvider, each_result_may_take_the_memory_of_one_input) {
  KernelProvider provider;
  const int32_t both = provider.add(primitive(
      "%d: Tensor[(4, 3), float32], %e: Tensor[(4, 3), float32], %i: Tensor[(1, 3), int64], "
      "%u: Tensor[(1, 3), float32]",
      "(scatter_elements(%e, %i, %u, axis=0), scatter_elements(%d, %i, %u, axis=0))"));
  const InPlace first{.input = 1, .result = 0}, second{.input = 0, .result = 1};
  EXPECT_EQ(provider.aliasing(both, first), Aliasing::written_over);
  EXPECT_EQ(provider.aliasing(both, second), Aliasing::written_over);
  EXPECT_EQ(provider.aliasing(both, {0, 0}), Aliasing::none);
  EXPECT_EQ(provider.aliasing(both, {2, 0}), Aliasing::none);
  const int32_t over = provider.variant(both, {.in_place = {first, second}});
  EXPECT_EQ(provider.variant_signature(over).in_place, (std::vector<InPlace>{first, second}));
  EXPECT_EQ(refusal(provider, both, {.in_place = {first}}), "");
  // Not two results of one input, and not one result of two inputs.
  EXPECT_NE(refusal(provider, both, {.in_place = {first, {.input = 1, .result = 1}}}), "");
  EXPECT_NE(refusal(provider, both, {.in_place = {first, {.input = 0, .result = 0}}}), "");
}

TEST(KernelProvider, compiles_a_kernel_for_the_target_of_its_device) {
  ProviderOptions options;
  Target other;
  other.name = "other";
  options.devices.emplace_back(runtime::Device{kDLExtDev, 1}, other);
  KernelProvider provider(std::move(options));
  const Function host = primitive(kMatrices, "nn.dense(%x, %w)");
  const Function there = with_attr(host, attr::kDevice, AttrValue(std::string("ext_dev:1")));
  const int32_t a = provider.add(host), b = provider.add(there);
  EXPECT_NE(a, b);
  EXPECT_EQ(provider.variant_target(provider.variant(a)).name, "");
  EXPECT_EQ(provider.variant_target(provider.variant(b)).name, "other");
  EXPECT_EQ(provider.signature(b).device, (runtime::Device{kDLExtDev, 1}));
  try {
    provider.add(with_attr(host, attr::kDevice, AttrValue(std::string("cuda:0"))));
    ADD_FAILURE() << "it has a target";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("no target for cuda:0"), std::string::npos) << e.what();
  }
}

TEST(KernelProvider, must_fail_E0405_variants_that_a_kernel_cannot_give) {
  KernelProvider provider;
  const int32_t product = provider.add(primitive(kMatrices, "nn.dense(%x, %w)"));
  const std::string in_place = refusal(provider, product, {.in_place = {{.input = 0}}});
  EXPECT_NE(in_place.find("E0405"), std::string::npos) << in_place;
  EXPECT_NE(in_place.find("fused_nn_dense has no variant whose result takes"), std::string::npos);

  // Only the kernel of a result is specialised, and only where it is known which of its sizes are equal.
  Module open = test::parse(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32]) {\n"
      "  (fn (%p: Tensor[(n,), float32], %q: Tensor[(m,), float32], Primitive=1) "
      "{ add(%p, %q) })(%x, %y) }");
  const Function main = open->find("main");
  const Function sum = cast<FunctionNode>(as<CallNode>(main->body)->op);
  const VariantSizes both{{{main->type_params[0], 3}, {main->type_params[1], 3}}, {}};
  const int32_t equal = provider.add(sum, KernelOf::equal_sizes), any = provider.add(sum);
  const std::string of_equal = refusal(provider, equal, {.sizes = both});
  EXPECT_NE(of_equal.find("E0405"), std::string::npos) << of_equal;
  EXPECT_NE(of_equal.find("for n = 3, m = 3"), std::string::npos) << of_equal;
  const std::string of_one = refusal(provider, any, {.sizes = {{both.known[0]}, {}}});
  EXPECT_NE(of_one.find("E0405"), std::string::npos) << of_one;
  EXPECT_EQ(refusal(provider, any, {.sizes = both}), "");

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

// Offers the same kernel for every function.
class Fixed : public KernelSource {
 public:
  explicit Fixed(OfferedKernel kernel) : kernel_(std::move(kernel)) {}
  std::string_view name() const override { return "test source"; }
  std::optional<OfferedKernel> offer(const FunctionNode&, const Target&) const override {
    return kernel_;
  }

 private:
  OfferedKernel kernel_;
};

// A provider that gives the offered kernel for a function of one vector of 4 numbers.
std::unique_ptr<KernelProvider> provider_of(OfferedKernel kernel) {
  ProviderOptions options;
  options.verify = true;
  options.sources = {std::make_shared<Fixed>(std::move(kernel))};
  auto out = std::make_unique<KernelProvider>(std::move(options));
  out->add(primitive("%x: Tensor[(4,), float32]", "nn.relu(%x)"));
  return out;
}

std::string defect(OfferedKernel kernel) {
  try {
    provider_of(std::move(kernel));
  } catch (const InternalError& e) {
    return e.what();
  }
  return "none";
}

// Writes the sums of two vectors of 4 numbers, or of one and itself.
tir::PrimFunc sums(size_t inputs) {
  std::vector<tir::PrimExpr> shape{tir::index(4)};
  std::vector<tir::Tensor> in;
  for (size_t i = 0; i < inputs; ++i) {
    in.push_back(tir::placeholder("x" + std::to_string(i), runtime::DType::Float(32), shape));
  }
  tir::Tensor y =
      tir::compute("y", shape, [&](const tir::Indices& i) { return in.front()(i) + in.back()(i); });
  return tir::create_prim_func("sums", in, {y}, {});
}

TEST(KernelProvider, an_offered_function_promises_what_the_plan_keeps) {
  OfferedKernel kernel{TirKernel{{{.composed = sums(1)}}}};
  auto in_place = [](OfferedKernel k) {
    auto provider = provider_of(std::move(k));
    const int32_t variant = provider->variant(0);
    return std::get<TirKernel>(provider->lower(variant)).launches.at(0).lowered->in_place;
  };
  EXPECT_EQ(in_place(kernel), std::vector<int64_t>{});
  kernel.in_place = {0};
  EXPECT_EQ(in_place(kernel), std::vector<int64_t>{0});
  // By the place in what the launch reads.
  OfferedKernel twice{TirKernel{{{.composed = sums(2)}}}};
  twice.in_place = {0};
  twice.launches = {{"", {0, 0}, {1}}};
  EXPECT_EQ(in_place(twice), (std::vector<int64_t>{0, 1}));
}

TEST(KernelProvider, must_fail_offered_kernels_that_write_more_than_the_result_in_place) {
  const std::string expected = "several launches or buffers are written in place of an input";
  OfferedKernel two{TirKernel{{{.composed = sums(1)}, {.composed = sums(2)}}}};
  two.launches = {{"", {0}, {1}}, {"", {0, 1}, {1}}};
  EXPECT_EQ(defect(two), "none");
  two.in_place = {0};
  EXPECT_NE(defect(two).find(expected), std::string::npos) << defect(two);
}

TEST(KernelProvider, must_fail_offered_functions_without_a_name_or_a_library) {
  EXPECT_EQ(defect({ExternalCall{"liba.so", "f"}}), "none");
  for (const char* library : {"", "a.so", "../liba.so", "lib/a.so", "/liba.so"}) {
    const std::string found = defect({ExternalCall{library, "f"}});
    EXPECT_NE(found.find("no file name of a library"), std::string::npos) << library << found;
  }
  for (const KernelBody& body :
       {KernelBody(ExternalCall{"liba.so", ""}), KernelBody(HostFunction{})}) {
    EXPECT_NE(defect({body}).find("a function without a name"), std::string::npos);
  }
}

TEST(KernelProvider, observers_get_the_stages_of_the_target) {
  for (int bits : {64, 32}) {
    ProviderOptions options;
    options.target.index_bits = bits;
    std::vector<std::string> seen, expected{"compose", "schedule"};
    for (const auto& pass : kind_of(options.target).lowering()) expected.emplace_back(pass.name);
    if (bits == 32) expected.emplace_back("index_width");
    options.observer = [&](std::string_view stage, tir::PrimFunc f) {
      seen.emplace_back(stage);
      return f;
    };
    KernelProvider provider(std::move(options));
    const int32_t relu = provider.add(primitive("%x: Tensor[(4,), float32]", "nn.relu(%x)"));
    provider.lower(provider.variant(relu));
    EXPECT_EQ(seen, expected) << bits;
  }
}

}  // namespace
}  // namespace relay
