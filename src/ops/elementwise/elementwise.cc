// Element-wise operators of one tensor that have attributes or weights, and activations.

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

struct CastAttrs : AttrsOf<CastAttrs> {
  DType dtype = kUnsetDType;
  bool saturate = true;
  std::string round_mode = "nearest";
  static AttrsList describe() {
    return {
        "relay.attrs.CastAttrs",
        {attribute("dtype", &Self::dtype, "dtype of the result."),
         attribute("saturate", &Self::saturate,
                   "Of floats of 8 bits: what is too large becomes the greatest, not infinity "
                   "or NaN."),
         attribute("round_mode", &Self::round_mode, "Of float8_e8m0fnu: nearest, up or down.")}};
  }
};

// Converting takes numbers to numbers.
bool are_numbers(RelationContext& ctx, DType from, DType to) {
  return require(ctx, !from.is_string() && !to.is_string(), codes::type_dtype,
                 "strings and numbers are not made of each other here", "a dtype of numbers",
                 from.is_string() ? from.to_string() : to.to_string());
}

Type cast_relation(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t == nullptr) return nullptr;
  DType to = ctx.attrs<CastAttrs>().dtype;
  const std::string& mode = ctx.attrs<CastAttrs>().round_mode;
  if (!require(ctx, is_set(to), codes::op_bad_attribute, "dtype is missing", "a dtype") ||
      !are_numbers(ctx, t->dtype, to) ||
      !require(ctx, mode == "nearest" || mode == "up" || mode == "down", codes::op_bad_attribute,
               "round_mode is not known", "nearest, up or down", mode))
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

struct PReluAttrs : AttrsOf<PReluAttrs> {
  int64_t axis = 1;
  static AttrsList describe() {
    return {"relay.attrs.PReluAttrs", {attribute("axis", &Self::axis, "Axis of the channels.")}};
  }
};

struct BiasAddAttrs : AttrsOf<BiasAddAttrs> {
  int64_t axis = 1;
  static AttrsList describe() {
    return {"relay.attrs.BiasAddAttrs",
            {attribute("axis", &Self::axis, "Axis along which the bias varies.")}};
  }
};

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

struct ClipAttrs : AttrsOf<ClipAttrs> {
  double a_min = 0, a_max = 0;
  static AttrsList describe() {
    return {"relay.attrs.ClipAttrs",
            {attribute("a_min", &Self::a_min, "Least result."),
             attribute("a_max", &Self::a_max, "Greatest result.")}};
  }
};

Type clip_relation(RelationContext& ctx) {
  auto& a = ctx.attrs<ClipAttrs>();
  return require(ctx, !std::isnan(a.a_min) && !std::isnan(a.a_max), codes::op_bad_attribute,
                 "a bound is not a number", "two numbers",
                 std::to_string(a.a_min) + " and " + std::to_string(a.a_max))
             ? identity(ctx)
             : nullptr;
}

TirTensor clip_compute(const ComputeContext& ctx) {
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
}

struct LeakyReluAttrs : AttrsOf<LeakyReluAttrs> {
  double alpha = 0.25;
  static AttrsList describe() {
    return {"relay.attrs.LeakyReluAttrs", {attribute("alpha", &Self::alpha, "Slope below zero.")}};
  }
};

TirTensor leaky_relu_compute(const ComputeContext& ctx) {
  double alpha = ctx.attrs<LeakyReluAttrs>().alpha;
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_leaky_relu", x->shape(), [&](const Indices& i) {
    PrimExpr v = x(i);
    return select(gt(v, imm(v->dtype, 0)), v, v * imm_float(v->dtype, alpha));
  });
}

// The element that is stored as `v` in another dtype.
PrimExpr converted(DType from, DType to, PrimExpr v, bool saturate, const std::string& round_mode) {
  if (from == to) return v;
  if (from.is_narrow()) {
    v = widened(from, v);
    from = v->dtype;
  }
  if (to.is_narrow()) return narrowed(to, v, saturate, round_mode);
  return tir::cast(to, v);
}

DType dtype_of(const Type& type) { return as<TensorTypeNode>(type)->dtype; }

TirTensor cast_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  auto& a = ctx.attrs<CastAttrs>();
  DType from = dtype_of(ctx.arg_types[0]), to = dtype_of(ctx.out_type);
  return tir::compute("T_cast", x->shape(), [&](const Indices& i) {
    return converted(from, to, x(i), a.saturate, a.round_mode);
  });
}

