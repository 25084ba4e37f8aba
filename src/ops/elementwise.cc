// Element-wise operators of one tensor, and activations.
#include <cmath>

#include "ops/attrs.h"
#include "ops/common.h"
#include "ops/families.h"

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

struct Row {
  const char* name;
  const char* doc;
  TypeRelation relation;
  PrimExpr (*compute)(const PrimExpr& x);
  double low = -2;
  double high = 2;
};

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

const Row kRows[] = {
    {"abs", "Absolute value.", identity,
     [](const PrimExpr& x) { return x->dtype.is_bool() ? x : f("abs", x); }},
    {"acos", "Inverse cosine.", float_identity, [](const PrimExpr& x) { return f("acos", x); },
     -0.9, 0.9},
    {"acosh", "Inverse hyperbolic cosine.", float_identity,
     [](const PrimExpr& x) { return f("acosh", x); }, 1.1, 4},
    {"asin", "Inverse sine.", float_identity, [](const PrimExpr& x) { return f("asin", x); }, -0.9,
     0.9},
    {"asinh", "Inverse hyperbolic sine.", float_identity,
     [](const PrimExpr& x) { return f("asinh", x); }},
    {"atan", "Inverse tangent.", float_identity, [](const PrimExpr& x) { return f("atan", x); }},
    {"atanh", "Inverse hyperbolic tangent.", float_identity,
     [](const PrimExpr& x) { return f("atanh", x); }, -0.9, 0.9},
    {"bitwise_not", "Complement of every bit.", bits_identity,
     [](const PrimExpr& x) { return binary(BinaryOp::BitXor, x, k(x, -1)); }},
    {"ceil", "Least integer not below.", identity,
     [](const PrimExpr& x) { return x->dtype.is_floating() ? f("ceil", x) : x; }},
    {"copy", "The same values.", identity, [](const PrimExpr& x) { return x; }},
    {"cos", "Cosine.", float_identity, [](const PrimExpr& x) { return f("cos", x); }},
    {"cosh", "Hyperbolic cosine.", float_identity, [](const PrimExpr& x) { return f("cosh", x); }},
    {"erf", "Error function.", float_identity, [](const PrimExpr& x) { return f("erf", x); }},
    {"exp", "Exponential.", float_identity, [](const PrimExpr& x) { return f("exp", x); }},
    {"fast_erf", "Error function; compiled for float32 it may be off by 5e-6.", float_identity,
     [](const PrimExpr& x) { return f("fast_erf", x); }},
    {"fast_exp", "Exponential; compiled for float32 it may be off by 4e-6 of its size.",
     float_identity, [](const PrimExpr& x) { return f("fast_exp", x); }},
    {"fast_tanh", "Hyperbolic tangent; compiled for float32 it may be off by 3e-6.", float_identity,
     [](const PrimExpr& x) { return f("fast_tanh", x); }},
    {"floor", "Greatest integer not above.", identity,
     [](const PrimExpr& x) { return x->dtype.is_floating() ? f("floor", x) : x; }},
    {"isfinite", "Neither infinite nor NaN.", to_bool,
     [](const PrimExpr& x) {
       return x->dtype.is_floating() ? tir::call("isfinite", DType::Bool(), {x}) : boolean(true);
     }},
    {"isinf", "Infinite.", to_bool,
     [](const PrimExpr& x) {
       return x->dtype.is_floating() ? tir::call("isinf", DType::Bool(), {x}) : boolean(false);
     }},
    {"isnan", "Not a number.", to_bool,
     [](const PrimExpr& x) {
       return x->dtype.is_floating() ? tir::call("isnan", DType::Bool(), {x}) : boolean(false);
     }},
    {"log", "Natural logarithm.", float_identity, [](const PrimExpr& x) { return f("log", x); },
     0.1, 4},
    {"log10", "Logarithm to base 10.", float_identity,
     [](const PrimExpr& x) { return f("log10", x); }, 0.1, 4},
    {"log2", "Logarithm to base 2.", float_identity, [](const PrimExpr& x) { return f("log2", x); },
     0.1, 4},
    {"logical_not", "Negation of a bool.", bool_identity,
     [](const PrimExpr& x) { return logical_not(x); }},
    {"negative", "Negation.", identity,
     [](const PrimExpr& x) {
       return x->dtype.is_floating() ? x * imm_float(x->dtype, -1) : k(x, 0) - x;
     }},
    {"round", "Nearest integer, halves to even.", identity,
     [](const PrimExpr& x) { return x->dtype.is_floating() ? f("round", x) : x; }},
    {"rsqrt", "One over the square root.", float_identity,
     [](const PrimExpr& x) { return f("rsqrt", x); }, 0.1, 4},
    {"sigmoid", "1 / (1 + exp(-x)).", float_identity,
     [](const PrimExpr& x) { return f("sigmoid", x); }},
    {"sign", "-1, 0 or 1; NaN stays.", identity,
     [](const PrimExpr& x) {
       return select(
           gt(x, k(x, 0)), k(x, 1),
           select(lt(x, k(x, 0)), k(x, -1), x->dtype.is_floating() ? x * k(x, 0) : k(x, 0)));
     }},
    {"sin", "Sine.", float_identity, [](const PrimExpr& x) { return f("sin", x); }},
    {"sinh", "Hyperbolic sine.", float_identity, [](const PrimExpr& x) { return f("sinh", x); }},
    {"sqrt", "Square root.", float_identity, [](const PrimExpr& x) { return f("sqrt", x); }, 0.1,
     4},
    {"tan", "Tangent.", float_identity, [](const PrimExpr& x) { return f("tan", x); }, -1, 1},
    {"tanh", "Hyperbolic tangent.", float_identity, [](const PrimExpr& x) { return f("tanh", x); }},
    {"trunc", "Nearest integer towards zero.", identity,
     [](const PrimExpr& x) { return x->dtype.is_floating() ? f("trunc", x) : x; }},
    {"zeros_like", "Zeros of the same shape.", identity, [](const PrimExpr& x) { return k(x, 0); }},
    {"ones_like", "Ones of the same shape.", identity, [](const PrimExpr& x) { return k(x, 1); }},
    {"nn.relu", "max(x, 0).", identity, [](const PrimExpr& x) { return max(x, k(x, 0)); }},
};

