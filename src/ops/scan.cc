// Running sums and products.
#include "ops/common.h"
#include "ops/families.h"
#include "ops/indexing_attrs.h"
#include "ops/loops.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

Type scan_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ScanopAttrs>();
  DType dtype = is_set(a.dtype) ? a.dtype : x->dtype;
  if (!require(ctx, !dtype.is_bool(), codes::type_dtype, "bool values cannot be accumulated",
               "a dtype of numbers, as in dtype=\"int32\"", dtype.to_string()))
    return nullptr;
  if (a.axis)
    return normal_axis(ctx, *a.axis, x->rank()) ? tensor_type(x->shape, dtype) : Type(nullptr);
  Dim n = dim(1);
  for (const Dim& d : x->shape) n = n * d;
  return tensor_type(std::vector<Dim>{n}, dtype);
}

// The index of the element at a place of the flattened tensor.
Indices unflattened(const std::vector<PrimExpr>& shape, PrimExpr place) {
  Indices at(shape.size(), index(0));
  for (size_t d = shape.size(); d-- > 0;) {
    at[d] = d == 0 ? place : floor_mod(place, shape[d]);
    place = floor_div(place, shape[d]);
  }
  return at;
}

TirTensor scan(const ComputeContext& ctx, bool product) {
  auto& a = ctx.attrs<ScanopAttrs>();
  TirTensor x = ctx.inputs[0];
  const auto& result = ctx.outputs[0];
  size_t axis = a.axis ? static_cast<size_t>(from_front(*a.axis, x->rank())) : 0;
  DType acc = working_dtype(result.dtype);
  bool flat = !a.axis, exclusive = a.exclusive;
  return tir::imperative(
      product ? "T_cumprod" : "T_cumsum", result.dtype, result.shape, {x},
      [=](const std::vector<Buffer>& in, const Buffer& out) {
        return each_line(out->shape, axis, 4, [&](const LineIndex& at) {
          Cell total("total", acc);
          Stmt step = each("k", out->shape[axis], [&](const PrimExpr& k) {
            PrimExpr v = load(in[0], flat ? unflattened(in[0]->shape, k) : at(k));
            // 16-bit floats are accumulated in float32, like the input of a wider result.
            PrimExpr term = tir::cast(acc, v);
            Stmt add = total.set(product ? total.get() * term : total.get() + term);
            Stmt put = store(out, at(k), tir::cast(out->dtype, total.get()));
            return exclusive ? seq({put, add}) : seq({add, put});
          });
          return total.in(seq({total.set(imm(acc, product ? 1 : 0)), step}));
        });
      });
}

}  // namespace

void add_scan(OpRegistry& registry) {
  OpInfo op;
  op.fusion = FusionClass::Opaque;
  op.support_level = 3;
  op.args = {{"data", "The input."}};
  op.attrs = &ScanopAttrs::static_info();
  op.relation = scan_type;
  for (bool product : {false, true}) {
    op.name = product ? "cumprod" : "cumsum";
    op.doc = product ? "Products of all elements up to each, along an axis."
                     : "Sums of all elements up to each, along an axis.";
    op.compute = compute_rule([product](const ComputeContext& ctx) { return scan(ctx, product); });
    op.examples = {{{"Tensor[(3, 4), float32]"}, "axis=1"},
                   {{"Tensor[(3, 4), int32]"}, "axis=-2, exclusive=True, dtype=\"int64\""},
                   {{"Tensor[(2, 3), float32]"}, ""}};
    registry.add(op);
  }
}

}  // namespace relay::ops
