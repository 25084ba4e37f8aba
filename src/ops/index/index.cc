// Reading by indices that are data.
#include <algorithm>
#include <limits>

#include "analysis/element_maps.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/composed.h"
#include "ops/gradient.h"
#include "ops/index/index_mode.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "runtime/core/kernel_abi.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Something can be read for every index: an axis is empty only where there is no index.
bool readable(RelationContext& ctx, const Dim& size, const std::vector<Dim>& indices) {
  Dim count = dim(1);
  for (const Dim& d : indices) count = count * d;
  return require(ctx, ctx.at_least(size, min(dim(1), count)), codes::type_shape,
                 "there is nothing to take from an empty axis", "1 element or more",
                 to_string(size));
}

bool integer(RelationContext& ctx, const TensorTypeNode& t, const char* name) {
  return require(ctx, t.dtype.is_integer(), codes::type_dtype,
                 std::string("argument '") + name + "' must hold integers", "int32 or int64",
                 t.dtype.to_string());
}

struct TakeAttrs : AttrsOf<TakeAttrs> {
  int64_t batch_dims = 0;
  std::optional<int64_t> axis;
  std::string mode = "clip";
  // The relation has accepted it.
  IndexMode how() const { return *index_mode(mode); }
  static AttrsList describe() {
    return {
        "relay.attrs.TakeAttrs",
        {attribute("batch_dims", &Self::batch_dims, "Leading axes shared by data and indices."),
         attribute("axis", &Self::axis, "Axis to take from; None: flattened."),
         attribute("mode", &Self::mode,
                   "What indices out of range mean: clip moves them to the border, negative ones "
                   "to the first; wrap counts on from the other end; fast counts negative ones "
                   "from the end and clips the rest.")}};
  }
};

Type take_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *i = ctx.tensor(1);
  if (x == nullptr || i == nullptr || !integer(ctx, *i, "indices")) return nullptr;
  auto& a = ctx.attrs<TakeAttrs>();
  if (!require(ctx, index_mode(a.mode).has_value(), codes::op_bad_attribute, "mode is not known",
               "clip, wrap or fast", a.mode) ||
      !require(ctx, a.batch_dims == 0, codes::op_bad_attribute,
               "batch_dims other than 0 are not supported", "0", std::to_string(a.batch_dims)))
    return nullptr;
  if (!a.axis) {
    Dim count = dim(1);
    for (const Dim& d : x->shape) count = count * d;
    return readable(ctx, count, i->shape) ? Type(tensor_type(i->shape, x->dtype)) : nullptr;
  }
  auto axis = normal_axis(ctx, *a.axis, x->rank());
  if (!axis || !readable(ctx, x->shape[static_cast<size_t>(*axis)], i->shape)) return nullptr;
  std::vector<Dim> shape(x->shape.begin(), x->shape.begin() + static_cast<std::ptrdiff_t>(*axis));
  shape.insert(shape.end(), i->shape.begin(), i->shape.end());
  shape.insert(shape.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(*axis) + 1,
               x->shape.end());
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor take_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<TakeAttrs>();
  TirTensor x = ctx.inputs[0], indices = ctx.inputs[1];
  return tir::compute("T_take", ctx.outputs[0].shape, [&](const Indices& i) {
    if (!a.axis) {
      PrimExpr n = index(1);
      for (const PrimExpr& d : x->shape()) n = n * d;
      PrimExpr flat = place_of(indices(i), n, a.how());
      Indices at(x->shape().size());
      for (size_t d = at.size(); d-- > 0;) {
        at[d] = floor_mod(flat, x->shape()[d]);
        flat = floor_div(flat, x->shape()[d]);
      }
      return x(at);
    }
    size_t axis = static_cast<size_t>(from_front(*a.axis, x->rank())),
           rank = static_cast<size_t>(indices->rank());
    auto begin = i.begin() + static_cast<std::ptrdiff_t>(axis);
    Indices which(begin, begin + static_cast<std::ptrdiff_t>(rank)), at(i.begin(), begin);
    at.push_back(place_of(indices(which), x->shape()[axis], a.how()));
    at.insert(at.end(), begin + static_cast<std::ptrdiff_t>(rank), i.end());
    return x(at);
  });
}

