// Operators of two tensors that broadcast, and `where`.
#include "ops/attrs.h"
#include "ops/common.h"
#include "ops/families.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT: rows are expressions of the tensor IR
using relay::CallNode;
using relay::Type;

using Rule = PrimExpr (*)(const PrimExpr& a, const PrimExpr& b);

struct Row {
  const char* name;
  const char* doc;
  TypeRelation relation;
  Rule compute;
  const char* dtype = "float32";
  double low = -2;
  double high = 2;
};

// Bools have no differences and quotients that are bools.
Type broadcast_numbers(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr && !require(ctx, !a->dtype.is_bool(), codes::type_dtype, "needs numbers",
                               "an integer or floating type", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast(ctx);
}

template <BinaryOp kOp>
PrimExpr op(const PrimExpr& a, const PrimExpr& b) {
  return binary(kOp, a, b);
}

// Integers are multiplied by squaring, so that every bit is right. A result beyond the dtype wraps;
// a negative exponent gives the quotient rounded towards zero, and 0 for a division by zero.
PrimExpr power(const PrimExpr& a, const PrimExpr& b) {
  DType t = a->dtype;
  if (t.is_floating()) return tir::call("pow", t, {a, b});
  if (t.is_bool()) return logical_or(a, logical_not(b));
  auto bit = [&](const PrimExpr& e, int64_t mask) {
    return ne(binary(BinaryOp::BitAnd, e, imm(t, mask)), imm(t, 0));
  };
  PrimExpr one = imm(t, 1), zero = imm(t, 0);
  // Only 0, 1 and -1 have powers beyond the 63rd that fit: the exponent's parity says which.
  PrimExpr e = select(gt(b, imm(t, 63)), select(bit(b, 1), imm(t, 63), imm(t, 62)), b);
  PrimExpr result, square = a;
  for (int k = 0; k < 6; ++k) {
    PrimExpr factor = select(bit(e, int64_t{1} << k), square, one);
    result = k == 0 ? factor : result * factor;
    square = square * square;
  }
  if (!t.is_int()) return result;
  PrimExpr sign = select(bit(b, 1), imm(t, -1), one);
  PrimExpr inverse = select(eq(a, one), one, select(eq(a, imm(t, -1)), sign, zero));
  return select(lt(b, zero), inverse, result);
}

const Row kRows[] = {
    {"add", "Sum; of bools, whether either holds.", broadcast, op<BinaryOp::Add>},
    {"subtract", "Difference.", broadcast_numbers, op<BinaryOp::Sub>},
    {"multiply", "Product; of bools, whether both hold.", broadcast, op<BinaryOp::Mul>},
    {"divide", "Quotient; of integers, rounded towards zero.", broadcast_numbers, op<BinaryOp::Div>,
     "float32", 0.5, 2},
    {"floor_divide", "Quotient rounded down.", broadcast_numbers, op<BinaryOp::FloorDiv>, "float32",
     0.5, 2},
    {"trunc_divide", "Quotient rounded towards zero.", broadcast_numbers,
     [](const PrimExpr& a, const PrimExpr& b) {
       return a->dtype.is_floating() ? tir::call("trunc", a->dtype, {div(a, b)}) : div(a, b);
     },
     "int32", 1, 9},
    {"mod", "Remainder with the sign of the dividend.", broadcast_numbers, op<BinaryOp::Mod>,
     "float32", 0.5, 2},
    {"floor_mod", "Remainder with the sign of the divisor.", broadcast_numbers,
     op<BinaryOp::FloorMod>, "float32", 0.5, 2},
    {"trunc_mod", "Remainder with the sign of the dividend.", broadcast_numbers, op<BinaryOp::Mod>,
     "int32", 1, 9},
    {"power", "lhs to the power of rhs.", broadcast, power, "float32", 0.5, 2},
    {"maximum", "The greater; NaN wins.", broadcast, op<BinaryOp::Max>},
    {"minimum", "The lesser; NaN wins.", broadcast, op<BinaryOp::Min>},
    {"equal", "Whether equal.", broadcast_compare, op<BinaryOp::Eq>},
    {"not_equal", "Whether different.", broadcast_compare, op<BinaryOp::Ne>},
    {"less", "Whether less.", broadcast_compare, op<BinaryOp::Lt>},
    {"less_equal", "Whether less or equal.", broadcast_compare, op<BinaryOp::Le>},
    {"greater", "Whether greater.", broadcast_compare, op<BinaryOp::Gt>},
    {"greater_equal", "Whether greater or equal.", broadcast_compare, op<BinaryOp::Ge>},
    {"logical_and", "Both.", broadcast_bool, op<BinaryOp::And>, "bool"},
    {"logical_or", "Either.", broadcast_bool, op<BinaryOp::Or>, "bool"},
    {"logical_xor", "One but not both.", broadcast_bool, op<BinaryOp::Ne>, "bool"},
    {"bitwise_and", "Bits set in both.", broadcast_bits, op<BinaryOp::BitAnd>, "int32"},
    {"bitwise_or", "Bits set in either.", broadcast_bits, op<BinaryOp::BitOr>, "int32"},
    {"bitwise_xor", "Bits set in one.", broadcast_bits, op<BinaryOp::BitXor>, "int32"},
    {"left_shift", "Bits moved up.", broadcast_shift, op<BinaryOp::Shl>, "int32", 0, 8},
    {"right_shift", "Bits moved down, keeping the sign.", broadcast_shift, op<BinaryOp::Shr>,
     "int32", 0, 8},
};

}  // namespace

