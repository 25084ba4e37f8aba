// Elements read and written at computed places.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"
#include "frontend/common/gather.h"
#include "frontend/common/open_args.h"
#include "frontend/common/order.h"
#include "frontend/common/shape_args.h"
#include "frontend/torch/bag.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/parts.h"

namespace relay::frontend::torch {
namespace {

Expr flat(NodeContext& ctx, const Expr& x) {
  const std::vector<Dim>& shape = Builder::shape_of(x);
  return ctx.reshape(x, {product(shape, 0, shape.size())});
}

// PyTorch takes a tensor without dimensions as one of one element.
Expr as_vector(NodeContext& ctx, const Expr& x) {
  return Builder::rank_of(x) == 0 ? ctx.reshape(x, std::vector<int64_t>{1}) : x;
}
bool has_no_elements(const Expr& x) {
  return std::ranges::any_of(Builder::shape_of(x), [](const Dim& d) { return as_const(d) == 0; });
}

// Places as a value, since those that are known are checked here.
ValuePtr places(NodeContext& ctx, std::string_view name, bool vector = false) {
  ValuePtr v = ctx.known_tensor(name);
  if (v == nullptr) ctx.fail(codes::frontend_graph, "the indices are missing");
  Expr e = ctx.expr_of(v);
  return vector && Builder::rank_of(e) == 0 ? value_of(as_vector(ctx, e)) : v;
}

Values embedding(NodeContext& ctx) {
  // What the gradient leaves out, or divides by.
  ctx.find("padding_idx");
  ctx.find("scale_grad_by_freq");
  if (ctx.truth("sparse", false)) ctx.find("sparse");
  return {value_of(take_along(ctx, ctx.tensor("weight"), places(ctx, "indices"), 0))};
}

Values index_select(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  ValuePtr index = places(ctx, "index", true);
  if (rank == 0) return {value_of(x)};
  return {value_of(take_along(ctx, x, index, axis))};
}

// `x` within the sizes of other axes than one.
Expr within(NodeContext& ctx, Expr x, const std::vector<Dim>& sizes, std::optional<int64_t> but) {
  for (int64_t a = 0; a < Builder::rank_of(x); ++a) {
    const auto i = static_cast<size_t>(a);
    if (but == a || i >= sizes.size() || dim_equal(Builder::shape_of(x)[i], sizes[i])) continue;
    x = read_part(ctx, x, {a, dim(0), sizes[i]});
  }
  return x;
}

Values gather(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  ctx.find("sparse_grad");
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  const std::vector<Dim> shape = Builder::shape_of(ctx.expr_of(places(ctx, "index")));
  ValuePtr index = places(ctx, "index", true);
  // Without elements, an index may have any rank.
  if (has_no_elements(ctx.expr_of(index)))
    return {value_of(ctx.full(0, shape, Builder::dtype_of(x)))};
  x = within(ctx, as_vector(ctx, x), Builder::shape_of(ctx.expr_of(index)), axis);
  Expr y = gather_elements(ctx, x, index, axis);
  return {value_of(shape.empty() ? ctx.reshape(y, shape) : y)};
}

Scatter reduction(NodeContext& ctx, const std::string& name) {
  if (name == "sum" || name == "add") return Scatter::Add;
  if (name == "prod" || name == "multiply") return Scatter::Mul;
  if (name == "amax") return Scatter::Max;
  if (name == "amin") return Scatter::Min;
  ctx.unsupported("the reduction " + shorten(name));
}

// The source, or a number for all places.
Expr source(NodeContext& ctx, const ValuePtr& index, const Expr& x) {
  const std::vector<Dim> shape = Builder::shape_of(ctx.expr_of(index));
  if (ctx.has("src")) {
    Expr src = ctx.cast(as_vector(ctx, ctx.tensor("src")), Builder::dtype_of(x));
    return within(ctx, src, shape, std::nullopt);
  }
  auto value = ctx.number("value");
  if (!value) ctx.fail(codes::frontend_graph, "argument 'value' is missing");
  return ctx.broadcast_to(ctx.number_as(*value, Builder::dtype_of(x)), shape);
}

// Truth values that are combined: their sum and greatest is "or", their product and least is "and".
struct Combined {
  DType computed;
  Scatter how;
};
Combined combined(DType dtype, Scatter how) {
  if (!dtype.is_bool() || how == Scatter::Update) return {dtype, how};
  const bool any = how == Scatter::Add || how == Scatter::Max;
  return {DType::UInt(8), any ? Scatter::Max : Scatter::Min};
}
Expr put_elements(NodeContext& ctx, const Expr& x, const ValuePtr& index, const Expr& src,
                  int64_t axis, Scatter how) {
  const DType dtype = Builder::dtype_of(x);
  const Combined as = combined(dtype, how);
  return ctx.cast(scatter_elements(ctx, ctx.cast(x, as.computed), index, ctx.cast(src, as.computed),
                                   axis, as.how),
                  dtype);
}
Expr put_lines(NodeContext& ctx, const Expr& x, const ValuePtr& places, const Expr& lines,
               Scatter how) {
  const DType dtype = Builder::dtype_of(x);
  const Combined as = combined(dtype, how);
  return ctx.cast(
      scatter_nd(ctx, ctx.cast(x, as.computed), places, ctx.cast(lines, as.computed), as.how),
      dtype);
}

// The tensor with `put(x, index, src, axis)`, which never sees a tensor without dimensions or an index without elements.
template <typename Put>
Values scattered(NodeContext& ctx, const Put& put) {
  Expr x = ctx.tensor("self");
  const std::vector<Dim> shape = Builder::shape_of(x);
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
  ValuePtr index = places(ctx, "index", true);
  if (has_no_elements(ctx.expr_of(index))) {
    ctx.find("src");
    ctx.find("value");
    return {value_of(x)};
  }
  Expr y = put(as_vector(ctx, x), index, source(ctx, index, x), axis);
  return {value_of(shape.empty() ? ctx.reshape(y, shape) : y)};
}
Values scattered(NodeContext& ctx, Scatter how) {
  return scattered(ctx, [&](const Expr& x, const ValuePtr& index, const Expr& src, int64_t axis) {
    return put_elements(ctx, x, index, src, axis, how);
  });
}

Values scatter(NodeContext& ctx) {
  const std::string reduce = ctx.text("reduce", "");
  return scattered(ctx, reduce.empty() ? Scatter::Update : reduction(ctx, reduce));
}
Values scatter_add(NodeContext& ctx) { return scattered(ctx, Scatter::Add); }
// The number that a reduction begins with.
Expr neutral_of(NodeContext& ctx, const std::string& how, DType dtype) {
  if (how == "prod") return ctx.scalar(1, dtype);
  if (how != "amax" && how != "amin") return ctx.scalar(0, dtype);
  if (dtype.is_bool()) return ctx.scalar(how == "amin" ? 1 : 0, dtype);
  // What the greatest or the least of no elements is.
  Expr none = ctx.full(0, {dim(0)}, dtype);
  Expr limit = ctx.reduce(how == "amax" ? "max" : "min", none, {0}, false);
  if (!dtype.is_floating()) return limit;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  return ctx.scalar(how == "amax" ? -kInf : kInf, dtype);
}

Values scatter_reduce(NodeContext& ctx) {
  const bool with_self = ctx.truth("include_self", true);
  const std::string how = ctx.text("reduce", "");
  if (with_self && how != "mean") return scattered(ctx, reduction(ctx, how));
  return scattered(ctx, [&](Expr x, const ValuePtr& index, const Expr& src, int64_t axis) {
    auto everywhere = [&](const Expr& v) { return ctx.broadcast_to(v, Builder::shape_of(src)); };
    if (!with_self) {
      // What is written to begins with a number that changes nothing.
      Expr neutral = everywhere(neutral_of(ctx, how, Builder::dtype_of(x)));
      x = put_elements(ctx, x, index, neutral, axis, Scatter::Update);
    }
    if (how != "mean") return put_elements(ctx, x, index, src, axis, reduction(ctx, how));
    Expr sum = put_elements(ctx, x, index, src, axis, Scatter::Add);
    Expr count = ctx.full(with_self ? 1 : 0, Builder::shape_of(x), Builder::dtype_of(x));
    count =
        put_elements(ctx, count, index, everywhere(ctx.scalar_like(1, src)), axis, Scatter::Add);
    count = ctx.maximum(count, ctx.scalar_like(1, count));
    const char* divide = Builder::dtype_of(x).is_floating() ? "divide" : "floor_divide";
    return ctx.call(divide, {sum, count});
  });
}

// ---- Lines of an axis --------------------------------------------------------------------------

// Lines of an axis at a vector of places: replaced, or added to.
Expr scatter_lines(NodeContext& ctx, const Expr& x, int64_t axis, const ValuePtr& index,
                   const Expr& lines, Scatter how) {
  std::vector<int64_t> order{axis};
  for (int64_t a = 0; a < Builder::rank_of(x); ++a)
    if (a != axis) order.push_back(a);
  std::vector<int64_t> back(order.size());
  for (size_t i = 0; i < order.size(); ++i)
    back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  ValuePtr coordinates = value_of(ctx.expand_dims(ctx.expr_of(index), 1));
  Expr out = put_lines(ctx, ctx.transpose(x, order), coordinates, ctx.transpose(lines, order), how);
  return ctx.transpose(out, back);
}

Values index_add(NodeContext& ctx, Scatter how) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  Expr lines = ctx.cast(ctx.tensor("source"), Builder::dtype_of(x));
  // A tensor without dimensions is one line.
  if (rank == 0) x = ctx.expand_dims(x, 0);
  if (Builder::rank_of(lines) < std::max<int64_t>(rank, 1)) lines = ctx.expand_dims(lines, axis);
  auto alpha = ctx.number("alpha");
  if (alpha && !(alpha->is_known() && alpha->as_double() == 1))
    lines = ctx.mul(lines, ctx.number_as(*alpha, Builder::dtype_of(x)));
  Expr y = scatter_lines(ctx, x, axis, places(ctx, "index", true), lines, how);
  return {value_of(rank == 0 ? ctx.squeeze(y, {0}) : y)};
}

// Lines of an axis combined with those at their places.
Values index_reduce(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  const std::string how = ctx.text("reduce", "");
  const bool with_self = ctx.truth("include_self", true);
  Expr lines = ctx.cast(ctx.tensor("source"), Builder::dtype_of(x));
  if (rank == 0) x = ctx.expand_dims(x, 0);
  if (Builder::rank_of(lines) < std::max<int64_t>(rank, 1)) lines = ctx.expand_dims(lines, axis);
  ValuePtr index = places(ctx, "index", true);
  auto everywhere = [&](const Expr& e) { return ctx.broadcast_to(e, Builder::shape_of(lines)); };
  if (!with_self) {
    x = scatter_lines(ctx, x, axis, index, everywhere(neutral_of(ctx, how, Builder::dtype_of(x))),
                      Scatter::Update);
  }
  const Scatter by = how == "mean" ? Scatter::Add : reduction(ctx, how);
  Expr y = scatter_lines(ctx, x, axis, index, lines, by);
  if (how == "mean") {
    Expr count = ctx.full(with_self ? 1 : 0, Builder::shape_of(x), Builder::dtype_of(x));
    count = scatter_lines(ctx, count, axis, index, everywhere(ctx.scalar_like(1, x)), Scatter::Add);
    count = ctx.maximum(count, ctx.scalar_like(1, count));
    const char* divide = Builder::dtype_of(x).is_floating() ? "divide" : "floor_divide";
    y = ctx.call(divide, {y, count});
  }
  return {value_of(rank == 0 ? ctx.squeeze(y, {0}) : y)};
}

Values index_fill(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dim", rank, std::nullopt);
  ValuePtr index = places(ctx, "index", true);
  if (rank == 0) x = ctx.expand_dims(x, 0);
  const Argument* value = ctx.find("value");
  if (value == nullptr) ctx.fail(codes::frontend_graph, "argument 'value' is missing");
  Expr by = value->name() != nullptr ? ctx.cast(ctx.tensor("value"), Builder::dtype_of(x))
                                     : ctx.number_as(*ctx.number("value"), Builder::dtype_of(x));
  std::vector<Dim> shape = Builder::shape_of(x);
  shape[static_cast<size_t>(axis)] = Builder::shape_of(ctx.expr_of(index))[0];
  Expr y = scatter_lines(ctx, x, axis, index, ctx.broadcast_to(by, shape), Scatter::Update);
  return {value_of(rank == 0 ? ctx.squeeze(y, {0}) : y)};
}

// The gradient of an embedding: the adjoints of the places, added up.
Values embedding_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output");
  if (ctx.truth("scale_grad_by_freq", false)) ctx.unsupported("gradients scaled by frequency");
  const int64_t padding = ctx.integer("padding_idx", -1);
  ValuePtr index = places(ctx, "indices");
  Expr at = flat(ctx, ctx.expr_of(index));
  const auto rank = static_cast<size_t>(Builder::rank_of(grad));
  Expr lines = rank == 1 ? ctx.expand_dims(grad, 0) : ctx.merge_axes(grad, 0, rank - 1);
  if (padding >= 0) {
    Expr skipped = ctx.call("equal", {at, ctx.scalar_like(static_cast<double>(padding), at)});
    lines = ctx.call("where", {ctx.expand_dims(skipped, 1), ctx.scalar_like(0, lines), lines});
  }
  Expr zeros =
      ctx.full(0, {ctx.size("num_weights"), Builder::shape_of(lines)[1]}, Builder::dtype_of(lines));
  return {value_of(scatter_lines(ctx, zeros, 0, value_of(at), lines, Scatter::Add))};
}

