#include "frontend/torch/parts.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/slices.h"

namespace relay::frontend::torch {
namespace {

const Dim& size_along(const Expr& x, int64_t axis) {
  return Builder::shape_of(x)[static_cast<size_t>(axis)];
}

// A bound in [0, size], as far as that is known.
Dim bound(NodeContext& ctx, std::string_view name, const Dim& size, const Dim& otherwise) {
  if (!ctx.has(name)) return otherwise;
  Dim at = ctx.size(name);
  auto n = as_const(at), all = as_const(size);
  if (n && *n < 0) {
    at = size + at;
    n = as_const(at);
    if (n && *n < 0) return dim(0);
    // The end less a few.
    if (!n) return at;
  }
  if (n && all) return dim(std::min(*n, *all));
  // "To the end" is a number that no size reaches.
  if (n && *n >= 1'000'000'000) return size;
  return at;
}

// ---- Bounds that the graph computes

bool is_computed(NodeContext& ctx, std::string_view name) {
  return ctx.has(name) && is_any(ctx.size(name));
}

Expr size_at_run_time(NodeContext& ctx, const Expr& x, int64_t axis) {
  return ctx.select(sizes_of(ctx, x), 0, axis);
}

// An integer as a scalar. A term over sizes has an expression, too.
Expr integer_at_run_time(NodeContext& ctx, std::string_view name) {
  return ctx.number_as(*ctx.number(name), kI64);
}

// The part between two positions, clamped to the axis; an end before the begin leaves an empty part.
Part computed_part(NodeContext& ctx, int64_t axis, const Expr& begin, const Expr& end,
                   const Expr& size, int64_t step) {
  auto clamped = [&](const Expr& at) {
    return ctx.maximum(ctx.minimum(places_from_front(ctx, at, size), size), ctx.scalar(0, kI64));
  };
  Expr first = clamped(begin);
  return {axis, dim_any(), dim_any(), step, first, ctx.maximum(clamped(end), first)};
}

// The indices of a part, which must be known.
std::vector<int64_t> places_of(const Builder& build, const Part& p) {
  auto begin = as_const(p.begin), end = as_const(p.end);
  if (!begin || !end) {
    build.fail(codes::frontend_dynamic, "a part with steps depends on an open size", "a number",
               to_string(begin ? p.end : p.begin));
  }
  std::vector<int64_t> out;
  for (int64_t i = *begin; i < *end; i += p.step) out.push_back(i);
  build.charge_bytes(static_cast<int64_t>(out.size()), DType::Int(64));
  return out;
}

// The axis first, all others behind it in order.
std::vector<int64_t> to_front(int64_t rank, int64_t axis) {
  std::vector<int64_t> out{axis};
  for (int64_t a = 0; a < rank; ++a)
    if (a != axis) out.push_back(a);
  return out;
}
std::vector<int64_t> inverse(const std::vector<int64_t>& axes) {
  std::vector<int64_t> out(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    out[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  return out;
}

}  // namespace

Part part_of_slice(NodeContext& ctx, const Expr& x) {
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), 0);
  const Dim size = size_along(x, axis);
  const int64_t step = ctx.integer("step", 1);
  if (step < 1) ctx.fail(codes::frontend_attribute, "a step is impossible", "1 or more");
  if (is_computed(ctx, "start") || is_computed(ctx, "end")) {
    Expr all = size_at_run_time(ctx, x, axis);
    Expr begin = ctx.has("start") ? integer_at_run_time(ctx, "start") : ctx.scalar(0, kI64);
    return computed_part(ctx, axis, begin, ctx.has("end") ? integer_at_run_time(ctx, "end") : all,
                         all, step);
  }
  Part p{axis, bound(ctx, "start", size, dim(0)), bound(ctx, "end", size, size), step};
  auto begin = as_const(p.begin), end = as_const(p.end);
  if (begin && end && *end < *begin) p.end = p.begin;
  return p;
}

Part part_of_select(NodeContext& ctx, const Expr& x) {
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  const Dim size = size_along(x, axis);
  Dim at = ctx.size("index");
  if (is_any(at)) {
    Expr index = checked_index(ctx, integer_at_run_time(ctx, "index"), x, axis);
    Expr begin = places_from_front(ctx, index, size_at_run_time(ctx, x, axis));
    return {axis, dim_any(), dim_any(), 1, begin, ctx.add(begin, ctx.scalar(1, kI64))};
  }
  if (auto n = as_const(at); n && *n < 0) at = size + at;
  auto n = as_const(at), all = as_const(size);
  if (n && (*n < 0 || (all && *n >= *all))) {
    ctx.fail(codes::frontend_attribute, "an index is out of range", "below " + to_string(size),
             std::to_string(*n));
  }
  return {axis, at, at + dim(1)};
}

Part part_of_narrow(NodeContext& ctx, const Expr& x) {
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  if (is_computed(ctx, "start") || is_computed(ctx, "length")) {
    Expr all = size_at_run_time(ctx, x, axis);
    Expr begin = places_from_front(ctx, integer_at_run_time(ctx, "start"), all);
    Expr end = ctx.add(begin, integer_at_run_time(ctx, "length"));
    return computed_part(ctx, axis, begin, end, all, 1);
  }
  Dim begin = ctx.size("start");
  if (auto n = as_const(begin); n && *n < 0) begin = size_along(x, axis) + begin;
  return {axis, begin, begin + ctx.size("length")};
}

namespace {

// The elements of an axis between two positions within it.
Expr read_computed(const Builder& build, const Expr& x, int64_t axis, const Expr& begin,
                   const Expr& end, int64_t step) {
  return slice_at_run_time(build, x,
                           {.begin = build.expand_dims(begin, 0),
                            .end = build.expand_dims(end, 0),
                            .steps = build.ints({step}),
                            .axes = std::vector<int64_t>{axis}});
}

}  // namespace

Expr read_part(const Builder& build, const Expr& x, const Part& p) {
  if (p.begin_at) return read_computed(build, x, p.axis, p.begin_at, p.end_at, p.step);
  return strided_slice(build, x, {{p.begin}, {p.end}, {p.axis}, {p.step}});
}

Expr write_part(const Builder& build, const Expr& x, const Expr& elements, const Part& p) {
  const Dim& size = size_along(x, p.axis);
  if (p.begin_at && p.step == 1) {
    // Behind every end of an axis, and exact as a float64.
    constexpr double kBehind = 0x1p62;
    Expr before = read_computed(build, x, p.axis, build.scalar(0, kI64), p.begin_at, 1);
    Expr behind = read_computed(build, x, p.axis, p.end_at, build.scalar(kBehind, kI64), 1);
    Expr whole = build.concat({before, elements, behind}, p.axis);
    return build.with_sizes(whole, Builder::shape_of(x));
  }
  if (p.step != 1) {
    // Along the first axis, at the places of the part.
    const std::vector<int64_t> order = to_front(Builder::rank_of(x), p.axis);
    const std::vector<int64_t> places = places_of(build, p);
    Expr indices = build.reshape(build.ints(places),
                                 std::vector<int64_t>{1, static_cast<int64_t>(places.size())});
    Expr out = build.call("scatter_nd",
                          {build.transpose(x, order), indices, build.transpose(elements, order)},
                          {{"mode", std::string("update")}});
    return build.transpose(out, inverse(order));
  }
  const bool from_begin = as_const(p.begin) == 0, to_end = dim_equal(p.end, size);
  if (from_begin && to_end) return elements;
  std::vector<Expr> pieces;
  if (!from_begin) pieces.push_back(read_part(build, x, {p.axis, dim(0), p.begin}));
  pieces.push_back(elements);
  if (!to_end) pieces.push_back(read_part(build, x, {p.axis, p.end, size}));
  // Sizes of pieces may be terms whose sum the compiler does not simplify.
  return build.reshape(build.concat(std::move(pieces), p.axis), Builder::shape_of(x));
}

Diagonal diagonal_of(NodeContext& ctx, const Expr& x, int64_t rows, int64_t columns) {
  const int64_t rank = Builder::rank_of(x);
  Diagonal d{ctx.axis_of("dim1", rank, rows), ctx.axis_of("dim2", rank, columns), {}, 0, 0};
  if (d.rows == d.columns) ctx.fail(codes::frontend_attribute, "an axis is given twice");
  d.height = ctx.const_dim(x, d.rows, "the size of a matrix");
  d.width = ctx.const_dim(x, d.columns, "the size of a matrix");
  const int64_t offset = ctx.integer("offset", 0);
  for (int64_t r = std::max<int64_t>(-offset, 0); r < d.height && r + offset < d.width; ++r)
    d.places.push_back(r * d.width + r + offset);
  ctx.charge_bytes(static_cast<int64_t>(d.places.size()), DType::Int(64));
  return d;
}

namespace {

// The two axes last, as one; and how they come back.
std::vector<int64_t> matrix_last(const Expr& x, const Diagonal& d) {
  std::vector<int64_t> order;
  for (int64_t a = 0; a < Builder::rank_of(x); ++a)
    if (a != d.rows && a != d.columns) order.push_back(a);
  order.push_back(d.rows);
  order.push_back(d.columns);
  return order;
}
Expr flat_matrix(const Builder& build, const Expr& x, const Diagonal& d) {
  Expr e = build.transpose(x, matrix_last(x, d));
  const auto rank = static_cast<size_t>(Builder::rank_of(e));
  return build.merge_axes(e, rank - 2, rank);
}

}  // namespace

Expr read_diagonal(const Builder& build, const Expr& x, const Diagonal& d) {
  Expr flat = flat_matrix(build, x, d);
  return build.call("take", {flat, build.ints(d.places)},
                    {{"axis", Builder::rank_of(flat) - 1}, {"mode", std::string("fast")}});
}

Expr write_diagonal(const Builder& build, const Expr& x, const Expr& elements, const Diagonal& d) {
  Expr flat = flat_matrix(build, x, d);
  const int64_t rank = Builder::rank_of(flat);
  const std::vector<int64_t> front = to_front(rank, rank - 1);
  Expr indices = build.reshape(build.ints(d.places),
                               std::vector<int64_t>{1, static_cast<int64_t>(d.places.size())});
  Expr out = build.call("scatter_nd",
                        {build.transpose(flat, front), indices, build.transpose(elements, front)},
                        {{"mode", std::string("update")}});
  const std::vector<int64_t> order = matrix_last(x, d);
  Expr ordered = build.transpose(x, order);
  return build.transpose(
      build.reshape(build.transpose(out, inverse(front)), Builder::shape_of(ordered)),
      inverse(order));
}

}  // namespace relay::frontend::torch
