// Tensors joined, repeated, padded and rearranged: copies.
#include <algorithm>
#include <numeric>

#include "base/codes/frontend.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/slices.h"
#include "frontend/torch/layers.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/parts.h"

namespace relay::frontend::torch {
namespace {

Values cat(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  std::vector<Expr> parts;
  for (Expr& e : ctx.tensors("tensors")) {
    // A vector of no elements fits every tensor.
    const bool nothing = Builder::rank_of(e) == 1 && as_const(Builder::shape_of(e)[0]) == 0;
    if (!nothing || ctx.out_shape().size() == 1) parts.push_back(ctx.cast(e, dtype));
  }
  const char* name = ctx.has("axis") ? "axis" : "dim";
  const auto rank = static_cast<int64_t>(ctx.out_shape().size());
  const int64_t axis = ctx.axis_of(name, rank, 0);
  if (parts.empty()) return {value_of(ctx.full(0, ctx.out_shape(), dtype))};
  return {value_of(ctx.concat(std::move(parts), axis))};
}

Values stack(NodeContext& ctx) {
  std::vector<Expr> parts = ctx.tensors("tensors");
  if (parts.empty()) ctx.fail(codes::frontend_graph, "there is nothing to stack");
  const DType dtype = ctx.out_dtype();
  for (Expr& e : parts) e = ctx.cast(e, dtype);
  const int64_t axis = ctx.axis(ctx.integer("dim", 0), Builder::rank_of(parts[0]) + 1);
  return {value_of(ctx.call("stack", {ctx.tuple_of(parts)}, {{"axis", axis}}))};
}

// At least so many dimensions; the axes that are missing are put at the front, or where `numpy` puts them.
Expr at_least(NodeContext& ctx, Expr e, int64_t rank) {
  const int64_t own = Builder::rank_of(e);
  if (own >= rank) return e;
  if (rank == 3 && own == 2) return ctx.expand_dims(e, 2);
  if (rank == 3 && own == 1) return ctx.expand_dims(ctx.expand_dims(e, 0), 2);
  return ctx.expand_dims(e, 0, rank - own);
}

Values join_rows(NodeContext& ctx, int64_t rank, int64_t axis) {
  const DType dtype = ctx.out_dtype();
  std::vector<Expr> parts;
  for (Expr& e : ctx.tensors("tensors")) parts.push_back(ctx.cast(at_least(ctx, e, rank), dtype));
  if (parts.empty()) ctx.fail(codes::frontend_graph, "there is nothing to join");
  if (rank == 1 && Builder::rank_of(parts[0]) > 1) axis = 1;
  return {value_of(ctx.concat(std::move(parts), axis))};
}

Values repeated(NodeContext& ctx, const char* name) {
  Expr x = ctx.tensor("self");
  std::vector<Dim> reps = ctx.sizes(name);
  const int64_t rank = Builder::rank_of(x), count = static_cast<int64_t>(reps.size());
  if (count < rank) reps.insert(reps.begin(), static_cast<size_t>(rank - count), dim(1));
  x = ctx.expand_dims(x, 0, std::max<int64_t>(count - rank, 0));
  if (std::ranges::all_of(reps, [](const Dim& d) { return as_const(d) == 1; }))
    return {value_of(x)};
  if (std::ranges::any_of(reps, is_any))
    ctx.fail(codes::frontend_dynamic, "a repetition is known only in a run", "a number");
  if (reps.empty()) return {value_of(x)};
  return {
      value_of(ctx.call("tile", {x}, {{"reps", relay::to_value(Dims(reps.begin(), reps.end()))}}))};
}

Values repeat_interleave(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t repeats = ctx.integer("repeats");
  ctx.find("output_size");
  if (!ctx.has("dim")) {
    const std::vector<Dim>& shape = Builder::shape_of(x);
    x = ctx.reshape(x, {product(shape, 0, shape.size())});
  }
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), 0);
  return {value_of(ctx.call("repeat", {x}, {{"repeats", repeats}, {"axis", axis}}))};
}

Values flip(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  for (int64_t a : ctx.axes(ctx.ints("dims"), Builder::rank_of(x)))
    x = ctx.call("reverse", {x}, {{"axis", a}});
  return {value_of(x)};
}