Type cast_relation(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t == nullptr) return nullptr;
  DType to = ctx.attrs<CastAttrs>().dtype;
  if (!require(ctx, is_set(to), codes::op_bad_attribute, "dtype is missing", "a dtype"))
    return nullptr;
  return tensor_type(t->shape, to);
}

Type per_channel_relation(RelationContext& ctx, int64_t axis) {
  const TensorTypeNode *x = like_result(ctx), *v = ctx.tensor(1);
  if (x == nullptr) return nullptr;
  auto at = normal_axis(ctx, axis, x->rank());
  if (!at) return nullptr;
  const Dim& channels = x->shape[static_cast<size_t>(*at)];
  if (v == nullptr) {
    if (ctx.failure()) return nullptr;
    ctx.solve(1, tensor_type(std::vector<Dim>{channels}, x->dtype));
    return Type(x);
  }
  if (!require(ctx, v->rank() == 1 && ctx.equal(v->shape[0], channels) && v->dtype == x->dtype,
               codes::type_shape,
               "argument '" + std::string(ctx.op().args[1].name) +
                   "' must be a vector with an entry for each channel",
               to_string(Type(tensor_type(std::vector<Dim>{channels}, x->dtype))),
               to_string(Type(v)))) {
    return nullptr;
  }
  return Type(x);
}

