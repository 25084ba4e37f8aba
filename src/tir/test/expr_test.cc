#include "tir/expr.h"

#include <gtest/gtest.h>

#include <limits>

#include "node/structural.h"
#include "tir/stmt.h"
#include "tir/test/dtypes.h"

namespace relay::tir {
namespace {

TEST(TirExpr, builders_fold_constants) {
  EXPECT_EQ(as_int(index(2) + index(3) * 4), 14);
  EXPECT_EQ(as_int(floor_div(index(-7), index(2))), -4);
  EXPECT_EQ(as_int(floor_mod(index(-7), index(2))), 1);
  EXPECT_EQ(as_int(div(index(-7), index(2))), -3);
  EXPECT_EQ(as_int(mod(index(-7), index(2))), -1);
  EXPECT_EQ(as_int(lt(index(1), index(2))), 1);
  EXPECT_EQ(as_float(imm_float(f32, 0.1) + imm_float(f32, 0.2)), double{0.1f + 0.2f});
  EXPECT_EQ(as_int(select(boolean(false), index(1), index(2))), 2);
}

TEST(TirExpr, division_by_zero_is_not_folded) {
  EXPECT_FALSE(as_int(floor_div(index(1), index(0))));
  EXPECT_FALSE(as_int(mod(index(1), index(0))));
}

TEST(TirExpr, integers_wrap_to_their_width) {
  EXPECT_EQ(as_int(imm(DType::Int(8), 127) + imm(DType::Int(8), 1)), -128);
  EXPECT_EQ(as_int(imm(DType::UInt(8), 3) - imm(DType::UInt(8), 4)), 255);
  EXPECT_EQ(as_int(lt(imm(DType::UInt(64), -1), imm(DType::UInt(64), 1))), 0);
  EXPECT_EQ(as_int(div(min_value(DType::Int(32)), imm(DType::Int(32), -1))),
            std::numeric_limits<int32_t>::min());
}

TEST(TirExpr, identities_hold_only_where_exact) {
  Var i = var("i");
  EXPECT_TRUE(i + 0 == i);
  EXPECT_TRUE(i * 1 == i);
  EXPECT_EQ(as_int(PrimExpr(i) - PrimExpr(i)), 0);
  EXPECT_EQ(to_string(i + 3 + 4), "i + 7");
  EXPECT_EQ(to_string(i - 3), "i - 3");
  Var x = var("x", f32);
  PrimExpr zero = imm_float(f32, 0.0);
  EXPECT_TRUE(x - zero == x);
  EXPECT_FALSE(x + zero == x);  // -0 + 0 is 0
  EXPECT_FALSE(as_float(PrimExpr(x) * zero));
}

TEST(TirExpr, scalars_are_broadcast_to_lanes) {
  PrimExpr v = ramp(index(0), index(1), 8);
  EXPECT_EQ((v + 1)->dtype.lanes, 8);
  EXPECT_EQ(select(boolean(true), v, index(0))->dtype.lanes, 8);
  EXPECT_EQ(to_string(ramp(var("i"), index(2), 4)), "i:2:x4");
}

TEST(TirExpr, unlike_dtypes_are_a_defect) {
  EXPECT_THROW(var("x", f32) + var("i"), InternalError);
  EXPECT_THROW(logical_and(var("i"), var("j")), InternalError);
}

TEST(TirExpr, casts_of_constants) {
  EXPECT_EQ(as_int(cast(DType::Int(8), imm_float(f32, 1e9))), 127);
  EXPECT_EQ(as_int(cast(DType::Int(8), index(300))), 44);
  EXPECT_EQ(as_int(cast(DType::Int(32), imm_float(f32, std::numeric_limits<double>::quiet_NaN()))),
            0);
  EXPECT_EQ(as_int(cast(DType::Bool(), index(7))), 1);
  EXPECT_EQ(as_float(cast(DType::BFloat16(), imm_float(f32, 1.01))), 1.0078125);
}

TEST(TirExpr, not_turns_integer_comparisons_only) {
  Var i = var("i");
  Var x = var("x", f32);
  EXPECT_EQ(to_string(logical_not(lt(i, index(3)))), "i >= 3");
  EXPECT_EQ(to_string(logical_not(lt(x, imm_float(f32, 3)))), "not x < 3f");
}

TEST(TirExpr, sums_and_products_of_bools_are_bools) {
  Var x = var("x", DType::Bool()), y = var("y", DType::Bool());
  EXPECT_EQ(to_string(PrimExpr(x) + PrimExpr(y)), "x or y");
  EXPECT_EQ(to_string(PrimExpr(x) * PrimExpr(y)), "x and y");
}

TEST(TirExpr, text_has_no_needless_parentheses) {
  Var i = var("i");
  Var j = var("j");
  EXPECT_EQ(to_string((i + j) * 4 + floor_mod(i, index(3))), "(i + j) * 4 + i %% 3");
  EXPECT_EQ(to_string(PrimExpr(i) - (PrimExpr(j) - PrimExpr(i))), "i - (j - i)");
  EXPECT_EQ(to_string(min(i, index(2)) * 3), "min(i, 2) * 3");
}

TEST(TirExpr, equality_is_up_to_names_of_bound_variables) {
  auto make_loop = [](const char* name) {
    Buffer b = buffer("b", DType::Int(64), {index(4)});
    Var i = var(name);
    return allocate(b, for_(i, index(0), index(4), store(b, {i}, i * 2)));
  };
  EXPECT_TRUE(structural_equal(make_loop("i"), make_loop("j")));
  EXPECT_EQ(structural_hash(make_loop("i")), structural_hash(make_loop("j")));
}

TEST(TirExpr, deep_expressions_print_and_die_without_recursion) {
  PrimExpr e = var("x", f32);
  for (int i = 0; i < 100000; ++i) e = min(e, var("y", f32)) * imm_float(f32, 2.0);
  EXPECT_GT(to_string(e).size(), 100000u);
}

}  // namespace
}  // namespace relay::tir
