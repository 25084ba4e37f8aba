// Which kernels a program has, before it has a plan.
#include "lower/lower_program.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "analysis/primitives.h"
#include "lower/kernel_body.h"
#include "ops/test/parse.h"
#include "tir/schedule_report.h"

namespace relay {
namespace {

// The calls of primitive functions in the order of the text, and the kernels behind them.
struct Lowered {
  explicit Lowered(const std::string& text,
                   int64_t large_weights = std::numeric_limits<int64_t>::max())
      : mod(test::parse(text)),
        provider(std::make_shared<KernelProvider>()),
        program(mod, provider, large_weights) {
    for (const Function& f : mod->functions) {
      post_order_outside_primitives(f->body, [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        auto* primitive = c == nullptr ? nullptr : primitive_of(*c);
        if (primitive != nullptr) calls.push_back(program.call(*primitive));
      });
    }
  }
  const KernelSignature& kernel(int32_t index) const { return provider->signature(index); }
  tir::PrimFunc func(int32_t index) const {
    return std::get<TirKernel>(provider->body(provider->variant(index))).launches[0].composed;
  }

  Module mod;
  std::shared_ptr<KernelProvider> provider;
  LoweredProgram program;
  std::vector<LoweredCall> calls;
};

constexpr const char* kRelu = "(fn (%p: Tensor[(4,), float32], Primitive=1) { nn.relu(%p) })";

TEST(LowerProgram, functions_that_compute_the_same_are_one_kernel) {
  std::string relu = kRelu;
  Lowered p("def @main(%x: Tensor[(4,), float32]) {\n  let %a = " + relu + "(%x);\n  let %b = " +
            relu + "(%a);\n  (fn (%q: Tensor[(4,), float32], Primitive=1, fusion_reason=\"why\") " +
            "{ nn.relu(%q) })(%b) }");
  ASSERT_EQ(p.calls.size(), 3u);
  EXPECT_EQ(p.calls[0].kernel, p.calls[1].kernel);
  EXPECT_EQ(p.calls[0].kernel, p.calls[2].kernel);
  EXPECT_EQ(p.calls[2].site.ends, "why");
  EXPECT_NE(p.calls[0].site.origin, p.calls[1].site.origin);
  EXPECT_EQ(p.kernel(p.calls[0].kernel).name, "fused_nn_relu");
}

TEST(LowerProgram, a_call_that_assumes_sizes_has_the_place_of_its_own_operators) {
  const std::string add =
      "(fn (%p: Tensor[(n,), float32], %q: Tensor[(m,), float32], Primitive=1) { add(%p, %q) })";
  Lowered p(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32]) {\n  (" +
      add + "(%x, %y),\n   " + add + "(%x, %y)) }");
  ASSERT_EQ(p.calls.size(), 2u);
  EXPECT_EQ(p.calls[0].kernel, p.calls[1].kernel);
  for (const LoweredCall& c : p.calls) EXPECT_TRUE(c.assumes_sizes);
  EXPECT_NE(p.calls[0].primitive->body->span.describe(),
            p.calls[1].primitive->body->span.describe());
}

TEST(LowerProgram, kernels_in_branches_and_local_functions_are_found) {
  std::string relu = kRelu;
  Lowered p(
      "def @main(%c: bool, %x: Tensor[(4,), float32]) {\n"
      "  let %f = fn (%y: Tensor[(4,), float32]) -> Tensor[(4,), float32] { " +
      relu + "(%y) };\n  if (%c) { " + relu + "(%x) } else { %f(%x) } }");
  ASSERT_EQ(p.calls.size(), 2u);
  EXPECT_EQ(p.calls[0].kernel, p.calls[1].kernel);
}

TEST(LowerProgram, a_view_needs_no_kernel) {
  Lowered p(
      "def @main(%x: Tensor[(4, 2), float32]) {\n"
      "  (fn (%p: Tensor[(4, 2), float32], Primitive=1) { reshape(%p, newshape=[8]) })(%x) }");
  ASSERT_EQ(p.calls.size(), 1u);
  EXPECT_LT(p.calls[0].kernel, 0);
}

TEST(LowerProgram, sizes_that_may_be_broadcast_have_a_kernel_for_equal_ones) {
  Lowered p(
      "def @main[n: Dim, m: Dim](%x: Tensor[(n,), float32], %y: Tensor[(m,), float32]) {\n"
      "  (fn (%p: Tensor[(n,), float32], %q: Tensor[(m,), float32], Primitive=1) "
      "{ add(%p, %q) })(%x, %y) }");
  ASSERT_EQ(p.calls.size(), 1u);
  ASSERT_GE(p.calls[0].equal_sizes, 0);
  EXPECT_NE(p.calls[0].equal_sizes, p.calls[0].kernel);
  EXPECT_NE(tir::to_string(p.func(p.calls[0].equal_sizes)),
            tir::to_string(p.func(p.calls[0].kernel)));
}

// Programs whose @main has these hints and calls one product and one relu of open rows.
std::string hinted(const std::string& hints) {
  return "def @main[n: Dim](%x: Tensor[(n, 4), float32], %w: Tensor[(8, 4), float32], size_hints=" +
         hints + R"() {
  let %y = (fn (%p: Tensor[(n, 4), float32], %q: Tensor[(8, 4), float32], Primitive=1) { nn.dense(%p, %q) })(%x, %w);
  (fn (%r: Tensor[(n, 8), float32], Primitive=1) { nn.relu(%r) })(%y) })";
}