TirTensor cast_like_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  DType from = dtype_of(ctx.arg_types[0]), to = dtype_of(ctx.out_type);
  return tir::compute("T_cast", x->shape(),
                      [&](const Indices& i) { return converted(from, to, x(i), true, "nearest"); });
}

struct ReinterpretAttrs : AttrsOf<ReinterpretAttrs> {
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.ReinterpretAttrs",
            {attribute("dtype", &Self::dtype, "dtype of the result, as wide as the input's.")}};
  }
};

Type reinterpret_relation(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t == nullptr) return nullptr;
  DType to = ctx.attrs<ReinterpretAttrs>().dtype;
  if (!require(ctx, is_set(to), codes::op_bad_attribute, "dtype is missing", "a dtype") ||
      !are_numbers(ctx, t->dtype, to) ||
      !require(ctx, to.bytes() == t->dtype.bytes(), codes::type_dtype,
               "bits are read as a dtype of another width", std::to_string(t->dtype.bits) + " bits",
               to.to_string()) ||
      !require(ctx, !to.is_bool() || t->dtype.is_bool(), codes::type_dtype,
               "a bool is 0 or 1, and not any bits", "another dtype", to.to_string()))
    return nullptr;
  return tensor_type(t->shape, to);
}

TirTensor reinterpret_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  DType to = ctx.outputs[0].dtype;
  return tir::compute("T_reinterpret", x->shape(), [&](const Indices& i) {
    PrimExpr v = x(i);
    if (v->dtype.is_bool()) v = tir::cast(DType::UInt(8), v);
    return v->dtype == to ? v : tir::call("bitcast", to, {v});
  });
}

Type cast_like_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr || !are_numbers(ctx, x->dtype, y->dtype)) return nullptr;
  return tensor_type(x->shape, y->dtype);
}

Type bias_add_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x != nullptr && !require(ctx, !x->dtype.is_bool(), codes::type_dtype, "needs numbers",
                               "an integer or floating type", x->dtype.to_string()))
    return nullptr;
  return per_channel_relation(ctx, ctx.attrs<BiasAddAttrs>().axis);
}

TirTensor bias_add_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], b = ctx.inputs[1];
  size_t axis = static_cast<size_t>(from_front(ctx.attrs<BiasAddAttrs>().axis, x->rank()));
  return tir::compute("T_bias_add", x->shape(),
                      [&](const Indices& i) { return x(i) + b(i[axis]); });
}

Type prelu_relation(RelationContext& ctx) {
  return per_channel_relation(ctx, ctx.attrs<PReluAttrs>().axis);
}

TirTensor prelu_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], a = ctx.inputs[1];
  size_t axis = static_cast<size_t>(from_front(ctx.attrs<PReluAttrs>().axis, x->rank()));
  return tir::compute("T_prelu", x->shape(), [&](const Indices& i) {
    PrimExpr v = x(i);
    return select(gt(v, imm(v->dtype, 0)), v, v * a(i[axis]));
  });
}

Type after_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *dependency = ctx.tensor(1);
  return x == nullptr || dependency == nullptr ? nullptr : Type(x);
}

TirTensor after_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_after", x->shape(), [&](const Indices& i) { return x(i); });
}

Adjoints clip_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<ClipAttrs>();
  const Expr& x = ctx.arg(0);
  Expr outside =
      apply("logical_or", {apply("less", {x, scalar(a.a_min, x)}), is_greater(x, a.a_max)});
  return {choose(outside, scalar(0, x), ctx.adjoint())};
}

Adjoints leaky_relu_gradient(const GradientContext& ctx) {
  const Expr& g = ctx.adjoint();
  return {choose(is_greater(ctx.arg(0), 0), g, ctx.attrs<LeakyReluAttrs>().alpha * g)};
}

Adjoints cast_gradient(const GradientContext& ctx) {
  DType from = type_of(ctx.arg(0)).dtype;
  if (!from.is_floating()) return {};
  return {cast_to(ctx.adjoint(), from)};
}

Adjoints bias_add_gradient(const GradientContext& ctx) {
  const Expr& g = ctx.adjoint();
  return {g, sum_over_all_but(g, ctx.attrs<BiasAddAttrs>().axis)};
}

Adjoints prelu_gradient(const GradientContext& ctx) {
  const Expr &g = ctx.adjoint(), &x = ctx.arg(0), &alpha = ctx.arg(1);
  int64_t axis = ctx.attrs<PReluAttrs>().axis;
  Expr above = is_greater(x, 0), slope = along(alpha, axis, rank_of(x));
  return {choose(above, g, g * slope), sum_over_all_but(choose(above, scalar(0, g), g * x), axis)};
}

