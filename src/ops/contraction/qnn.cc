// The quantised dialect: integers that stand for real numbers, real = scale * (integer - zero_point).
//
// Every operator is written in others (the column `definition`). Element-wise operators, softmax and
// average pooling compute the real result in float32 and round it once; sums of products are exact,
// in 32-bit integers (qnn_contraction.cc). A scale is one number, or a vector along `axis`; so is a
// zero point.
#include <algorithm>
#include <cmath>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/common.h"
#include "ops/contraction/qnn.h"
#include "ops/expressions.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::Type;

const DType kFloat = DType::Float(32);

// Where halves go.
constexpr const char *kUpward = "UPWARD", *kAwayFromZero = "TONEAREST", *kToEven = "TONEAREST_EVEN";

struct QuantizeAttrs : AttrsOf<QuantizeAttrs> {
  int64_t axis = -1;
  DType out_dtype = DType::Int(8);
  std::string rounding = kToEven;
  static AttrsList describe() {
    return {"relay.attrs.QuantizeAttrs",
            {attribute("axis", &Self::axis, "The axis of a vector of scales or zero points."),
             attribute("out_dtype", &Self::out_dtype, "int8, uint8, int16, uint16 or int32."),
             attribute("rounding", &Self::rounding,
                       "TONEAREST_EVEN: halves go to the even neighbour; UPWARD: up; TONEAREST: "
                       "away from zero.")}};
  }
};

struct DequantizeAttrs : AttrsOf<DequantizeAttrs> {
  int64_t axis = -1;
  DType out_dtype = kFloat;
  static AttrsList describe() {
    return {"relay.attrs.DequantizeAttrs",
            {attribute("axis", &Self::axis, "The axis of a vector of scales or zero points."),
             attribute("out_dtype", &Self::out_dtype, "float16, float32 or float64.")}};
  }
};

struct RequantizeAttrs : AttrsOf<RequantizeAttrs> {
  int64_t axis = -1;
  std::string rounding = "None";
  std::string compute_dtype = "None";
  DType out_dtype = DType::Int(8);
  static AttrsList describe() {
    return {
        "relay.attrs.RequantizeAttrs",
        {attribute("axis", &Self::axis, "The axis of a vector of scales or zero points."),
         attribute("rounding", &Self::rounding,
                   "UPWARD: halves go up; TONEAREST: away from zero; TONEAREST_EVEN: to the even "
                   "neighbour. None: UPWARD."),
         attribute(
             "compute_dtype", &Self::compute_dtype,
             "float32, float64, or int64: a product with a 31-bit multiplier and a shift, for "
             "constant scales. None: float32."),
         attribute("out_dtype", &Self::out_dtype, "int8, uint8, int16, uint16 or int32.")}};
  }
};

struct SimulatedQuantizeAttrs : AttrsOf<SimulatedQuantizeAttrs> {
  int64_t axis = -1;
  static AttrsList describe() {
    return {"relay.attrs.SimulatedQuantizeAttrs",
            {attribute("axis", &Self::axis, "The axis of a vector of scales or zero points.")}};
  }
};

struct QnnBroadcastAttrs : AttrsOf<QnnBroadcastAttrs> {
  int64_t lhs_axis = -1, rhs_axis = -1;
  static AttrsList describe() {
    return {"relay.attrs.qnn.BroadcastAttrs",
            {attribute("lhs_axis", &Self::lhs_axis, "The axis of a vector of scales of `lhs`."),
             attribute("rhs_axis", &Self::rhs_axis, "The axis of a vector of scales of `rhs`.")}};
  }
};

struct QnnLeakyReluAttrs : AttrsOf<QnnLeakyReluAttrs> {
  double alpha = 0.25;
  static AttrsList describe() {
    return {"relay.attrs.qnn.LeakyReluAttrs",
            {attribute("alpha", &Self::alpha, "What negative numbers are multiplied by.")}};
  }
};

constexpr const char* kRoundings = "UPWARD, TONEAREST or TONEAREST_EVEN";

bool is_rounding(const std::string& name) {
  return name == kUpward || name == kAwayFromZero || name == kToEven;
}

bool is_quantized(DType d) { return d.is_integer() && (d.bits == 8 || d.bits == 16); }

bool check_dtype(RelationContext& ctx, bool holds, const char* what, const char* expected,
                 DType found) {
  return require(ctx, holds, codes::type_dtype, what, expected, found.to_string());
}

// The nearest integer, halves as `rounding` says; "None" is UPWARD.
Expr rounded(const Expr& x, const std::string& rounding) {
  Expr half = scalar(0.5, x);
  if (rounding == kToEven) return apply("round", {x});
  if (rounding != kAwayFromZero) return apply("floor", {x + half});
  return apply("sign", {x}) * apply("floor", {apply("abs", {x}) + half});
}