// ---- Several index tensors ---------------------------------------------------------------------

struct Indexing {
  std::vector<int64_t> axes;   // that are indexed, in order
  std::vector<Expr> places;    // of each, integers
  std::vector<int64_t> order;  // of all axes: the indexed ones first
  bool adjacent = true;        // the result's new axes stand where the first indexed axis was
};

// A mask says where it is true, in the axes that it has.
Indexing indexing_of(NodeContext& ctx, const Expr& x) {
  Indexing out;
  int64_t axis = 0;
  const int64_t rank = Builder::rank_of(x);
  auto add = [&](Expr places) {
    if (axis >= rank) ctx.fail(codes::frontend_attribute, "there are more indices than dimensions");
    if (!out.axes.empty() && out.axes.back() != axis - 1) out.adjacent = false;
    out.axes.push_back(axis++);
    out.places.push_back(std::move(places));
  };
  for (const Expr& index : ctx.optional_tensors("indices")) {
    if (index == nullptr) {
      ++axis;
      continue;
    }
    const DType dtype = Builder::dtype_of(index);
    if (dtype.is_bool()) {
      Expr at = ctx.cast(ctx.call("argwhere", {index}), kI64);
      const int64_t depth = Builder::rank_of(index);
      if (depth == 0) ctx.unsupported("a mask without dimensions");
      for (int64_t d = 0; d < depth; ++d) add(ctx.select(at, 1, d));
    } else {
      add(ctx.cast(index, kI64));
    }
  }
  if (out.axes.empty()) ctx.fail(codes::frontend_attribute, "there is no index");
  out.order = out.axes;
  for (int64_t a = 0; a < rank; ++a)
    if (std::ranges::find(out.axes, a) == out.axes.end()) out.order.push_back(a);
  return out;
}

