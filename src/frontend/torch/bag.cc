#include "frontend/torch/bag.h"

#include <limits>

#include "base/codes/frontend.h"
#include "frontend/common/gather.h"
#include "frontend/common/open_args.h"

namespace relay::frontend::torch {
namespace {

enum class BagMode { Sum, Mean, Max };

BagMode mode_of(NodeContext& ctx) {
  const int64_t mode = ctx.integer("mode", 0);
  if (mode < 0 || mode > 2) ctx.fail(codes::frontend_attribute, "there is no such mode of bags");
  return static_cast<BagMode>(mode);
}

Expr lines_at(NodeContext& ctx, const Expr& x, const Expr& places) {
  return take_along(ctx, x, value_of(places), 0);
}
Expr put_at(NodeContext& ctx, const Expr& x, const Expr& places, const Expr& lines, Scatter how) {
  return scatter_nd(ctx, x, value_of(ctx.expand_dims(places, 1)), lines, how);
}
Expr zeros(NodeContext& ctx, const std::vector<Dim>& shape, DType dtype) {
  return ctx.full(0, shape, dtype);
}

// The bag of each index: the last offset that is not behind an index begins its bag.
Expr bags_of(NodeContext& ctx, const Expr& indices, const Expr& offsets) {
  Expr bag = ctx.call("searchsorted", {offsets, places_along(ctx, indices, 0)},
                      {{"right", true}, {"dtype", to_value(kI64)}});
  return ctx.sub(bag, ctx.scalar(1, kI64));
}
// The same for a gradient, which the forward operator has left without elements in some modes.
Expr saved_bags(NodeContext& ctx, const Expr& indices) {
  Expr bag = ctx.cast(ctx.tensor("offset2bag"), kI64);
  Expr offsets = ctx.tensor_or_null("offsets");
  const bool is_saved = as_const(Builder::shape_of(bag)[0]) != 0;
  return is_saved || !offsets ? bag : bags_of(ctx, indices, ctx.cast(offsets, kI64));
}

// Which indices count, as a vector of truth values; null if all do.
Expr without_padding(NodeContext& ctx, const Expr& indices) {
  const int64_t padding = ctx.integer("padding_idx", -1);
  if (padding < 0) return nullptr;
  return ctx.call("not_equal", {indices, ctx.scalar_like(static_cast<double>(padding), indices)});
}
// The lines that count, and `otherwise` in place of the others.
Expr masked(NodeContext& ctx, const Expr& kept, const Expr& lines, double otherwise) {
  if (!kept) return lines;
  return ctx.where(ctx.expand_dims(kept, 1), lines, ctx.scalar_like(otherwise, lines));
}
// Each line times its weight, if there are weights.
Expr weighted(NodeContext& ctx, const Expr& lines) {
  Expr weights = ctx.tensor_or_null("per_sample_weights");
  if (!weights) return lines;
  return ctx.mul(lines, ctx.expand_dims(ctx.cast(weights, Builder::dtype_of(lines)), 1));
}

// The index of the first line that is the maximum of its bag, for each column; 0 for a bag without lines.
Expr indices_of_maxima(NodeContext& ctx, const Expr& lines, const Expr& kept, const Expr& indices,
                       const Expr& bag, const Expr& maxima) {
  const std::vector<Dim>& shape = Builder::shape_of(lines);
  Expr is_maximum = ctx.call("equal", {lines, lines_at(ctx, maxima, bag)});
  if (kept) is_maximum = ctx.call("logical_and", {is_maximum, ctx.expand_dims(kept, 1)});
  Expr place = ctx.broadcast_to(ctx.expand_dims(places_along(ctx, lines, 0), 1), shape);
  Expr none = ctx.scalar(static_cast<double>(std::numeric_limits<int32_t>::max()), kI64);
  Expr first = ctx.broadcast_to(none, Builder::shape_of(maxima));
  first = put_at(ctx, first, bag, ctx.where(is_maximum, place, none), Scatter::Min);
  // One more index, for bags without lines.
  Expr all = ctx.concat({indices, zeros(ctx, {dim(1)}, kI64)}, 0);
  return ctx.call("take", {all, first}, {{"axis", int64_t{0}}, {"mode", std::string("clip")}});
}

}  // namespace

Values embedding_bag(NodeContext& ctx) {
  Expr table = ctx.tensor("weight");
  Expr indices = ctx.cast(ctx.tensor("indices"), kI64);
  Expr offsets = ctx.cast(ctx.tensor("offsets"), kI64);
  const BagMode mode = mode_of(ctx);
  // These concern the gradient.
  ctx.truth("scale_grad_by_freq", false);
  ctx.truth("sparse", false);
  const bool with_last = ctx.truth("include_last_offset", false);
  const Dim bags = Builder::shape_of(offsets)[0] - dim(with_last ? 1 : 0);
  const DType dtype = Builder::dtype_of(table);
  Expr bag = bags_of(ctx, indices, offsets);
  Expr kept = without_padding(ctx, indices);
  Expr lines = weighted(ctx, lines_at(ctx, table, indices));
  const std::vector<Dim> shape{bags, Builder::shape_of(table)[1]};
  Expr ones = kept ? ctx.cast(kept, kI64) : ctx.full(1, Builder::shape_of(indices), kI64);
  Expr count = put_at(ctx, zeros(ctx, {bags}, kI64), bag, ones, Scatter::Add);
  Expr y, maxima;
  if (mode == BagMode::Max) {
    constexpr double kLeast = -std::numeric_limits<double>::infinity();
    y = put_at(ctx, ctx.full(kLeast, shape, dtype), bag, masked(ctx, kept, lines, kLeast),
               Scatter::Max);
    maxima = indices_of_maxima(ctx, lines, kept, indices, bag, y);
    Expr empty = ctx.call("equal", {count, ctx.scalar(0, kI64)});
    y = ctx.where(ctx.expand_dims(empty, 1), ctx.scalar(0, dtype), y);
  } else {
    y = put_at(ctx, zeros(ctx, shape, dtype), bag, masked(ctx, kept, lines, 0), Scatter::Add);
    maxima = zeros(ctx, {bags}, kI64);
    if (mode == BagMode::Mean) {
      Expr divisor = ctx.cast(ctx.maximum(count, ctx.scalar(1, kI64)), dtype);
      y = ctx.div(y, ctx.expand_dims(divisor, 1));
    }
  }
  // What the mode does not need may have another size in the graph; all integers have the type of the offsets.
  Values out{value_of(y)};
  const std::vector<Expr> rest{bag, count, maxima};
  for (size_t i = 0; i < rest.size() && ctx.is_used(i + 1); ++i) {
    if (ctx.outputs()[i + 1].meta == nullptr) {
      out.push_back(nullptr);
      continue;
    }
    const std::vector<Dim> said = ctx.out_shape(i + 1);
    const bool needed = !(said.size() == 1 && as_const(said[0]) == 0);
    out.push_back(
        value_of(ctx.cast(needed ? rest[i] : zeros(ctx, said, kI64), ctx.out_dtype(i + 1))));
  }
  return out;
}

Values embedding_bag_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad"), indices = ctx.cast(ctx.tensor("indices"), kI64);
  Expr bag = saved_bags(ctx, indices);
  Expr count = ctx.cast(ctx.tensor("bag_size"), kI64);
  Expr maxima = ctx.tensor("maximum_indices");
  if (ctx.truth("scale_grad_by_freq", false)) ctx.unsupported("gradients scaled by frequency");
  if (ctx.truth("sparse", false))
    ctx.unsupported("a sparse gradient", "EmbeddingBag(sparse=False)");
  const BagMode mode = mode_of(ctx);
  Expr out =
      zeros(ctx, {ctx.size("num_weights"), Builder::shape_of(grad)[1]}, Builder::dtype_of(grad));
  Expr kept = without_padding(ctx, indices);
  if (mode == BagMode::Max) {
    ctx.tensor_or_null("per_sample_weights");
    Expr filled = ctx.call("greater", {count, ctx.scalar(0, kI64)});
    return {value_of(scatter_elements(ctx, out, value_of(ctx.cast(maxima, kI64)),
                                      masked(ctx, filled, grad, 0), 0, Scatter::Add))};
  }
  if (mode == BagMode::Mean) {
    Expr divisor = ctx.cast(ctx.maximum(count, ctx.scalar(1, kI64)), Builder::dtype_of(grad));
    grad = ctx.div(grad, ctx.expand_dims(divisor, 1));
  }
  Expr lines = masked(ctx, kept, weighted(ctx, lines_at(ctx, grad, bag)), 0);
  return {value_of(put_at(ctx, out, indices, lines, Scatter::Add))};
}

Values embedding_bag_weights_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad"), table = ctx.tensor("weight");
  Expr indices = ctx.cast(ctx.tensor("indices"), kI64);
  Expr bag = saved_bags(ctx, indices);
  if (mode_of(ctx) != BagMode::Sum) ctx.unsupported("weights of bags that are not sums");
  Expr product = ctx.mul(lines_at(ctx, grad, bag), lines_at(ctx, table, indices));
  return {value_of(
      ctx.reduce("sum", masked(ctx, without_padding(ctx, indices), product, 0), {1}, false))};
}

}  // namespace relay::frontend::torch
