// Operators that treat each element alone: arithmetic, comparison, logic, activations, casts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/activation.h"
#include "frontend/common/power.h"
#include "frontend/onnx/activation_names.h"
#include "frontend/onnx/converters.h"
#include "frontend/onnx/tensor_data.h"

namespace relay::frontend::onnx {
namespace {

struct Name {
  std::string_view onnx;
  const char* relay;
};

constexpr Name kUnary[] = {
    {"Abs", "abs"},         {"Acos", "acos"},    {"Acosh", "acosh"}, {"Asin", "asin"},
    {"Asinh", "asinh"},     {"Atan", "atan"},    {"Atanh", "atanh"}, {"BitwiseNot", "bitwise_not"},
    {"Ceil", "ceil"},       {"Cos", "cos"},      {"Cosh", "cosh"},   {"Erf", "erf"},
    {"Exp", "exp"},         {"Floor", "floor"},  {"Log", "log"},     {"Neg", "negative"},
    {"Not", "logical_not"}, {"Relu", "nn.relu"}, {"Round", "round"}, {"Sigmoid", "sigmoid"},
    {"Sign", "sign"},       {"Sin", "sin"},      {"Sinh", "sinh"},   {"Sqrt", "sqrt"},
    {"Tan", "tan"},         {"Tanh", "tanh"},
};
constexpr Name kBinary[] = {
    {"Add", "add"},
    {"And", "logical_and"},
    {"BitwiseAnd", "bitwise_and"},
    {"BitwiseOr", "bitwise_or"},
    {"BitwiseXor", "bitwise_xor"},
    {"Div", "divide"},
    {"Equal", "equal"},
    {"Greater", "greater"},
    {"GreaterOrEqual", "greater_equal"},
    {"Less", "less"},
    {"LessOrEqual", "less_equal"},
    {"Max", "maximum"},
    {"Mean", "add"},
    {"Min", "minimum"},
    {"Mul", "multiply"},
    {"Or", "logical_or"},
    {"Sub", "subtract"},
    {"Sum", "add"},
    {"Xor", "logical_xor"},
};

template <size_t N>
const char* relay_name(const Name (&names)[N], std::string_view onnx) {
  for (const Name& n : names) {
    if (n.onnx == onnx) return n.relay;
  }
  RELAY_CHECK(false, std::string(onnx));
  return nullptr;
}

Values convert_unary(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (ctx.op_type() == "Reciprocal") return {value_of(ctx.div(ctx.scalar_like(1, x), x))};
  DType dtype = NodeContext::dtype_of(x);
  bool rounds = ctx.op_type() == "Ceil" || ctx.op_type() == "Floor" || ctx.op_type() == "Round";
  if (rounds && !dtype.is_floating()) return {value_of(x)};
  return {value_of(ctx.call(relay_name(kUnary, ctx.op_type()), {x}))};
}

// The second operand as it broadcasts to the first: before opset 7 the axis says where it stands, and
// without it at the end, as since.
Expr second_operand(NodeContext& ctx, const Expr& first) {
  Expr b = ctx.in(1);
  if (ctx.opset() >= 7 || ctx.attr("broadcast", 0) == 0 || !ctx.has_attr("axis")) return b;
  const int64_t rank = NodeContext::rank_of(first), own = NodeContext::rank_of(b);
  if (own == 0 || own > rank) return b;
  int64_t axis = ctx.axis(ctx.attr("axis", 0), rank);
  if (axis + own > rank) {
    ctx.fail(codes::frontend_attribute, "the second operand does not fit behind the axis",
             "at most " + std::to_string(rank - own), std::to_string(axis));
  }
  return ctx.expand_dims(b, own, rank - axis - own);
}

Values convert_binary(NodeContext& ctx) {
  Expr a = ctx.in(0), b = second_operand(ctx, a);
  const char* name = relay_name(kBinary, ctx.op_type());
  // Integers are divided towards zero.
  if (ctx.op_type() == "Div" && !NodeContext::dtype_of(a).is_floating()) name = "trunc_divide";
  return {value_of(ctx.call(name, {a, b}))};
}

Values convert_variadic(NodeContext& ctx) {
  std::vector<Expr> xs = ctx.all();
  const char* name = relay_name(kBinary, ctx.op_type());
  Expr out = xs[0];
  for (size_t i = 1; i < xs.size(); ++i) out = ctx.call(name, {out, xs[i]});
  if (ctx.op_type() == "Mean" && xs.size() > 1) {
    out = ctx.div(out, ctx.scalar_like(static_cast<double>(xs.size()), out));
  }
  return {value_of(out)};
}

Values convert_pow(NodeContext& ctx) {
  Expr x = ctx.in(0);
  DType dtype = NodeContext::dtype_of(x);
  // Small whole exponents are products; what else is asked for needs the general operator.
  auto exponent = ctx.const_scalar(1);
  bool keeps_shape =
      ctx.known(1) && static_cast<int64_t>(ctx.known(1)->shape.size()) <= NodeContext::rank_of(x);
  if (exponent && keeps_shape) {
    if (Expr y = short_power(ctx, x, *exponent)) return {value_of(y)};
  }
  Expr y = second_operand(ctx, x);
  DType other = NodeContext::dtype_of(y);
  if (!dtype.is_floating() && other.is_floating()) {
    return {value_of(ctx.cast(ctx.call("power", {ctx.cast(x, other), y}), dtype))};
  }
  return {value_of(ctx.call("power", {x, ctx.cast(y, dtype)}))};
}

Values convert_mod(NodeContext& ctx) {
  Expr a = ctx.in(0), b = ctx.in(1);
  bool like_c = ctx.attr("fmod", 0) != 0;
  // Since opset 28 a remainder of floats may have the sign of the divisor, too.
  if (!like_c && NodeContext::dtype_of(a).is_floating() && ctx.opset() < 28) {
    ctx.fail(codes::frontend_attribute, "a remainder of floats needs fmod=1", "fmod=1", "fmod=0");
  }
  return {value_of(ctx.call(like_c ? "trunc_mod" : "floor_mod", {a, b}))};
}

Values convert_bit_shift(NodeContext& ctx) {
  std::string direction = ctx.attr_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT") {
    ctx.fail(codes::frontend_attribute, "attribute 'direction' has an unknown value",
             "LEFT or RIGHT", direction);
  }
  const char* name = direction == "LEFT" ? "left_shift" : "right_shift";
  return {value_of(ctx.call(name, {ctx.in(0), ctx.in(1)}))};
}

Values convert_activation(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const std::string& op = ctx.op_type();
  if (const ActivationName* row = find_activation(op)) {
    auto number = [&](const char* attr, std::optional<double> otherwise) {
      return otherwise ? ctx.attr_float(attr, *otherwise) : 0;
    };
    return {value_of(
        activate(ctx, {row->kind, number("alpha", row->alpha), number("beta", row->beta)}, x))};
  }
  Expr y;
  if (op == "Selu") {
    double alpha = ctx.attr_float("alpha", 1.67326319217681884765625);
    double gamma = ctx.attr_float("gamma", 1.05070102214813232421875);
    y = ctx.mul(elu(ctx, x, alpha), ctx.scalar_like(gamma, x));
  } else if (op == "Celu") {
    double alpha = ctx.attr_float("alpha", 1.0);
    if (alpha == 0) ctx.fail(codes::frontend_attribute, "alpha must not be zero");
    y = elu(ctx, x, alpha, alpha);
  } else if (op == "HardSwish") {
    y = hard_swish(ctx, x);
  } else if (op == "Mish") {
    y = mish(ctx, x);
  } else if (op == "Shrink") {
    y = shrink(ctx, x, ctx.attr_float("lambd", 0.5), ctx.attr_float("bias", 0.0));
  } else if (op == "Swish" || op == "QuickGelu") {
    y = swish(ctx, x, ctx.attr_float("alpha", op == "Swish" ? 1.0 : 1.702));
  }
  RELAY_CHECK(y != nullptr, op);
  return {value_of(y)};
}

Values convert_prelu(NodeContext& ctx) {
  Expr x = ctx.in(0), slope = ctx.in(1);
  // Before opset 7 a vector has an entry for each channel.
  if (ctx.opset() < 7 && NodeContext::rank_of(slope) == 1 && NodeContext::rank_of(x) > 2 &&
      as_const(NodeContext::shape_of(slope)[0]) != 1) {
    slope = ctx.expand_dims(slope, 1, NodeContext::rank_of(x) - 2);
  }
  return {value_of(prelu(ctx, x, slope))};
}

Values convert_gelu(NodeContext& ctx) {
  std::string approximate = ctx.attr_string("approximate", "none");
  if (approximate != "tanh" && approximate != "none") {
    ctx.fail(codes::frontend_attribute, "attribute 'approximate' has an unknown value",
             "none or tanh", approximate);
  }
  Expr x = ctx.in(0);
  return {value_of(approximate == "tanh" ? gelu_by_tanh(ctx, x) : gelu(ctx, x))};
}

Values convert_clip_attrs(NodeContext& ctx) {
  constexpr double kMax = 3.4028234663852886e38;
  double low = ctx.attr_float("min", -kMax), high = ctx.attr_float("max", kMax);
  return {value_of(ctx.clip(ctx.in(0), low, high))};
}

Values convert_clip(NodeContext& ctx) {
  Expr x = ctx.in(0);
  auto low = ctx.const_scalar(1), high = ctx.const_scalar(2);
  if (NodeContext::dtype_of(x).is_floating() && low && high) {
    return {value_of(ctx.clip(x, *low, *high))};
  }
  if (ctx.has(1)) x = ctx.maximum(x, ctx.in(1));
  if (ctx.has(2)) x = ctx.minimum(x, ctx.in(2));
  return {value_of(x)};
}

Expr cast_to(NodeContext& ctx, DType to) {
  Expr x = ctx.in(0);
  const DType from = NodeContext::dtype_of(x);
  if (to.is_string()) return from.is_string() ? x : ctx.call("text.format", {x});
  if (from.is_string()) {
    if (to.is_bool()) ctx.unsupported("a Cast of strings to bool");
    const DType read = to.is_narrow() ? DType::Float(32) : to;
    x = ctx.call("text.parse", {x}, {{"dtype", to_value(read)}});
  }
  if (!to.is_narrow()) return ctx.cast(x, to);
  if (NodeContext::dtype_of(x) == to) return x;
  return ctx.call("cast", {x},
                  {{"dtype", to_value(to)},
                   {"saturate", ctx.attr("saturate", 1) != 0},
                   {"round_mode", ctx.attr_string("round_mode", "up")}});
}

// Before opset 6 the type is given by its name.
Values convert_cast_name(NodeContext& ctx) {
  std::string name = ctx.attr_string("to", "");
  for (int type = 1; type < 64; ++type) {
    auto dtype = dtype_of(type);
    if (dtype && onnx_type_name(type) == name) return {value_of(cast_to(ctx, *dtype))};
  }
  ctx.fail(codes::frontend_attribute, "attribute 'to' names a type that Relay lacks",
           "FLOAT, INT64, ...", name.substr(0, 100));
}

Values convert_cast(NodeContext& ctx) {
  return {value_of(cast_to(ctx, ctx.attr_dtype("to", DType::Float(32))))};
}

Values convert_cast_like(NodeContext& ctx) {
  return {value_of(cast_to(ctx, NodeContext::dtype_of(ctx.in(1))))};
}

Values convert_bit_cast(NodeContext& ctx) {
  Expr x = ctx.in(0);
  DType to = ctx.attr_dtype("to", DType::Float(32));
  DType from = NodeContext::dtype_of(x);
  if (to == from) return {value_of(x)};
  if (to.bytes() != from.bytes()) {
    ctx.fail(codes::frontend_attribute, "the two types must have the same width", from.to_string(),
             to.to_string());
  }
  return {value_of(ctx.call("reinterpret", {x}, {{"dtype", to_value(to)}}))};
}

// 1 above the threshold, 0 up to it.
Values convert_binarizer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  Expr above = ctx.call("greater", {x, ctx.scalar_like(ctx.attr_float("threshold", 0), x)});
  return {value_of(ctx.cast(above, NodeContext::dtype_of(x)))};
}

