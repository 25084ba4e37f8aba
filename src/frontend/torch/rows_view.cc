// Views: other arrangements and parts of a tensor, which share its elements.
#include <algorithm>
#include <limits>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/slices.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/parts.h"

namespace relay::frontend::torch {
namespace {

// The tensor that is viewed, for its rank and sizes.
Expr base(NodeContext& ctx) { return ctx.expr_of(ctx.value_of_element(ctx.at(0).elements.at(0))); }

// The whole tensor.
View whole(View::How how = View::How::view) {
  auto same = [](const Expr& e) { return e; };
  return {same, [](const Expr&, const Expr& elements) { return elements; }, how};
}

// The same elements in row-major order with another shape.
View reshaped(NodeContext& ctx, std::vector<Dim> shape, View::How how = View::How::view) {
  const Builder build = ctx;
  return {[build, shape](const Expr& e) { return build.reshape(e, shape); },
          [build](const Expr& e, const Expr& elements) {
            return build.reshape(elements, Builder::shape_of(e));
          },
          how};
}

// A reshape shares the elements of what lies in row-major order; of others the strides decide.
View::How how_reshaped(NodeContext& ctx, std::string_view self) {
  return ctx.is_contiguous(self) ? View::How::view : View::How::unknown;
}

std::vector<View> view_row(NodeContext& ctx) {
  ctx.sizes("size");
  return {reshaped(ctx, ctx.out_shape())};
}
std::vector<View> reshape_row(NodeContext& ctx) {
  ctx.sizes("shape");
  return {reshaped(ctx, ctx.out_shape(), how_reshaped(ctx, "self"))};
}
std::vector<View> like_row(NodeContext& ctx) {
  ctx.tensor("other");
  return {reshaped(ctx, ctx.out_shape(), how_reshaped(ctx, "self"))};
}
std::vector<View> flatten(NodeContext& ctx) {
  Expr x = base(ctx);
  const int64_t rank = Builder::rank_of(x);
  if (rank == 0) return {reshaped(ctx, {dim(1)})};
  const auto begin = static_cast<size_t>(ctx.axis_of("start_dim", rank, 0));
  const auto end = static_cast<size_t>(ctx.axis_of("end_dim", rank, -1)) + 1;
  if (begin >= end) ctx.fail(codes::frontend_attribute, "start_dim comes after end_dim");
  const std::vector<Dim>& from = Builder::shape_of(x);
  std::vector<Dim> to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(begin));
  to.push_back(product(from, begin, end));
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(end), from.end());
  return {reshaped(ctx, std::move(to), how_reshaped(ctx, "self"))};
}
std::vector<View> unflatten(NodeContext& ctx) {
  ctx.axis_of("dim", Builder::rank_of(base(ctx)), std::nullopt);
  ctx.sizes("sizes");
  return {reshaped(ctx, ctx.out_shape(), how_reshaped(ctx, "self"))};
}

std::vector<View> unsqueeze(NodeContext& ctx) {
  const int64_t axis = ctx.axis(ctx.integer("dim"), Builder::rank_of(base(ctx)) + 1);
  const Builder build = ctx;
  return {{[build, axis](const Expr& e) { return build.expand_dims(e, axis); },
           [build, axis](const Expr&, const Expr& v) { return build.squeeze(v, {axis}); }}};
}

// Without the axes that are 1; all of them without a list. An axis whose size is open is not 1 for PyTorch.
std::vector<View> squeeze(NodeContext& ctx) {
  Expr x = base(ctx);
  const int64_t rank = Builder::rank_of(x);
  std::vector<int64_t> asked = Builder::all_axes(rank), axes;
  if (ctx.has("dim")) {
    asked.clear();
    for (int64_t a : ctx.ints("dim")) asked.push_back(ctx.axis(a, std::max<int64_t>(rank, 1)));
    std::ranges::sort(asked);
  }
  for (int64_t a : asked)
    if (a < rank && as_const(Builder::shape_of(x)[static_cast<size_t>(a)]) == 1) axes.push_back(a);
  if (axes.empty()) return {whole()};
  const Builder build = ctx;
  return {
      {[build, axes](const Expr& e) { return build.squeeze(e, axes); },
       [build](const Expr& e, const Expr& v) { return build.reshape(v, Builder::shape_of(e)); }}};
}