TEST(LowerProgram, kernels_that_reduce_have_versions_for_likely_sizes) {
  Lowered p(hinted(R"([["n", 0, 512, [1, 128]]])"));
  ASSERT_EQ(p.calls.size(), 2u);
  ASSERT_EQ(p.calls[0].versions.size(), 2u);
  EXPECT_TRUE(p.calls[1].versions.empty());
  EXPECT_EQ(to_string(p.calls[0].versions[1].known), "n = 128");
  EXPECT_EQ(p.kernel(p.calls[0].kernel).sizes.size(), 1u);
  // Nothing is made of a version that no call asks for.
  EXPECT_EQ(p.provider->num_variants(), 0u);
  const VariantRequest request{.sizes = p.calls[0].versions[1]};
  const int32_t version = p.provider->variant(p.calls[0].kernel, request);
  const KernelSignature& of_128 = p.provider->variant_signature(version);
  EXPECT_EQ(of_128.name, "fused_nn_dense_128");
  EXPECT_EQ(p.provider->variant_version(version), "n = 128");
  EXPECT_EQ(to_string(p.provider->variant_primitive(version)->body->type),
            "Tensor[(128, 8), float32]");
  EXPECT_TRUE(of_128.sizes.empty());
  EXPECT_EQ(p.provider->variant(p.calls[0].kernel, request), version);
  EXPECT_EQ(p.provider->num_variants(), 1u);
}

TEST(LowerProgram, versions_know_what_compound_sizes_are) {
  Lowered p(
      R"(def @main[b: Dim, s: Dim](%x: Tensor[(b * s, 4), float32], %w: Tensor[(8, 4), float32],
      size_hints=[["b", 0, 512, [1]]]) {
  (fn (%p: Tensor[(b * s, 4), float32], %q: Tensor[(8, 4), float32], Primitive=1) { nn.dense(%p, %q) })(%x, %w) })");
  ASSERT_EQ(p.calls[0].named.size(), 1u);
  ASSERT_EQ(p.calls[0].versions.size(), 1u);
  const VariantSizes& sizes = p.calls[0].versions[0];
  ASSERT_EQ(sizes.named.size(), 1u);
  EXPECT_EQ(to_string(sizes.named[0].second), "s");
  const KernelSignature& one = p.provider->signature(p.calls[0].kernel, sizes);
  EXPECT_EQ(one.name, "fused_nn_dense_1");
  ASSERT_EQ(one.sizes.size(), 1u);
  EXPECT_EQ(to_string(one.sizes[0]), "s");
}

TEST(LowerProgram, no_versions_without_likely_sizes_or_for_hints_that_say_nothing) {
  for (const char* hints : {R"([["n", 1, 512, []]])", R"([["m", 0, 512, [1]]])", R"([["n", 1]])",
                            "3", R"([["n", 0, 99, [1, 2, 3, 4, 5, 6, 7, 8, 9]]])"}) {
    EXPECT_TRUE(Lowered(hinted(hints)).calls[0].versions.empty()) << hints;
  }
}

// A product of an operator and its arguments' types, `large` the bytes of large weights.
std::vector<VariantSizes> versions_of(const std::string& dims, const std::string& x,
                                      const std::string& w, const std::string& op, int64_t large) {
  Lowered p("def @main[" + dims + "](%x: " + x + ", %w: " + w + ") {\n  (fn (%p: " + x +
                ", %q: " + w + ", Primitive=1) { " + op + " })(%x, %w) }",
            large);
  return p.calls[0].versions;
}

