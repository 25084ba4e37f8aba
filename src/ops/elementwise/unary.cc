// Element-wise operators of one tensor without attributes.
#include <cmath>
#include <numbers>

#include "analysis/element_maps.h"
#include "analysis/known_rules.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/elementwise/narrow.h"
#include "ops/gradient.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT: rows are expressions of the tensor IR
using relay::CallNode;
using relay::Type;

PrimExpr f(const char* name, const PrimExpr& x) { return tir::call(name, x->dtype, {x}); }
PrimExpr k(const PrimExpr& like, double v) {
  return like->dtype.is_floating() ? imm_float(like->dtype, v)
                                   : imm(like->dtype, static_cast<int64_t>(v));
}

// The adjoint of the input x from that of the result y, g.
using UnaryGradient = Expr (*)(const Expr& g, const Expr& x, const Expr& y);

// An operator of one tensor, element by element; the range is that of its examples.
struct Unary {
  const char* name;
  const char* doc;
  Type (*relation)(RelationContext& ctx);
  PrimExpr (*compute)(const PrimExpr& x);
  double low = -2;
  double high = 2;
  const char* dtype = "float32";
  Precision precision = Precision::Follow;
  Column<UnaryGradient> gradient;
  bool only_sizes = false;  // matter
  const UnaryElement* known = nullptr;
  std::optional<double> fills = std::nullopt;  // the one number in the result
  bool copies = false;
  // Names: of an approximation, and of the operator on quantised tensors.
  const char* approximation = "";
  const char* dialect = nullptr;
  QuantizedResult (*quantized)(const QuantizedCall& q) = nullptr;
  Algebra algebra = {};
};

// Of steps: the derivative is 0 wherever there is one.
Expr no_slope(const Expr&, const Expr&, const Expr&) { return nullptr; }
Expr erf_gradient(const Expr& g, const Expr& x, const Expr&) {
  return g * (2 * std::numbers::inv_sqrtpi * apply("exp", {negative(x * x)}));
}
Expr exp_gradient(const Expr& g, const Expr&, const Expr& y) { return finite_product(g, y); }
Expr tanh_gradient(const Expr& g, const Expr&, const Expr& y) { return g * (1 - y * y); }
Expr one(const char* op, const Expr& x) { return apply(op, {x}); }

Type to_bool(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  return t == nullptr ? nullptr : Type(tensor_type(t->shape, DType::Bool()));
}

Type bool_identity(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t != nullptr && !require(ctx, t->dtype.is_bool(), codes::type_dtype, "needs a bool argument",
                               "bool", t->dtype.to_string())) {
    return nullptr;
  }
  return identity(ctx);
}