// clip(round(real / scale) + zero).
Expr integers_of(const Expr& real, const Expr& scale, const Expr& zero, int64_t axis, DType to,
                 const std::string& rounding) {
  int64_t rank = rank_of(real);
  DType dtype = type_of(real).dtype;
  Expr q = rounded(real / along_data(cast_to(scale, dtype), axis, rank), rounding);
  if (!is_zero(zero)) q = q + cast_to(along_data(zero, axis, rank), dtype);
  return saturated(q, to);
}

}  // namespace

bool check_quantization(RelationContext& ctx, size_t scale, size_t zero,
                        const std::vector<Dim>& shape, int64_t axis) {
  const TensorTypeNode *s = ctx.tensor(scale), *z = ctx.tensor(zero);
  if (s == nullptr || z == nullptr) return false;
  if (!check_dtype(ctx, s->dtype == kFloat, "a scale has an unsuitable dtype", "float32",
                   s->dtype) ||
      !check_dtype(ctx, z->dtype == kInt, "a zero point has an unsuitable dtype", "int32",
                   z->dtype))
    return false;
  for (const TensorTypeNode* p : {s, z}) {
    if (p->rank() == 0 || (p->rank() == 1 && as_const(p->shape[0]) == 1)) continue;
    auto at = normal_axis(ctx, axis, static_cast<int64_t>(shape.size()));
    if (!at) return false;
    if (!require(ctx, p->rank() == 1 && ctx.equal(p->shape[0], shape[static_cast<size_t>(*at)]),
                 codes::type_shape, "a scale or zero point does not fit the axis",
                 "a number, or (" + to_string(shape[static_cast<size_t>(*at)]) + ",)",
                 shape_text(p->shape)))
      return false;
  }
  return true;
}

Expr along_data(const Expr& p, int64_t axis, int64_t rank) {
  if (rank_of(p) == 0) return p;
  if (as_const(type_of(p).shape[0]) == 1) return reshape_to(p, {});
  return along(p, axis, rank);
}

bool is_zero(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr) return false;
  for (int64_t i = 0; i < c->data.num_elements(); ++i) {
    if (c->data.get_as_double(i) != 0) return false;
  }
  return true;
}

void check_constants(const CallNode& call, const Expr& scale, const Expr& zero, DType dtype) {
  auto refuse = [&](const std::string& what, const std::string& expected, double found) {
    throw UserError(Diagnostic(codes::op_quantization, call.span,
                               as<OpNode>(call.op)->name + " has " + what + " out of range")
                        .expected(expected)
                        .found(to_string(AttrValue(found))));
  };
  if (auto* c = as<ConstantNode>(scale)) {
    for (int64_t i = 0; i < c->data.num_elements(); ++i) {
      double s = c->data.get_as_double(i);
      if (!std::isfinite(s) || s <= 0) refuse("a scale", "a finite number above 0", s);
    }
  }
  auto* c = as<ConstantNode>(zero);
  if (c == nullptr || dtype.bits > 16) return;
  auto [low, high] = range_of(dtype);
  for (int64_t i = 0; i < c->data.num_elements(); ++i) {
    double z = c->data.get_as_double(i);
    if (z < low || z > high) {
      refuse("a zero point",
             to_string(AttrValue(low)) + " to " + to_string(AttrValue(high)) + ", as " +
                 dtype.to_string(),
             z);
    }
  }
}

Expr centred(const Expr& q, const Expr& zero, int64_t axis) {
  Expr wide = cast_to(q, kInt);
  return is_zero(zero) ? wide : wide - along_data(zero, axis, rank_of(q));
}

std::pair<double, double> range_of(DType dtype) {
  double n = std::ldexp(1.0, dtype.bits);
  return dtype.is_int() ? std::pair{-n / 2, n / 2 - 1} : std::pair{0.0, n - 1};
}

Expr dequantized(const Expr& q, const Expr& scale, const Expr& zero, int64_t axis) {
  return cast_to(centred(q, zero, axis), kFloat) * along_data(scale, axis, rank_of(q));
}

Expr saturated(const Expr& rounded, DType to) {
  // The bounds of 32 bits are no float32: the next ones inside are.
  auto [low, high] = range_of(to);
  if (to.bits == 32 && type_of(rounded).dtype == kFloat) high = 2147483520.0;
  return cast_to(apply("clip", {rounded}, {{"a_min", low}, {"a_max", high}}), to);
}

Expr quantized(const Expr& real, const Expr& scale, const Expr& zero, int64_t axis, DType to) {
  return integers_of(real, scale, zero, axis, to, kToEven);
}

LayoutRule layout_rule_of(const OpInfo& row) {
  return
      [&row](const relay::CallNode& call, std::span<const Layout> offered, const Layout& desired) {
        std::optional<LayoutDecision> out = row.layout(call, offered, desired);
        if (out) out->inputs.resize(call.args.size());
        return out;
      };
}