// Indices that a run checks against the size of their axis.
Expr checked(NodeContext& ctx, const Expr& places, const Expr& x, int64_t axis) {
  ValuePtr v = ctx.importer().with_known(value_of(places));
  const Dim& size = Builder::shape_of(x)[static_cast<size_t>(axis)];
  return known_inside(ctx, v, {size}) ? places : checked_index(ctx, places, x, axis);
}

Values index(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const Indexing by = indexing_of(ctx, x);
  if (by.axes.size() == 1) {
    ValuePtr v = ctx.importer().with_known(value_of(by.places[0]));
    return {value_of(take_along(ctx, x, v, by.axes[0]))};
  }
  std::vector<Expr> fields{ctx.transpose(x, by.order)};
  int64_t depth = 0;
  for (size_t i = 0; i < by.axes.size(); ++i) {
    fields.push_back(checked(ctx, by.places[i], x, by.axes[i]));
    depth = std::max(depth, Builder::rank_of(by.places[i]));
  }
  Expr y = ctx.call("adv_index", {ctx.tuple_of(fields)});
  if (by.adjacent && by.axes[0] > 0) {
    // The new axes go behind those that come before the indexed ones.
    std::vector<int64_t> order;
    for (int64_t a = 0; a < by.axes[0]; ++a) order.push_back(depth + a);
    for (int64_t a = 0; a < depth; ++a) order.push_back(a);
    for (int64_t a = depth + by.axes[0]; a < Builder::rank_of(y); ++a) order.push_back(a);
    y = ctx.transpose(y, order);
  }
  return {value_of(y)};
}

