#include "frontend/onnx/open_args.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"

namespace relay::importer {
namespace {

const DType kI64 = DType::Int(64);

Expr any_vector(NodeContext& ctx, size_t input, const char* what, DType dtype) {
  Expr v = ctx.cast(ctx.in(input), dtype);
  if (NodeContext::rank_of(v) == 0) v = ctx.reshape(v, std::vector<int64_t>{1});
  if (NodeContext::rank_of(v) != 1) {
    ctx.fail(codes::frontend_attribute, std::string(what) + " must be a list", "1 dimension",
             to_string(v->type));
  }
  return v;
}

Expr vector_of(NodeContext& ctx, size_t input, const char* what, DType dtype, int64_t length) {
  Expr v = any_vector(ctx, input, what, dtype);
  if (auto n = as_const(NodeContext::shape_of(v)[0]); n && *n != length) {
    ctx.fail(codes::frontend_attribute, std::string(what) + " has the wrong length",
             std::to_string(length), std::to_string(*n));
  }
  return ctx.reshape(v, std::vector<int64_t>{length});
}

}  // namespace

Values known_or_open(NodeContext& ctx, const std::function<Values(NodeContext&)>& known,
                     const std::function<Values(NodeContext&)>& open) {
  try {
    return known(ctx);
  } catch (const UserError& e) {
    bool is_open = std::ranges::all_of(
        e.diagnostics(), [](const Diagnostic& d) { return d.code == codes::frontend_dynamic.id; });
    if (!is_open) throw;
  }
  return open(ctx);
}

Expr int_vector(NodeContext& ctx, size_t input, const char* what, int64_t most) {
  Expr v = any_vector(ctx, input, what, kI64);
  if (has_open_length(v)) {
    ctx.fail(codes::frontend_dynamic, std::string(what) + " has a length that is open",
             "a known length, which decides how many dimensions there are", to_string(v->type),
             "give the shape of the input that it comes from, as in --input NAME=2");
  }
  if (int64_t length = length_of_vector(v); length > most) {
    ctx.fail(codes::frontend_limit, std::string(what) + " is too long",
             "at most " + std::to_string(most) + " entries", std::to_string(length));
  }
  return v;
}

Expr int_vector_of(NodeContext& ctx, size_t input, const char* what, int64_t length) {
  return vector_of(ctx, input, what, kI64, length);
}
Expr float_vector_of(NodeContext& ctx, size_t input, const char* what, int64_t length) {
  return vector_of(ctx, input, what, DType::Float(64), length);
}
Expr int_list(NodeContext& ctx, size_t input, const char* what) {
  return any_vector(ctx, input, what, kI64);
}
bool has_open_length(const Expr& vector) { return !as_const(NodeContext::shape_of(vector)[0]); }

Expr one_number(NodeContext& ctx, size_t input, DType dtype) {
  Expr v = ctx.cast(ctx.in(input), dtype);
  return NodeContext::rank_of(v) == 0 ? v : ctx.reshape(v, std::vector<int64_t>{});
}

int64_t length_of_vector(const Expr& vector) { return *as_const(NodeContext::shape_of(vector)[0]); }

Expr sizes_of(NodeContext& ctx, const Expr& x) {
  return ctx.call("shape_of", {x}, {{"dtype", to_value(kI64)}});
}

Expr checked_index(NodeContext& ctx, Expr indices, const Expr& data, int64_t first,
                   std::optional<int64_t> count) {
  const std::vector<Dim>& shape = NodeContext::shape_of(data);
  std::vector<int64_t> axes(static_cast<size_t>(count.value_or(1))), fixed;
  std::iota(axes.begin(), axes.end(), first);
  for (int64_t axis : axes) {
    if (auto n = as_const(shape[static_cast<size_t>(axis)])) fixed.push_back(*n);
  }
  Expr sizes = fixed.size() == axes.size() ? ctx.ints(fixed)
                                           : ctx.call("take", {sizes_of(ctx, data), ctx.ints(axes)},
                                                      {{"axis", int64_t{0}}});
  if (!count) sizes = ctx.select(sizes, 0, 0);
  return ctx.call("checked_index", {std::move(indices), std::move(sizes)});
}

Expr length_at_run_time(NodeContext& ctx, const Expr& vector) {
  if (!has_open_length(vector)) return ctx.ints({length_of_vector(vector)});
  return sizes_of(ctx, vector);
}

Expr ones_for(NodeContext& ctx, const Expr& vector) {
  if (!has_open_length(vector)) return ctx.full(1, {dim(length_of_vector(vector))}, kI64);
  return ctx.call("dyn.full", {ctx.scalar(1, kI64), sizes_of(ctx, vector)});
}

Expr as_long_as(NodeContext& ctx, const Expr& values, const Expr& like) {
  const Dim &own = NodeContext::shape_of(values)[0], &wanted = NodeContext::shape_of(like)[0];
  if (dim_equal(own, wanted) && !is_any(own)) return values;
  return open_reshape(ctx, values, sizes_of(ctx, like));
}

Expr numbers_below(NodeContext& ctx, int64_t n) {
  std::vector<int64_t> all(static_cast<size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return ctx.ints(all);
}

Expr axes_from_front(NodeContext& ctx, const Expr& axes, int64_t rank) {
  Expr below = ctx.call("less", {axes, ctx.scalar(0, kI64)});
  Expr moved = ctx.add(axes, ctx.scalar(static_cast<double>(rank), kI64));
  return ctx.call("where", {below, moved, axes});
}

Expr spread(NodeContext& ctx, const Expr& otherwise, const Expr& axes, const Expr& values) {
  return ctx.call("scatter_elements", {otherwise, axes, as_long_as(ctx, values, axes)},
                  {{"axis", int64_t{0}}, {"reduction", std::string("update")}});
}

Expr other_axes(NodeContext& ctx, const Expr& axes, int64_t rank) {
  int64_t k = length_of_vector(axes);
  Expr taken = spread(ctx, ctx.full(0, {dim(rank)}, kI64), axes, ctx.full(1, {dim(k)}, kI64));
  // The order is stable: first those that are not taken.
  Expr order = ctx.call("argsort", {taken}, {{"axis", int64_t{0}}, {"dtype", to_value(kI64)}});
  return entries(ctx, order, 0, rank - k);
}

Expr with_size(NodeContext& ctx, const Expr& x, int64_t axis, const Dim& size) {
  std::vector<Dim> sizes = NodeContext::shape_of(x);
  Dim& own = sizes[static_cast<size_t>(axis)];
  if (is_any(size) || dim_equal(own, size)) return x;
  own = size;
  return ctx.reshape(x, sizes);
}

Expr entries(NodeContext& ctx, const Expr& vector, int64_t begin, int64_t end) {
  return ctx.slice(vector, 0, begin, end);
}

Expr along_open_axis(NodeContext& ctx, const Expr& x, const Expr& axis, bool keeps_size,
                     const std::function<Expr(const Expr&)>& along) {
  int64_t rank = NodeContext::rank_of(x);
  Expr last = axes_from_front(ctx, ctx.reshape(axis, std::vector<int64_t>{1}), rank);
  Expr order = ctx.concat({other_axes(ctx, last, rank), last}, 0);
  Expr y = along(ctx.call("dyn.transpose", {x, order}));
  y = ctx.call("dyn.transpose", {y, ctx.call("invert_permutation", {order})});
  const std::vector<Dim>& sizes = NodeContext::shape_of(x);
  bool named = std::ranges::none_of(sizes, is_any);
  return keeps_size && named ? ctx.reshape(y, sizes) : y;
}

Expr open_reshape(NodeContext& ctx, const Expr& x, const Expr& sizes) {
  return ctx.call("dyn.reshape", {x, sizes}, {{"allowzero", true}});
}

Expr open_slice(NodeContext& ctx, const Expr& x, const Expr& begin, const Expr& end,
                const Expr& steps, const std::vector<int64_t>& axes, bool strict) {
  return ctx.call("dyn.strided_slice", {x, begin, end, steps},
                  {{"axes", to_value(axes)}, {"strict", strict}});
}

Expr open_range(NodeContext& ctx, const Expr& first, const Expr& end) {
  return ctx.call("dyn.arange", {first, end, ctx.scalar(1, NodeContext::dtype_of(end))});
}

}  // namespace relay::importer