OpInfo quantized_row(std::string name, std::string doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                     TypeRelation relation, DefinitionRule definition, CostRule cost,
                     std::vector<OpExample> examples) {
  return {
      .name = std::move(name),
      .doc = std::move(doc),
      .args = std::move(args),
      .attrs = std::move(attrs),
      .support_level = 11,
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .relation = std::move(relation),
      .compute = Absent::Defined,
      .definition = std::move(definition),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = std::move(cost),
      .gradient = Absent::NotDifferentiable,
      .batching = Absent::LaneByLane,
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

namespace {

// ---- Relations

Type quantize_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<QuantizeAttrs>();
  if (!check_dtype(ctx, x->dtype.is_floating(), "only floats are quantised", "float32", x->dtype) ||
      !check_dtype(ctx, is_quantized(a.out_dtype) || a.out_dtype == kInt,
                   "out_dtype is not supported", "int8, uint8, int16, uint16 or int32",
                   a.out_dtype) ||
      !require(ctx, is_rounding(a.rounding), codes::op_bad_attribute, "rounding is not known",
               kRoundings, a.rounding) ||
      !check_quantization(ctx, 1, 2, x->shape, a.axis))
    return nullptr;
  return tensor_type(x->shape, a.out_dtype);
}

Type dequantize_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<DequantizeAttrs>();
  if (!check_dtype(ctx, is_quantized(x->dtype) || x->dtype == kInt,
                   "the quantised dtype is not supported", "int8, uint8, int16, uint16 or int32",
                   x->dtype) ||
      !check_dtype(ctx, a.out_dtype.is_floating(), "out_dtype is not supported", "a floating dtype",
                   a.out_dtype) ||
      !check_quantization(ctx, 1, 2, x->shape, a.axis))
    return nullptr;
  return tensor_type(x->shape, a.out_dtype);
}

Type requantize_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<RequantizeAttrs>();
  if (!check_dtype(ctx, is_quantized(x->dtype) || x->dtype == kInt,
                   "the quantised dtype is not supported", "int8, uint8, int16, uint16 or int32",
                   x->dtype) ||
      !check_dtype(ctx, is_quantized(a.out_dtype) || a.out_dtype == kInt,
                   "out_dtype is not supported", "int8, uint8, int16, uint16 or int32",
                   a.out_dtype) ||
      !require(ctx, a.rounding == "None" || is_rounding(a.rounding), codes::op_bad_attribute,
               "rounding is not known", kRoundings, a.rounding) ||
      !require(ctx,
               a.compute_dtype == "None" || a.compute_dtype == "int64" ||
                   a.compute_dtype == "float32" || a.compute_dtype == "float64",
               codes::op_bad_attribute, "compute_dtype is not known", "int64, float32 or float64",
               a.compute_dtype) ||
      !require(ctx, a.compute_dtype != "int64" || a.rounding != kToEven, codes::op_bad_attribute,
               "this rounding is not done in integers",
               "UPWARD or TONEAREST with compute_dtype int64", a.rounding) ||
      !check_quantization(ctx, 1, 2, x->shape, a.axis) ||
      !check_quantization(ctx, 3, 4, x->shape, a.axis))
    return nullptr;
  return tensor_type(x->shape, a.out_dtype);
}

Type simulated_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *code = ctx.tensor(1);
  if (x == nullptr || code == nullptr) return nullptr;
  if (!check_dtype(ctx, x->dtype == kFloat, "simulated quantisation is of floats", "float32",
                   x->dtype) ||
      !require(ctx, code->rank() == 0 && code->dtype == kInt, codes::type_mismatch,
               "the code of a dtype is a number", "Tensor[(), int32]", to_string(Type(code))) ||
      !check_quantization(ctx, 2, 3, x->shape, ctx.attrs<SimulatedQuantizeAttrs>().axis))
    return nullptr;
  return Type(x);
}

// Data of one or two bytes, with scale and zero point, and those of the result behind it.
template <size_t kData>
Type real_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  if (!check_dtype(ctx, is_quantized(x->dtype), "the quantised dtype is not supported",
                   "int8, uint8, int16 or uint16", x->dtype) ||
      !check_quantization(ctx, kData, kData + 1, x->shape, -1) ||
      !check_quantization(ctx, kData + 2, kData + 3, x->shape, -1))
    return nullptr;
  return Type(x);
}

Type binary_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr) return nullptr;
  auto& a = ctx.attrs<QnnBroadcastAttrs>();
  if (!check_dtype(ctx, is_quantized(x->dtype), "the quantised dtype is not supported",
                   "int8, uint8, int16 or uint16", x->dtype) ||
      !require(ctx, x->dtype == y->dtype, codes::type_dtype, "the arguments have different dtypes",
               "one dtype", x->dtype.to_string() + " and " + y->dtype.to_string()))
    return nullptr;
  auto shape = broadcast_shapes(ctx, x->shape, y->shape);
  if (!shape || !check_quantization(ctx, 2, 3, x->shape, a.lhs_axis) ||
      !check_quantization(ctx, 4, 5, y->shape, a.rhs_axis) ||
      !check_quantization(ctx, 6, 7, *shape, -1))
    return nullptr;
  return tensor_type(std::move(*shape), x->dtype);
}