// How many elements of a mask are true before each one, in its shape.
Expr count_before(NodeContext& ctx, const Expr& mask) {
  Expr ones = ctx.cast(flat(ctx, mask), kI64);
  Expr count = running(ctx, Running::Sum, ones, 0, true, false);
  return ctx.reshape(count, Builder::shape_of(mask));
}

// By one mask: its places need not be found. The n-th true element gets the n-th line of the values, or all get one.
Expr put_by_mask(NodeContext& ctx, const Expr& x, Expr mask, Expr values, bool adds) {
  const int64_t rest = Builder::rank_of(x) - Builder::rank_of(mask);
  if (rest < 0) ctx.fail(codes::frontend_attribute, "a mask has more dimensions than the tensor");
  const bool lines =
      Builder::rank_of(values) == rest + 1 && as_const(Builder::shape_of(values)[0]) != 1;
  if (lines) {
    // A place behind the last line belongs to an element that is not written. There may be no line at all.
    const std::vector<Dim>& shape = Builder::shape_of(values);
    if (!as_const(shape[0]) || as_const(shape[0]) == 0) {
      std::vector<Dim> one = shape;
      one[0] = dim(1);
      values = ctx.concat({values, ctx.full(0, one, Builder::dtype_of(values))}, 0);
    }
    values = ctx.call("take", {values, count_before(ctx, mask)},
                      {{"axis", int64_t{0}}, {"mode", std::string("clip")}});
  } else if (Builder::rank_of(values) > rest) {
    values = ctx.squeeze(values, {0});
  }
  mask = ctx.expand_dims(mask, Builder::rank_of(mask), rest);
  return ctx.where(mask, adds ? ctx.add(x, values) : values, x);
}