TEST(LowerProgram, a_product_with_large_weights_has_a_version_for_one_row) {
  const std::string x = "Tensor[(n, m, 4), float32]", w = "Tensor[(8, 4), float32]",
                    dense = "nn.dense(%p, %q)", dims = "n: Dim, m: Dim, k: Dim";
  std::vector<VariantSizes> versions = versions_of(dims, x, w, dense, 128);
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(to_string(versions[0].known), "n = 1, m = 1");
  // A range says nothing else, unless it leaves one row out.
  const Lowered ranged(hinted(R"([["n", 1, 512, []]])"), 128);
  ASSERT_EQ(ranged.calls[0].versions.size(), 1u);
  EXPECT_EQ(to_string(ranged.calls[0].versions[0]), "n = 1");
  EXPECT_TRUE(Lowered(hinted(R"([["n", 2, 512, []]])"), 128).calls[0].versions.empty());
  // Weights are small; some rows are there always; the number of columns, or the depth, is open; windows; no weights.
  EXPECT_TRUE(versions_of(dims, x, w, dense, 129).empty());
  EXPECT_TRUE(versions_of(dims, "Tensor[(n, 2, 4), float32]", w, dense, 128).empty());
  EXPECT_TRUE(versions_of(dims, x, "Tensor[(k, 4), float32]", dense, 64).empty());
  EXPECT_TRUE(
      versions_of(dims, "Tensor[(n, m), float32]", "Tensor[(8, m), float32]", dense, 64).empty());
  EXPECT_TRUE(versions_of(dims, "Tensor[(n, 4, m, k), float32]", "Tensor[(8, 4, 3, 3), float32]",
                          "nn.conv2d(%p, %q, padding=[1, 1])", 128)
                  .empty());
  EXPECT_TRUE(versions_of(dims, "Tensor[(n, 2, 4), float32]", "Tensor[(2, 8, 4), float32]",
                          "nn.softmax(%p)", 128)
                  .empty());
}

TEST(LowerProgram, a_product_with_an_input_matrix_has_a_version_for_few_rows) {
  const std::string x = "Tensor[(n, 512), float32]", w = "Tensor[(96, 512), float32]",
                    dense = "nn.relu(nn.dense(%p, %q))", dims = "n: Dim, m: Dim";
  constexpr int64_t kNone = std::numeric_limits<int64_t>::max();
  std::vector<VariantSizes> versions = versions_of(dims, x, w, dense, kNone);
  ASSERT_EQ(versions.size(), 1u);
  EXPECT_EQ(to_string(versions[0]), "n <= 64");
  // With an epilogue of several operators, too.
  Lowered biased("def @main[n: Dim](%x: " + x + ", %w: " + w +
                 ", %b: Tensor[(96,), float32]) {\n  (fn (%p: " + x + ", %q: " + w +
                 ", %r: Tensor[(96,), float32], Primitive=1) { nn.relu(nn.bias_add(nn.dense(%p, "
                 "%q), %r)) })(%x, %w, %b) }");
  ASSERT_EQ(biased.calls[0].versions.size(), 1u);
  EXPECT_EQ(to_string(biased.calls[0].versions[0]), "n <= 64");
  // Rows that have no name in the program.
  Lowered unnamed("def @main(%x: Tensor[(?, 512), float32], %w: " + w +
                  ") {\n  (fn (%p: Tensor[(?, 512), float32], %q: " + w +
                  ", Primitive=1) { nn.dense(%p, %q) })(%x, %w) }");
  ASSERT_EQ(unnamed.calls[0].versions.size(), 1u);
  EXPECT_EQ(to_string(unnamed.calls[0].versions[0]), "d0 <= 64");
  // Behind that for one row.
  versions = versions_of(dims, x, w, dense, 1024);
  ASSERT_EQ(versions.size(), 2u);
  EXPECT_EQ(to_string(versions[0]), "n = 1");
  EXPECT_EQ(to_string(versions[1]), "n <= 64");
  // A short sum; rows that are more than one size; a matrix whose columns are neighbours; no product.
  EXPECT_TRUE(
      versions_of(dims, "Tensor[(n, 128), float32]", "Tensor[(96, 128), float32]", dense, kNone)
          .empty());
  EXPECT_TRUE(versions_of(dims, "Tensor[(n, 2, 512), float32]", w, dense, kNone).empty());
  EXPECT_TRUE(versions_of(dims, "Tensor[(n, m, 512), float32]", w, dense, kNone).empty());
  EXPECT_TRUE(
      versions_of(dims, x, "Tensor[(512, 96), float32]", "nn.matmul(%p, %q)", kNone).empty());
  EXPECT_TRUE(versions_of(dims, x, w, "nn.softmax(%p)", kNone).empty());
  EXPECT_TRUE(versions_of(dims, x, w,
                          "nn.dense(cast(%p, dtype=\"int32\"), cast(%q, dtype=\"int32\"))", kNone)
                  .empty());
}

