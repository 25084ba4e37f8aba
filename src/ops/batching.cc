#include "ops/batching.h"

#include <algorithm>

namespace relay::ops {

Ints behind_lanes(Ints axes) {
  for (int64_t& axis : axes) axis = behind_lanes(axis);
  return axes;
}

bool field_has_lanes(const BatchingContext& ctx, size_t arg, size_t field) {
  auto *now = as<TupleTypeNode>(ctx.args[arg]->type),
       *of_one = as<TupleTypeNode>(ctx.call.args[arg]->type);
  return as<TensorTypeNode>(now->fields[field])->rank() !=
         as<TensorTypeNode>(of_one->fields[field])->rank();
}

Expr in_lanes(const BatchingContext& ctx, size_t arg) {
  const Expr& e = ctx.args[arg];
  auto* t = as<TupleTypeNode>(e->type);
  if (t == nullptr) return ctx.batched[arg] ? e : in_all_lanes(e, ctx.lanes);
  std::vector<Expr> fields;
  for (size_t i = 0; i < t->fields.size(); ++i) {
    Expr field = tuple_get_item(e, static_cast<int64_t>(i));
    fields.push_back(field_has_lanes(ctx, arg, i) ? field : in_all_lanes(field, ctx.lanes));
  }
  return tuple(std::move(fields));
}

std::vector<Expr> all_in_lanes(const BatchingContext& ctx) {
  std::vector<Expr> out;
  for (size_t i = 0; i < ctx.args.size(); ++i) out.push_back(in_lanes(ctx, i));
  return out;
}

bool only_first(const BatchingContext& ctx) {
  return ctx.batched[0] && std::count(ctx.batched.begin(), ctx.batched.end(), true) == 1;
}

std::vector<Dim> shape_in_lanes(const BatchingContext& ctx) {
  std::vector<Dim> shape = as<TensorTypeNode>(ctx.call.type)->shape;
  shape.insert(shape.begin(), ctx.lanes);
  return shape;
}

Expr lanes_along(const Expr& vectors, int64_t axis, int64_t rank) {
  const std::vector<Dim>& own = type_of(vectors).shape;
  std::vector<Dim> shape(static_cast<size_t>(rank) + 1, dim(1));
  shape[0] = own[0];
  shape[static_cast<size_t>(from_front(axis, rank)) + 1] = own[1];
  return reshape_to(vectors, shape);
}

Expr same_call(const BatchingContext& ctx, std::vector<Expr> args) {
  return call(ctx.call.op, std::move(args), ctx.call.attrs, ctx.call.span);
}

Expr batch_as_it_is(const BatchingContext& ctx) { return same_call(ctx, all_in_lanes(ctx)); }

Expr batch_axis(const BatchingContext& ctx) {
  return with_attrs(ctx.call, all_in_lanes(ctx),
                    {{"axis", behind_lanes(int_attr(ctx.call, "axis"))}});
}

Expr batch_axes(const BatchingContext& ctx) {
  auto axes = ints_attr(ctx.call, "axis");
  if (!axes || axes->empty()) {
    axes.emplace();
    for (int64_t d = 0; d < rank_of(ctx.call.args[0]); ++d) axes->push_back(d);
  }
  // Of a lane without axes: the lanes would be all there are.
  if (axes->empty()) return nullptr;
  return with_attrs(ctx.call, all_in_lanes(ctx), {{"axis", to_value(behind_lanes(*axes))}});
}

Expr batch_rows(const BatchingContext& ctx) {
  std::vector<Expr> args;
  for (const Expr& e : all_in_lanes(ctx)) {
    if (!has_named_sizes(e) || rank_of(e) < 2) return nullptr;
    args.push_back(fold_lanes(e, 0));
  }
  return unfold_lanes(same_call(ctx, std::move(args)), 0, ctx.lanes, ctx.call.type);
}

Expr batch_rows_of_first(const BatchingContext& ctx) {
  if (!only_first(ctx) || !has_named_sizes(ctx.arg(0))) return nullptr;
  std::vector<Expr> args = ctx.args;
  args[0] = fold_lanes(args[0], 0);
  return unfold_lanes(same_call(ctx, std::move(args)), 0, ctx.lanes, ctx.call.type);
}

Expr batch_rows_by_layout(const BatchingContext& ctx) {
  return text_attr(ctx.call, "layout").starts_with('N') ? batch_rows_of_first(ctx) : nullptr;
}

Expr batch_reshape(const BatchingContext& ctx) {
  if (std::ranges::any_of(shape_in_lanes(ctx), is_any)) return nullptr;
  return reshape_to(in_lanes(ctx, 0), shape_in_lanes(ctx));
}

Expr batch_first(const BatchingContext& ctx) {
  Expr e = same_call(ctx, ctx.args);
  return ctx.batched[0] ? e : in_all_lanes(e, ctx.lanes);
}

}  // namespace relay::ops