std::optional<LayoutDecision> per_channel_layout(const CallNode& call,
                                                 std::span<const Layout> offered, const Layout& d,
                                                 int64_t axis,
                                                 Attrs (*with_axis)(const CallNode&, int64_t)) {
  (void)d;
  if (offered.empty() || !offered[0].defined()) return std::nullopt;
  int64_t rank = as<TensorTypeNode>(call.type)->rank();
  if (offered[0].rank() != rank || from_front(axis, rank) != 1) return std::nullopt;
  LayoutDecision out;
  out.inputs = {offered[0], Layout()};
  out.outputs = {offered[0]};
  out.attrs = with_axis(call, offered[0].index_of('C'));
  return out;
}

std::optional<LayoutDecision> bias_add_layout(const CallNode& call, std::span<const Layout> offered,
                                              const Layout& d) {
  return per_channel_layout(
      call, offered, d, static_cast<const BiasAddAttrs&>(*call.attrs.get()).axis,
      [](const CallNode&, int64_t axis) {
        return Attrs(make<BiasAddAttrs>([&](BiasAddAttrs& a) { a.axis = axis; }));
      });
}
std::optional<LayoutDecision> prelu_layout(const CallNode& call, std::span<const Layout> offered,
                                           const Layout& d) {
  return per_channel_layout(call, offered, d,
                            static_cast<const PReluAttrs&>(*call.attrs.get()).axis,
                            [](const CallNode&, int64_t axis) {
                              return Attrs(make<PReluAttrs>([&](PReluAttrs& a) { a.axis = axis; }));
                            });
}

}  // namespace