Expr rolled(NodeContext& ctx, const Expr& x, int64_t axis, int64_t shift) {
  const Dim size = Builder::shape_of(x)[static_cast<size_t>(axis)];
  if (auto n = as_const(size)) {
    if (*n == 0) return x;
    shift = ((shift % *n) + *n) % *n;
  }
  if (shift == 0) return x;
  // The last `shift` elements come first.
  const Dim cut = shift > 0 ? size - dim(shift) : dim(-shift);
  if (!is_size(cut)) {
    ctx.fail(codes::frontend_dynamic, "a roll may be longer than its open axis", "a fixed size",
             to_string(size));
  }
  Expr tail = read_part(ctx, x, {axis, cut, size}), head = read_part(ctx, x, {axis, dim(0), cut});
  return ctx.reshape(ctx.concat({tail, head}, axis), Builder::shape_of(x));
}

Values roll(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<int64_t> shifts = ctx.ints("shifts"),
                             dims = ctx.ints("dims", std::vector<int64_t>{});
  if (dims.empty()) {
    if (shifts.size() != 1) ctx.fail(codes::frontend_attribute, "shifts and dims differ in length");
    const std::vector<Dim> shape = Builder::shape_of(x);
    Expr flat = ctx.reshape(x, {product(shape, 0, shape.size())});
    return {value_of(ctx.reshape(rolled(ctx, flat, 0, shifts[0]), shape))};
  }
  if (shifts.size() != dims.size())
    ctx.fail(codes::frontend_attribute, "shifts and dims differ in length");
  const std::vector<int64_t> axes = [&] {
    std::vector<int64_t> out;
    for (int64_t d : dims) out.push_back(ctx.axis(d, Builder::rank_of(x)));
    return out;
  }();
  for (size_t i = 0; i < axes.size(); ++i) x = rolled(ctx, x, axes[i], shifts[i]);
  return {value_of(x)};
}

Values with_border(NodeContext& ctx, const char* widths, const char* mode) {
  return {value_of(padded(ctx, ctx.tensor("self"), widths, mode))};
}

Values constant_pad(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  auto value = ctx.number("value");
  Expr fill = value ? ctx.number_as(*value, Builder::dtype_of(x)) : nullptr;
  return {value_of(padded(ctx, x, "pad", "constant", fill))};
}

Values pad_row(NodeContext& ctx) {
  const std::string mode = ctx.text("mode", "constant");
  if (mode == "constant") return constant_pad(ctx);
  ctx.find("value");
  if (mode == "reflect") return with_border(ctx, "pad", "reflect");
  if (mode == "replicate") return with_border(ctx, "pad", "edge");
  if (mode == "circular") return with_border(ctx, "pad", "wrap");
  ctx.fail(codes::frontend_attribute, "argument 'mode' has an unknown value",
           "constant, reflect, replicate or circular", shorten(mode));
}
Values reflection_pad(NodeContext& ctx) { return with_border(ctx, "padding", "reflect"); }
Values replication_pad(NodeContext& ctx) { return with_border(ctx, "padding", "edge"); }

// (..., c * r * r, h, w) and (..., c, h * r, w * r).
Values pixel_shuffle(NodeContext& ctx, bool back) {
  Expr x = ctx.tensor("self");
  const int64_t rank = Builder::rank_of(x);
  if (rank < 3) ctx.fail(codes::frontend_attribute, "the image has too few dimensions");
  const Dim r = dim(ctx.integer(back ? "downscale_factor" : "upscale_factor"));
  if (*as_const(r) < 1) ctx.fail(codes::frontend_attribute, "the factor is not 1 or more");
  const std::vector<Dim> from = Builder::shape_of(x), to = ctx.out_shape();
  const auto lead = static_cast<size_t>(rank - 3);
  std::vector<Dim> split(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(lead));
  std::vector<int64_t> order = Builder::all_axes(static_cast<int64_t>(lead));
  const auto at = static_cast<int64_t>(lead);
  if (back) {
    split.insert(split.end(), {from[lead], to[lead + 1], r, to[lead + 2], r});
    order.insert(order.end(), {at, at + 2, at + 4, at + 1, at + 3});
  } else {
    split.insert(split.end(), {to[lead], r, r, from[lead + 1], from[lead + 2]});
    order.insert(order.end(), {at, at + 3, at + 1, at + 4, at + 2});
  }
  return {value_of(ctx.reshape(ctx.transpose(ctx.reshape(x, split), order), to))};
}