Type concatenate_relation(RelationContext& ctx) {
  auto parts = ctx.tensors(0), scales = ctx.tensors(1), zeros = ctx.tensors(2);
  if (!parts || !scales || !zeros) return nullptr;
  if (!require(ctx, scales->size() == parts->size() && zeros->size() == parts->size(),
               codes::type_arity, "every tensor needs a scale and a zero point",
               std::to_string(parts->size()) + " of each",
               std::to_string(scales->size()) + " and " + std::to_string(zeros->size())))
    return nullptr;
  for (size_t i = 0; i < parts->size(); ++i) {
    if (!require(ctx,
                 (*scales)[i]->rank() == 0 && (*scales)[i]->dtype == kFloat &&
                     (*zeros)[i]->rank() == 0 && (*zeros)[i]->dtype == kInt,
                 codes::type_mismatch, "the scale or zero point of a tensor is unsuitable",
                 "float32 and int32 numbers",
                 to_string(Type((*scales)[i])) + " and " + to_string(Type((*zeros)[i]))))
      return nullptr;
  }
  Type out = ctx.by_relation(*operator_row("concatenate"), {0});
  auto* t = as<TensorTypeNode>(out);
  if (t == nullptr || !check_quantization(ctx, 3, 4, t->shape, -1)) return nullptr;
  if (!check_dtype(ctx, is_quantized(t->dtype), "the quantised dtype is not supported",
                   "int8, uint8, int16 or uint16", t->dtype))
    return nullptr;
  return out;
}

Type avg_pool_relation(RelationContext& ctx) {
  return real_relation<1>(ctx) ? ctx.by_relation(*operator_row("nn.avg_pool2d"), {0}) : nullptr;
}

Type softmax_relation(RelationContext& ctx) {
  Type out = real_relation<1>(ctx);
  auto* x = as<TensorTypeNode>(out);
  if (x == nullptr) return nullptr;
  return normal_axis(ctx, attr_as<int64_t>(ctx.attrs_ref(), "axis"), x->rank()) ? out : nullptr;
}

// ---- Definitions

Expr quantize(const CallNode& c) {
  auto& a = *static_cast<const QuantizeAttrs*>(c.attrs.get());
  check_constants(c, c.args[1], c.args[2], a.out_dtype);
  return integers_of(c.args[0], c.args[1], c.args[2], a.axis, a.out_dtype, a.rounding);
}

Expr dequantize(const CallNode& c) {
  auto& a = *static_cast<const DequantizeAttrs*>(c.attrs.get());
  check_constants(c, c.args[1], c.args[2], type_of(c.args[0]).dtype);
  return cast_to(dequantized(c.args[0], c.args[1], c.args[2], a.axis), a.out_dtype);
}

// x * in_scale / out_scale as (x * multiplier + 2^(shift - 1)) >> shift, of constant scales.
Expr fixed_point_product(const CallNode& c, const Expr& x, int64_t axis,
                         const std::string& rounding) {
  auto *in = as<ConstantNode>(c.args[1]), *out = as<ConstantNode>(c.args[3]);
  if (in == nullptr || out == nullptr) {
    throw UserError(Diagnostic(codes::op_quantization, c.span,
                               "qnn.requantize in integers needs scales that are known")
                        .expected("constants, with compute_dtype int64")
                        .help("use compute_dtype float32 or float64"));
  }
  int64_t count = std::max(in->data.num_elements(), out->data.num_elements());
  std::vector<int64_t> shape;
  if (count != 1) shape.push_back(count);
  Tensor multiplier = Tensor::empty(DType::Int(64), shape);
  Tensor shift = Tensor::empty(DType::Int(64), shape);
  auto at = [](const Tensor& t, int64_t i) {
    return t.get_as_double(t.num_elements() == 1 ? 0 : i);
  };
  for (int64_t i = 0; i < count; ++i) {
    int exponent = 0;
    double part = std::frexp(at(in->data, i) / at(out->data, i), &exponent);
    auto m = static_cast<int64_t>(std::llround(std::ldexp(part, 31)));
    int64_t by = 31 - exponent;
    if (by < 1 || by > 62) {
      throw UserError(Diagnostic(codes::op_quantization, c.span,
                                 "the quotient of the scales is too large or too small")
                          .expected("2^-31 to 2^30, with compute_dtype int64")
                          .found(to_string(AttrValue(at(in->data, i) / at(out->data, i))))
                          .help("use compute_dtype float64"));
    }
    static_cast<int64_t*>(multiplier.data())[i] = m;
    static_cast<int64_t*>(shift.data())[i] = by;
  }
  int64_t rank = rank_of(x);
  Expr by = along_data(constant(shift, c.span), axis, rank);
  Expr product = cast_to(x, DType::Int(64)) * along_data(constant(multiplier, c.span), axis, rank);
  Expr one = scalar(1, product);
  Expr half = apply("left_shift", {one, by - one});
  if (rounding == kAwayFromZero) {
    half = half - cast_to(apply("less", {product, scalar(0, product)}), DType::Int(64));
  }
  return apply("right_shift", {product + half, by});
}

