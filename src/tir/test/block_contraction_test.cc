// The contraction that a block states: how it reads, what schedule steps make of it, and what the verifier refuses.
#include "tir/block_contraction.h"

#include <gtest/gtest.h>

#include <functional>

#include "tir/compute.h"
#include "tir/lower_loops.h"
#include "tir/schedule/schedule.h"
#include "tir/test/dtypes.h"
#include "tir/verify.h"

namespace relay::tir {
namespace {

using enum ContractionRole;

// x (6, 12) by a weight of 20 columns in panels of 8, words of 4 elements of the sum.
PrimFunc packed_product() {
  Tensor x = placeholder("x", f32, {index(6), index(12)});
  Tensor w = placeholder("w", f32, {index(3), index(3), index(8), index(4)});
  Tensor y =
      contract("y", {index(6), index(20)}, {index(12)}, {Row, Column, Reduced},
               [&](const Indices& i, const Indices& k) {
                 return x(i[0], k[0]) * w(floor_div(i[1], index(8)), floor_div(k[0], index(4)),
                                          floor_mod(i[1], index(8)), floor_mod(k[0], index(4)));
               });
  return create_prim_func("product", {x, w}, {y});
}

// Three groups of two columns, windows of 3 with stride 2 and dilation 3.
PrimFunc grouped_convolution() {
  Tensor x = placeholder("x", f32, {index(6), index(16)});
  Tensor w = placeholder("w", f32, {index(6), index(2), index(3)});
  Tensor y = contract(
      "y", {index(6), index(5)}, {index(3), index(2)},
      std::vector<StatedDimension>{
          {0, Group, index(3)}, {0, Column, index(2)}, {1, Row}, {2, Window}, {3, Reduced}},
      [&](const Indices& i, const Indices& k) {
        return x(floor_div(i[0], index(2)) * 2 + k[1], i[1] * 2 + k[0] * 3) * w(i[0], k[1], k[0]);
      });
  return create_prim_func("convolution", {x, w}, {y});
}

std::string statement(const PrimFunc& f) {
  std::string text = to_string(f);
  size_t at = text.find("contraction ");
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(BlockContraction, is_stated_in_text) {
  EXPECT_EQ(statement(packed_product()),
            "contraction x[i_1, r_1] * w[j_1 // 8, r_1 // 4, j_1 % 8, r_1 % 4]");
  EXPECT_EQ(statement(grouped_convolution()),
            "contraction x[(i_1.0 s_1), j_1 * 2 + r_1 * 3] * w[(i_1.0 i_1.1), s_1, r_1] where "
            "i_1.0: group 3, i_1.1: column 2");
}

TEST(BlockContraction, tells_roles_panels_and_groups) {
  Schedule product(packed_product());
  Block p = product.block(product.get_block("y"));
  const Var &row = p->iters[0]->var, &column = p->iters[1]->var;
  EXPECT_EQ(role_of(*p, row), Row);
  EXPECT_EQ(role_of(*p, column), Column);
  EXPECT_EQ(role_of(*p, p->iters[2]->var), Reduced);
  const BlockOperandNode& w = *p->contraction->operands[1];
  EXPECT_EQ(quotient_width(*p->contraction, w.axes[0].terms[0], column), 8);
  EXPECT_EQ(quotient_width(*p->contraction, w.axes[2].terms[0], column), std::nullopt);
  EXPECT_FALSE(uses_iteration(*p->contraction, w, row));

  Schedule grouped(grouped_convolution());
  Block g = grouped.block(grouped.get_block("y"));
  EXPECT_EQ(role_of(*g, g->iters[0]->var), Column);
  const BlockContractionNode& c = *g->contraction;
  EXPECT_EQ(quotient_width(c, c.operands[0]->axes[0].terms[0], g->iters[0]->var), 2);
  EXPECT_EQ(quotient_width(c, c.operands[1]->axes[0].terms[0], g->iters[0]->var), std::nullopt);
}

// An operand that is read through `producer`, which is inlined.
std::string inlined(const std::vector<int64_t>& source, const std::vector<int64_t>& shape,
                    const std::function<PrimExpr(const Tensor&, const Indices&)>& producer) {
  std::vector<PrimExpr> from, to;
  for (int64_t d : source) from.push_back(index(d));
  for (int64_t d : shape) to.push_back(index(d));
  Tensor x = placeholder("x", f32, from);
  Tensor w = placeholder("w", f32, {index(shape[1]), index(4)});
  Tensor t = compute("t", to, [&](const Indices& i) { return producer(x, i); });
  Tensor y =
      contract("y", {index(shape[0]), index(4)}, {index(shape[1])}, {Row, Column, Reduced},
               [&](const Indices& i, const Indices& k) { return t(i[0], k[0]) * w(k[0], i[1]); });
  Schedule s(create_prim_func("f", {x, w}, {y}));
  s.compute_inline(s.get_block("t")).value();
  verify(s.func());
  return statement(s.func());
}

TEST(BlockContraction, inlining_states_operands_again) {
  EXPECT_EQ(
      inlined({8, 6}, {6, 8}, [](const Tensor& x, const Indices& i) { return x(i[1], i[0]); }),
      "contraction x[r_1, i] * w[r_1, j]");
  EXPECT_EQ(inlined({2, 3, 8}, {6, 8},
                    [](const Tensor& x, const Indices& i) {
                      return x(floor_div(i[0], index(3)), floor_mod(i[0], index(3)), i[1]);
                    }),
            "contraction x[i // 3, i % 3, r_1] * w[r_1, j]");
  EXPECT_EQ(inlined({4, 8}, {6, 8},
                    [](const Tensor& x, const Indices& i) {
                      return select(logical_and(ge(i[0], index(1)), lt(i[0], index(5))),
                                    x(i[0] - 1, i[1]), imm_float(f32, 0));
                    }),
            "contraction x[i - 1, r_1] * w[r_1, j]");
  // An index of another form lists what it depends on.
  EXPECT_EQ(inlined({4, 8}, {6, 8},
                    [](const Tensor& x, const Indices& i) { return x(min(i[0], index(3)), i[1]); }),
            "contraction x[?(i), r_1] * w[r_1, j]");
}

TEST(BlockContraction, steps_keep_it_or_drop_it) {
  {
    Schedule s(packed_product());
    BlockRV y = s.get_block("y");
    s.cache_read(y, "x", Scope::Local).value();
    s.cache_write(y, Scope::Local).value();
    verify(s.func());
    const BlockContraction c = s.block(y)->contraction;
    ASSERT_TRUE(c);
    EXPECT_EQ(c->operands[0]->buffer->name, "x_cache");
    EXPECT_EQ(c->result->buffer->name, "y_cache");
    // The copy of x has its axes in the other order.
    s.transform_layout(s.get_block("x_read"), {{1}, {0}}).value();
    verify(s.func());
    EXPECT_EQ(s.block(y)->contraction->operands[0]->axes[1].terms[0].dims, std::vector<int64_t>{0});
  }
  {
    Schedule s(packed_product());
    BlockRV y = s.get_block("y");
    auto [i, j, k] = s.get_loops<3>(y);
    const std::vector<LoopRV> parts = s.split(j, {-1, 8}).value();
    s.reorder({k, parts[1]}).value();
    const BlockRV init = s.decompose_reduction(y, k).value();
    verify(s.func());
    EXPECT_TRUE(s.block(y)->contraction);
    EXPECT_FALSE(s.block(init)->contraction) << "it sums nothing";
    const Partition cut = s.partition(i, 4).value();
    verify(s.func());
    const Block tail = s.block(cut.copy_of(y));
    EXPECT_EQ(role_of(*tail, tail->iters[1]->var), Column);
  }
  {
    Schedule s(packed_product());
    BlockRV y = s.get_block("y");
    const std::vector<LoopRV> parts = s.split(s.get_loops(y).back(), {-1, 4}).value();
    const BlockRV partial = s.rfactor(y, parts[1]).value();
    verify(s.func());
    const Block sums = s.block(partial);
    EXPECT_EQ(role_of(*sums, sums->iters[1]->var), Column);
    EXPECT_FALSE(s.block(y)->contraction) << "it adds partial sums";
  }
}

TEST(BlockContraction, verifier_refuses_what_the_body_does_not_do) {
  auto defect = [](const std::function<void(BlockContractionNode&)>& change) {
    Schedule s(packed_product());
    Block b = s.block(s.get_block("y"));
    return contraction_defect(
        *modified(*b, [&](BlockNode& n) { n.contraction = modified(*b->contraction, change); }));
  };
  EXPECT_EQ(defect([](BlockContractionNode&) {}), "");
  EXPECT_EQ(defect([](BlockContractionNode& c) { c.dims.pop_back(); }),
            "an iteration has no dimension");
  EXPECT_EQ(defect([](BlockContractionNode& c) { std::swap(c.dims[0], c.dims[1]); }),
            "the dimensions are not in the order of the iterations");
  EXPECT_EQ(defect([](BlockContractionNode& c) {
              c.dims[0] = block_dimension(var("other"), index(6), Row);
            }),
            "dimension other is no iteration of the block");
  EXPECT_EQ(defect([](BlockContractionNode& c) {
              c.dims[0] = block_dimension(c.dims[0]->iter, index(6), Reduced);
            }),
            "dimension i is reduced, but its iteration does not reduce");
  EXPECT_EQ(defect([](BlockContractionNode& c) {
              c.dims[2] = block_dimension(c.dims[2]->iter, index(12), Row);
            }),
            "dimension r is row, but its iteration reduces");
  EXPECT_EQ(defect([](BlockContractionNode& c) {
              c.dims[0] = block_dimension(c.dims[0]->iter, index(7), Row);
            }),
            "the dimensions of i have another extent than the iteration");
  EXPECT_EQ(defect([](BlockContractionNode& c) { c.operands.pop_back(); }),
            "the body reads 2 operands, not 1");
  EXPECT_EQ(defect([](BlockContractionNode& c) {
              c.operands[1] = modified(*c.operands[1],
                                       [](BlockOperandNode& o) { o.axes[0].terms[0].divide = 16; });
            }),
            "the body reads w at other indices than the operand's");
  EXPECT_EQ(defect([](BlockContractionNode& c) { c.result = c.operands[0]; }),
            "the body stores to another element than the result");
}

}  // namespace
}  // namespace relay::tir