TEST(LowerProgram, a_version_for_few_rows_knows_their_greatest_number) {
  const std::string types = "%p: Tensor[(n, 512), float32], %q: Tensor[(96, 512), float32]";
  Lowered p("def @main[n: Dim](" + types + ") {\n  (fn (" + types +
            ", Primitive=1) { nn.dense(%p, %q) })(%p, %q) }");
  ASSERT_EQ(p.calls[0].versions.size(), 1u);
  const int32_t few = p.provider->variant(p.calls[0].kernel, {.sizes = p.calls[0].versions[0]});
  const int32_t any = p.provider->variant(p.calls[0].kernel);
  EXPECT_NE(few, any);
  EXPECT_EQ(p.provider->variant_signature(few).name, "fused_nn_dense_most_64");
  EXPECT_EQ(p.provider->variant_version(few), "n <= 64");
  auto composed = [&](int32_t v) {
    return std::get<TirKernel>(p.provider->body(v)).launches[0].composed;
  };
  EXPECT_EQ(composed(few)->at_most, std::vector<int64_t>{64});
  EXPECT_TRUE(composed(any)->at_most.empty());
  // Hints of likely sizes have their versions, and no other.
  Lowered hinted("def @main[n: Dim](" + types + ", size_hints=[[\"n\", 0, 512, [8]]]) {\n  (fn (" +
                 types + ", Primitive=1) { nn.dense(%p, %q) })(%p, %q) }");
  ASSERT_EQ(hinted.calls[0].versions.size(), 1u);
  EXPECT_EQ(to_string(hinted.calls[0].versions[0]), "n = 8");
  // A range without likely sizes leaves the version, unless all of its sizes are greater.
  for (const int64_t least : {2, 64, 65}) {
    Lowered ranged("def @main[n: Dim](" + types + ", size_hints=[[\"n\", " + std::to_string(least) +
                   ", 512, []]]) {\n  (fn (" + types +
                   ", Primitive=1) { nn.dense(%p, %q) })(%p, %q) }");
    EXPECT_EQ(ranged.calls[0].versions.size(), least <= 64 ? 1u : 0u) << least;
  }
}

TEST(LowerProgram, sizes_that_data_decides_have_a_kernel_of_their_own) {
  Lowered p(
      "def @main(%x: Tensor[(4,), float32]) {\n"
      "  let %y = (fn (%p: Tensor[(4,), float32], Primitive=1) { argwhere(%p) })(%x);\n"
      "  (fn (%p: Tensor[(?, 1), int32], Primitive=1) { add(%p, %p) })(%y) }");
  ASSERT_EQ(p.calls.size(), 2u);
  ASSERT_GE(p.calls[0].sizes, 0);
  EXPECT_EQ(p.kernel(p.calls[0].sizes).name, "fused_argwhere_sizes");
  EXPECT_EQ(to_string(p.calls[0].sized->body->type), "Tensor[(d0, 1), int32]");
  // A size that is `?` has a name in the kernel that reads it.
  EXPECT_EQ(to_string(p.calls[1].primitive->params[0]->type), "Tensor[(d0, 1), int32]");
  EXPECT_EQ(p.kernel(p.calls[1].kernel).sizes.size(), 1u);
}

TEST(LowerProgram, must_fail_E0401_what_is_no_operator_call) {
  try {
    Lowered p(
        "def @main(%x: Tensor[(4,), float32]) {\n"
        "  (fn (%p: Tensor[(4,), float32], Primitive=1) "
        "{ if (less(sum(%p), 1f)) { %p } else { add(%p, %p) } })(%x) }");
    FAIL() << "is refused";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
  }
}