Expr requantize(const CallNode& c) {
  auto& a = *static_cast<const RequantizeAttrs*>(c.attrs.get());
  check_constants(c, c.args[1], c.args[2], type_of(c.args[0]).dtype);
  check_constants(c, c.args[3], c.args[4], a.out_dtype);
  int64_t rank = rank_of(c.args[0]);
  Expr x = centred(c.args[0], c.args[2], a.axis);
  Expr q;
  if (a.compute_dtype == "int64") {
    q = fixed_point_product(c, x, a.axis, a.rounding);
  } else {
    DType dtype = a.compute_dtype == "float64" ? DType::Float(64) : kFloat;
    Expr by = along_data(cast_to(c.args[1], dtype), a.axis, rank) /
              along_data(cast_to(c.args[3], dtype), a.axis, rank);
    q = rounded(cast_to(x, dtype) * by, a.rounding);
  }
  if (!is_zero(c.args[4])) {
    q = q + cast_to(along_data(c.args[4], a.axis, rank), type_of(q).dtype);
  }
  return saturated(q, a.out_dtype);
}

// The dtypes that simulated quantisation knows, by code; 0: the numbers stay as they are.
constexpr int kInt8Code = 1, kUInt8Code = 2, kInt32Code = 3;

Expr simulated_quantize(const CallNode& c) {
  int64_t axis = static_cast<const SimulatedQuantizeAttrs*>(c.attrs.get())->axis;
  const Expr &x = c.args[0], &code = c.args[1];
  int64_t rank = rank_of(x);
  Expr q = apply("round", {x / along_data(c.args[2], axis, rank)}) +
           cast_to(along_data(c.args[3], axis, rank), kFloat);
  Expr out = x;
  for (auto [number, dtype] :
       {std::pair{kInt8Code, DType::Int(8)}, std::pair{kUInt8Code, DType::UInt(8)},
        std::pair{kInt32Code, kInt}}) {
    out = choose(is_equal(code, number), cast_to(saturated(q, dtype), kFloat), out);
  }
  return out;
}

Expr simulated_dequantize(const CallNode& c) {
  int64_t axis = static_cast<const SimulatedQuantizeAttrs*>(c.attrs.get())->axis;
  const Expr& x = c.args[0];
  int64_t rank = rank_of(x);
  Expr real =
      (x - cast_to(along_data(c.args[3], axis, rank), kFloat)) * along_data(c.args[2], axis, rank);
  return choose(is_equal(c.args[1], 0), x, real);
}

using RealFunction = std::function<Expr(const CallNode& c, const Expr& x)>;

// f of the real numbers, rounded once.
template <size_t kData>
DefinitionRule by_real(RealFunction f) {
  return [f](const CallNode& c) {
    DType dtype = type_of(c.args[0]).dtype;
    check_constants(c, c.args[kData], c.args[kData + 1], dtype);
    check_constants(c, c.args[kData + 2], c.args[kData + 3], dtype);
    Expr y = f(c, dequantized(c.args[0], c.args[kData], c.args[kData + 1], -1));
    return quantized(y, c.args[kData + 2], c.args[kData + 3], -1, dtype);
  };
}

// The two operands of a call, in float32: the integers less their zero points, and their scales.
struct BroadcastOperands {
  explicit BroadcastOperands(const CallNode& c) {
    auto& a = *static_cast<const QnnBroadcastAttrs*>(c.attrs.get());
    for (size_t i : {2, 4, 6}) {
      check_constants(c, c.args[i], c.args[i + 1], type_of(c.args[0]).dtype);
    }
    auto read = [&](size_t at, int64_t axis, Expr& number, Expr& scale) {
      number = cast_to(centred(c.args[at], c.args[2 * at + 3], axis), kFloat);
      scale = along_data(c.args[2 * at + 2], axis, rank_of(c.args[at]));
    };
    read(0, a.lhs_axis, x, x_scale);
    read(1, a.rhs_axis, y, y_scale);
    scale = along_data(c.args[6], -1, as<TensorTypeNode>(c.type)->rank());
  }

  Expr x, x_scale, y, y_scale, scale;
};

// Rounded numbers in the scale of the result of a call of two operands.
Expr binary_result(const CallNode& c, Expr q) {
  auto* result = as<TensorTypeNode>(c.type);
  if (!is_zero(c.args[7])) q = q + cast_to(along_data(c.args[7], -1, result->rank()), kFloat);
  return saturated(q, result->dtype);
}

// Each operand is rounded to the scale of the result, halves up, before the operator.
DefinitionRule rounded_operands(const char* op) {
  return [op](const CallNode& c) {
    BroadcastOperands o(c);
    Expr x = rounded(o.x * (o.x_scale / o.scale), kUpward);
    Expr y = rounded(o.y * (o.y_scale / o.scale), kUpward);
    return binary_result(c, apply(op, {x, y}));
  };
}