Values index_put(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), values = ctx.cast(ctx.tensor("values"), Builder::dtype_of(x));
  const bool adds = ctx.truth("accumulate", false);
  ctx.find("unsafe");
  const std::vector<Expr> indices = ctx.optional_tensors("indices");
  const bool one_mask =
      indices.size() == 1 && indices[0] && Builder::dtype_of(indices[0]).is_bool();
  if (one_mask &&
      Builder::rank_of(values) <= Builder::rank_of(x) - Builder::rank_of(indices[0]) + 1)
    return {value_of(put_by_mask(ctx, x, indices[0], values, adds))};
  const Indexing by = indexing_of(ctx, x);
  // All index tensors in one shape, as coordinates along a last axis.
  std::vector<Dim> shape;
  for (const Expr& e : by.places) {
    std::vector<Dim> own = Builder::shape_of(e);
    if (own.size() > shape.size()) shape.swap(own);
    for (size_t i = 0; i < own.size(); ++i) {
      Dim& d = shape[shape.size() - own.size() + i];
      d = broadcast(d, own[i]);
    }
  }
  std::vector<Expr> wide;
  for (const Expr& e : by.places)
    wide.push_back(by.places.size() == 1 ? e : ctx.broadcast_to(e, shape));
  Expr coordinates =
      ctx.call("stack", {ctx.tuple_of(wide)}, {{"axis", static_cast<int64_t>(shape.size())}});
  Expr moved = ctx.transpose(x, by.order);
  // The values in the order of the indexed axes, which come first.
  std::vector<Dim> expected = shape;
  const std::vector<Dim>& rest = Builder::shape_of(moved);
  expected.insert(expected.end(), rest.begin() + static_cast<std::ptrdiff_t>(by.axes.size()),
                  rest.end());
  const auto depth = static_cast<int64_t>(shape.size());
  if (by.adjacent && by.axes[0] > 0) {
    const auto total = static_cast<int64_t>(expected.size());
    std::vector<Dim> seen;
    for (int64_t a = 0; a < by.axes[0]; ++a)
      seen.push_back(expected[static_cast<size_t>(depth + a)]);
    for (int64_t a = 0; a < depth; ++a) seen.push_back(expected[static_cast<size_t>(a)]);
    for (int64_t a = depth + by.axes[0]; a < total; ++a)
      seen.push_back(expected[static_cast<size_t>(a)]);
    std::vector<int64_t> order;
    for (int64_t a = 0; a < depth; ++a) order.push_back(by.axes[0] + a);
    for (int64_t a = 0; a < by.axes[0]; ++a) order.push_back(a);
    for (int64_t a = depth + by.axes[0]; a < total; ++a) order.push_back(a);
    values = ctx.transpose(ctx.broadcast_to(values, seen), order);
  } else {
    values = ctx.broadcast_to(values, expected);
  }
  Expr y = put_lines(ctx, moved, ctx.importer().with_known(value_of(coordinates)), values,
                     adds ? Scatter::Add : Scatter::Update);
  std::vector<int64_t> back(by.order.size());
  for (size_t i = 0; i < by.order.size(); ++i)
    back[static_cast<size_t>(by.order[i])] = static_cast<int64_t>(i);
  return {value_of(ctx.transpose(y, back))};
}