View permuted(NodeContext& ctx, const std::vector<int64_t>& axes) {
  std::vector<int64_t> back(axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    back[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  const Builder build = ctx;
  return {[build, axes](const Expr& e) { return build.transpose(e, axes); },
          [build, back](const Expr&, const Expr& v) { return build.transpose(v, back); }};
}

std::vector<View> permute(NodeContext& ctx) {
  const int64_t rank = Builder::rank_of(base(ctx));
  std::vector<int64_t> axes = ctx.axes(ctx.ints("dims"), rank);
  if (static_cast<int64_t>(axes.size()) != rank)
    ctx.fail(codes::frontend_attribute, "a permutation names all axes", std::to_string(rank));
  return {permuted(ctx, axes)};
}
std::vector<View> exchanged(NodeContext& ctx, int64_t a, int64_t b) {
  std::vector<int64_t> axes = Builder::all_axes(Builder::rank_of(base(ctx)));
  if (axes.empty()) return {whole()};
  std::swap(axes[static_cast<size_t>(a)], axes[static_cast<size_t>(b)]);
  return {permuted(ctx, axes)};
}
std::vector<View> transpose(NodeContext& ctx) {
  const int64_t rank = Builder::rank_of(base(ctx));
  return exchanged(ctx, ctx.axis_of("dim0", rank, std::nullopt),
                   ctx.axis_of("dim1", rank, std::nullopt));
}
std::vector<View> swapaxes(NodeContext& ctx) {
  const int64_t rank = Builder::rank_of(base(ctx));
  return exchanged(ctx, ctx.axis_of("axis0", rank, std::nullopt),
                   ctx.axis_of("axis1", rank, std::nullopt));
}
// A matrix with rows and columns exchanged; a vector stays one.
std::vector<View> matrix_transpose(NodeContext& ctx) {
  const int64_t rank = Builder::rank_of(base(ctx));
  if (rank < 2) return {whole()};
  return exchanged(ctx, rank - 2, rank - 1);
}
std::vector<View> all_reversed(NodeContext& ctx) {
  std::vector<int64_t> axes = Builder::all_axes(Builder::rank_of(base(ctx)));
  std::ranges::reverse(axes);
  return {permuted(ctx, axes)};
}
std::vector<View> movedim(NodeContext& ctx) {
  const int64_t rank = Builder::rank_of(base(ctx));
  const std::vector<int64_t> from = ctx.axes(ctx.ints("source"), rank),
                             to = ctx.axes(ctx.ints("destination"), rank);
  if (from.size() != to.size())
    ctx.fail(codes::frontend_attribute, "source and destination differ in length");
  std::vector<int64_t> axes(static_cast<size_t>(rank), -1), rest;
  for (size_t i = 0; i < from.size(); ++i) axes[static_cast<size_t>(to[i])] = from[i];
  for (int64_t a = 0; a < rank; ++a)
    if (std::ranges::find(from, a) == from.end()) rest.push_back(a);
  size_t next = 0;
  for (int64_t& a : axes)
    if (a < 0) a = rest[next++];
  return {permuted(ctx, axes)};
}

std::vector<View> expand(NodeContext& ctx) {
  if (ctx.has("size")) ctx.sizes("size");
  if (ctx.has("other")) ctx.tensor("other");
  ctx.truth("implicit", false);
  const std::vector<Dim> shape = ctx.out_shape(), from = Builder::shape_of(base(ctx));
  const Builder build = ctx;
  View out{[build, shape](const Expr& e) { return build.broadcast_to(e, shape); }};
  const bool same =
      from.size() == shape.size() && std::equal(from.begin(), from.end(), shape.begin(), dim_equal);
  return {same ? whole() : std::move(out)};
}

// ---- Parts -------------------------------------------------------------------------------------

View part(NodeContext& ctx, const Part& p) {
  const Builder build = ctx;
  return {[build, p](const Expr& e) { return read_part(build, e, p); },
          [build, p](const Expr& e, const Expr& v) { return write_part(build, e, v, p); }};
}

std::vector<View> slice(NodeContext& ctx) { return {part(ctx, part_of_slice(ctx, base(ctx)))}; }

std::vector<View> select(NodeContext& ctx) {
  const Part p = part_of_select(ctx, base(ctx));
  const Builder build = ctx;
  const std::vector<int64_t> axis{p.axis};
  return {{[build, p, axis](const Expr& e) {
             return build.squeeze(with_size(build, read_part(build, e, p), p.axis, dim(1)), axis);
           },
           [build, p](const Expr& e, const Expr& v) {
             return write_part(build, e, build.expand_dims(v, p.axis), p);
           }}};
}

std::vector<View> narrow(NodeContext& ctx) { return {part(ctx, part_of_narrow(ctx, base(ctx)))}; }

// The parts of these results along an axis, one after the other.
std::vector<View> parts(NodeContext& ctx) {
  Expr x = base(ctx);
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), 0);
  for (const char* name : {"split_size", "split_sizes", "chunks", "sections", "indices"})
    if (ctx.has(name)) ctx.sizes(name);
  std::vector<View> out;
  Dim at = dim(0);
  for (size_t i = 0; i < ctx.outputs().size(); ++i) {
    const std::vector<Dim> shape = ctx.out_shape(i);
    if (static_cast<int64_t>(shape.size()) <= axis)
      ctx.fail(codes::frontend_graph, "a part has fewer dimensions than the tensor");
    const Dim end = at + shape[static_cast<size_t>(axis)];
    out.push_back(part(ctx, {axis, at, end}));
    at = end;
  }
  if (dim_differs(at, Builder::shape_of(x)[static_cast<size_t>(axis)])) {
    ctx.fail(codes::frontend_graph, "the parts together are not the tensor",
             to_string(Builder::shape_of(x)[static_cast<size_t>(axis)]), to_string(at));
  }
  return out;
}