Expr rounded_product(const CallNode& c) {
  BroadcastOperands o(c);
  return binary_result(c, rounded(o.x * o.y * (o.x_scale * o.y_scale / o.scale), kUpward));
}

// Tensors that have the scale and zero point of the result already are joined as they are.
Expr concatenate_definition(const CallNode& c) {
  auto field = [](const Expr& t, size_t i) -> Expr {
    auto* known = as<TupleNode>(t);
    return known != nullptr ? known->fields[i] : tuple_get_item(t, static_cast<int64_t>(i));
  };
  std::vector<Expr> parts;
  size_t count = flatten_tensor_types(c.args[0]->type)->size();
  for (size_t i = 0; i < count; ++i) {
    Expr x = field(c.args[0], i), scale = field(c.args[1], i), zero = field(c.args[2], i);
    DType dtype = type_of(x).dtype;
    check_constants(c, scale, zero, dtype);
    bool same = same_value(scale, c.args[3]) && same_value(zero, c.args[4]);
    parts.push_back(
        same ? x : quantized(dequantized(x, scale, zero, -1), c.args[3], c.args[4], -1, dtype));
  }
  return call("concatenate", {tuple(std::move(parts))}, c.attrs, c.span);
}

// Another operator of the same attributes.
RealFunction by_operator(const char* op) {
  return [op](const CallNode& c, const Expr& x) -> Expr { return call(op, {x}, c.attrs, c.span); };
}

Expr leaky(const CallNode& c, const Expr& x) {
  return apply("nn.leaky_relu", {x},
               {{"alpha", static_cast<const QnnLeakyReluAttrs*>(c.attrs.get())->alpha}});
}

Expr hard_swish(const CallNode&, const Expr& x) {
  Expr gate = apply("clip", {x + scalar(3, x)}, {{"a_min", 0.0}, {"a_max", 6.0}});
  return x * gate / scalar(6, x);
}

// ---- Layouts

// Tensors take the layout that is offered, beside vectors of scales and zero points, whose axis moves with it.
std::optional<LayoutDecision> follow_quantized(const relay::CallNode& call,
                                               std::span<const Layout> offered, const Layout&) {
  std::optional<LayoutDecision> out = follow_layout_beside(call, offered, 1);
  if (!out || !call.attrs) return out;
  const Layout& layout = out->outputs[0];
  std::vector<std::pair<std::string, AttrValue>> values = attr_values(call.attrs);
  for (auto& [name, value] : values) {
    if (name != "axis" && name != "lhs_axis" && name != "rhs_axis") continue;
    auto axis = axis_in(layout, *value.get_if<int64_t>(), layout.rank());
    if (!axis) return std::nullopt;
    value = AttrValue(*axis);
  }
  const OpInfo& row = *as<OpNode>(call.op)->row;
  out->attrs = make_attrs(*row.attrs, values, row.name, call.span);
  return out;
}

// Not where the broadcast gives one of the two further axes.
std::optional<LayoutDecision> follow_two(const relay::CallNode& call,
                                         std::span<const Layout> offered, const Layout& desired) {
  const int64_t rank = as<TensorTypeNode>(call.type)->rank();
  if (rank_of(call.args[0]) != rank || rank_of(call.args[1]) != rank) return std::nullopt;
  return follow_quantized(call, offered, desired);
}

// ---- Rows

std::vector<ArgInfo> arguments(std::vector<ArgInfo> data, std::vector<std::string> quantized) {
  for (const std::string& name : quantized) {
    data.push_back({name + "scale", "The scale, float32: a number or a vector."});
    data.push_back({name + "zero_point", "The zero point, int32: a number or a vector."});
  }
  return data;
}

OpInfo row(const char* name, const char* doc, std::vector<ArgInfo> args, AttrsInfo attrs,
           TypeRelation relation, DefinitionRule definition, std::vector<OpExample> examples,
           LayoutRule layout = follow_quantized) {
  // Whoever draws other numbers draws scales, too.
  for (OpExample& e : examples) e.low = 0.5;
  OpInfo out = quantized_row(name, doc, std::move(args), std::move(attrs), std::move(relation),
                             std::move(definition), elementwise_cost, std::move(examples));
  out.layout = std::move(layout);
  return out;
}

constexpr const char* kNumber = "Tensor[(), float32]";
constexpr const char* kZeroPoint = "Tensor[(), int32]";

// From 1 on, so that each function is defined.
OpInfo unary_row(const char* name, const char* doc, RealFunction f) {
  OpExample example{{"Tensor[(8,), uint8]", kNumber, kZeroPoint, kNumber, kZeroPoint}, ""};
  example.inputs = {{101, 103, 110, 120, 128, 129, 200, 255}, {0.03125}, {100}, {0.0625}, {5}};
  return row(name, doc, arguments({{"x", "Quantised."}}, {"", "output_"}), nullptr,
             real_relation<1>, by_real<1>(std::move(f)), {example});
}