// ---- Others ------------------------------------------------------------------------------------

Values take(NodeContext& ctx) {
  return {value_of(take_along(ctx, flat(ctx, ctx.tensor("self")), places(ctx, "index"), 0))};
}

// Each element that the mask has takes the next one of the source.
Values masked_scatter(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), source = flat(ctx, ctx.tensor("source"));
  x = ctx.broadcast_to(x, ctx.out_shape());
  Expr mask = ctx.broadcast_to(ctx.cast(ctx.tensor("mask"), DType::Bool()), ctx.out_shape());
  return {value_of(put_by_mask(ctx, x, mask, ctx.cast(source, Builder::dtype_of(x)), false))};
}

// The adjoints that the mask has, one after the other, in a source of these sizes.
Values masked_scatter_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output");
  const std::vector<Dim> sizes = ctx.sizes("sizes");
  const auto known = as_const(product(sizes, 0, sizes.size()));
  if (!known) ctx.fail(codes::frontend_dynamic, "the size of the source is open", "a number");
  const int64_t count = *known;
  Expr mask =
      ctx.broadcast_to(ctx.cast(ctx.tensor("mask"), DType::Bool()), Builder::shape_of(grad));
  // What the mask lacks goes behind the source, and is cut off.
  Expr at = ctx.where(mask, count_before(ctx, mask), ctx.scalar(static_cast<double>(count), kI64));
  Expr out = ctx.full(0, {dim(count + 1)}, Builder::dtype_of(grad));
  out = scatter_elements(ctx, out, value_of(flat(ctx, at)), flat(ctx, grad), 0, Scatter::Update);
  return {value_of(ctx.reshape(ctx.slice(out, 0, 0, count), sizes))};
}

// The coordinates of the first elements that are not zero, so many as `size` says; a number for those that are missing.
Values nonzero_static(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.tensor("self"), DType::Bool());
  const int64_t size = ctx.integer("size"), rank = Builder::rank_of(x);
  const int64_t missing = ctx.integer("fill_value", -1);
  if (size < 0) ctx.fail(codes::frontend_attribute, "the size is negative");
  if (rank == 0 || size == 0) return {value_of(ctx.full(0, {dim(size), dim(rank)}, kI64))};
  Expr mask = flat(ctx, x), last = ctx.scalar(static_cast<double>(size), kI64);
  Expr at = ctx.where(mask, ctx.minimum(count_before(ctx, mask), last), last);
  std::vector<Expr> columns;
  for (int64_t a = 0; a < rank; ++a) {
    const int64_t n = ctx.const_dim(x, a, "a size of the tensor");
    std::vector<int64_t> numbers(static_cast<size_t>(n));
    std::iota(numbers.begin(), numbers.end(), 0);
    ctx.charge_bytes(n, kI64);
    Expr along = ctx.expand_dims(ctx.ints(numbers), 1, rank - 1 - a);
    Expr column = ctx.full(static_cast<double>(missing), {dim(size + 1)}, kI64);
    column = scatter_elements(ctx, column, value_of(at),
                              flat(ctx, ctx.broadcast_to(along, Builder::shape_of(x))), 0,
                              Scatter::Update);
    columns.push_back(ctx.slice(column, 0, 0, size));
  }
  return {value_of(ctx.call("stack", {ctx.tuple_of(columns)}, {{"axis", int64_t{1}}}))};
}

