// Tensors from nothing but attributes.
#include "ops/attrs.h"
#include "ops/common.h"
#include "ops/families.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type init_type(RelationContext& ctx, DType fallback) {
  auto& a = ctx.attrs<InitOpAttrs>();
  if (!check_shape(ctx, a.shape)) return nullptr;
  return tensor_type(a.shape, is_set(a.dtype) ? a.dtype : fallback);
}

}  // namespace

void add_create(OpRegistry& registry) {
  OpInfo op;
  op.attrs = &InitOpAttrs::static_info();
  op.fusion = FusionClass::ElemWise;
  op.support_level = 3;
  op.relation = [](RelationContext& ctx) { return init_type(ctx, DType::Float(32)); };
  for (bool one : {false, true}) {
    op.name = one ? "ones" : "zeros";
    op.doc = one ? "Ones." : "Zeros.";
    op.examples = {{{}, "shape=[2, 3], dtype=\"float32\""}};
    op.compute = compute_rule([one](const ComputeContext& ctx) {
      return tir::compute("T_full", ctx.outputs[0].shape,
                          [&](const Indices&) { return imm(ctx.outputs[0].dtype, one ? 1 : 0); });
    });
    registry.add(op);
  }
  op.name = "full";
  op.doc = "One value everywhere.";
  op.args = {{"fill_value", "A scalar."}};
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* v = ctx.tensor(0);
    if (v == nullptr ||
        !require(ctx, v->rank() == 0, codes::type_rank, "fill_value must be a scalar",
                 "0 dimensions", shape_text(v->shape)))
      return nullptr;
    return init_type(ctx, v->dtype);
  };
  op.examples = {{{"float32"}, "shape=[2, 3]"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor v = ctx.inputs[0];
    return tir::compute("T_full", ctx.outputs[0].shape, [&](const Indices&) {
      return tir::cast(ctx.outputs[0].dtype, v(Indices{}));
    });
  });
  registry.add(op);
  op.name = "full_like";
  op.doc = "One value in the shape of another tensor.";
  op.args = {{"data", "Gives shape and dtype."}, {"fill_value", "A scalar."}};
  op.attrs = nullptr;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *x = ctx.tensor(0), *v = ctx.tensor(1);
    if (x == nullptr || v == nullptr ||
        !require(ctx, v->rank() == 0, codes::type_rank, "fill_value must be a scalar",
                 "0 dimensions", shape_text(v->shape)))
      return nullptr;
    return Type(x);
  };
  op.examples = {{{"Tensor[(2, 3), float32]", "float32"}, ""}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor v = ctx.inputs[1];
    return tir::compute("T_full_like", ctx.outputs[0].shape, [&](const Indices&) {
      return tir::cast(ctx.outputs[0].dtype, v(Indices{}));
    });
  });
  registry.add(op);
}

}  // namespace relay::ops