std::vector<View> unbind(NodeContext& ctx) {
  Expr x = base(ctx);
  const int64_t axis = ctx.axis_of("dim", Builder::rank_of(x), 0);
  const Builder build = ctx;
  std::vector<View> out;
  for (size_t i = 0; i < ctx.outputs().size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    const Part p{axis, dim(at), dim(at + 1)};
    out.push_back({[build, axis, at](const Expr& e) { return build.select(e, axis, at); },
                   [build, p](const Expr& e, const Expr& v) {
                     return write_part(build, e, build.expand_dims(v, p.axis), p);
                   }});
  }
  return out;
}

std::vector<View> diagonal(NodeContext& ctx) {
  const Diagonal d = diagonal_of(ctx, base(ctx));
  const Builder build = ctx;
  return {{[build, d](const Expr& e) { return read_diagonal(build, e, d); },
           [build, d](const Expr& e, const Expr& v) { return write_diagonal(build, e, v, d); }}};
}

// Windows of an axis, which become a further last axis; they overlap.
std::vector<View> unfold(NodeContext& ctx) {
  Expr x = base(ctx);
  const int64_t rank = Builder::rank_of(x), axis = ctx.axis_of("dimension", rank, std::nullopt);
  const int64_t size = ctx.integer("size"), step = ctx.integer("step");
  if (rank == 0) {
    if (size != 1) ctx.unsupported("windows of a tensor without dimensions");
    return {reshaped(ctx, {dim(1)})};
  }
  const int64_t n = ctx.const_dim(x, axis, "the size of the unfolded axis");
  if (size < 0 || size > n || step < 1)
    ctx.fail(codes::frontend_attribute, "a window does not fit into its axis");
  const int64_t count = (n - size) / step + 1;
  ctx.charge_bytes(count * size, DType::Int(64));
  std::vector<int64_t> places;
  for (int64_t w = 0; w < count; ++w)
    for (int64_t i = 0; i < size; ++i) places.push_back(w * step + i);
  std::vector<int64_t> order = Builder::all_axes(rank + 1);
  std::rotate(order.begin() + axis + 1, order.begin() + axis + 2, order.end());
  const Builder build = ctx;
  return {{[=](const Expr& e) {
    Expr windows = build.call(
        "take", {e, build.reshape(build.ints(places), std::vector<int64_t>{count, size})},
        {{"axis", axis}, {"mode", std::string("fast")}});
    return build.transpose(windows, order);
  }}};
}