// How many elements are in each of equal parts of [min, max], or their weights; the last part has its end.
Expr counts_between(NodeContext& ctx, const Expr& x, const Expr& weights, int64_t bins,
                    const Expr& low, const Expr& high) {
  Expr part = ctx.div(ctx.mul(ctx.sub(x, low), ctx.scalar_like(static_cast<double>(bins), x)),
                      ctx.sub(high, low));
  Expr at = ctx.minimum(ctx.cast(ctx.call("floor", {part}), kI64),
                        ctx.scalar(static_cast<double>(bins - 1), kI64));
  Expr inside = ctx.call("logical_and",
                         {ctx.call("greater_equal", {x, low}), ctx.call("less_equal", {x, high})});
  at = ctx.where(inside, at, ctx.scalar(static_cast<double>(bins), kI64));
  Expr out = ctx.full(0, {dim(bins + 1)}, Builder::dtype_of(weights));
  out = scatter_elements(ctx, out, value_of(at), weights, 0, Scatter::Add);
  return ctx.slice(out, 0, 0, bins);
}

Values histc(NodeContext& ctx) {
  Expr x = flat(ctx, ctx.tensor("self"));
  const int64_t bins = ctx.integer("bins", 100);
  if (bins < 1) ctx.fail(codes::frontend_attribute, "there are no bins");
  auto given = [&](const char* name) {
    auto n = ctx.number(name);
    return n ? n->as_double() : 0.0;
  };
  const double least = given("min"), greatest = given("max");
  Expr low = ctx.scalar_like(least, x), high = ctx.scalar_like(greatest, x);
  if (least == greatest) {
    // Those of the elements, 1 apart at least.
    if (as_const(Builder::shape_of(x)[0]) == 0)
      return {value_of(ctx.full(0, {dim(bins)}, Builder::dtype_of(x)))};
    low = ctx.reduce("min", x, {0}, false);
    high = ctx.reduce("max", x, {0}, false);
    Expr one = ctx.scalar_like(1, x), same = ctx.call("equal", {low, high});
    Expr below = ctx.where(same, ctx.sub(low, one), low);
    high = ctx.where(same, ctx.add(high, one), high);
    low = below;
  }
  Expr ones = ctx.full(1, Builder::shape_of(x), Builder::dtype_of(x));
  return {value_of(counts_between(ctx, x, ones, bins, low, high))};
}

// Elements of the tensor as one vector.
Values put(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  Expr source = flat(ctx, ctx.cast(ctx.tensor("source"), Builder::dtype_of(x)));
  Expr index = flat(ctx, ctx.expr_of(places(ctx, "index")));
  const Scatter how = ctx.truth("accumulate", false) ? Scatter::Add : Scatter::Update;
  Expr y = put_elements(ctx, flat(ctx, x), value_of(index), source, 0, how);
  return {value_of(ctx.reshape(y, Builder::shape_of(x)))};
}

// Whether each element is one of others.
Values isin(NodeContext& ctx) {
  auto p = ctx.pair(ctx.has("elements") ? "elements" : "element",
                    ctx.has("test_elements") ? "test_elements" : "test_element");
  ctx.find("assume_unique");
  Expr others = flat(ctx, p.b);
  Expr same = ctx.call("equal", {ctx.expand_dims(p.a, Builder::rank_of(p.a)), others});
  Expr any = ctx.reduce("any", same, {Builder::rank_of(same) - 1}, false);
  return {value_of(ctx.truth("invert", false) ? ctx.call("logical_not", {any}) : any)};
}

// The coordinates of true elements, a vector for each axis.
Values places_of_true(NodeContext& ctx) {
  Expr at =
      ctx.cast(ctx.call("argwhere", {ctx.cast(ctx.tensor("condition"), DType::Bool())}), kI64);
  Values out;
  for (size_t i = 0; i < ctx.outputs().size(); ++i)
    out.push_back(value_of(ctx.select(at, 1, static_cast<int64_t>(i))));
  return out;
}