OpInfo binary_row(const char* name, const char* doc, DefinitionRule definition) {
  OpExample bytes{{"Tensor[(2, 3), uint8]", "Tensor[(3,), uint8]", kNumber, kZeroPoint, kNumber,
                   kZeroPoint, kNumber, kZeroPoint},
                  ""};
  bytes.inputs = {
      {0, 10, 128, 200, 254, 255}, {3, 130, 255}, {0.5}, {128}, {0.25}, {100}, {0.75}, {20}};
  OpExample channels{{"Tensor[(2, 3), int8]", "Tensor[(2, 3), int8]", "Tensor[(3,), float32]",
                      "Tensor[(3,), int32]", kNumber, kZeroPoint, kNumber, kZeroPoint},
                     "lhs_axis=1"};
  channels.inputs = {{-128, -1, 0, 5, 100, 127},
                     {7, -7, 0, 127, -128, 1},
                     {0.5, 1, 0.125},
                     {0, -3, 9},
                     {0.25},
                     {0},
                     {0.5},
                     {-4}};
  return row(name, doc,
             arguments({{"lhs", "Quantised."}, {"rhs", "Quantised."}}, {"lhs_", "rhs_", "output_"}),
             &QnnBroadcastAttrs::static_info(), binary_relation, std::move(definition),
             {bytes, channels}, follow_two);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Qnn>() {
  using Examples = std::vector<OpExample>;
  OpExample quantize_all{{"Tensor[(7,), float32]", kNumber, kZeroPoint}, "out_dtype=\"uint8\""};
  quantize_all.inputs = {{-100, -1, 0, 0.25, 0.75, 10.3, 1000}, {0.5}, {10}};
  OpExample quantize_channels{
      {"Tensor[(2, 3), float32]", "Tensor[(2,), float32]", "Tensor[(2,), int32]"}, "axis=0"};
  quantize_channels.inputs = {{-9, 0.5, 1, 2, 3, 1000}, {0.5, 2}, {0, -5}};
  OpExample dequantize_all{{"Tensor[(4,), int8]", kNumber, kZeroPoint}, ""};
  dequantize_all.inputs = {{-128, 0, 3, 127}, {0.25}, {3}};
  OpExample dequantize_channels{
      {"Tensor[(2, 2), uint8]", "Tensor[(2,), float32]", "Tensor[(2,), int32]"}, "axis=1"};
  dequantize_channels.inputs = {{0, 1, 128, 255}, {0.5, 0.125}, {128, 0}};
  Examples quantize_examples{quantize_all, quantize_channels};
  for (const char* rounding : {kUpward, kAwayFromZero}) {
    OpExample halves{{"Tensor[(6,), float32]", kNumber, kZeroPoint},
                     "rounding=\"" + std::string(rounding) + "\""};
    halves.inputs = {{-1.25, -0.25, 0.25, 0.75, 0.5, 1000}, {0.5}, {3}};
    quantize_examples.push_back(halves);
  }
  Examples requantize;
  for (const char* attrs :
       {"", "rounding=\"TONEAREST\", compute_dtype=\"float64\"",
        "rounding=\"TONEAREST_EVEN\", out_dtype=\"uint8\"", "out_dtype=\"int32\""}) {
    OpExample e{{"Tensor[(8,), int32]", kNumber, kZeroPoint, kNumber, kZeroPoint}, attrs};
    e.inputs = {{-100000, -3, -1, 0, 1, 3, 5, 100000}, {0.5}, {0}, {1}, {2}};
    requantize.push_back(e);
  }
  OpExample simulated{{"Tensor[(6,), float32]", kZeroPoint, kNumber, kZeroPoint}, ""};
  simulated.inputs = {{-1000, -1.5, 0, 0.3, 2, 1000}, {1}, {0.5}, {3}};
  OpExample joined{
      {"(Tensor[(2,), uint8], Tensor[(3,), uint8])", "(Tensor[(), float32], Tensor[(), float32])",
       "(Tensor[(), int32], Tensor[(), int32])", kNumber, kZeroPoint},
      ""};
  joined.inputs = {{0, 255}, {1, 100, 200}, {0.5}, {0.25}, {10}, {0}, {0.5}, {10}};
  OpExample pooled{{"Tensor[(1, 4, 4, 2), uint8]", kNumber, kZeroPoint, kNumber, kZeroPoint},
                   "pool_size=[2, 2], strides=[2, 2], layout=\"NHWC\""};
  pooled.inputs = {{0,  1,  2,  3,  4,  5,  6,  7,  8,   9,   10,  11,  12,  13,  14,  15,
                    16, 17, 18, 19, 20, 21, 22, 23, 240, 241, 242, 243, 252, 253, 254, 255},
                   {0.5},
                   {4},
                   {0.25},
                   {0}};
  OpExample leaked{{"Tensor[(4,), int8]", kNumber, kZeroPoint, kNumber, kZeroPoint}, "alpha=0.5f"};
  leaked.inputs = {{-128, -3, 4, 127}, {0.5}, {1}, {0.25}, {-2}};
  OpExample shares{{"Tensor[(2, 3), int8]", kNumber, kZeroPoint, kNumber, kZeroPoint}, ""};
  shares.inputs = {{-128, 0, 127, 1, 2, 3}, {0.0625}, {0}, {0.00390625}, {-128}};

  static const OpInfo rows[] = {
      row("qnn.quantize", "Real numbers as integers: clip(round(data / scale) + zero_point).",
          arguments({{"data", "Floats."}}, {"output_"}), &QuantizeAttrs::static_info(),
          quantize_relation, quantize, quantize_examples),
      row("qnn.dequantize", "The real numbers: scale * (data - zero_point).",
          arguments({{"data", "Quantised."}}, {"input_"}), &DequantizeAttrs::static_info(),
          dequantize_relation, dequantize, {dequantize_all, dequantize_channels}),
      row("qnn.requantize", "The same real numbers with another scale and zero point.",
          arguments({{"data", "Quantised, or 32-bit sums."}}, {"input_", "output_"}),
          &RequantizeAttrs::static_info(), requantize_relation, ops::requantize, requantize),
      row("qnn.simulated_quantize",
          "qnn.quantize in floats, to the dtype of a code: 1 int8, 2 uint8, 3 int32; 0 changes "
          "nothing.",
          arguments({{"data", "Floats."}, {"out_dtype", "The code, int32."}}, {"output_"}),
          &SimulatedQuantizeAttrs::static_info(), simulated_relation, simulated_quantize,
          {simulated}),
      row("qnn.simulated_dequantize",
          "qnn.dequantize of what qnn.simulated_quantize gave, in floats; code 0 changes nothing.",
          arguments({{"data", "Floats."}, {"in_dtype", "The code, int32."}}, {"input_"}),
          &SimulatedQuantizeAttrs::static_info(), simulated_relation, simulated_dequantize,
          {simulated}),
      binary_row("qnn.add",
                 "The sum of two quantised tensors: each is rounded to the scale of the result, "
                 "halves up, and the integers are added.",
                 rounded_operands("add")),
      binary_row("qnn.subtract",
                 "The difference of two quantised tensors: each is rounded to the scale of the "
                 "result, halves up, and the integers are subtracted.",
                 rounded_operands("subtract")),
      binary_row("qnn.mul", "The product of two quantised tensors, rounded once, halves up.",
                 rounded_product),
      row("qnn.concatenate", "Joins quantised tensors along an axis.",
          {{"data", "A tuple of quantised tensors."},
           {"input_scales", "A tuple of their scales, float32 numbers."},
           {"input_zero_points", "A tuple of their zero points, int32 numbers."},
           {"output_scale", "The scale of the result, a float32 number."},
           {"output_zero_point", "The zero point of the result, an int32 number."}},
          operator_row("concatenate")->attrs, concatenate_relation, concatenate_definition,
          {joined}),
      row("qnn.avg_pool2d", "The mean of each window, rounded once.",
          arguments({{"data", "Quantised."}}, {"input_", "output_"}),
          operator_row("nn.avg_pool2d")->attrs, avg_pool_relation,
          by_real<1>(by_operator("nn.avg_pool2d")), {pooled},
          layout_rule_of(*operator_row("nn.avg_pool2d"))),
      row("qnn.leaky_relu", "nn.leaky_relu, rounded once.",
          arguments({{"x", "Quantised."}}, {"input_", "output_"}),
          &QnnLeakyReluAttrs::static_info(), real_relation<1>, by_real<1>(leaky), {leaked}),
      row("qnn.softmax", "nn.softmax, rounded once.",
          arguments({{"x", "Quantised."}}, {"", "output_"}), operator_row("nn.softmax")->attrs,
          softmax_relation, by_real<1>(by_operator("nn.softmax")), {shares}),
      unary_row("qnn.abs", "The absolute value, rounded once.", by_operator("abs")),
      unary_row("qnn.erf", "The error function, rounded once.", by_operator("erf")),
      unary_row("qnn.exp", "The exponential, rounded once.", by_operator("exp")),
      unary_row("qnn.hardswish", "x * clip(x + 3, 0, 6) / 6, rounded once.", hard_swish),
      unary_row("qnn.log", "The natural logarithm, rounded once.", by_operator("log")),
      unary_row("qnn.rsqrt", "One over the square root, rounded once.", by_operator("rsqrt")),
      unary_row("qnn.sigmoid", "The logistic function, rounded once.", by_operator("sigmoid")),
      unary_row("qnn.sqrt", "The square root, rounded once.", by_operator("sqrt")),
      unary_row("qnn.tanh", "The hyperbolic tangent, rounded once.", by_operator("tanh")),
  };
  return rows;
}

}  // namespace relay::ops
