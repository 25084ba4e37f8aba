// Operators of two tensors that broadcast, and `where`.

#include "analysis/element_maps.h"
#include "analysis/known_rules.h"
#include "base/codes/types.h"
#include "ops/gradient.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT: rows are expressions of the tensor IR
using relay::CallNode;
using relay::Type;

// The adjoints of both sides, before what broadcasting repeated is summed.
using BinaryGradient = Adjoints (*)(const Expr& g, const Expr& a, const Expr& b);

// An operator of two tensors that broadcast; dtype and range are those of its examples.
struct Binary {
  const char* name;
  const char* doc;
  Type (*relation)(RelationContext& ctx);
  PrimExpr (*compute)(const PrimExpr& a, const PrimExpr& b);
  const char* dtype = "float32";
  double low = -2;
  double high = 2;
  Precision precision = Precision::Follow;
  Column<BinaryGradient> gradient;
  const BinaryElement* known = nullptr;
  // Each element of the result is the greater or the lesser one of the operands.
  bool chooses = false;
  Algebra algebra = {};
  QuantizedResult (*quantized)(const QuantizedCall& q) = nullptr;
  const char* dialect = nullptr;  // the operator on quantised tensors
};

// Of steps: the derivative is 0 wherever there is one.
Adjoints no_slopes(const Expr&, const Expr&, const Expr&) { return {}; }

// a - b * (a / b rounded by `step`): of b it is the step that changes the result.
Adjoints remainder_gradient(const char* step, const Expr& g, const Expr& a, const Expr& b) {
  return {g, negative(g * apply(step, {a / b}))};
}

// The derivatives of a to the power of b are b * a^(b - 1), which is 0 for b = 0, and log(a) * a^b,
// which is 0 for a = 0.
Adjoints power_gradient(const Expr& g, const Expr& a, const Expr& b) {
  Expr one = scalar(1, b), less = choose(is_equal(b, 0), one, b - one);
  Expr log = apply("log", {choose(is_equal(a, 0), scalar(1, a), a)});
  return {finite_product(g, b * apply("power", {a, less})),
          finite_product(g, apply("power", {a, b}) * log)};
}

// `chosen` gets the adjoint; ties share it.
Adjoints extremum_gradient(const Expr& g, const Expr& first, const Expr& tie) {
  Expr half = 0.5 * g, zero = scalar(0, g);
  return {choose(first, g, choose(tie, half, zero)), choose(first, zero, choose(tie, half, g))};
}