constexpr Unary kUnary[] = {
    {.name = "abs",
     .doc = "Absolute value.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x->dtype.is_bool() ? x : f("abs", x); },
     .gradient = [](const Expr& g, const Expr& x, const Expr&) { return g * one("sign", x); },
     .known = &unary_elements::abs,
     .dialect = "qnn.abs",
     .algebra = {.idempotent = true}},
    {.name = "acos",
     .doc = "Inverse cosine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("acos", x); },
     .low = -0.9,
     .high = 0.9,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return negative(finite_quotient(g, one("sqrt", 1 - x * x))); }},
    {.name = "acosh",
     .doc = "Inverse hyperbolic cosine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("acosh", x); },
     .low = 1.1,
     .high = 4,
     .precision = Precision::Never,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_quotient(g, one("sqrt", -1 + x * x)); }},
    {.name = "asin",
     .doc = "Inverse sine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("asin", x); },
     .low = -0.9,
     .high = 0.9,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_quotient(g, one("sqrt", 1 - x * x)); }},
    {.name = "asinh",
     .doc = "Inverse hyperbolic sine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("asinh", x); },
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return g / one("sqrt", 1 + x * x); }},
    {.name = "atan",
     .doc = "Inverse tangent.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("atan", x); },
     .gradient = [](const Expr& g, const Expr& x, const Expr&) { return g / (1 + x * x); }},
    {.name = "atanh",
     .doc = "Inverse hyperbolic tangent.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("atanh", x); },
     .low = -0.9,
     .high = 0.9,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_quotient(g, 1 - x * x); }},
    {.name = "bitwise_not",
     .doc = "Complement of every bit.",
     .relation = bits_identity,
     .compute = [](const PrimExpr& x) { return binary(BinaryOp::BitXor, x, k(x, -1)); },
     .dtype = "int32",
     .gradient = Absent::NotDifferentiable,
     .algebra = {.involution = true}},
    {.name = "ceil",
     .doc = "Least integer not below.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x->dtype.is_floating() ? f("ceil", x) : x; },
     .gradient = no_slope,
     .known = &unary_elements::ceil,
     .algebra = {.rounds = true}},
    {.name = "copy",
     .doc = "The same values.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x; },
     .gradient = [](const Expr& g, const Expr&, const Expr&) { return g; },
     .copies = true},
    {.name = "cos",
     .doc = "Cosine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("cos", x); },
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return negative(g * one("sin", x)); }},
    {.name = "cosh",
     .doc = "Hyperbolic cosine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("cosh", x); },
     .precision = Precision::Never,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_product(g, one("sinh", x)); }},
    {.name = "erf",
     .doc = "Error function.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("erf", x); },
     .precision = Precision::Never,
     .gradient = erf_gradient,
     .approximation = "fast_erf",
     .dialect = "qnn.erf"},
    {.name = "exp",
     .doc = "Exponential.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("exp", x); },
     .precision = Precision::Never,
     .gradient = exp_gradient,
     .approximation = "fast_exp",
     .dialect = "qnn.exp"},
    {.name = "fast_erf",
     .doc = "Error function; compiled for float32 it may be off by 5e-6.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("fast_erf", x); },
     .precision = Precision::Never,
     .gradient = erf_gradient},
    {.name = "fast_exp",
     .doc = "Exponential; compiled for float32 it may be off by 4e-6 of its size.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("fast_exp", x); },
     .precision = Precision::Never,
     .gradient = exp_gradient},
    {.name = "fast_tanh",
     .doc = "Hyperbolic tangent; compiled for float32 it may be off by 3e-6.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("fast_tanh", x); },
     .gradient = tanh_gradient},
    {.name = "floor",
     .doc = "Greatest integer not above.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x->dtype.is_floating() ? f("floor", x) : x; },
     .gradient = no_slope,
     .known = &unary_elements::floor,
     .algebra = {.rounds = true}},
    {.name = "isfinite",
     .doc = "Neither infinite nor NaN.",
     .relation = to_bool,
     .compute =
         [](const PrimExpr& x) {
           return x->dtype.is_floating() ? tir::call("isfinite", DType::Bool(), {x})
                                         : boolean(true);
         },
     .gradient = Absent::NotDifferentiable},
    {.name = "isinf",
     .doc = "Infinite.",
     .relation = to_bool,
     .compute =
         [](const PrimExpr& x) {
           return x->dtype.is_floating() ? tir::call("isinf", DType::Bool(), {x}) : boolean(false);
         },
     .gradient = Absent::NotDifferentiable},
    {.name = "isnan",
     .doc = "Not a number.",
     .relation = to_bool,
     .compute =
         [](const PrimExpr& x) {
           return x->dtype.is_floating() ? tir::call("isnan", DType::Bool(), {x}) : boolean(false);
         },
     .gradient = Absent::NotDifferentiable},
    {.name = "log",
     .doc = "Natural logarithm.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("log", x); },
     .low = 0.1,
     .high = 4,
     .precision = Precision::Never,
     .gradient = [](const Expr& g, const Expr& x, const Expr&) { return finite_quotient(g, x); },
     .dialect = "qnn.log"},
    {.name = "log10",
     .doc = "Logarithm to base 10.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("log10", x); },
     .low = 0.1,
     .high = 4,
     .precision = Precision::Never,
     .gradient =
         [](const Expr& g, const Expr& x, const Expr&) {
           return finite_quotient(g * scalar(std::numbers::log10e, g), x);
         }},
    {.name = "log2",
     .doc = "Logarithm to base 2.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("log2", x); },
     .low = 0.1,
     .high = 4,
     .precision = Precision::Never,
     .gradient =
         [](const Expr& g, const Expr& x, const Expr&) {
           return finite_quotient(g * scalar(std::numbers::log2e, g), x);
         }},
    {.name = "logical_not",
     .doc = "Negation of a bool.",
     .relation = bool_identity,
     .compute = [](const PrimExpr& x) { return logical_not(x); },
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable,
     .known = &unary_elements::logical_not,
     .algebra = {.involution = true}},
    {.name = "negative",
     .doc = "Negation.",
     .relation = identity,
     .compute =
         [](const PrimExpr& x) {
           return x->dtype.is_floating() ? x * imm_float(x->dtype, -1) : k(x, 0) - x;
         },
     .gradient = [](const Expr& g, const Expr&, const Expr&) { return negative(g); },
     .known = &unary_elements::negative,
     .algebra = {.involution = true}},
    {.name = "round",
     .doc = "Nearest integer, halves to even.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x->dtype.is_floating() ? f("round", x) : x; },
     .gradient = no_slope,
     .algebra = {.rounds = true}},
    {.name = "rsqrt",
     .doc = "One over the square root.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("rsqrt", x); },
     .low = 0.1,
     .high = 4,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_quotient(-0.5 * g, x * one("sqrt", x)); },
     .dialect = "qnn.rsqrt"},
    {.name = "sigmoid",
     .doc = "1 / (1 + exp(-x)).",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("sigmoid", x); },
     .gradient = [](const Expr& g, const Expr&, const Expr& y) { return g * (y * (1 - y)); },
     .dialect = "qnn.sigmoid"},
    {.name = "sign",
     .doc = "-1, 0 or 1; NaN stays.",
     .relation = identity,
     .compute =
         [](const PrimExpr& x) {
           return select(
               gt(x, k(x, 0)), k(x, 1),
               select(lt(x, k(x, 0)), k(x, -1), x->dtype.is_floating() ? x * k(x, 0) : k(x, 0)));
         },
     .gradient = no_slope,
     .algebra = {.idempotent = true}},
    {.name = "sin",
     .doc = "Sine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("sin", x); },
     .gradient = [](const Expr& g, const Expr& x, const Expr&) { return g * one("cos", x); }},
    {.name = "sinh",
     .doc = "Hyperbolic sine.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("sinh", x); },
     .precision = Precision::Never,
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return finite_product(g, one("cosh", x)); }},
    {.name = "sqrt",
     .doc = "Square root.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("sqrt", x); },
     .low = 0.1,
     .high = 4,
     .gradient = [](const Expr& g, const Expr&,
                    const Expr& y) { return finite_quotient(0.5 * g, y); },
     .known = &unary_elements::sqrt,
     .dialect = "qnn.sqrt"},
    {.name = "stop_gradient",
     .doc = "The same values, a constant for gradients.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x; },
     .gradient = no_slope},
    {.name = "tan",
     .doc = "Tangent.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("tan", x); },
     .low = -1,
     .high = 1,
     .precision = Precision::Never,
     .gradient = [](const Expr& g, const Expr&, const Expr& y) { return g * (1 + y * y); }},
    {.name = "tanh",
     .doc = "Hyperbolic tangent.",
     .relation = float_identity,
     .compute = [](const PrimExpr& x) { return f("tanh", x); },
     .gradient = tanh_gradient,
     .approximation = "fast_tanh",
     .dialect = "qnn.tanh"},
    {.name = "trunc",
     .doc = "Nearest integer towards zero.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return x->dtype.is_floating() ? f("trunc", x) : x; },
     .gradient = no_slope,
     .known = &unary_elements::trunc,
     .algebra = {.rounds = true}},
    {.name = "zeros_like",
     .doc = "Zeros of the same shape.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return k(x, 0); },
     .gradient = no_slope,
     .only_sizes = true,
     .fills = 0},
    {.name = "ones_like",
     .doc = "Ones of the same shape.",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return k(x, 1); },
     .gradient = no_slope,
     .only_sizes = true,
     .fills = 1},
    {.name = "nn.relu",
     .doc = "max(x, 0).",
     .relation = identity,
     .compute = [](const PrimExpr& x) { return max(x, k(x, 0)); },
     .gradient = [](const Expr& g, const Expr& x,
                    const Expr&) { return kept(is_greater(x, 0), g); },
     .quantized = quantized_relu,
     .algebra = {.idempotent = true}},
};