TEST(LowerProgram, kernels_may_be_told_that_buffers_lie_in_larger_ones) {
  Lowered p(std::string("def @main(%x: Tensor[(4,), float32]) { ") + kRelu + "(%x) }");
  const int32_t kernel = p.calls.at(0).kernel;
  const int32_t inside = p.provider->variant(kernel, {.within = {{}, {9}}});
  const tir::PrimFunc& func = std::get<TirKernel>(p.provider->body(inside)).launches[0].composed;
  EXPECT_TRUE(func->params[0]->within.empty());
  EXPECT_EQ(func->params[1]->within.size(), 1u);
  const KernelSignature& signature = p.provider->variant_signature(inside);
  EXPECT_EQ(signature.results[0].within, (std::vector<int64_t>{9}));
  EXPECT_EQ(signature.in_place, p.kernel(kernel).in_place);
  EXPECT_EQ(p.provider->variant(kernel, {.within = {{}, {9}}}), inside);
}

// One call of a primitive function over open sizes: its parameters and body.
Lowered open_call(const std::string& dims, const std::string& params, const std::string& body) {
  std::string args;
  for (size_t at = params.find('%'); at != std::string::npos; at = params.find('%', at + 1)) {
    args += (args.empty() ? "" : ", ") + params.substr(at, params.find(':', at) - at);
  }
  return Lowered("def @main[" + dims + "](" + params + ") {\n  (fn (" + params +
                 ", Primitive=1) { " + body + " })(" + args + ") }");
}

std::string text_of(const Lowered& p) { return tir::to_string(p.func(p.calls.at(0).kernel)); }

TEST(LowerProgram, a_view_whose_sizes_data_decides_computes_its_sizes_only) {
  Lowered p = open_call("n: Dim", "%x: Tensor[(n, 4), float32], %s: Tensor[(2,), int64]",
                        "dyn.reshape(%x, %s)");
  ASSERT_EQ(p.calls.size(), 1u);
  EXPECT_LT(p.calls[0].kernel, 0);
  EXPECT_GE(p.calls[0].sizes, 0);
}

// A buffer at the edge of a kernel has the shape that the kernel works in: no index is divided by
// what only a run tells.
TEST(LowerProgram, other_shapes_of_parameters_and_results_divide_by_no_open_size) {
  Lowered before = open_call("b: Dim, s: Dim", "%x: Tensor[(b, s, 64), float32]",
                             "transpose(reshape(%x, newshape=[b, s, 4, 16]), axes=[0, 2, 1, 3])");
  EXPECT_EQ(text_of(before).find("//"), std::string::npos) << text_of(before);
  Lowered after = open_call("b: Dim, s: Dim", "%x: Tensor[(b, 4, s, 16), float32]",
                            "reshape(transpose(%x, axes=[0, 2, 1, 3]), newshape=[b, s, 64])");
  EXPECT_EQ(text_of(after).find("//"), std::string::npos) << text_of(after);
  // Axes of one element are no arithmetic, and two shapes of one parameter are no one buffer.
  Lowered ones =
      open_call("s: Dim", "%x: Tensor[(s, 4), float32]", "exp(reshape(%x, newshape=[s, 1, 4]))");
  EXPECT_NE(text_of(ones).find("p0: float32[s, 4]"), std::string::npos) << text_of(ones);
  Lowered twice = open_call("s: Dim", "%x: Tensor[(s, 4), float32]",
                            "add(sum(exp(%x)), sum(reshape(%x, newshape=[-1])))");
  EXPECT_NE(text_of(twice).find("p0: float32[s, 4]"), std::string::npos) << text_of(twice);
}

// The numbers of elements are equal, so an axis whose symbolic size is stated in another way is the same axis.
TEST(LowerProgram, a_reshape_that_states_sizes_in_another_way_divides_by_no_open_size) {
  auto reshape = [](const std::string& before, const std::string& after) {
    return text_of(open_call(
        "n: Dim, a: Dim, b: Dim",
        "%x: Tensor[(" + before + "), float32], %y: Tensor[(a, b), float32]",
        "(exp(reshape(transpose(%x, axes=[0, 3, 1, 2]), newshape=[" + after + "])), exp(%y))"));
  };
  for (auto [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"n, 4 * (a // 4), 4 * (a // 4), 8", "n, 8, a, a"},
           {"n, min(a, b), b, 8", "n, 8, a, b"},
           {"n, 4 * (a // 4), 4 * (a // 4), 8", "1, n, 8, a, a"},
           {"n, a * b, 3, 8", "n, 8, a * b, 3"}}) {
    const std::string text = reshape(before, after);
    EXPECT_EQ(text.find("//"), std::string::npos) << text;
    EXPECT_EQ(text.find("%%"), std::string::npos) << text;
  }
  // Two sizes that differ say nothing about each other.
  for (auto [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"n, a, b, 8", "n, 8, b, a"}, {"n, 2 * (a // 2), 2 * (b // 2), 8", "n, 8, a, b"}}) {
    const std::string text = reshape(before, after);
    EXPECT_NE(text.find("//"), std::string::npos) << text;
  }
  // Axes in front and behind are those of the result, and quotients are computed between them only.
  const std::string text = reshape("n, a, b, 8", "n, 8, a * b");
  EXPECT_NE(text.find("= T_transpose[i_3, j_3, k_3 // b, k_3 %% b]"), std::string::npos) << text;
}