Values channel_shuffle(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const int64_t groups = ctx.integer("groups"), channels = ctx.const_dim(x, 1, "the channels");
  if (groups < 1 || channels % groups != 0)
    ctx.fail(codes::frontend_attribute, "the groups do not divide the channels");
  const std::vector<Dim> from = Builder::shape_of(x);
  std::vector<Dim> split = from;
  split[1] = dim(channels / groups);
  split.insert(split.begin() + 1, dim(groups));
  std::vector<int64_t> order = Builder::all_axes(static_cast<int64_t>(split.size()));
  std::swap(order[1], order[2]);
  return {value_of(ctx.reshape(ctx.transpose(ctx.reshape(x, split), order), from))};
}

Values slice_scatter(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const Part p = part_of_slice(ctx, x);
  return {value_of(write_part(ctx, x, ctx.cast(ctx.tensor("src"), Builder::dtype_of(x)), p))};
}
Values select_scatter(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const Part p = part_of_select(ctx, x);
  Expr src = ctx.cast(ctx.tensor("src"), Builder::dtype_of(x));
  return {value_of(write_part(ctx, x, ctx.expand_dims(src, p.axis), p))};
}
Values diagonal_scatter(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const Diagonal d = diagonal_of(ctx, x);
  return {value_of(write_diagonal(ctx, x, ctx.cast(ctx.tensor("src"), Builder::dtype_of(x)), d))};
}

// A matrix of zeros but for a diagonal.
Values diag_embed(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  Expr zeros = ctx.full(0, ctx.out_shape(), Builder::dtype_of(x));
  return {value_of(write_diagonal(ctx, zeros, x, diagonal_of(ctx, zeros, -2, -1)))};
}
Values diagonal_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output");
  Expr zeros = ctx.full(0, ctx.sizes("input_sizes"), Builder::dtype_of(grad));
  return {value_of(write_diagonal(ctx, zeros, grad, diagonal_of(ctx, zeros)))};
}

Values block_diag(NodeContext& ctx) {
  const DType dtype = ctx.out_dtype();
  const std::vector<Dim> shape = ctx.out_shape();
  std::vector<Expr> rows;
  Dim before = dim(0);
  for (Expr e : ctx.tensors("tensors")) {
    e = ctx.cast(e, dtype);
    if (Builder::rank_of(e) < 2) e = ctx.expand_dims(e, 0, 2 - Builder::rank_of(e));
    const std::vector<Dim> own = Builder::shape_of(e);
    const Dim after = shape[1] - before - own[1];
    rows.push_back(ctx.concat(
        {ctx.full(0, {own[0], before}, dtype), e, ctx.full(0, {own[0], after}, dtype)}, 1));
    before = before + own[1];
  }
  return {value_of(ctx.concat(std::move(rows), 0))};
}

Values rot90(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const std::vector<int64_t> axes =
      ctx.axes(ctx.ints("dims", std::vector<int64_t>{0, 1}), Builder::rank_of(x));
  if (axes.size() != 2) ctx.fail(codes::frontend_attribute, "a rotation is in a plane", "2 axes");
  const int64_t quarters = ((ctx.integer("k", 1) % 4) + 4) % 4;
  auto reversed = [&](const Expr& e, int64_t axis) {
    return ctx.call("reverse", {e}, {{"axis", axis}});
  };
  if (quarters == 2) return {value_of(reversed(reversed(x, axes[0]), axes[1]))};
  if (quarters == 0) return {value_of(x)};
  std::vector<int64_t> order = Builder::all_axes(Builder::rank_of(x));
  std::swap(order[static_cast<size_t>(axes[0])], order[static_cast<size_t>(axes[1])]);
  return {value_of(reversed(ctx.transpose(x, order), axes[quarters == 1 ? 0 : 1]))};
}

