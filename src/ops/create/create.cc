// Tensors from nothing but attributes.
#include "analysis/known_rules.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/init_op.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type init_type(RelationContext& ctx, DType fallback) {
  auto& a = ctx.attrs<InitOpAttrs>();
  if (!check_shape(ctx, a.shape)) return nullptr;
  return tensor_type(std::vector<Dim>(a.shape), is_set(a.dtype) ? a.dtype : fallback);
}

template <int kValue>
TirTensor all_of(const ComputeContext& ctx) {
  return tir::compute("T_full", ctx.outputs[0].shape,
                      [&](const Indices&) { return imm(ctx.outputs[0].dtype, kValue); });
}

Type full_relation(RelationContext& ctx) {
  const TensorTypeNode* v = ctx.tensor(0);
  if (v == nullptr || !require(ctx, v->rank() == 0, codes::type_rank, "fill_value must be a scalar",
                               "0 dimensions", shape_text(v->shape)))
    return nullptr;
  return init_type(ctx, v->dtype);
}

TirTensor full_compute(const ComputeContext& ctx) {
  TirTensor v = ctx.inputs[0];
  return tir::compute("T_full", ctx.outputs[0].shape, [&](const Indices&) {
    return tir::cast(ctx.outputs[0].dtype, v(Indices{}));
  });
}

Type full_like_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *v = ctx.tensor(1);
  if (x == nullptr || v == nullptr ||
      !require(ctx, v->rank() == 0, codes::type_rank, "fill_value must be a scalar", "0 dimensions",
               shape_text(v->shape)))
    return nullptr;
  return Type(x);
}

TirTensor full_like_compute(const ComputeContext& ctx) {
  TirTensor v = ctx.inputs[1];
  return tir::compute("T_full_like", ctx.outputs[0].shape, [&](const Indices&) {
    return tir::cast(ctx.outputs[0].dtype, v(Indices{}));
  });
}

Adjoints full_gradient(const GradientContext& ctx) {
  DType dtype = type_of(ctx.arg(0)).dtype;
  if (!dtype.is_floating()) return {};
  return {cast_to(apply("sum", {ctx.adjoint()}), dtype)};
}

Adjoints full_like_gradient(const GradientContext& ctx) {
  DType dtype = type_of(ctx.arg(1)).dtype;
  if (!dtype.is_floating()) return {};
  return {nullptr, cast_to(apply("sum", {ctx.adjoint()}), dtype)};
}

// ---- Batching

// A number for each lane.
Expr batch_full(const BatchingContext& ctx) {
  auto* result = as<TensorTypeNode>(ctx.call.type);
  Expr each = cast_to(lanes_of_rank(ctx.arg(0), result->rank()), result->dtype);
  return apply("broadcast_to", {each}, {{"shape", shape_value(shape_in_lanes(ctx))}});
}

Expr batch_full_like(const BatchingContext& ctx) {
  if (!ctx.batched[1]) return same_call(ctx, ctx.args);
  auto* result = as<TensorTypeNode>(ctx.call.type);
  Expr each = cast_to(lanes_of_rank(ctx.arg(1), result->rank()), result->dtype);
  return broadcast_like(each, in_lanes(ctx, 0));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Create>() {
  static const OpInfo rows[] = {
      {
          .name = "zeros",
          .doc = "Zeros.",
          .attrs = &InitOpAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .relation = [](RelationContext& ctx) { return init_type(ctx, DType::Float(32)); },
          .compute = compute_rule(all_of<0>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = no_change,
          .known = known_rules::filled(0),
          .examples = {{{}, "shape=[2, 3], dtype=\"float32\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "ones",
          .doc = "Ones.",
          .attrs = &InitOpAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .relation = [](RelationContext& ctx) { return init_type(ctx, DType::Float(32)); },
          .compute = compute_rule(all_of<1>),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = no_change,
          .known = known_rules::filled(1),
          .examples = {{{}, "shape=[2, 3], dtype=\"float32\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "full",
          .doc = "One value everywhere.",
          .args = {{"fill_value", "A scalar."}},
          .attrs = &InitOpAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = full_relation,
          .compute = compute_rule(full_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = full_gradient,
          .batching = batch_full,
          .known = known_rules::filled_with(0),
          .examples = {{{"float32"}, "shape=[2, 3]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "full_like",
          .doc = "One value in the shape of another tensor.",
          .args = {{"data", "Gives shape and dtype."}, {"fill_value", "A scalar."}},
          .support_level = 3,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .relation = full_like_relation,
          .compute = compute_rule(full_like_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = full_like_gradient,
          .batching = batch_full_like,
          .known = known_rules::filled_with(1),
          .examples = {{{"Tensor[(2, 3), float32]", "float32"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