void add_elementwise(OpRegistry& registry) {
  for (const Row& row : kRows) {
    OpInfo op;
    op.name = row.name;
    op.doc = row.doc;
    op.args = {{"data", "The input."}};
    op.support_level = 1;
    op.fusion = FusionClass::ElemWise;
    op.relation = row.relation;
    op.compute = unary_rule(row.compute);
    op.layout = follow_layout;
    op.cost = elementwise_cost;
    bool on_bool = std::string_view(row.name) == "logical_not",
         on_int = std::string_view(row.name) == "bitwise_not";
    std::string dtype = on_bool ? "bool" : on_int ? "int32" : "float32";
    for (const char* shape : {"(2, 3)", "()", "(0, 4)"})
      op.examples.push_back(
          {{"Tensor[" + std::string(shape) + ", " + dtype + "]"}, "", row.low, row.high});
    registry.add(std::move(op));
  }
  OpInfo op;
  op.args = {{"data", "The input."}};
  op.fusion = FusionClass::ElemWise;
  op.layout = follow_layout;
  op.cost = elementwise_cost;
  op.relation = [](RelationContext& ctx) -> Type {
    auto& a = ctx.attrs<ClipAttrs>();
    return require(ctx, !std::isnan(a.a_min) && !std::isnan(a.a_max), codes::op_bad_attribute,
                   "a bound is not a number", "two numbers",
                   std::to_string(a.a_min) + " and " + std::to_string(a.a_max))
               ? identity(ctx)
               : nullptr;
  };

  op.name = "clip";
  op.doc = "Limits every element to [a_min, a_max].";
  op.attrs = &ClipAttrs::static_info();
  op.examples = {{{"Tensor[(4, 5), float32]"}, "a_min=-1f, a_max=0.5f"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ClipAttrs>();
    TirTensor x = ctx.inputs[0];
    return tir::compute("T_clip", x->shape(), [&](const Indices& i) {
      PrimExpr v = x(i);
      auto bound = [&](double b) {
        if (v->dtype.is_floating()) return imm_float(v->dtype, b);
        // Bounds beyond the dtype's range do not limit.
        double low = v->dtype.is_int() ? -std::ldexp(1.0, v->dtype.bits - 1) : 0,
               high = std::ldexp(1.0, v->dtype.bits - (v->dtype.is_int() ? 1 : 0));
        if (b <= low) return min_value(v->dtype);
        if (b >= high) return max_value(v->dtype);
        return b < 0x1p63 ? imm(v->dtype, static_cast<int64_t>(b))
                          : imm(v->dtype, static_cast<int64_t>(static_cast<uint64_t>(b)));
      };
      // Between whole numbers the nearest one inside; an upper bound below the lower one wins.
      bool whole = !v->dtype.is_floating();
      return min(max(v, bound(whole ? std::ceil(a.a_min) : a.a_min)),
                 bound(whole ? std::floor(a.a_max) : a.a_max));
    });
  });
  registry.add(op);

  op.name = "nn.leaky_relu";
  op.doc = "x above zero, alpha * x below.";
  op.attrs = &LeakyReluAttrs::static_info();
  op.relation = float_identity;
  op.examples = {{{"Tensor[(4, 5), float32]"}, "alpha=0.1f"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    double alpha = ctx.attrs<LeakyReluAttrs>().alpha;
    TirTensor x = ctx.inputs[0];
    return tir::compute("T_leaky_relu", x->shape(), [&](const Indices& i) {
      PrimExpr v = x(i);
      return select(gt(v, k(v, 0)), v, v * imm_float(v->dtype, alpha));
    });
  });
  registry.add(op);

  op.name = "cast";
  op.doc =
      "Converts to another dtype: floats to integers towards zero, saturating; wider to narrower "
      "integers wrap.";
  op.attrs = &CastAttrs::static_info();
  op.relation = cast_relation;
  op.examples = {{{"Tensor[(4, 5), float32]"}, "dtype=\"int32\""},
                 {{"Tensor[(3,), int32]"}, "dtype=\"float32\""}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    DType to = ctx.outputs[0].dtype;
    return tir::compute("T_cast", x->shape(),
                        [&](const Indices& i) { return tir::cast(to, x(i)); });
  });
  registry.add(op);

  op.attrs = nullptr;
  op.name = "cast_like";
  op.doc = "Converts to the dtype of the second argument.";
  op.args = {{"data", "The input."}, {"dtype_like", "A tensor of the wanted dtype."}};
  op.layout = nullptr;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
    return x == nullptr || y == nullptr ? nullptr : Type(tensor_type(x->shape, y->dtype));
  };
  op.examples = {{{"Tensor[(3,), int32]", "Tensor[(1,), float32]"}, ""}};
  registry.add(op);

  op.name = "nn.bias_add";
  op.doc = "Adds a vector along one axis.";
  op.args = {{"data", "The input."}, {"bias", "An entry for each index of the axis."}};
  op.attrs = &BiasAddAttrs::static_info();
  op.fusion = FusionClass::Broadcast;
  op.layout = bias_add_layout;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x != nullptr && !require(ctx, !x->dtype.is_bool(), codes::type_dtype, "needs numbers",
                                 "an integer or floating type", x->dtype.to_string()))
      return nullptr;
    return per_channel_relation(ctx, ctx.attrs<BiasAddAttrs>().axis);
  };
  op.examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3,), float32]"}, "axis=1"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0], b = ctx.inputs[1];
    size_t axis = static_cast<size_t>(from_front(ctx.attrs<BiasAddAttrs>().axis, x->rank()));
    return tir::compute("T_bias_add", x->shape(),
                        [&](const Indices& i) { return x(i) + b(i[axis]); });
  });
  registry.add(op);

  op.name = "nn.prelu";
  op.doc = "x above zero, alpha * x below, with a slope for each channel.";
  op.args = {{"data", "The input."}, {"alpha", "A slope for each channel."}};
  op.attrs = &PReluAttrs::static_info();
  op.layout = prelu_layout;
  op.relation = [](RelationContext& ctx) {
    return per_channel_relation(ctx, ctx.attrs<PReluAttrs>().axis);
  };
  op.examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3,), float32]"}, "axis=1"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0], a = ctx.inputs[1];
    size_t axis = static_cast<size_t>(from_front(ctx.attrs<PReluAttrs>().axis, x->rank()));
    return tir::compute("T_prelu", x->shape(), [&](const Indices& i) {
      PrimExpr v = x(i);
      return select(gt(v, k(v, 0)), v, v * a(i[axis]));
    });
  });
  registry.add(op);
}

}  // namespace relay::ops