// A view of a storage by strides: a reshape, or elements at places. The storage is known where the tensor is all of it.
std::vector<View> as_strided(NodeContext& ctx) {
  const std::vector<Dim> sizes = ctx.sizes("size"), strides = ctx.sizes("stride");
  const Dim offset = ctx.size("storage_offset", 0);
  const std::string* self = ctx.at(0).name();
  const bool whole_storage = self != nullptr && ctx.is_contiguous("self") &&
                             ctx.importer().value(*self, ctx.span()).views.empty();
  const std::vector<Dim> from = Builder::shape_of(base(ctx));
  const Dim all = product(from, 0, from.size());
  Dim expected = dim(1);
  bool dense = as_const(offset) == 0 && sizes.size() == strides.size();
  for (size_t i = sizes.size(); dense && i-- > 0;) {
    dense = as_const(sizes[i]) == 1 || dim_equal(strides[i], expected);
    expected = expected * sizes[i];
  }
  if (!whole_storage || sizes.size() != strides.size())
    ctx.unsupported("a view by strides of a part of a storage");
  if (dense && !dim_differs(all, expected)) return {reshaped(ctx, sizes)};
  // The places of the elements, in row-major order.
  std::vector<int64_t> places{ctx.integer("storage_offset", 0)};
  const std::vector<int64_t> counts = ctx.ints("size"), steps = ctx.ints("stride");
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0 || steps[i] < 0)
      ctx.fail(codes::frontend_attribute, "a size or a stride is negative");
    ctx.charge_bytes(static_cast<int64_t>(places.size()) * counts[i], DType::Int(64));
    std::vector<int64_t> next;
    for (int64_t at : places)
      for (int64_t k = 0; k < counts[i]; ++k) next.push_back(at + k * steps[i]);
    places.swap(next);
  }
  const std::optional<int64_t> total = as_const(all);
  if (!total) ctx.fail(codes::frontend_dynamic, "a view by strides of an open size", "a number");
  std::vector<int64_t> sorted = places;
  std::ranges::sort(sorted);
  if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= *total))
    ctx.fail(codes::frontend_attribute, "a view by strides leaves its storage");
  const bool repeats = std::ranges::adjacent_find(sorted) != sorted.end();
  const Builder build = ctx;
  View out{[=](const Expr& e) {
    Expr flat = build.reshape(e, {all});
    Expr taken = build.call("take", {flat, build.ints(places)},
                            {{"axis", int64_t{0}}, {"mode", std::string("fast")}});
    return build.reshape(taken, sizes);
  }};
  if (!repeats) {
    out.write = [=](const Expr& e, const Expr& v) {
      Expr flat = build.reshape(e, {all});
      Expr lines = build.reshape(v, {dim(static_cast<int64_t>(places.size()))});
      Expr at = build.reshape(build.ints(places),
                              std::vector<int64_t>{1, static_cast<int64_t>(places.size())});
      Expr y = build.call("scatter_nd", {flat, at, lines}, {{"mode", std::string("update")}});
      return build.reshape(y, Builder::shape_of(e));
    };
  }
  return {std::move(out)};
}

// The tensor with other elements in a view by strides.
Values as_strided_scatter(NodeContext& ctx) {
  Expr x = ctx.tensor("self"), src = ctx.cast(ctx.tensor("src"), Builder::dtype_of(x));
  const std::vector<View> views = as_strided(ctx);
  if (!views.at(0).write) ctx.unsupported("a write into a view that repeats elements");
  return {value_of(views[0].write(x, src))};
}

// ---- The whole tensor --------------------------------------------------------------------------

std::vector<View> same(NodeContext&) { return {whole()}; }

// What drops elements at random is kept outside of programs.
std::vector<View> dropout(NodeContext& ctx) {
  const double p = ctx.real("p", 0.5);
  if (ctx.truth("train", false) && p > 0) {
    ctx.unsupported("dropout in training", "export the module in evaluation: model.eval()");
  }
  return {whole()};
}

std::vector<View> contiguous(NodeContext& ctx) {
  const Argument* format = ctx.find("memory_format");
  const auto* number = format == nullptr ? nullptr : std::get_if<int64_t>(&format->elements.at(0));
  // Contiguous, or as it is; others put the channels last.
  if (number != nullptr && *number != 1 && *number != 4) return {whole(View::How::unknown)};
  return {whole(ctx.is_contiguous("self") ? View::How::view : View::How::copy)};
}

// A copy where the element type changes.
std::vector<View> to(NodeContext& ctx) {
  if (ctx.has("other")) ctx.tensor("other");
  const DType from = Builder::dtype_of(base(ctx));
  const DType dtype = ctx.has("dtype") ? *ctx.dtype() : ctx.out_dtype();
  const bool copies = ctx.truth("copy", false) || from != dtype;
  const Builder build = ctx;
  View out = whole(copies ? View::How::copy : View::How::view);
  if (from != dtype) out.read = [build, dtype](const Expr& e) { return build.cast(e, dtype); };
  return {std::move(out)};
}

