#include "passes/fusion/recompute_values.h"

#include "node/walk.h"
#include "passes/structure/form.h"
#include "passes/test/evaluate.h"
#include "passes/test/pass_test.h"

namespace relay::pass_test {
namespace {

// Values of 64 bytes and more do not fit into L2.
PassContext small_caches() {
  PassContext ctx;
  ctx.target.l2_bytes = 64;
  return ctx;
}

// Kernels of one operator each, but for those that FuseOps joins.
int kernels_of(const Module& mod) {
  int out = 0;
  post_order(mod->functions[0], [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* f = c == nullptr ? nullptr : as<FunctionNode>(c->op);
    out += f != nullptr && f->is_primitive();
  });
  return out;
}

struct RecomputeRow {
  std::string params, body;
  int before, after;
};

std::string program(const RecomputeRow& row) {
  return "def @main(" + row.params + ") {\n" + row.body + "\n}";
}

const std::string kTwo = "%h: Tensor[(4, 8), float32], %g: Tensor[(4, 8), float32]";

// What a GELU's backward pass reads too.
const std::string kGelu =
    "%0 = add(erf(multiply(%h, 0.7f)), 1f);\n"
    "%1 = multiply(%h, 0.5f);\n"
    "(multiply(%1, %0), add(multiply(%g, %0), multiply(multiply(%g, %1), exp(%h))))";

void expect_kernels(const RecomputeRow& row, const PassContext& ctx) {
  SCOPED_TRACE(row.body);
  Module fused = apply(kFuseOps, parse(program(row)), ctx);
  EXPECT_EQ(kernels_of(fused), row.before);
  Module out = apply(kRecomputeValues, fused, ctx);
  EXPECT_EQ(kernels_of(out), row.after) << print_module(out);
  const auto defect = find_form_defect(out, Form::fused);
  EXPECT_FALSE(defect) << defect->detail;
  std::vector<Tensor> want = results(fused), got = results(out);
  ASSERT_EQ(want.size(), got.size());
  for (size_t i = 0; i < want.size(); ++i) {
    for (int64_t k = 0; k < want[i].num_elements(); ++k)
      EXPECT_EQ(want[i].get_as_double(k), got[i].get_as_double(k));
  }
  EXPECT_TRUE(apply(kRecomputeValues, out, ctx) == out);
}

TEST(RecomputeValues, computes_cheap_values_where_they_are_read) {
  expect_kernels({kTwo, kGelu, 4, 2}, small_caches());
  // A value in terms of another one that is computed again.
  expect_kernels({kTwo,
                  "%0 = exp(%h);\n%1 = negative(%0);\n"
                  "(multiply(%g, %0), multiply(%g, %1), sum(%1))",
                  5, 3},
                 small_caches());
}

// Queries, keys and values of one product: each part is taken of the rows as they were, whatever the caches hold.
TEST(RecomputeValues, computes_what_is_cut_in_parts) {
  const std::string turned =
      "%0 = transpose(reshape(add(%h, 1f), newshape=[2, 2, 2, 4]), axes=[2, 0, 1, 3]);\n";
  auto part = [](int begin, int end) {
    return "strided_slice(%0, begin=[" + std::to_string(begin) + "], end=[" + std::to_string(end) +
           "], axes=[0])";
  };
  expect_kernels(
      {kTwo,
       turned + "(negative(" + part(0, 1) + "), exp(reshape(" + part(1, 2) + ", newshape=[8, 2])))",
       3, 2},
      PassContext());
  // Parts that are more than the whole, one that is read as a whole, returned or summed, and what is no part of one axis.
  expect_kernels({kTwo, turned + "(negative(" + part(0, 1) + "), exp(" + part(0, 2) + "))", 3, 3},
                 PassContext());
  expect_kernels({kTwo, turned + "(negative(" + part(0, 1) + "), exp(%0))", 3, 3}, PassContext());
  expect_kernels({kTwo, turned + "(negative(" + part(0, 1) + "), %0)", 2, 2}, PassContext());
  expect_kernels({kTwo, turned + "(negative(" + part(0, 1) + "), sum(" + part(1, 2) + "))", 3, 3},
                 PassContext());
}

// As the first states of a recurrent layer (tests/python/test_torch_recurrent.py has whole ones).
TEST(RecomputeValues, fills_of_symbolic_size_are_cut) {
  const Module fused =
      apply(kFuseOps, parse("def @main[n: Dim](%h: Tensor[(n, 8), float32]) {\n"
                            "%0 = full(0f, shape=[2, n, 8]);\n"
                            "%1 = strided_slice(%0, begin=[0], end=[1], axes=[0]);\n"
                            "%2 = strided_slice(%0, begin=[1], end=[2], axes=[0]);\n"
                            "(nn.dense(%h, %h), negative(%1), exp(%2)) }"));
  EXPECT_EQ(kernels_of(fused), 4);
  const Module out = apply(kRecomputeValues, fused);
  EXPECT_EQ(kernels_of(out), 3) << print_module(out);
  const auto defect = find_form_defect(out, Form::fused);
  EXPECT_FALSE(defect) << defect->detail;
}

TEST(RecomputeValues, keeps_other_values) {
  const PassContext ctx = small_caches();
  // In L2, of four large operands, read by a product or returned, and of more operators than the moves are worth.
  expect_kernels({kTwo, kGelu, 4, 4}, PassContext());
  expect_kernels({kTwo + ", %i: Tensor[(4, 8), float32], %k: Tensor[(4, 8), float32]",
                  "%0 = add(add(%h, %g), add(%i, %k));\n(exp(%0), negative(%0))", 3, 3},
                 ctx);
  expect_kernels({kTwo, "%0 = exp(%h);\n(multiply(%h, %0), nn.dense(%0, %g))", 3, 3}, ctx);
  expect_kernels({kTwo, "%0 = exp(%h);\n(multiply(%h, %0), %0)", 2, 2}, ctx);
  std::string many = "%h";
  for (int i = 0; i < 24; ++i) many = "exp(" + many + ")";
  expect_kernels({kTwo, "%0 = " + many + ";\n(multiply(%h, %0), add(%g, %0))", 3, 3}, ctx);
}

}  // namespace
}  // namespace relay::pass_test