OpInfo unary_row(const Unary& op) {
  Column<GradientRule> gradient = op.gradient.reason();
  if (op.gradient) {
    gradient = [element = op.gradient.get()](const GradientContext& ctx) -> Adjoints {
      return {element(ctx.adjoint(), ctx.arg(0), ctx.result)};
    };
  }
  std::vector<OpExample> examples;
  for (const char* shape : {"(2, 3)", "()", "(0, 4)"}) {
    std::string type = "Tensor[" + std::string(shape) + ", " + op.dtype + "]";
    examples.push_back({{type}, "", op.low, op.high});
  }
  std::optional<ElementMoves> moves;
  if (op.copies) moves = ElementMoves{.map = element_maps::same_order};
  QuantizedRule quantized = op.quantized;
  if (op.dialect != nullptr) quantized = by_dialect(op.dialect);
  return {
      .name = op.name,
      .doc = op.doc,
      .args = {{"data", "The input."}},
      .fusion = FusionClass::ElemWise,
      .effect = Effect::Pure,
      .relation = op.relation,
      .compute = unary_rule(op.compute),
      .layout = follow_layout,
      .memory = Absent::OnePiece,
      .precision = op.precision,
      .cost = elementwise_cost,
      .gradient = std::move(gradient),
      .batching = op.only_sizes ? Absent::OnlySizes : Absent::Unsaid,
      .moves = std::move(moves),
      .known = op.known != nullptr ? known_rules::unary(*op.known)
               : op.fills          ? known_rules::filled(*op.fills)
                                   : nullptr,
      .quantized = std::move(quantized),
      .approximation = op.approximation,
      .algebra = op.algebra,
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Unary>() {
  static const std::vector<OpInfo> rows = [] {
    std::vector<OpInfo> out;
    for (const Unary& op : kUnary) out.push_back(unary_row(op));
    return out;
  }();
  return rows;
}

}  // namespace relay::ops