std::vector<View> view_dtype(NodeContext& ctx) {
  const DType from = Builder::dtype_of(base(ctx)), dtype = *ctx.dtype();
  if (from.bytes() != dtype.bytes()) ctx.unsupported("a view of elements of another width");
  const Builder build = ctx;
  auto as = [build](const Expr& e, DType d) {
    return Builder::dtype_of(e) == d ? e : build.call("reinterpret", {e}, {{"dtype", to_value(d)}});
  };
  return {{[as, dtype](const Expr& e) { return as(e, dtype); },
           [as, from](const Expr&, const Expr& v) { return as(v, from); }}};
}

}  // namespace

template <>
std::span<const Row> rows<Family::View>() {
  static constexpr Row kRows[] = {
      {"aten.view.default", view_row},
      {"aten._unsafe_view.default", view_row},
      {"aten.view.dtype", view_dtype},
      {"aten.view_as.default", like_row},
      {"aten.reshape.default", reshape_row},
      {"aten.reshape_as.default", like_row},
      {"aten.flatten.using_ints", flatten},
      {"aten.unflatten.int", unflatten},
      {"aten.unsqueeze.default", unsqueeze},
      {"aten.squeeze.default", squeeze},
      {"aten.squeeze.dim", squeeze},
      {"aten.squeeze.dims", squeeze},
      {"aten.permute.default", permute},
      {"aten.transpose.int", transpose},
      {"aten.swapaxes.default", swapaxes},
      {"aten.swapdims.default",
       [](NodeContext& ctx) {
         const int64_t rank = Builder::rank_of(base(ctx));
         return exchanged(ctx, ctx.axis_of("dim0", rank, std::nullopt),
                          ctx.axis_of("dim1", rank, std::nullopt));
       }},
      {"aten.t.default", matrix_transpose},
      {"aten.mT.default", matrix_transpose},
      {"aten.mH.default", matrix_transpose},
      {"aten.adjoint.default", matrix_transpose},
      {"aten.numpy_T.default", all_reversed},
      {"aten.movedim.int", movedim},
      {"aten.movedim.intlist", movedim},
      {"aten.moveaxis.int", movedim},
      {"aten.moveaxis.intlist", movedim},
      {"aten.expand.default", expand},
      {"aten.expand_as.default", expand},
      {"aten.broadcast_to.default", expand},
      {"aten.slice.Tensor", slice},
      {"aten.select.int", select},
      {"aten.narrow.default", narrow},
      {"aten.split.Tensor", parts},
      {"aten.split.sizes", parts},
      {"aten.split_with_sizes.default", parts},
      {"aten.chunk.default", parts},
      {"aten.unsafe_split.Tensor", parts},
      {"aten.unsafe_split_with_sizes.default", parts},
      {"aten.unsafe_chunk.default", parts},
      {"aten.tensor_split.sections", parts},
      {"aten.tensor_split.indices", parts},
      {"aten.unbind.int", unbind},
      {"aten.diagonal.default", diagonal},
      {"aten.unfold.default", unfold},
      {"aten.as_strided.default", as_strided},
      {"aten.as_strided_scatter.default", as_strided_scatter},
      {"aten.alias.default", same},
      {"aten.detach.default", same},
      {"aten.lift_fresh.default", same},
      {"aten.lift.default", same},
      {"aten.positive.default", same},
      {"aten.real.default", same},
      {"aten._neg_view.default",
       [](NodeContext& ctx) {
         const Builder build = ctx;
         return std::vector<View>{
             {[build](const Expr& e) { return build.call("negative", {e}); },
              [build](const Expr&, const Expr& v) { return build.call("negative", {v}); }}};
       }},
      {"aten.resolve_conj.default", same},
      {"aten.resolve_neg.default", same},
      {"aten.dropout.default", dropout},
      {"aten.feature_dropout.default", dropout},
      {"aten.alpha_dropout.default", dropout},
      {"aten.contiguous.default", contiguous},
      {"aten.to.dtype", to},
      {"aten.to.dtype_layout", to},
      {"aten.to.device", to},
      {"aten.to.other", to},
      {"aten.type_as.default", to},
  };
  return kRows;
}

}  // namespace relay::frontend::torch