struct GatherAttrs : AttrsOf<GatherAttrs> {
  int64_t axis = 0;
  bool checked = false;
  static AttrsList describe() {
    return {"relay.attrs.GatherAttrs",
            {attribute("axis", &Self::axis, "Axis that the indices are along."),
             attribute("checked", &Self::checked,
                       "A run fails (E0605) where an index is outside the data.")}};
  }
};

Type gather_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *i = ctx.tensor(1);
  if (x == nullptr || i == nullptr || !integer(ctx, *i, "indices") ||
      !require(ctx, x->rank() == i->rank(), codes::type_rank,
               "data and indices must have as many dimensions", shape_text(x->shape),
               shape_text(i->shape)))
    return nullptr;
  auto axis = normal_axis(ctx, ctx.attrs<GatherAttrs>().axis, x->rank());
  if (!axis || !readable(ctx, x->shape[static_cast<size_t>(*axis)], i->shape)) return nullptr;
  for (size_t d = 0; d < x->shape.size(); ++d) {
    if (!require(ctx, d == static_cast<size_t>(*axis) || ctx.at_least(x->shape[d], i->shape[d]),
                 codes::type_shape, "indices are longer than the data beside the axis",
                 "at most " + shape_text(x->shape) + " but for axis " + std::to_string(*axis),
                 shape_text(i->shape)))
      return nullptr;
  }
  return tensor_type(i->shape, x->dtype);
}

// An index as it is given, and the size of the axis that it is of.
struct Asked {
  PrimExpr index, size;
};

// Stores in lines of the last axis, by indices that have to be inside. What is outside is counted, and looked at once for
// each line, so lines are vectors; then the first such index is named.
Stmt stores_with_a_check(
    const std::vector<PrimExpr>& shape, const std::string& source,
    const std::function<Asked(const Indices& at)>& asked,
    const std::function<Stmt(const Indices& at, const PrimExpr& place)>& element) {
  return ops::each_line(shape, shape.size() - 1, 4, [&](const LineIndex& at) {
    Cell outside("outside", kIndex);
    auto place_in = [](const Asked& a) { return place_of(a.index, a.size, IndexMode::Checked); };
    Stmt line = each_in_lanes("k", shape.back(), [&](const PrimExpr& k) {
      const Asked a = asked(at(k));
      const PrimExpr place = place_in(a);
      Stmt count =
          outside.set(outside.get() + select(is_inside(place, a.size), index(0), index(1)));
      return seq({count, element(at(k), place)});
    });
    Stmt name_it = each("k", shape.back(), [&](const PrimExpr& k) {
      const Asked a = asked(at(k));
      PrimExpr first =
          logical_and(gt(outside.get(), index(0)), logical_not(is_inside(place_in(a), a.size)));
      return if_(first, outside.set(index_in(a.index, a.size, source) - 1));
    });
    return outside.in(seq({outside.set(index(0)), line, if_(ne(outside.get(), index(0)), name_it),
                           check(eq(outside.get(), index(0)), RELAY_KERNEL_INDEX_OUT_OF_BOUNDS,
                                 "an index is outside the data")}));
  });
}

// In one pass over the indices: written down after a check, they would be read again.
bool gather_may_end_run(const CallNode& call) {
  return static_cast<const GatherAttrs*>(call.attrs.get())->checked;
}