TEST(LowerProgram, quotients_and_products_of_sizes_have_names_in_a_kernel) {
  std::string type = "Tensor[(b, (h - 1) // 4 * w, 16), float32]";
  Lowered p =
      open_call("b: Dim, h: Dim, w: Dim", "%x: " + type + ", %y: " + type, "add(%x, exp(%y))");
  ASSERT_EQ(p.calls.at(0).named.size(), 1u);
  EXPECT_EQ(to_string(p.calls[0].named[0]), "(((h + -1) // 4) * w)");
  EXPECT_EQ(text_of(p).find("//"), std::string::npos) << text_of(p);
  // What an attribute says of the names cannot be said of one for both.
  Lowered split = open_call("h: Dim, w: Dim", "%x: Tensor[(h * w, 16), float32]",
                            "exp(reshape(%x, newshape=[h, w, 16]))");
  EXPECT_TRUE(split.calls.at(0).named.empty());
  // Sums of names are kept: what is left of one may be read elsewhere.
  Lowered sum = open_call("h: Dim", "%x: Tensor[(h + 2, 16), float32]", "exp(%x)");
  EXPECT_TRUE(sum.calls.at(0).named.empty());
}

// A call of a kernel for each position, of `type`; `read` is what the kernel does with its parameter p there.
Lowered at_positions(const std::string& type, const std::function<std::string(int)>& read,
                     int count) {
  std::string text = "def @main(%x: " + type + ") {\n  (";
  for (int i = 0; i < count; ++i) {
    text +=
        (i == 0 ? "" : ",\n   ") + ("(fn (%p: " + type + ", Primitive=1) { ") + read(i) + " })(%x)";
  }
  return Lowered(text + ") }");
}

TEST(LowerProgram, kernels_that_differ_in_where_they_read_are_one) {
  Lowered p = at_positions(
      "Tensor[(4, 100), float32]",
      [](int i) {
        return "exp(strided_slice(%p, begin=[" + std::to_string(5 * i) + "], end=[" +
               std::to_string(5 * i + 5) + "], axes=[1]))";
      },
      20);
  ASSERT_EQ(p.calls.size(), 20u);
  // The first few, and what begins at 0, have kernels of their own.
  const int32_t shared = p.calls[19].kernel;
  EXPECT_NE(p.calls[0].kernel, shared);
  EXPECT_NE(p.calls[1].kernel, p.calls[2].kernel);
  EXPECT_TRUE(p.calls[2].named.empty());
  for (size_t i = 9; i < 20; ++i) {
    EXPECT_EQ(p.calls[i].kernel, shared) << i;
    ASSERT_EQ(p.calls[i].named.size(), 1u);
    EXPECT_EQ(as_const(p.calls[i].named[0]), static_cast<int64_t>(5 * i));
  }
  EXPECT_EQ(p.kernel(shared).sizes.size(), 1u);
  // The last position is inside the input for every value of the size.
  const std::string text = tir::to_string(p.func(shared));
  EXPECT_NE(text.find("min(d0, 95)"), std::string::npos) << text;
}

TEST(LowerProgram, positions_under_conditions_and_in_reductions_are_constants) {
  const std::string type = "Tensor[(40, 100), float32]";
  Lowered sums = at_positions(
      type,
      [](int i) {
        return "sum(strided_slice(%p, begin=[" + std::to_string(i + 1) + "], end=[" +
               std::to_string(i + 9) + "], axes=[1]), axis=[1])";
      },
      12);
  Lowered pads = at_positions(
      type,
      [](int i) {
        return "nn.pad(strided_slice(%p, begin=[" + std::to_string(i + 1) + "], end=[" +
               std::to_string(i + 9) + "], axes=[1]), 0f, pad_width=[[1, 1], [1, 1]])";
      },
      12);
  for (const Lowered* p : {&sums, &pads}) {
    for (const LoweredCall& call : p->calls) EXPECT_TRUE(call.named.empty());
    EXPECT_NE(p->calls[10].kernel, p->calls[11].kernel);
  }
}

}  // namespace
}  // namespace relay