// The elements of narrow types have no order; strings are compared by code points.
Type broadcast_order(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr && !require(ctx, !a->dtype.is_narrow(), codes::type_dtype,
                               "elements of this dtype are stored and cast, not computed with",
                               "a wider dtype", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast_compare(ctx);
}

// Bools have no differences and quotients that are bools.
Type broadcast_numbers(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr && !require(ctx, !a->dtype.is_bool(), codes::type_dtype, "needs numbers",
                               "an integer or floating type", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast(ctx);
}

// Multipliers of 31 bits.
Type broadcast_words(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  if (a != nullptr && !require(ctx, a->dtype == DType::Int(32), codes::type_dtype, "needs int32",
                               "int32", a->dtype.to_string())) {
    return nullptr;
  }
  return broadcast(ctx);
}

template <BinaryOp kOp>
PrimExpr op(const PrimExpr& a, const PrimExpr& b) {
  return binary(kOp, a, b);
}

// A result of integers wraps; a negative exponent gives the quotient rounded towards zero, and 0 for a division by zero.
PrimExpr power(const PrimExpr& a, const PrimExpr& b) {
  DType t = a->dtype;
  if (t.is_bool()) return logical_or(a, logical_not(b));
  return tir::call("pow", t, {a, b});
}

constexpr Binary kBinary[] = {
    {.name = "add",
     .doc = "Sum; of bools, whether either holds.",
     .relation = broadcast,
     .compute = op<BinaryOp::Add>,
     .gradient =
         [](const Expr& g, const Expr&, const Expr&) {
           return Adjoints{g, g};
         },
     .known = &binary_elements::add,
     .quantized = quantized_linear},
    {.name = "subtract",
     .doc = "Difference.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::Sub>,
     .gradient =
         [](const Expr& g, const Expr&, const Expr&) {
           return Adjoints{g, negative(g)};
         },
     .known = &binary_elements::subtract,
     .quantized = quantized_linear},
    {.name = "multiply",
     .doc = "Product; of bools, whether both hold.",
     .relation = broadcast,
     .compute = op<BinaryOp::Mul>,
     .gradient =
         [](const Expr& g, const Expr& a, const Expr& b) {
           return Adjoints{g * b, g * a};
         },
     .known = &binary_elements::multiply,
     .dialect = "qnn.mul"},
    {.name = "divide",
     .doc = "Quotient; of integers, rounded towards zero.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::Div>,
     .dtype = "float32",
     .low = 0.5,
     .high = 2,
     .gradient =
         [](const Expr& g, const Expr& a, const Expr& b) {
           Expr over = finite_quotient(g, b);
           return Adjoints{over, negative(finite_product(over, a / b))};
         },
     .known = &binary_elements::divide},
    {.name = "floor_divide",
     .doc = "Quotient rounded down.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::FloorDiv>,
     .dtype = "float32",
     .low = 0.5,
     .high = 2,
     .gradient = no_slopes,
     .known = &binary_elements::floor_quotient},
    {.name = "trunc_divide",
     .doc = "Quotient rounded towards zero.",
     .relation = broadcast_numbers,
     .compute =
         [](const PrimExpr& a, const PrimExpr& b) {
           return a->dtype.is_floating() ? tir::call("trunc", a->dtype, {div(a, b)}) : div(a, b);
         },
     .dtype = "int32",
     .low = 1,
     .high = 9,
     .gradient = no_slopes,
     .known = &binary_elements::quotient},
    {.name = "mod",
     .doc = "Remainder with the sign of the dividend.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::Mod>,
     .dtype = "float32",
     .low = 0.5,
     .high = 2,
     .gradient = [](const Expr& g, const Expr& a,
                    const Expr& b) { return remainder_gradient("trunc", g, a, b); },
     .known = &binary_elements::remainder},
    {.name = "floor_mod",
     .doc = "Remainder with the sign of the divisor.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::FloorMod>,
     .dtype = "float32",
     .low = 0.5,
     .high = 2,
     .gradient = [](const Expr& g, const Expr& a,
                    const Expr& b) { return remainder_gradient("floor", g, a, b); },
     .known = &binary_elements::floor_remainder},
    {.name = "trunc_mod",
     .doc = "Remainder with the sign of the dividend.",
     .relation = broadcast_numbers,
     .compute = op<BinaryOp::Mod>,
     .dtype = "int32",
     .low = 1,
     .high = 9,
     .gradient = [](const Expr& g, const Expr& a,
                    const Expr& b) { return remainder_gradient("trunc", g, a, b); },
     .known = &binary_elements::remainder},
    {.name = "power",
     .doc = "lhs to the power of rhs.",
     .relation = broadcast,
     .compute = power,
     .dtype = "float32",
     .low = 0.5,
     .high = 2,
     .precision = Precision::Never,
     .gradient = power_gradient},
    {.name = "maximum",
     .doc = "The greater; NaN wins.",
     .relation = broadcast,
     .compute = op<BinaryOp::Max>,
     .gradient =
         [](const Expr& g, const Expr& a, const Expr& b) {
           return extremum_gradient(g, is_greater(a, b), is_equal(a, b));
         },
     .known = &binary_elements::maximum,
     .chooses = true,
     .algebra = {.idempotent = true}},
    {.name = "minimum",
     .doc = "The lesser; NaN wins.",
     .relation = broadcast,
     .compute = op<BinaryOp::Min>,
     .gradient =
         [](const Expr& g, const Expr& a, const Expr& b) {
           return extremum_gradient(g, is_greater(b, a), is_equal(a, b));
         },
     .known = &binary_elements::minimum,
     .chooses = true,
     .algebra = {.idempotent = true}},
    {.name = "equal",
     .doc = "Whether equal.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Eq>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::equal,
     .algebra = {.of_itself = true}},
    {.name = "not_equal",
     .doc = "Whether different.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Ne>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::not_equal,
     .algebra = {.of_itself = false}},
    {.name = "less",
     .doc = "Whether less.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Lt>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::less,
     .algebra = {.of_itself = false}},
    {.name = "less_equal",
     .doc = "Whether less or equal.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Le>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::less_equal,
     .algebra = {.of_itself = true}},
    {.name = "greater",
     .doc = "Whether greater.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Gt>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::greater,
     .algebra = {.of_itself = false}},
    {.name = "greater_equal",
     .doc = "Whether greater or equal.",
     .relation = broadcast_order,
     .compute = op<BinaryOp::Ge>,
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::greater_equal,
     .algebra = {.of_itself = true}},
    {.name = "logical_and",
     .doc = "Both.",
     .relation = broadcast_bool,
     .compute = op<BinaryOp::And>,
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::logical_and,
     .algebra = {.idempotent = true}},
    {.name = "logical_or",
     .doc = "Either.",
     .relation = broadcast_bool,
     .compute = op<BinaryOp::Or>,
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::logical_or,
     .algebra = {.idempotent = true}},
    {.name = "logical_xor",
     .doc = "One but not both.",
     .relation = broadcast_bool,
     .compute = op<BinaryOp::Ne>,
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable,
     .known = &binary_elements::logical_xor},
    {.name = "bitwise_and",
     .doc = "Bits set in both.",
     .relation = broadcast_bits,
     .compute = op<BinaryOp::BitAnd>,
     .dtype = "int32",
     .gradient = Absent::NotDifferentiable,
     .algebra = {.idempotent = true}},
    {.name = "bitwise_or",
     .doc = "Bits set in either.",
     .relation = broadcast_bits,
     .compute = op<BinaryOp::BitOr>,
     .dtype = "int32",
     .gradient = Absent::NotDifferentiable,
     .algebra = {.idempotent = true}},
    {.name = "bitwise_xor",
     .doc = "Bits set in one.",
     .relation = broadcast_bits,
     .compute = op<BinaryOp::BitXor>,
     .dtype = "int32",
     .gradient = Absent::NotDifferentiable},
    {.name = "left_shift",
     .doc = "Bits moved up.",
     .relation = broadcast_shift,
     .compute = op<BinaryOp::Shl>,
     .dtype = "int32",
     .low = 0,
     .high = 8,
     .gradient = Absent::NotDifferentiable},
    {.name = "right_shift",
     .doc = "Bits moved down, keeping the sign.",
     .relation = broadcast_shift,
     .compute = op<BinaryOp::Shr>,
     .dtype = "int32",
     .low = 0,
     .high = 8,
     .gradient = Absent::NotDifferentiable},
    {.name = "fixed_point_product",
     .doc = "lhs * rhs / 2^31 of int32, halves up: the low 32 bits.",
     .relation = broadcast_words,
     .compute =
         [](const PrimExpr& a, const PrimExpr& b) {
           return tir::call("fixed_point_product", a->dtype, {a, b});
         },
     .dtype = "int32",
     .low = -2e9,
     .high = 2e9,
     .gradient = Absent::NotDifferentiable},
};

OpInfo binary_row(const Binary& op) {
  auto compute = [element = op.compute](const ComputeContext& ctx) {
    TirTensor a = ctx.inputs[0], b = ctx.inputs[1];
    const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
    const bool strings = as<TensorTypeNode>(ctx.arg_types[0])->dtype.is_string();
    return tir::compute("T", shape, [&](const Indices& i) {
      PrimExpr x = broadcast_read(a, i, shape), y = broadcast_read(b, i, shape);
      return strings ? element(string_order(x, y), index(0)) : element(x, y);
    });
  };
  Column<GradientRule> gradient = op.gradient.reason();
  if (op.gradient) {
    gradient = [element = op.gradient.get()](const GradientContext& ctx) {
      Adjoints out = element(ctx.adjoint(), ctx.arg(0), ctx.arg(1));
      for (size_t i = 0; i < out.size(); ++i) out[i] = unbroadcast(out[i], ctx.arg(i));
      return out;
    };
  }
  std::optional<ElementMoves> moves;
  if (op.chooses) moves = ElementMoves{.of = {0, 1}, .by_order = true};
  QuantizedRule quantized = op.quantized;
  if (op.dialect != nullptr) quantized = by_dialect_of_two(op.dialect);
  auto example = [&](const std::string& lhs, const std::string& rhs) {
    auto type = [&](const std::string& shape) { return "Tensor[" + shape + ", " + op.dtype + "]"; };
    return OpExample{{type(lhs), type(rhs)}, "", op.low, op.high};
  };
  return {
      .name = op.name,
      .doc = op.doc,
      .args = {{"lhs", "The left side."}, {"rhs", "The right side."}},
      .fusion = FusionClass::Broadcast,
      .effect = Effect::Pure,
      .takes_narrow = op.relation == broadcast_order,
      .relation = op.relation,
      .compute = compute_rule(compute),
      .layout = follow_layout,
      .memory = Absent::OnePiece,
      .precision = op.precision,
      .cost = elementwise_cost,
      .gradient = std::move(gradient),
      .moves = std::move(moves),
      .known = op.known == nullptr ? nullptr : known_rules::binary(*op.known),
      .quantized = std::move(quantized),
      .algebra = op.algebra,
      .examples = {example("(2, 3)", "(2, 3)"), example("(2, 1, 4)", "(3, 1)"),
                   example("()", "(5,)"), example("(0, 3)", "(3,)")},
      .expected = Absent::ByNumPy,
  };
}

Type where_relation(RelationContext& ctx) {
  const TensorTypeNode *c = ctx.tensor(0), *x = ctx.tensor(1), *y = ctx.tensor(2);
  if (c == nullptr || x == nullptr || y == nullptr) return nullptr;
  if (!require(ctx, !c->dtype.is_only_moved(), codes::type_dtype, "the condition has no truth",
               "bool", c->dtype.to_string()))
    return nullptr;
  if (!require(ctx, x->dtype == y->dtype, codes::type_dtype, "x and y have different dtypes",
               "one dtype", x->dtype.to_string() + " and " + y->dtype.to_string()))
    return nullptr;
  auto shape = broadcast_shapes(ctx, x->shape, y->shape);
  if (shape) shape = broadcast_shapes(ctx, *shape, c->shape);
  return shape ? Type(tensor_type(std::move(*shape), x->dtype)) : nullptr;
}

TirTensor where_compute(const ComputeContext& ctx) {
  TirTensor c = ctx.inputs[0], x = ctx.inputs[1], y = ctx.inputs[2];
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  return tir::compute("T_where", shape, [&](const Indices& i) {
    return select(tir::cast(DType::Bool(), broadcast_read(c, i, shape)),
                  broadcast_read(x, i, shape), broadcast_read(y, i, shape));
  });
}

// The side that is not taken has the adjoint 0.
Adjoints where_gradient(const GradientContext& ctx) {
  Expr c = cast_to(ctx.arg(0), DType::Bool()), g = ctx.adjoint();
  return {nullptr, unbroadcast(choose(c, g, scalar(0, g)), ctx.arg(1)),
          unbroadcast(choose(c, scalar(0, g), g), ctx.arg(2))};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Binary>() {
  static const std::vector<OpInfo> rows = [] {
    std::vector<OpInfo> out;
    for (const Binary& op : kBinary) out.push_back(binary_row(op));
    return out;
  }();
  return rows;
}

template <>
std::span<const OpInfo> rows_of<Family::Where>() {
  static const OpInfo rows[] = {
      {
          .name = "where",
          .doc = "x where the condition holds, else y; all three broadcast.",
          .args = {{"condition", "bool."}, {"x", "Taken where true."}, {"y", "Taken where false."}},
          .fusion = FusionClass::Broadcast,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = where_relation,
          .compute = compute_rule(where_compute),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = where_gradient,
          .moves = ElementMoves{.of = {1, 2}, .map = element_maps::where},
          .examples =
              {{{"Tensor[(2, 3), bool]", "Tensor[(3,), float32]", "Tensor[(2, 1), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