TirTensor checked_gather_compute(const ComputeContext& ctx, size_t axis) {
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  return tir::imperative(
      "T_gather", ctx.outputs[0].dtype, shape, ctx.inputs,
      [=](const std::vector<Buffer>& in, const Buffer& out) {
        const PrimExpr& size = in[0]->shape[axis];
        auto asked = [&](const Indices& at) { return Asked{load(in[1], at), size}; };
        return stores_with_a_check(shape, {}, asked, [&](const Indices& at, const PrimExpr& i) {
          Indices from = at;
          // Lanes that may leave out what they read are fetched together.
          const DType dtype = in[0]->dtype;
          const bool has_zero =
              (dtype.is_floating() || dtype.is_integer()) && dtype.code != DType::kFloat8E8M0FNU;
          from[axis] = has_zero ? i : min(max(i, index(0)), size - 1);
          PrimExpr element = load(in[0], from);
          if (has_zero) element = select(is_inside(i, size), element, imm(dtype, 0));
          return store(out, at, element);
        });
      });
}

TirTensor gather_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], indices = ctx.inputs[1];
  auto& a = ctx.attrs<GatherAttrs>();
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  if (a.checked) return checked_gather_compute(ctx, axis);
  return tir::compute("T_gather", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    at[axis] = place_of(indices(i), x->shape()[axis], IndexMode::Fast);
    return x(at);
  });
}

struct GatherNDAttrs : AttrsOf<GatherNDAttrs> {
  int64_t batch_dims = 0;
  std::optional<int64_t> index_rank;
  static AttrsList describe() {
    return {"relay.attrs.GatherNDAttrs",
            {attribute("batch_dims", &Self::batch_dims, "Leading axes shared by data and indices."),
             attribute("index_rank", &Self::index_rank, "Length of the index axis when unknown.")}};
  }
};

Type gather_nd_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *i = ctx.tensor(1);
  if (x == nullptr || i == nullptr || !integer(ctx, *i, "indices")) return nullptr;
  int64_t batch = ctx.attrs<GatherNDAttrs>().batch_dims;
  auto length = i->shape.empty() ? std::nullopt : as_const(i->shape[0]);
  if (!require(ctx, length && batch >= 0 && batch < i->rank() && *length + batch <= x->rank(),
               codes::type_shape, "the first axis of indices does not fit the data",
               "at most " + std::to_string(x->rank()) + " with batch_dims", shape_text(i->shape)))
    return nullptr;
  std::vector<Dim> shape(i->shape.begin() + 1, i->shape.end());
  for (size_t d = 0; d < static_cast<size_t>(*length + batch); ++d) {
    bool shared = d < static_cast<size_t>(batch);
    if (shared ? !require(ctx, ctx.equal(x->shape[d], i->shape[d + 1]), codes::type_shape,
                          "data and indices have different batch dimensions", shape_text(x->shape),
                          shape_text(i->shape))
               : !readable(ctx, x->shape[d], shape))
      return nullptr;
  }
  shape.insert(shape.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(*length + batch),
               x->shape.end());
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor gather_nd_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], indices = ctx.inputs[1];
  size_t batch = static_cast<size_t>(ctx.attrs<GatherNDAttrs>().batch_dims);
  int64_t length = *as_int(indices->shape()[0]);
  return tir::compute("T_gather_nd", ctx.outputs[0].shape, [&](const Indices& i) {
    size_t lead = indices->shape().size() - 1;
    Indices at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(batch));
    for (int64_t k = 0; k < length; ++k) {
      Indices which{index(k)};
      which.insert(which.end(), i.begin(), i.begin() + static_cast<std::ptrdiff_t>(lead));
      at.push_back(place_of(indices(which), x->shape()[at.size()], IndexMode::Fast));
    }
    at.insert(at.end(), i.begin() + static_cast<std::ptrdiff_t>(lead), i.end());
    return x(at);
  });
}

struct OneHotAttrs : AttrsOf<OneHotAttrs> {
  int64_t depth = 1, axis = -1;
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.OneHotAttrs",
            {attribute("depth", &Self::depth, "Size of the new axis."),
             attribute("axis", &Self::axis, "Where the new axis goes."),
             attribute("dtype", &Self::dtype, "dtype of the result.")}};
  }
};