// ---- Batching

Expr batch_bias_add(const BatchingContext& ctx) {
  int64_t axis = ctx.attrs<BiasAddAttrs>().axis;
  if (only_first(ctx)) return with_attrs(ctx.call, ctx.args, {{"axis", behind_lanes(axis)}});
  return in_lanes(ctx, 0) + lanes_along(ctx.arg(1), axis, rank_of(ctx.call.args[0]));
}

Expr batch_prelu(const BatchingContext& ctx) {
  int64_t axis = ctx.attrs<PReluAttrs>().axis;
  if (only_first(ctx)) return with_attrs(ctx.call, ctx.args, {{"axis", behind_lanes(axis)}});
  Expr x = in_lanes(ctx, 0);
  return choose(is_greater(x, 0), x, x * lanes_along(ctx.arg(1), axis, rank_of(ctx.call.args[0])));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Activation>() {
  static const OpInfo rows[] = {
      {
          .name = "clip",
          .doc = "Limits every element to [a_min, a_max].",
          .args = {{"data", "The input."}},
          .attrs = &ClipAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .relation = clip_relation,
          .compute = compute_rule(clip_compute),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = clip_gradient,
          .quantized = quantized_clip,
          .examples = {{{"Tensor[(4, 5), float32]"}, "a_min=-1f, a_max=0.5f"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "after",
          .doc =
              "The first argument, once the second is there: what is made of it is computed then, "
              "and not merged with what is made of the first argument itself.",
          .args = {{"data", "The input."}, {"dependency", "What comes first."}},
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = after_relation,
          .compute = compute_rule(after_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = [](const GradientContext& ctx) -> Adjoints { return {ctx.adjoint()}; },
          .batching = batch_first,
          .examples = {{{"Tensor[(2, 3), float32]", "float32"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.leaky_relu",
          .doc = "x above zero, alpha * x below.",
          .args = {{"data", "The input."}},
          .attrs = &LeakyReluAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .relation = float_identity,
          .compute = compute_rule(leaky_relu_compute),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = leaky_relu_gradient,
          .quantized = by_dialect("qnn.leaky_relu"),
          .examples = {{{"Tensor[(4, 5), float32]"}, "alpha=0.1f"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "cast",
          .doc = "Converts to another dtype: floats to integers towards zero, saturating; wider to "
                 "narrower "
                 "integers wrap, into those of 4 and 2 bits too.",
          .args = {{"data", "The input."}},
          .attrs = &CastAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = cast_relation,
          .compute = compute_rule(cast_compute),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = cast_gradient,
          .known = known_rules::cast(),
          .examples = {{{"Tensor[(4, 5), float32]"}, "dtype=\"int32\""},
                       {{"Tensor[(3,), int32]"}, "dtype=\"float32\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "cast_like",
          .doc = "Converts to the dtype of the second argument.",
          .args = {{"data", "The input."}, {"dtype_like", "A tensor of the wanted dtype."}},
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = cast_like_relation,
          .compute = compute_rule(cast_like_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = cast_gradient,
          .batching = batch_first,
          .examples = {{{"Tensor[(3,), int32]", "Tensor[(1,), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "reinterpret",
          .doc = "The same bits as elements of another dtype of the same width.",
          .args = {{"data", "The input."}},
          .attrs = &ReinterpretAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = reinterpret_relation,
          .compute = compute_rule(reinterpret_compute),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .examples = {{{"Tensor[(4, 5), float32]"}, "dtype=\"int32\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.bias_add",
          .doc = "Adds a vector along one axis.",
          .args = {{"data", "The input."}, {"bias", "An entry for each index of the axis."}},
          .attrs = &BiasAddAttrs::static_info(),
          .fusion = FusionClass::Broadcast,
          .effect = Effect::Pure,
          .relation = bias_add_relation,
          .compute = compute_rule(bias_add_compute),
          .layout = bias_add_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = bias_add_gradient,
          .batching = batch_bias_add,
          .quantized = quantized_bias_add,
          .examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3,), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.prelu",
          .doc = "x above zero, alpha * x below, with a slope for each channel.",
          .args = {{"data", "The input."}, {"alpha", "A slope for each channel."}},
          .attrs = &PReluAttrs::static_info(),
          .fusion = FusionClass::Broadcast,
          .effect = Effect::Pure,
          .relation = prelu_relation,
          .compute = compute_rule(prelu_compute),
          .layout = prelu_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = prelu_gradient,
          .batching = batch_prelu,
          .examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3,), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