// The gradient of a part: zeros, with the adjoint in the part.
Values slice_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output");
  Expr zeros = ctx.full(0, ctx.sizes("input_sizes"), Builder::dtype_of(grad));
  return {value_of(write_part(ctx, zeros, grad, part_of_slice(ctx, zeros)))};
}
Values select_backward(NodeContext& ctx) {
  Expr grad = ctx.tensor("grad_output");
  Expr zeros = ctx.full(0, ctx.sizes("input_sizes"), Builder::dtype_of(grad));
  const Part p = part_of_select(ctx, zeros);
  return {value_of(write_part(ctx, zeros, ctx.expand_dims(grad, p.axis), p))};
}

Values meshgrid(NodeContext& ctx) {
  std::vector<Expr> xs = ctx.tensors("tensors");
  const bool columns_first = ctx.text("indexing", "ij") == "xy" && xs.size() >= 2;
  if (columns_first) std::swap(xs[0], xs[1]);
  const auto rank = static_cast<int64_t>(xs.size());
  std::vector<Dim> shape;
  for (Expr& e : xs) {
    if (Builder::rank_of(e) == 0) e = ctx.reshape(e, std::vector<int64_t>{1});
    shape.push_back(Builder::shape_of(e)[0]);
  }
  std::vector<Expr> grids;
  for (int64_t i = 0; i < rank; ++i) {
    Expr e =
        ctx.expand_dims(ctx.expand_dims(xs[static_cast<size_t>(i)], 0, i), i + 1, rank - 1 - i);
    e = ctx.broadcast_to(e, shape);
    if (columns_first) {
      std::vector<int64_t> order = Builder::all_axes(rank);
      std::swap(order[0], order[1]);
      e = ctx.transpose(e, order);
    }
    grids.push_back(e);
  }
  if (columns_first) std::swap(grids[0], grids[1]);
  Values out;
  for (const Expr& e : grids) out.push_back(value_of(e));
  return out;
}

Values broadcast_tensors(NodeContext& ctx) {
  Values out;
  std::vector<Expr> xs = ctx.tensors("tensors");
  for (size_t i = 0; i < xs.size() && i < ctx.outputs().size(); ++i)
    out.push_back(value_of(ctx.broadcast_to(xs[i], ctx.out_shape(i))));
  return out;
}

Values triangle(NodeContext& ctx, bool upper) {
  Expr x = ctx.tensor("self");
  if (Builder::rank_of(x) < 2)
    ctx.fail(codes::frontend_attribute, "a triangle is part of a matrix");
  Expr k = ctx.scalar(static_cast<double>(ctx.integer("diagonal", 0)), DType::Int(64));
  return {value_of(ctx.call("trilu", {x, k}, {{"upper", upper}}))};
}

// Blocks of an image as columns: (n, c * kh * kw, places).
Values im2col(NodeContext& ctx) {
  Expr x = ctx.tensor("self");
  const bool batched = Builder::rank_of(x) == 4;
  if (!batched) x = ctx.expand_dims(x, 0);
  const std::vector<int64_t> kernel = ctx.ints_for("kernel_size", 2, 1),
                             dilation = ctx.ints_for("dilation", 2, 1),
                             padding = ctx.ints_for("padding", 2, 0),
                             stride = ctx.ints_for("stride", 2, 1);
  x = pad(ctx, x, {0, 0, padding[0], padding[1], 0, 0, padding[0], padding[1]}, "constant",
          ctx.scalar_like(0, x));
  std::vector<int64_t> counts;
  for (int64_t a = 0; a < 2; ++a) {
    const auto i = static_cast<size_t>(a);
    const int64_t size = ctx.const_dim(x, 2 + 2 * a, "the size of the image");
    const int64_t reach = (kernel[i] - 1) * dilation[i] + 1;
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || reach > size)
      ctx.fail(codes::frontend_attribute, "a window does not fit into the image");
    const int64_t count = (size - reach) / stride[i] + 1;
    ctx.charge_bytes(count * kernel[i], DType::Int(64));
    std::vector<int64_t> places;
    for (int64_t k = 0; k < kernel[i]; ++k)
      for (int64_t p = 0; p < count; ++p) places.push_back(p * stride[i] + k * dilation[i]);
    // An axis becomes (element of the window, window).
    x = ctx.call("take", {x, ctx.reshape(ctx.ints(places), std::vector<int64_t>{kernel[i], count})},
                 {{"axis", 2 + 2 * a}, {"mode", std::string("fast")}});
    counts.push_back(count);
  }
  x = ctx.transpose(x, {0, 1, 2, 4, 3, 5});
  const std::vector<Dim> shape = Builder::shape_of(x);
  x = ctx.reshape(x, {shape[0], shape[1] * dim(kernel[0] * kernel[1]), dim(counts[0] * counts[1])});
  return {value_of(batched ? x : ctx.squeeze(x, {0}))};
}

}  // namespace