Type one_hot_relation(RelationContext& ctx) {
  const TensorTypeNode *i = ctx.tensor(0), *on = ctx.tensor(1), *off = ctx.tensor(2);
  if (i == nullptr || on == nullptr || off == nullptr) return nullptr;
  auto& a = ctx.attrs<OneHotAttrs>();
  if (!i->dtype.is_floating() && !integer(ctx, *i, "indices")) return nullptr;
  auto axis = normal_axis(ctx, a.axis, i->rank() + 1);
  if (!axis ||
      !require(ctx, a.depth >= 0, codes::op_bad_attribute, "depth is negative", "0 or more",
               std::to_string(a.depth)) ||
      !require(ctx, on->rank() == 0 && off->rank() == 0 && on->dtype == off->dtype,
               codes::type_rank, "on_value and off_value must be scalars of one dtype"))
    return nullptr;
  std::vector<Dim> shape = i->shape;
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis), dim(a.depth));
  return tensor_type(std::move(shape), is_set(a.dtype) ? a.dtype : on->dtype);
}

TirTensor one_hot_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], on = ctx.inputs[1], off = ctx.inputs[2];
  size_t axis = static_cast<size_t>(from_front(ctx.attrs<OneHotAttrs>().axis, x->rank() + 1));
  DType out = ctx.outputs[0].dtype;
  return tir::compute("T_one_hot", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    // A fraction equals none of the indices.
    const DType dtype = x->dtype.is_floating() ? DType::Float(64) : kIndex;
    return select(eq(tir::cast(dtype, x(at)), tir::cast(dtype, i[axis])),
                  tir::cast(out, on(Indices{})), tir::cast(out, off(Indices{})));
  });
}

Type trilu_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *k = ctx.tensor(1);
  if (x == nullptr || k == nullptr ||
      !require(ctx, x->rank() >= 2, codes::type_rank, "needs at least two dimensions", "2 or more",
               shape_text(x->shape)) ||
      !require(ctx, k->rank() == 0 && k->dtype.is_integer(), codes::type_rank,
               "k must be an integer scalar", "int64", to_string(Type(k))) ||
      !require(ctx, x->dtype.code != DType::kFloat8E8M0FNU, codes::type_dtype,
               "this dtype has no zero", "a dtype with a zero", x->dtype.to_string()))
    return nullptr;
  return Type(x);
}

struct TriluAttrs : AttrsOf<TriluAttrs> {
  bool upper = true;
  static AttrsList describe() {
    return {"relay.attrs.TriluAttrs",
            {attribute("upper", &Self::upper, "Keep the upper triangle.")}};
  }
};

TirTensor trilu_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], k = ctx.inputs[1];
  bool upper = ctx.attrs<TriluAttrs>().upper;
  return tir::compute("T_trilu", x->shape(), [&](const Indices& i) {
    PrimExpr distance = i[i.size() - 1] - i[i.size() - 2];
    PrimExpr diagonal = tir::cast(kIndex, k(Indices{}));
    return select(upper ? ge(distance, diagonal) : le(distance, diagonal), x(i), imm(x->dtype, 0));
  });
}

// ---- Gradients

// The line that an index without axes names, where index and size are numbers.
std::optional<int64_t> known_line(const Expr& index, const Dim& lines, IndexMode mode) {
  auto* c = as<ConstantNode>(index);
  auto size = as_const(lines);
  if (c == nullptr || c->data.rank() != 0 || !size) return std::nullopt;
  return place_of(c->data.get_as_int(0), *size, mode);
}

