// Regions and crops of several lanes: the lanes' images are more items, and each region names that of its
// lane.
#include <algorithm>

#include "ops/batching.h"
#include "ops/composed.h"
#include "ops/gradient.h"
#include "ops/image/sample.h"
#include "ops/image/window.h"

namespace relay::ops {
namespace {

bool all_named(const BatchingContext& ctx) {
  return std::ranges::all_of(ctx.args, [](const Expr& e) { return has_named_sizes(e); });
}

// 0, 1, .. for the lanes, as (lanes, 1).
Expr lane_numbers(const BatchingContext& ctx) { return expanded(iota(ctx.lanes), 1); }

// The items (lanes, n) of one lane each, among those of all lanes.
Expr items_of_all(const BatchingContext& ctx, const Expr& items, const Dim& each) {
  Expr i = as_index(items);
  i = apply("maximum", {i, scalar(0, i)});
  i = apply("minimum", {i, size_as(each - dim(1), i)});
  return i + lane_numbers(ctx) * size_as(each, i);
}

}  // namespace

Expr batch_regions(const BatchingContext& ctx) {
  const TensorTypeNode& one = type_of(ctx.call.args[0]);
  // The numbers of items are floats.
  if (!all_named(ctx) || one.dtype.bits < 32) return nullptr;
  Expr x = ctx.arg(0), rois = in_lanes(ctx, 1);
  if (ctx.batched[0]) {
    x = fold_lanes(x, 0);
    Expr item =
        apply("squeeze", {slice_axis(rois, 2, dim(0), dim(1))}, {{"axis", to_value(Ints{2})}});
    item = cast_to(items_of_all(ctx, item, one.shape[0]), one.dtype);
    rois = joined({expanded(item, 2), slice_axis(rois, 2, dim(1), dim(4))}, 2);
  }
  Expr out = unfold_lanes(same_call(ctx, {x, fold_lanes(rois, 0)}), 0, ctx.lanes, ctx.call.type);
  if (!ctx.batched[0] || !type_of(out).dtype.is_integer()) return out;
  // Numbers of elements are those of one lane.
  Dim elements = dim(1);
  for (const Dim& d : one.shape) elements = elements * d;
  Expr before = expanded(lane_numbers(ctx), 2, rank_of(out) - 2) * size_as(elements, out);
  return choose(apply("less", {out, scalar(0, out)}), out, out - before);
}

Expr batch_crops(const BatchingContext& ctx) {
  const size_t items = axis_of(Layout::of(ctx.attrs<CropAndResizeAttrs>().layout), 'N');
  if (!all_named(ctx)) return nullptr;
  Expr x = ctx.arg(0), which = in_lanes(ctx, 2);
  if (ctx.batched[0]) {
    x = fold_lanes(x, items);
    which = items_of_all(ctx, which, type_of(ctx.call.args[0]).shape[items]);
  }
  Expr out = same_call(ctx, {x, fold_lanes(in_lanes(ctx, 1), 0), fold_lanes(which, 0)});
  return unfold_lanes(out, items, ctx.lanes, ctx.call.type);
}

}  // namespace relay::ops