template <>
std::span<const Row> rows<Family::Shape>() {
  static constexpr Row kRows[] = {
      {"aten.cat.default", cat},
      {"aten.concat.default", cat},
      {"aten.concatenate.default", cat},
      {"aten.stack.default", stack},
      {"aten.hstack.default", [](NodeContext& ctx) { return join_rows(ctx, 1, 0); }},
      {"aten.vstack.default", [](NodeContext& ctx) { return join_rows(ctx, 2, 0); }},
      {"aten.row_stack.default", [](NodeContext& ctx) { return join_rows(ctx, 2, 0); }},
      {"aten.dstack.default", [](NodeContext& ctx) { return join_rows(ctx, 3, 2); }},
      {"aten.atleast_1d.default",
       [](NodeContext& ctx) { return Values{value_of(at_least(ctx, ctx.tensor("self"), 1))}; }},
      {"aten.atleast_2d.default",
       [](NodeContext& ctx) { return Values{value_of(at_least(ctx, ctx.tensor("self"), 2))}; }},
      {"aten.atleast_3d.default",
       [](NodeContext& ctx) { return Values{value_of(at_least(ctx, ctx.tensor("self"), 3))}; }},
      {"aten.repeat.default", [](NodeContext& ctx) { return repeated(ctx, "repeats"); }},
      {"aten.tile.default", [](NodeContext& ctx) { return repeated(ctx, "dims"); }},
      {"aten.repeat_interleave.self_int", repeat_interleave},
      {"aten.flip.default", flip},
      {"aten.roll.default", roll},
      {"aten.constant_pad_nd.default", constant_pad},
      {"aten.pad.default", pad_row},
      {"aten.reflection_pad1d.default", reflection_pad},
      {"aten.reflection_pad2d.default", reflection_pad},
      {"aten.reflection_pad3d.default", reflection_pad},
      {"aten.replication_pad1d.default", replication_pad},
      {"aten.replication_pad2d.default", replication_pad},
      {"aten.replication_pad3d.default", replication_pad},
      {"aten.pixel_shuffle.default", [](NodeContext& ctx) { return pixel_shuffle(ctx, false); }},
      {"aten.pixel_unshuffle.default", [](NodeContext& ctx) { return pixel_shuffle(ctx, true); }},
      {"aten.channel_shuffle.default", channel_shuffle},
      {"aten.slice_scatter.default", slice_scatter},
      {"aten.select_scatter.default", select_scatter},
      {"aten.diagonal_scatter.default", diagonal_scatter},
      {"aten.diag_embed.default", diag_embed},
      {"aten.diagonal_backward.default", diagonal_backward},
      {"aten.block_diag.default", block_diag},
      {"aten.rot90.default", rot90},
      {"aten.slice_backward.default", slice_backward},
      {"aten.select_backward.default", select_backward},
      {"aten.meshgrid.default", meshgrid},
      {"aten.meshgrid.indexing", meshgrid},
      {"aten.broadcast_tensors.default", broadcast_tensors},
      {"aten.tril.default", [](NodeContext& ctx) { return triangle(ctx, false); }},
      {"aten.triu.default", [](NodeContext& ctx) { return triangle(ctx, true); }},
      {"aten.im2col.default", im2col},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