// The rows of a table that were looked up get their adjoints, one after the other.
Adjoints take_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<TakeAttrs>();
  const Expr &x = ctx.arg(0), &indices = ctx.arg(1);
  const std::vector<Dim>& shape = type_of(x).shape;
  if (!a.axis || std::ranges::any_of(shape, is_any)) return moved(ctx);
  int64_t axis = from_front(*a.axis, rank_of(x)), rank = rank_of(indices);
  auto at = static_cast<size_t>(axis);
  if (auto line = known_line(indices, shape[at], a.how())) {
    Expr g = apply("expand_dims", {ctx.adjoint()}, {{"axis", axis}});
    return {pad_axis(g, axis, dim(*line), shape[at] - dim(*line + 1)), nullptr};
  }
  // One line among zeros: who adds it to others does that line alone (grad/grad_cell.h).
  if (rank == 0 && axis == 0) {
    Expr zeros = apply("zeros", {},
                       {{"shape", shape_value(shape)}, {"dtype", type_of(x).dtype.to_string()}});
    Expr line = apply("expand_dims", {ctx.adjoint()}, {{"axis", int64_t{0}}});
    // update_slice clips its start itself.
    Expr start = a.how() == IndexMode::Clip ? indices : places_in(x, axis, indices, a.how());
    return {apply("update_slice", {zeros, line, start}), nullptr};
  }
  auto flat = [](const Expr& e) {
    return apply("reshape", {e}, {{"newshape", to_value(Ints{-1})}});
  };
  Expr rows = places_in(x, axis, flat(indices), a.how());
  // The axes of the indices in front, as one.
  Ints order;
  for (int64_t d = 0; d < rank; ++d) order.push_back(axis + d);
  for (int64_t d = 0; d < rank_of(ctx.result); ++d) {
    if (d < axis || d >= axis + rank) order.push_back(d);
  }
  std::vector<Dim> table{shape[at]};
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != at) table.push_back(shape[d]);
  }
  Expr g = join_leading(transposed(ctx.adjoint(), order), rank);
  Expr zeros =
      apply("zeros", {}, {{"shape", shape_value(table)}, {"dtype", type_of(g).dtype.to_string()}});
  Expr sums = apply("scatter_nd", {zeros, apply("expand_dims", {rows}, {{"axis", int64_t{0}}}), g},
                    {{"mode", "add"}});
  return {move_axis(sums, 0, axis)};
}

// The scalars stand for the elements where the new axis equals the index, and for the others.
Adjoints one_hot_gradient(const GradientContext& ctx) {
  const Expr& g = ctx.adjoint();
  DType dtype = type_of(ctx.arg(1)).dtype;
  if (!dtype.is_floating()) return {};
  Expr on =
      call(ctx.call.op, {ctx.arg(0), scalar(1, ctx.arg(1)), scalar(0, ctx.arg(1))}, ctx.call.attrs);
  auto total = [&](const Expr& e) { return cast_to(apply("sum", {e}), dtype); };
  return {nullptr, total(g * on), total(g * (1 - on))};
}

Adjoints trilu_gradient(const GradientContext& ctx) {
  return {call(ctx.call.op, {ctx.adjoint(), ctx.arg(1)}, ctx.call.attrs)};
}

// Of one element of each line along the axis: the adjoint at its place and zeros beside it, element by element, which is a
// part of whatever kernel needs it. Others are moved back one by one.
Adjoints gather_gradient(const GradientContext& ctx) {
  const std::vector<Dim>&from = type_of(ctx.arg(0)).shape, &to = type_of(ctx.arg(1)).shape;
  const auto axis = static_cast<size_t>(
      from_front(ctx.attrs<GatherAttrs>().axis, static_cast<int64_t>(from.size())));
  auto size = as_const(from[axis]);
  bool one_of_each = size && *size <= std::numeric_limits<int32_t>::max();
  for (size_t d = 0; d < from.size(); ++d) {
    one_of_each = one_of_each && (d == axis ? as_const(to[d]) == 1 : dim_equal(from[d], to[d]));
  }
  if (!one_of_each) return moved(ctx);
  std::vector<Dim> along(from.size(), dim(1));
  along[axis] = from[axis];
  Expr numbers = apply("arange", {}, {{"stop", AttrValue(*size)}, {"dtype", "int32"}});
  Expr place = reshape_to(numbers, along);
  Expr chosen = call(ctx.call.op,
                     {apply("broadcast_to", {place}, {{"shape", shape_value(from)}}), ctx.arg(1)},
                     ctx.call.attrs, ctx.call.span);
  return {kept(is_equal(place, chosen), ctx.adjoint())};
}