void add_binary(OpRegistry& registry) {
  for (const Row& row : kRows) {
    OpInfo op;
    op.name = row.name;
    op.doc = row.doc;
    op.args = {{"lhs", "The left side."}, {"rhs", "The right side."}};
    op.fusion = FusionClass::Broadcast;
    op.relation = row.relation;
    op.layout = follow_layout;
    op.cost = elementwise_cost;
    Rule rule = row.compute;
    op.compute = compute_rule([rule](const ComputeContext& ctx) {
      TirTensor a = ctx.inputs[0], b = ctx.inputs[1];
      return tir::compute("T", ctx.outputs[0].shape, [&](const Indices& i) {
        return rule(broadcast_read(a, i), broadcast_read(b, i));
      });
    });
    auto t = [&](const char* shape) {
      return "Tensor[" + std::string(shape) + ", " + row.dtype + "]";
    };
    op.examples = {{{t("(2, 3)"), t("(2, 3)")}, "", row.low, row.high},
                   {{t("(2, 1, 4)"), t("(3, 1)")}, "", row.low, row.high},
                   {{t("()"), t("(5,)")}, "", row.low, row.high},
                   {{t("(0, 3)"), t("(3,)")}, "", row.low, row.high}};
    registry.add(std::move(op));
  }
  OpInfo op;
  op.name = "where";
  op.doc = "x where the condition holds, else y; all three broadcast.";
  op.args = {{"condition", "bool."}, {"x", "Taken where true."}, {"y", "Taken where false."}};
  op.fusion = FusionClass::Broadcast;
  op.layout = follow_layout;
  op.cost = elementwise_cost;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *c = ctx.tensor(0), *x = ctx.tensor(1), *y = ctx.tensor(2);
    if (c == nullptr || x == nullptr || y == nullptr) return nullptr;
    if (!require(ctx, x->dtype == y->dtype, codes::type_dtype, "x and y have different dtypes",
                 "one dtype", x->dtype.to_string() + " and " + y->dtype.to_string()))
      return nullptr;
    auto shape = broadcast_shapes(ctx, x->shape, y->shape);
    if (shape) shape = broadcast_shapes(ctx, *shape, c->shape);
    return shape ? Type(tensor_type(std::move(*shape), x->dtype)) : nullptr;
  };
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor c = ctx.inputs[0], x = ctx.inputs[1], y = ctx.inputs[2];
    return tir::compute("T_where", ctx.outputs[0].shape, [&](const Indices& i) {
      return select(tir::cast(DType::Bool(), broadcast_read(c, i)), broadcast_read(x, i),
                    broadcast_read(y, i));
    });
  });
  op.examples = {
      {{"Tensor[(2, 3), bool]", "Tensor[(3,), float32]", "Tensor[(2, 1), float32]"}, ""}};
  registry.add(op);
}

}  // namespace relay::ops