Values convert_where(NodeContext& ctx) {
  return {value_of(ctx.where(ctx.in(0), ctx.in(1), ctx.in(2)))};
}

// The first input; a float of 8 bits or fewer as one that is computed with.
Expr comparable(NodeContext& ctx) {
  Expr x = ctx.in(0);
  return NodeContext::dtype_of(x).is_narrow() ? ctx.cast(x, DType::Float(32)) : x;
}

Values convert_is_nan(NodeContext& ctx) { return {value_of(ctx.call("isnan", {comparable(ctx)}))}; }

Values convert_is_inf(NodeContext& ctx) {
  Expr x = comparable(ctx);
  bool negative = ctx.attr("detect_negative", 1) != 0;
  bool positive = ctx.attr("detect_positive", 1) != 0;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  if (negative && positive) return {value_of(ctx.call("isinf", {x}))};
  if (!negative && !positive) {
    return {value_of(ctx.full(0, NodeContext::shape_of(x), DType::Bool()))};
  }
  return {value_of(ctx.call("equal", {x, ctx.scalar_like(negative ? -kInf : kInf, x)}))};
}

Values convert_identity(NodeContext& ctx) { return {ctx.value(0)}; }

// Swish of the first input times the second.
Values convert_swiglu(NodeContext& ctx) {
  Expr gate = ctx.in(0);
  Expr scaled = ctx.mul(gate, ctx.scalar_like(ctx.attr_float("alpha", 1), gate));
  return {value_of(ctx.mul(ctx.mul(gate, ctx.call("sigmoid", {scaled})), ctx.in(1)))};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Elementwise>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "Abs", 1, convert_unary},
      {kOnnx, "Acos", 7, convert_unary},
      {kOnnx, "Acosh", 9, convert_unary},
      {kOnnx, "Add", 1, convert_binary},
      {kOnnx, "And", 1, convert_binary},
      {kOnnx, "Asin", 7, convert_unary},
      {kOnnx, "Asinh", 9, convert_unary},
      {kOnnx, "Atan", 7, convert_unary},
      {kOnnx, "Atanh", 9, convert_unary},
      {kOnnx, "BitCast", 26, convert_bit_cast},
      {kOnnx, "BitShift", 11, convert_bit_shift},
      {kOnnx, "BitwiseAnd", 18, convert_binary},
      {kOnnx, "BitwiseNot", 18, convert_unary},
      {kOnnx, "BitwiseOr", 18, convert_binary},
      {kOnnx, "BitwiseXor", 18, convert_binary},
      {kOnnx, "Cast", 1, convert_cast_name},
      {kOnnx, "Cast", 6, convert_cast},
      {kOnnx, "CastLike", 15, convert_cast_like},
      {kOnnx, "Ceil", 1, convert_unary},
      {kOnnx, "Celu", 12, convert_activation, kInFloat32},
      {kOnnx, "Clip", 1, convert_clip_attrs},
      {kOnnx, "Clip", 11, convert_clip},
      {kOnnx, "Cos", 7, convert_unary},
      {kOnnx, "Cosh", 9, convert_unary},
      {kOnnx, "Div", 1, convert_binary},
      {kOnnx, "Elu", 1, convert_activation, kInFloat32},
      {kOnnx, "Equal", 1, convert_binary},
      {kOnnx, "Erf", 9, convert_unary},
      {kOnnx, "Exp", 1, convert_unary},
      {kOnnx, "Floor", 1, convert_unary},
      {kOnnx, "Gelu", 20, convert_gelu, kInFloat32},
      {kOnnx, "Greater", 1, convert_binary},
      {kOnnx, "GreaterOrEqual", 12, convert_binary},
      {kOnnx, "HardSigmoid", 1, convert_activation, kInFloat32},
      {kOnnx, "HardSwish", 14, convert_activation, kInFloat32},
      {kOnnx, "Identity", 1, convert_identity},
      {kOnnx, "IsInf", 10, convert_is_inf},
      {kOnnx, "IsNaN", 9, convert_is_nan},
      {kOnnx, "LeakyRelu", 1, convert_activation},
      {kOnnx, "Less", 1, convert_binary},
      {kOnnx, "LessOrEqual", 12, convert_binary},
      {kOnnx, "Log", 1, convert_unary},
      {kOnnx, "Max", 1, convert_variadic},
      {kOnnx, "Mean", 1, convert_variadic, kInFloat32},
      {kOnnx, "Min", 1, convert_variadic},
      {kOnnx, "Mish", 18, convert_activation, kInFloat32},
      {kOnnx, "Mod", 10, convert_mod},
      {kOnnx, "Mul", 1, convert_binary},
      {kOnnx, "Neg", 1, convert_unary},
      {kOnnx, "Not", 1, convert_unary},
      {kOnnx, "Or", 1, convert_binary},
      {kOnnx, "PRelu", 1, convert_prelu},
      {kOnnx, "Pow", 1, convert_pow},
      {kOnnx, "Reciprocal", 1, convert_unary},
      {kOnnx, "Relu", 1, convert_unary},
      {kOnnx, "Round", 11, convert_unary},
      {kOnnx, "Selu", 1, convert_activation, kInFloat32},
      {kOnnx, "Shrink", 9, convert_activation},
      {kOnnx, "Sigmoid", 1, convert_unary},
      {kOnnx, "Sign", 9, convert_unary},
      {kOnnx, "Sin", 7, convert_unary},
      {kOnnx, "Sinh", 9, convert_unary},
      {kOnnx, "Softplus", 1, convert_activation, kInFloat32},
      {kOnnx, "Softsign", 1, convert_activation, kInFloat32},
      {kOnnx, "Sqrt", 1, convert_unary},
      {kOnnx, "Sub", 1, convert_binary},
      {kOnnx, "Sum", 1, convert_variadic, kInFloat32},
      {kOnnx, "SwiGLU", 28, convert_swiglu, kInFloat32},
      {kOnnx, "Swish", 24, convert_activation, kInFloat32},
      {kMl, "Binarizer", 1, convert_binarizer},
      {kOnnx, "Tan", 7, convert_unary},
      {kOnnx, "Tanh", 1, convert_unary},
      {kOnnx, "ThresholdedRelu", 1, convert_activation},
      {kOnnx, "Where", 9, convert_where},
      {kOnnx, "Xor", 1, convert_binary},
      {kMicrosoft, "Gelu", 1, convert_gelu, kInFloat32},
      {kMicrosoft, "QuickGelu", 1, convert_activation, kInFloat32},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