// ---- Batching

// From each lane's data by its own indices, along an axis of a lane.
Expr taken_by_lane(const Expr& data, Expr at, int64_t axis, IndexMode mode) {
  if (is_any(type_of(data).shape[static_cast<size_t>(axis) + 1])) return nullptr;
  at = places_in(data, axis + 1, at, mode);
  Expr index = apply("expand_dims", {at}, {{"axis", int64_t{0}}});
  Expr taken =
      apply("gather_nd", {move_axis(data, axis + 1, 1), index}, {{"batch_dims", int64_t{1}}});
  // (lanes, indices, before, behind) to (lanes, before, indices, behind).
  Ints order{0};
  int64_t wide = rank_of(at) - 1;
  for (int64_t d = 0; d < axis; ++d) order.push_back(1 + wide + d);
  for (int64_t d = 0; d < wide; ++d) order.push_back(1 + d);
  for (int64_t d = 1 + wide + axis; d < rank_of(taken); ++d) order.push_back(d);
  return transposed(taken, order);
}

Expr batch_take(const BatchingContext& ctx) {
  auto& a = ctx.attrs<TakeAttrs>();
  Expr data = ctx.arg(0);
  int64_t rank = rank_of(ctx.call.args[0]), axis = a.axis ? from_front(*a.axis, rank) : 0;
  if (!a.axis) {
    // Of the elements of a lane.
    if (!has_named_sizes(data)) return nullptr;
    Dim count = dim(1);
    for (const Dim& d : type_of(ctx.call.args[0]).shape) count = count * d;
    data = reshape_to(
        data, ctx.batched[0] ? std::vector<Dim>{ctx.lanes, count} : std::vector<Dim>{count});
  }
  if (a.batch_dims == 0 && !ctx.batched[1])
    return with_attrs(ctx.call, {data, ctx.arg(1)}, {{"axis", axis + 1}});
  if (a.batch_dims == 0 && !ctx.batched[0]) {
    Expr taken = with_attrs(ctx.call, {data, ctx.arg(1)}, {{"axis", axis}});
    return move_axis(taken, axis, 0);
  }
  return a.batch_dims == 0 && ctx.batched[0] ? taken_by_lane(data, ctx.arg(1), axis, a.how())
                                             : nullptr;
}

// Lanes are one more batch dimension, behind the axis of the index vectors.
Expr batch_gather_nd(const BatchingContext& ctx) {
  return with_attrs(ctx.call, {in_lanes(ctx, 0), move_axis(in_lanes(ctx, 1), 0, 1)},
                    {{"batch_dims", int_attr(ctx.call, "batch_dims") + 1}});
}

Expr batch_one_hot(const BatchingContext& ctx) {
  auto axis = behind_lanes(int_attr(ctx.call, "axis"));
  if (only_first(ctx)) return with_attrs(ctx.call, ctx.args, {{"axis", axis}});
  // Where the indices point, and there the values of the lane.
  auto* result = as<TensorTypeNode>(ctx.call.type);
  Expr yes = constant(runtime::Tensor::scalar(1, DType::Bool()));
  Expr no = constant(runtime::Tensor::scalar(0, DType::Bool()));
  std::vector<std::pair<std::string, AttrValue>> attrs{{"dtype", "bool"}};
  if (ctx.batched[0]) attrs.emplace_back("axis", axis);
  Expr there = with_attrs(ctx.call, {ctx.arg(0), yes, no}, attrs);
  auto value = [&](size_t i) {
    Expr e = cast_to(ctx.arg(i), result->dtype);
    return ctx.batched[i] ? lanes_of_rank(e, result->rank()) : e;
  };
  return choose(there, value(1), value(2));
}