Values nonzero(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.tensor("self"), DType::Bool());
  if (Builder::rank_of(x) == 0) {
    // As many places as there are elements that are not 0, each of no coordinates.
    Expr places = ctx.call("argwhere", {ctx.reshape(x, std::vector<int64_t>{1})});
    return {value_of(ctx.cast(ctx.slice(places, 1, 0, 0), kI64))};
  }
  return {value_of(ctx.cast(ctx.call("argwhere", {x}), kI64))};
}

Values masked_select(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), mask = ctx.tensor("mask");
  // Both in their common shape.
  const std::vector<Dim>&a = Builder::shape_of(x), &b = Builder::shape_of(mask);
  std::vector<Dim> shape = a.size() >= b.size() ? a : b;
  const std::vector<Dim>& other = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < other.size(); ++i) {
    Dim& d = shape[shape.size() - other.size() + i];
    d = broadcast(d, other[i]);
  }
  Expr kept = flat(ctx, ctx.broadcast_to(mask, shape));
  Expr at = ctx.cast(ctx.reshape(ctx.call("argwhere", {kept}), {dim_any()}), kI64);
  return {value_of(ctx.call("take", {flat(ctx, ctx.broadcast_to(x, shape)), at},
                            {{"axis", int64_t{0}}, {"mode", std::string("fast")}}))};
}

Values one_hot_row(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t depth = ctx.integer("num_classes", -1);
  if (depth < 0) {
    ctx.fail(codes::frontend_dynamic, "the number of classes is known only in a run", "a number",
             {}, "give num_classes");
  }
  return {value_of(
      one_hot(ctx, x, depth, ctx.scalar(1, kI64), ctx.scalar(0, kI64), Builder::rank_of(x)))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Index>() {
  static constexpr Row kRows[] = {
      {"aten.embedding.default", embedding},
      {"aten.embedding_dense_backward.default", embedding_backward},
      {"aten.embedding_bag.default", embedding_bag, kInFloat32},
      {"aten.embedding_bag.padding_idx", embedding_bag, kInFloat32},
      {"aten._embedding_bag.default", embedding_bag, kInFloat32},
      {"aten._embedding_bag_forward_only.default", embedding_bag, kInFloat32},
      {"aten._embedding_bag_backward.default", embedding_bag_backward, kInFloat32},
      {"aten._embedding_bag_dense_backward.default", embedding_bag_backward, kInFloat32},
      {"aten._embedding_bag_per_sample_weights_backward.default", embedding_bag_weights_backward,
       kInFloat32},
      {"aten.index_select.default", index_select},
      {"aten.gather.default", gather},
      {"aten.take_along_dim.default",
       [](NodeContext& ctx) {
         Expr x = ctx.tensor("self");
         const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), std::nullopt);
         return Values{value_of(gather_elements(ctx, x, places(ctx, "indices"), axis))};
       }},
      {"aten.scatter.src", scatter},
      {"aten.scatter.value", scatter},
      {"aten.scatter.reduce", scatter},
      {"aten.scatter.value_reduce", scatter},
      {"aten.scatter_add.default", scatter_add},
      {"aten.scatter_reduce.two", scatter_reduce},
      {"aten.index_add.default", [](NodeContext& ctx) { return index_add(ctx, Scatter::Add); }},
      {"aten.index_copy.default", [](NodeContext& ctx) { return index_add(ctx, Scatter::Update); }},
      {"aten.index_reduce.default", index_reduce},
      {"aten.index_fill.int_Scalar", index_fill},
      {"aten.index_fill.int_Tensor", index_fill},
      {"aten.index.Tensor", index},
      {"aten._unsafe_index.Tensor", index},
      {"aten.index_put.default", index_put},
      {"aten._unsafe_index_put.default", index_put},
      {"aten._index_put_impl.default", index_put},
      {"aten.masked_scatter.default", masked_scatter},
      {"aten.masked_scatter_backward.default", masked_scatter_backward},
      {"aten.nonzero_static.default", nonzero_static},
      {"aten.histc.default", histc},
      {"aten.put.default", put},
      {"aten.isin.Tensor_Tensor", isin},
      {"aten.isin.Tensor_Scalar", isin},
      {"aten.isin.Scalar_Tensor", isin},
      {"aten.where.default", places_of_true},
      {"aten.take.default", take},
      {"aten.nonzero.default", nonzero},
      {"aten.masked_select.default", masked_select},
      {"aten.one_hot.default", one_hot_row},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
