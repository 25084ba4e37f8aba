// Elements by conditions.
#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {
namespace {

// A vector of conditions chooses lines of the first axis.
Values select(NodeContext& ctx) {
  Expr condition = ctx.in(0), x = ctx.in(1), y = ctx.in(2);
  const int64_t rank = Builder::rank_of(x);
  if (Builder::rank_of(condition) == 1 && rank > 1)
    condition = ctx.expand_dims(condition, 1, rank - 1);
  return one(ctx.where(condition, x, y));
}

Values select_v2(NodeContext& ctx) { return one(ctx.where(ctx.in(0), ctx.in(1), ctx.in(2))); }

// The places of the elements that are not zero.
Values where(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (!ctx.in_dtype(0).is_bool()) x = ctx.call("not_equal", {x, ctx.scalar_like(0, x)});
  return one(ctx.cast(ctx.call("argwhere", {x}), DType::Int(64)));
}

}  // namespace

template <>
std::span<const Row> rows<Family::Select>() {
  using O = schema::Options;
  static constexpr Row kRows[] = {
      {"SELECT", select, O::select},
      {"SELECT_V2", select_v2, O::select_v2},
      {"WHERE", where, O::where},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