Expr batch_trilu(const BatchingContext& ctx) {
  if (!ctx.batched[1]) return same_call(ctx, ctx.args);
  int64_t rank = rank_of(ctx.call.args[0]);
  const std::vector<Dim>& shape = type_of(ctx.call.args[0]).shape;
  const Dim &rows = shape[shape.size() - 2], &columns = shape.back();
  if (is_any(rows) || is_any(columns)) return nullptr;
  Expr distance = iota(columns) - expanded(iota(rows), 1);
  Expr diagonal = lanes_of_rank(cast_to(ctx.arg(1), DType::Int(64)), rank);
  bool upper = ctx.attrs<TriluAttrs>().upper;
  Expr inside = apply(upper ? "greater_equal" : "less_equal", {distance, diagonal});
  return choose(inside, ctx.arg(0), scalar(0, ctx.arg(0)));
}

// ---- Indices that must be inside

struct CheckedIndexAttrs : AttrsOf<CheckedIndexAttrs> {
  std::string place;
  static AttrsList describe() {
    return {
        "relay.attrs.CheckedIndexAttrs",
        {attribute("place", &Self::place,
                   "Where in the source the index is, which the error says: \"model.py:12\".")}};
  }
};

Type checked_index_relation(RelationContext& ctx) {
  const TensorTypeNode *indices = ctx.tensor(0), *sizes = ctx.tensor(1);
  if (indices == nullptr || sizes == nullptr) return nullptr;
  if (!integer(ctx, *indices, "indices") || !integer(ctx, *sizes, "sizes")) return nullptr;
  bool one = sizes->rank() == 0;
  bool fits = one || (sizes->rank() == 1 && indices->rank() >= 1 &&
                      ctx.equal(sizes->shape[0], indices->shape[0]));
  if (!require(ctx, fits, codes::type_shape,
               "argument 'sizes' must be one number, or one for each index along the first axis of "
               "'indices'",
               "Tensor[(), int64]", to_string(Type(sizes))))
    return nullptr;
  return Type(indices);
}

TirTensor checked_index_compute(const ComputeContext& ctx) {
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  DType dtype = ctx.outputs[0].dtype;
  return tir::imperative(
      "T_checked_index", dtype, shape, ctx.inputs,
      [=, source = ctx.attrs<CheckedIndexAttrs>().place](const std::vector<Buffer>& in,
                                                         const Buffer& out) {
        auto size_at = [&](const Indices& at) {
          return tir::cast(kIndex, in[1]->shape.empty() ? load(in[1], {}) : load(in[1], {at[0]}));
        };
        if (shape.empty()) {
          return store(out, {}, tir::cast(dtype, index_in(load(in[0], {}), size_at({}), source)));
        }
        auto asked = [&](const Indices& at) { return Asked{load(in[0], at), size_at(at)}; };
        return stores_with_a_check(shape, source, asked,
                                   [&](const Indices& at, const PrimExpr& place) {
                                     return store(out, at, tir::cast(dtype, place));
                                   });
      });
}

