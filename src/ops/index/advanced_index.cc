// NumPy's indexing by several index tensors at once.
#include <algorithm>

#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/index/index_mode.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;

Type adv_index_type(RelationContext& ctx) {
  auto list = ctx.tensors(0);
  if (!list) return nullptr;
  if (!require(ctx, list->size() >= 2, codes::type_arity, "needs data and index tensors",
               "2 tensors or more", std::to_string(list->size())))
    return nullptr;
  const TensorType& x = list->front();
  size_t indexed = list->size() - 1;
  if (!require(ctx, static_cast<int64_t>(indexed) <= x->rank(), codes::type_rank,
               "there are more index tensors than dimensions of data",
               "at most " + std::to_string(x->rank()), std::to_string(indexed)))
    return nullptr;
  std::vector<Dim> shape;
  for (size_t k = 1; k < list->size(); ++k) {
    const TensorType& i = (*list)[k];
    if (!require(ctx, i->dtype.is_integer(), codes::type_dtype, "an index tensor holds no integers",
                 "int32 or int64", i->dtype.to_string()))
      return nullptr;
    auto both = broadcast_shapes(ctx, shape, i->shape);
    if (!both) return nullptr;
    shape = std::move(*both);
  }
  // Something can be read for every index: an axis is empty only where there is no index.
  Dim count = dim(1);
  for (const Dim& d : shape) count = count * d;
  for (size_t k = 0; k < indexed; ++k) {
    if (!require(ctx, ctx.at_least(x->shape[k], min(dim(1), count)), codes::type_shape,
                 "there is nothing to take from an empty axis", "1 element or more",
                 to_string(x->shape[k])))
      return nullptr;
  }
  shape.insert(shape.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(indexed),
               x->shape.end());
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor adv_index_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  size_t indexed = ctx.inputs.size() - 1;
  size_t lead = ctx.outputs[0].shape.size() - (x->shape().size() - indexed);
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  const std::vector<PrimExpr> all(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(lead));
  return tir::compute("T_adv_index", shape, [&](const Indices& i) {
    auto split = i.begin() + static_cast<std::ptrdiff_t>(lead);
    Indices at, which(i.begin(), split);
    for (size_t k = 0; k < indexed; ++k) {
      at.push_back(
          place_of(broadcast_read(ctx.inputs[k + 1], which, all), x->shape()[k], IndexMode::Fast));
    }
    at.insert(at.end(), split, i.end());
    return x(at);
  });
}

// Index tensors with lanes broadcast to them; the lane is one more index of data with lanes.
Expr batch_adv_index(const BatchingContext& ctx) {
  const Expr &now = ctx.arg(0), &of_one = ctx.call.args[0];
  auto count = static_cast<int64_t>(as<TupleTypeNode>(now->type)->fields.size());
  int64_t rank = 0;
  for (int64_t k = 1; k < count; ++k) rank = std::max(rank, rank_of(tuple_get_item(of_one, k)));
  std::vector<Expr> parts{tuple_get_item(now, 0)};
  if (field_has_lanes(ctx, 0, 0)) parts.push_back(lanes_of_rank(iota(ctx.lanes), rank));
  for (int64_t k = 1; k < count; ++k) {
    Expr index = tuple_get_item(now, k);
    parts.push_back(field_has_lanes(ctx, 0, static_cast<size_t>(k)) ? lanes_of_rank(index, rank)
                                                                    : index);
  }
  return same_call(ctx, {tuple(std::move(parts))});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::AdvancedIndex>() {
  static const OpInfo rows[] = {
      {
          .name = "adv_index",
          .doc = "data[i, j, ...] for index tensors that broadcast to one shape; negative indices "
                 "count "
                 "from the end, those outside the data are moved to its border.",
          .args = {{"inputs", "A tuple of the data and the index tensors of its first axes."}},
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = adv_index_type,
          .compute = compute_rule(adv_index_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = moved,
          .batching = batch_adv_index,
          .examples =
              {{{"(Tensor[(5, 4, 3), float32], Tensor[(2, 1), int64], Tensor[(6,), int64])"},
                "",
                0,
                3},
               {{"(Tensor[(3, 4), float32], Tensor[(), int32])"}, "", -3, 2},
               {{"(Tensor[(3, 4), float32], Tensor[(5,), int32], Tensor[(), int64])"}, "", -3, 2}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