// One size for each lane is one for each index along the first axis; several of a lane stay beside the
// first axis of its indices.
Expr batch_checked_index(const BatchingContext& ctx) {
  bool one = rank_of(ctx.call.args[1]) == 0;
  if (!ctx.batched[1]) {
    return one ? same_call(ctx, ctx.args)
               : move_axis(same_call(ctx, {move_axis(ctx.arg(0), 0, 1), ctx.arg(1)}), 1, 0);
  }
  Expr indices = in_lanes(ctx, 0), sizes = ctx.arg(1);
  if (one) return same_call(ctx, {indices, sizes});
  if (!has_named_sizes(indices) || !has_named_sizes(sizes)) return nullptr;
  Expr all = same_call(ctx, {fold_lanes(indices, 0), fold_lanes(sizes, 0)});
  return unfold_lanes(all, 0, ctx.lanes, ctx.call.type);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Index>() {
  static const OpInfo rows[] = {
      {
          .name = "take",
          .doc = "The slices of data along an axis that the indices name.",
          .args = {{"data", "The input."}, {"indices", "Integers."}},
          .attrs = &TakeAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = take_relation,
          .compute = compute_rule(take_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = take_gradient,
          .batching = batch_take,
          .moves = ElementMoves{.map = element_maps::take},
          .examples =
              {{{"Tensor[(5, 3), float32]", "Tensor[(2, 2), int32]"}, "axis=0", 0, 5},
               {{"Tensor[(5, 3), float32]", "Tensor[(4,), int64]"}, "mode=\"wrap\"", 0, 15}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "gather",
          .doc =
              "Element by element along an axis: out[i][j] = data[indices[i][j]][j]; negative "
              "indices count from the end, those outside the data are moved to its border, or end "
              "the run.",
          .args = {{"data", "The input."}, {"indices", "Integers."}},
          .attrs = &GatherAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .may_end_run = gather_may_end_run,
          .relation = gather_relation,
          .compute = compute_rule(gather_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = gather_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{},
          .examples =
              {{{"Tensor[(3, 4), float32]", "Tensor[(3, 2), int64]"}, "axis=1", 0, 3},
               {{"Tensor[(3, 4), float32]", "Tensor[(3, 1), int64]"}, "axis=1", -4, 3},
               {{"Tensor[(3, 4), float32]", "Tensor[(2, 4), int64]"}, "checked=True", 0, 2}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "gather_nd",
          .doc = "Slices of data named by index vectors along the first axis of indices; negative "
                 "indices count from the end, those outside the data are moved to its border.",
          .args = {{"data", "The input."}, {"indices", "Integers."}},
          .attrs = &GatherNDAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = gather_nd_relation,
          .compute = compute_rule(gather_nd_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = moved,
          .batching = batch_gather_nd,
          .moves = ElementMoves{},
          .examples = {{{"Tensor[(3, 4), float32]", "Tensor[(2, 5), int64]"}, "", 0, 2}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "checked_index",
          .doc =
              "The indices, those from the end counted from the front. A run fails (E0605) where "
              "one is outside an axis of that size.",
          .args = {{"indices", "Integers."},
                   {"sizes",
                    "One integer, or one for each index along the first axis of indices."}},
          .attrs = &CheckedIndexAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .may_end_run = on_every_call,
          .relation = checked_index_relation,
          .compute = compute_rule(checked_index_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_checked_index,
          .examples = {{.args = {"Tensor[(5,), int32]", "Tensor[(), int64]"},
                        .attrs = "",
                        .inputs = {{0, 2, -1, -3, 1}, {3}}},
                       {.args = {"Tensor[(2, 2), int64]", "Tensor[(2,), int64]"},
                        .attrs = "",
                        .inputs = {{0, -4, 1, -2}, {4, 2}}}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "one_hot",
          .doc = "on_value where the new axis equals the index, else off_value.",
          .args = {{"indices", "Whole numbers, maybe as floats."},
                   {"on_value", "A scalar."},
                   {"off_value", "A scalar."}},
          .attrs = &OneHotAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = one_hot_relation,
          .compute = compute_rule(one_hot_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = one_hot_gradient,
          .batching = batch_one_hot,
          .examples =
              {{{"Tensor[(2, 3), int64]", "float32", "float32"}, "depth=4", 0, 4},
               {.args = {"Tensor[(5,), float32]", "float32", "float32"},
                .attrs = "depth=3, axis=0",
                // Where a move changes nothing: tests compare the gradient with finite differences.
                .inputs = {{0.5, 2.25, -1, 1.5, 3}, {5}, {1}}}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "trilu",
          .doc = "The upper or lower triangle of each matrix; zeros elsewhere.",
          .args = {{"data", "The input."}, {"k", "The diagonal, a scalar."}},
          .attrs = &TriluAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = trilu_relation,
          .compute = compute_rule(trilu_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = trilu_gradient,
          .batching = batch_trilu,
          .examples = {{{"Tensor[(3, 4), float32]", "int64"}, "upper=False", 0, 2}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
