// Operators whose result is as large as their data says: shapes, repetitions, bounds and counts
// that are tensors. What such an operator computes, once its sizes are known, is what the operator
// with these sizes as attributes computes: it has that one's rule.
#include "ops/create/dynamic.h"
#include "analysis/known_value.h"

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/gradient.h"
#include "ops/init_op.h"
#include "ops/rows.h"
#include "runtime/core/kernel_abi.h"

namespace relay::ops {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

TirTensor sizes_of(const ComputeContext& ctx, int64_t rank, const WriteSizes& write) {
  return imperative(
      "T_sizes", kIndex, {index(rank)}, ctx.inputs,
      [=](const std::vector<Buffer>& in, const Buffer& sizes) { return write(ctx, in, sizes); });
}

std::function<TirTensor(const ComputeContext&)> sizes_rule(WriteSizes write) {
  return [write = std::move(write)](const ComputeContext& ctx) {
    return sizes_of(ctx, as<TensorTypeNode>(ctx.out_type)->rank(), write);
  };
}

PrimExpr element(const Buffer& vector, size_t i) {
  return tir::cast(kIndex, load(vector, {index(static_cast<int64_t>(i))}));
}
Stmt set(const Buffer& sizes, size_t i, PrimExpr value) {
  return store(sizes, {index(static_cast<int64_t>(i))}, std::move(value));
}
Stmt mismatch_unless(PrimExpr condition, std::string message) {
  return check(std::move(condition), RELAY_KERNEL_SHAPE_MISMATCH, std::move(message));
}

std::optional<int64_t> length_of_sizes(RelationContext& ctx, size_t arg) {
  const TensorTypeNode* t = ctx.tensor(arg);
  if (t == nullptr) return std::nullopt;
  const std::string name(ctx.op().args[arg].name);
  if (!require(ctx, t->dtype.is_integer(), codes::type_dtype, name + " must hold integers",
               "int32 or int64", t->dtype.to_string()) ||
      !require(ctx, t->rank() == 1 && as_const(t->shape[0]), codes::type_rank,
               name + " must be a vector of known length", "1 dimension", shape_text(t->shape)) ||
      !require(ctx, *as_const(t->shape[0]) <= 64, codes::type_rank, name + " has too many entries",
               "64 at most", shape_text(t->shape)))
    return std::nullopt;
  return as_const(t->shape[0]);
}

Type open_tensor(int64_t rank, DType dtype) {
  return tensor_type(std::vector<Dim>(static_cast<size_t>(rank), dim_any()), dtype);
}

WriteSizes sizes_in_argument(size_t arg) {
  return [arg](const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
    return each("k", sizes->shape[0], [&](const PrimExpr& k) {
      PrimExpr size = tir::cast(kIndex, load(in[arg], {k}));
      return seq(
          {mismatch_unless(ge(size, index(0)), "a size is negative"), store(sizes, {k}, size)});
    });
  };
}

namespace {

// A result of the sizes that argument `arg` holds.
template <size_t kArg>
Type type_by_sizes(RelationContext& ctx) {
  const TensorTypeNode* first = ctx.tensor(0);
  auto rank = length_of_sizes(ctx, kArg);
  if (first == nullptr || !rank) return nullptr;
  return open_tensor(*rank, first->dtype);
}

Type full_type(RelationContext& ctx) {
  const TensorTypeNode* value = ctx.tensor(0);
  if (value == nullptr ||
      !require(ctx, value->rank() == 0, codes::type_rank, "fill_value must be a scalar",
               "0 dimensions", shape_text(value->shape)))
    return nullptr;
  return type_by_sizes<1>(ctx);
}

Type open_init_type(RelationContext& ctx) {
  DType dtype = ctx.attrs<InitOpAttrs>().dtype;
  auto rank = length_of_sizes(ctx, 0);
  return rank ? open_tensor(*rank, is_set(dtype) ? dtype : DType::Float(32)) : Type(nullptr);
}

struct ReshapeAttrs : AttrsOf<ReshapeAttrs> {
  bool allowzero = false;
  static AttrsList describe() {
    return {"relay.attrs.DynReshapeAttrs",
            {attribute("allowzero", &Self::allowzero, "0 is a size, not the input's.")}};
  }
};

Type dyn_reshape_type(RelationContext& ctx) {
  Type out = type_by_sizes<1>(ctx);
  // Of a scalar no size is computed, where the elements would be counted.
  if (out && as<TensorTypeNode>(out)->rank() == 0) {
    const OpInfo& reshape = *OpRegistry::global().get("reshape")->row;
    return ctx.by_relation(
        reshape, {0}, make_attrs(*reshape.attrs, {{"newshape", ValueList{}}}, reshape.name, {}));
  }
  return out;
}

// 0 stands for the size that the input has there, -1 for what the axes hold that are not copied.
Stmt reshape_sizes(const ComputeContext& ctx, const std::vector<Buffer>& in, const Buffer& sizes) {
  const std::vector<PrimExpr>& from = in[0]->shape;
  auto rank = static_cast<size_t>(*as_int(sizes->shape[0]));
  // The products of the sizes that newshape names, of those that it copies, and of the axes that it does not.
  Cell named("named", kIndex), copied("copied", kIndex), left("left", kIndex),
      holes("holes", kIndex);
  std::vector<Stmt> steps{named.set(index(1)), copied.set(index(1)), left.set(index(1)),
                          holes.set(index(0))};
  auto times = [](const Cell& cell, const PrimExpr& size) { return cell.set(cell.get() * size); };
  for (size_t k = 0; k < std::max(rank, from.size()); ++k) {
    const bool may_copy = k < rank && k < from.size() && !ctx.attrs<ReshapeAttrs>().allowzero;
    PrimExpr want = k < rank ? element(in[1], k) : index(-1);
    PrimExpr copies = may_copy ? eq(want, index(0)) : boolean(false);
    if (k < from.size()) {
      steps.push_back(times(left, select(copies, index(1), from[k])));
      steps.push_back(times(copied, select(copies, from[k], index(1))));
    }
    if (k >= rank) continue;
    PrimExpr hole = eq(want, index(-1));
    steps.push_back(mismatch_unless(ge(want, index(-1)), "newshape holds an unknown code"));
    steps.push_back(set(sizes, k, may_copy ? select(copies, from[k], want) : want));
    steps.push_back(holes.set(holes.get() + tir::cast(kIndex, hole)));
    steps.push_back(times(named, select(logical_or(hole, copies), index(1), want)));
  }
  steps.push_back(mismatch_unless(le(holes.get(), index(1)), "more than one size is -1"));
  PrimExpr rest = floor_div(left.get(), max(named.get(), index(1)));
  for (size_t k = 0; k < rank; ++k) {
    PrimExpr size = element(sizes, k);
    steps.push_back(set(sizes, k, select(eq(size, index(-1)), rest, size)));
  }
  PrimExpr fills = select(eq(holes.get(), index(1)), eq(named.get() * rest, left.get()),
                          eq(named.get() * copied.get(), left.get() * copied.get()));
  steps.push_back(mismatch_unless(fills, "the new shape holds another number of elements"));
  return named.in(copied.in(left.in(holes.in(seq(std::move(steps))))));
}

Type tile_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto reps = length_of_sizes(ctx, 1);
  if (x == nullptr || !reps) return nullptr;
  return open_tensor(std::max(*reps, x->rank()), x->dtype);
}

Stmt tile_sizes(const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
  auto rank = static_cast<size_t>(*as_int(sizes->shape[0]));
  auto reps = static_cast<size_t>(*as_int(in[1]->shape[0]));
  std::vector<Stmt> steps;
  for (size_t d = 0; d < rank; ++d) {
    PrimExpr size = d < in[0]->shape.size() ? in[0]->shape[in[0]->shape.size() - 1 - d] : index(1);
    if (d < reps) {
      PrimExpr times = element(in[1], reps - 1 - d);
      steps.push_back(mismatch_unless(ge(times, index(0)), "a repetition is negative"));
      size = size * times;
    }
    steps.push_back(set(sizes, rank - 1 - d, size));
  }
  return seq(std::move(steps));
}

Type broadcast_to_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto rank = length_of_sizes(ctx, 1);
  if (x == nullptr || !rank) return nullptr;
  if (!require(ctx, x->rank() <= *rank, codes::type_rank, "the input has more axes than the shape",
               std::to_string(*rank) + " at most", std::to_string(x->rank())))
    return nullptr;
  return open_tensor(*rank, x->dtype);
}

Stmt broadcast_to_sizes(const ComputeContext& ctx, const std::vector<Buffer>& in,
                        const Buffer& sizes) {
  std::vector<Stmt> steps{sizes_in_argument(1)(ctx, in, sizes)};
  size_t skip = static_cast<size_t>(*as_int(sizes->shape[0])) - in[0]->shape.size();
  for (size_t d = 0; d < in[0]->shape.size(); ++d) {
    const PrimExpr& have = in[0]->shape[d];
    if (is_one(have)) continue;
    PrimExpr fits = eq(have, element(in[1], skip + d));
    if (!as_int(have)) fits = logical_or(fits, eq(have, index(1)));
    steps.push_back(mismatch_unless(fits, "the input does not broadcast to the shape"));
  }
  return seq(std::move(steps));
}

// ---- dyn.strided_slice

struct SliceAttrs : AttrsOf<SliceAttrs> {
  std::optional<std::vector<int64_t>> axes;
  bool strict = false;
  static AttrsList describe() {
    return {"relay.attrs.DynStridedSliceAttrs",
            {attribute("axes", &Self::axes, "The axes that are cut; None: the first ones."),
             attribute("strict", &Self::strict,
                       "Bounds outside of the input are an error, and not brought into range.")}};
  }
};

// The entry of begin, end and strides for an axis.
std::optional<size_t> entry_of(const SliceAttrs& a, int64_t length, int64_t rank, size_t axis) {
  if (!a.axes) return axis < static_cast<size_t>(length) ? std::optional(axis) : std::nullopt;
  for (size_t k = 0; k < a.axes->size(); ++k) {
    if (from_front((*a.axes)[k], rank) == static_cast<int64_t>(axis)) return k;
  }
  return std::nullopt;
}

Type strided_slice_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  std::optional<int64_t> length;
  for (size_t arg = 1; arg < 4; ++arg) {
    auto n = length_of_sizes(ctx, arg);
    if (!n) return nullptr;
    if (!require(ctx, *n <= x->rank() && length.value_or(*n) == *n, codes::type_rank,
                 "begin, end and strides must have one entry for each of the first axes",
                 "equal lengths, " + std::to_string(x->rank()) + " at most", std::to_string(*n)))
      return nullptr;
    length = n;
  }
  auto& a = ctx.attrs<SliceAttrs>();
  std::vector<bool> cut(x->shape.size(), false);
  for (int64_t k = 0; k < *length; ++k) {
    int64_t given_axis =
        a.axes && k < static_cast<int64_t>(a.axes->size()) ? (*a.axes)[static_cast<size_t>(k)] : k;
    auto axis = normal_axis(ctx, given_axis, x->rank(), "axes");
    if (!axis) return nullptr;
    if (!require(ctx, !cut[static_cast<size_t>(*axis)], codes::op_bad_attribute,
                 "an axis is given twice", "axes that differ", std::to_string(*axis)))
      return nullptr;
    cut[static_cast<size_t>(*axis)] = true;
  }
  if (!require(ctx, !a.axes || static_cast<int64_t>(a.axes->size()) == *length,
               codes::op_bad_attribute, "axes must have an entry for each of begin",
               std::to_string(*length), a.axes ? std::to_string(a.axes->size()) : ""))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (cut[d]) shape[d] = dim_any();
  }
  return tensor_type(std::move(shape), x->dtype);
}

// Where a slice begins and how many elements it has, as Python counts.
struct Slice {
  PrimExpr begin, count, stride;
};
Slice slice_of(const PrimExpr& begin, const PrimExpr& end, const PrimExpr& stride,
               const PrimExpr& size) {
  PrimExpr forward = gt(stride, index(0));
  PrimExpr low = select(forward, index(0), index(-1));
  PrimExpr high = select(forward, size, size - 1);
  auto clamped = [&](const PrimExpr& at) {
    return max(min(select(lt(at, index(0)), at + size, at), high), low);
  };
  PrimExpr first = clamped(begin), last = clamped(end);
  // A stride of 0 is refused before; the division is by something else all the same.
  PrimExpr by = select(eq(stride, index(0)), index(1), stride);
  return {first, max(index(0) - floor_div(first - last, by), index(0)), stride};
}

Stmt strided_slice_sizes(const ComputeContext& ctx, const std::vector<Buffer>& in,
                         const Buffer& sizes) {
  std::vector<Stmt> steps;
  int64_t length = *as_int(in[1]->shape[0]);
  auto& a = ctx.attrs<SliceAttrs>();
  const size_t rank = in[0]->shape.size();
  for (size_t d = 0; d < rank; ++d) {
    PrimExpr size = in[0]->shape[d];
    if (auto k = entry_of(a, length, static_cast<int64_t>(rank), d)) {
      steps.push_back(mismatch_unless(ne(element(in[3], *k), index(0)), "a stride is 0"));
      for (size_t arg = 1; a.strict && arg < 3; ++arg) {
        PrimExpr at = element(in[arg], *k);
        PrimExpr inside = logical_and(ge(at, index(0)), le(at, size));
        steps.push_back(mismatch_unless(inside, "a slice reaches beyond the input"));
      }
      size = slice_of(element(in[1], *k), element(in[2], *k), element(in[3], *k), size).count;
    }
    steps.push_back(set(sizes, d, size));
  }
  return seq(std::move(steps));
}

TirTensor strided_slice(const ComputeContext& ctx) {
  const std::vector<TirTensor>& in = ctx.inputs;
  int64_t length = *as_int(in[1]->shape()[0]);
  auto& a = ctx.attrs<SliceAttrs>();
  return tir::compute("T_dyn_strided_slice", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    for (size_t d = 0; d < i.size(); ++d) {
      auto k = entry_of(a, length, in[0]->rank(), d);
      if (!k) continue;
      auto entry = [&](size_t arg) {
        return tir::cast(kIndex, in[arg](index(static_cast<int64_t>(*k))));
      };
      Slice s = slice_of(entry(1), entry(2), entry(3), in[0]->shape()[d]);
      at[d] = s.begin + i[d] * s.stride;
    }
    return in[0](at);
  });
}

// ---- dyn.arange

Type open_arange_type(RelationContext& ctx) {
  const TensorTypeNode *start = ctx.tensor(0), *stop = ctx.tensor(1), *step = ctx.tensor(2);
  if (start == nullptr || stop == nullptr || step == nullptr) return nullptr;
  for (const TensorTypeNode* t : {start, stop, step}) {
    if (!require(ctx, t->rank() == 0, codes::type_rank, "start, stop and step must be scalars",
                 "0 dimensions", shape_text(t->shape)) ||
        !require(ctx, t->dtype == start->dtype && !t->dtype.is_bool() && !t->dtype.is_only_moved(),
                 codes::type_dtype, "start, stop and step must be numbers of one dtype",
                 start->dtype.to_string(), t->dtype.to_string()))
      return nullptr;
  }
  return open_tensor(1, start->dtype);
}

// int64 or float64, so that a long range does not drift.
DType wide(DType t) { return t.is_floating() ? DType::Float(64) : kIndex; }

Stmt arange_sizes(const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
  DType t = wide(in[0]->dtype);
  auto value = [&](size_t arg) { return tir::cast(t, load(in[arg], Indices{})); };
  PrimExpr zero = imm(t, 0), step = value(2);
  PrimExpr by = select(eq(step, zero), imm(t, 1), step);
  PrimExpr distance = value(1) - value(0);
  PrimExpr count = t.is_floating() ? tir::cast(kIndex, tir::call("ceil", t, {div(distance, by)}))
                                   : index(0) - floor_div(zero - distance, by);
  return seq({mismatch_unless(ne(step, zero), "step is 0"), set(sizes, 0, max(count, index(0)))});
}

TirTensor arange(const ComputeContext& ctx) {
  DType dtype = ctx.outputs[0].dtype, t = wide(dtype);
  const std::vector<TirTensor>& in = ctx.inputs;
  return tir::compute("T_dyn_arange", ctx.outputs[0].shape, [&](const Indices& i) {
    PrimExpr start = tir::cast(t, in[0](Indices{})), step = tir::cast(t, in[2](Indices{}));
    return tir::cast(dtype, start + tir::cast(t, i[0]) * step);
  });
}

// ---- argwhere

Type argwhere_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  return tensor_type(std::vector<Dim>{dim_any(), dim(x->rank())}, DType::Int(32));
}

PrimExpr is_set_at(const Buffer& x, const Indices& i) { return ne(load(x, i), imm(x->dtype, 0)); }

Stmt argwhere_sizes(const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
  Cell count("count", kIndex);
  Stmt all = each_element(in[0]->shape, [&](const Indices& i) {
    return count.set(count.get() + tir::cast(kIndex, is_set_at(in[0], i)));
  });
  auto rank = static_cast<int64_t>(in[0]->shape.size());
  return count.in(
      seq({count.set(index(0)), all, set(sizes, 0, count.get()), set(sizes, 1, index(rank))}));
}

TirTensor argwhere(const ComputeContext& ctx) {
  return imperative("T_argwhere", DType::Int(32), ctx.outputs[0].shape, {ctx.inputs[0]},
                    [](const std::vector<Buffer>& in, const Buffer& out) {
                      Cell next("next", kIndex);
                      Stmt all = each_element(in[0]->shape, [&](const Indices& i) {
                        std::vector<Stmt> put;
                        for (size_t d = 0; d < i.size(); ++d) {
                          put.push_back(store(out, {next.get(), index(static_cast<int64_t>(d))},
                                              tir::cast(DType::Int(32), i[d])));
                        }
                        put.push_back(next.set(next.get() + 1));
                        return if_(is_set_at(in[0], i), seq(std::move(put)));
                      });
                      return next.in(seq({next.set(index(0)), all}));
                    });
}

// What the operator of that name computes, for sizes that are known by then.
std::function<TirTensor(const ComputeContext&)> as_in(std::string name) {
  return [name = std::move(name)](const ComputeContext& ctx) {
    return OpRegistry::global().get(name)->row->compute->build(ctx)[0];
  };
}

}  // namespace

OpInfo dynamic_row(const char* name, const char* doc, std::vector<ArgInfo> args, AttrsInfo attrs,
                   TypeRelation relation, std::shared_ptr<const ComputeRule> compute,
                   Column<CostRule> cost, Column<GradientRule> gradient, OpExample example) {
  return {
      .name = name,
      .doc = doc,
      .args = std::move(args),
      .attrs = std::move(attrs),
      .support_level = 3,
      .fusion = FusionClass::Opaque,
      .effect = Effect::Pure,
      .takes_narrow = true,
      .may_end_run = on_every_call,
      .relation = std::move(relation),
      .compute = std::move(compute),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = std::move(cost),
      .gradient = std::move(gradient),
      .batching = Absent::LaneByLane,
      .examples = {std::move(example)},
      .expected = Absent::ByNumPy,
  };
}

OpInfo with_static_form(OpInfo row, StaticForm form) {
  row.static_form = std::move(form);
  return row;
}

OpExample given(std::vector<std::string> args, std::vector<std::vector<double>> inputs,
                std::string attrs) {
  return {.args = std::move(args), .attrs = std::move(attrs), .inputs = std::move(inputs)};
}

namespace {

// ---- Gradients

Adjoints dyn_reshape_gradient(const GradientContext& ctx) {
  return {reshape_like(ctx.adjoint(), ctx.arg(0))};
}
Adjoints dyn_broadcast_gradient(const GradientContext& ctx) {
  return {unbroadcast(ctx.adjoint(), ctx.arg(0))};
}
// start + i * step: how many there are does not change with a small step.
Adjoints dyn_arange_gradient(const GradientContext& ctx) {
  const Expr& g = ctx.adjoint();
  Expr step = g * cast_to(numbered(ctx.result), type_of(g).dtype);
  return {sum_over(g, {0}), nullptr, sum_over(step, {0})};
}
Adjoints dyn_full_gradient(const GradientContext& ctx) { return {apply("sum", {ctx.adjoint()})}; }

OpInfo as_view(OpInfo row) {
  row.reshape_only = true;
  return row;
}
OpInfo for_any_data(OpInfo row) {
  row.may_end_run = nullptr;
  return row;
}
// An attribute is a size; a 0 in the argument copies the size of the data.
bool is_size(const CallNode& c, size_t place, const Dim& term) {
  if (bool_attr(c, "allowzero") || least_value(term).value_or(0) > 0) return true;
  const std::vector<Dim>& from = type_of(c.args[0]).shape;
  return place >= from.size() || dim_equal(from[place], term);
}
// Bounds that are out of range are refused by one operator and clamped by the other.
bool is_lenient(const CallNode& c) { return !bool_attr(c, "strict"); }

std::shared_ptr<const ComputeRule> dynamic(WriteSizes sizes,
                                           std::function<TirTensor(const ComputeContext&)> build) {
  return compute_rule_with_shape(sizes_rule(std::move(sizes)), std::move(build));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Dynamic>() {
  const ArgInfo data{"data", "The input."}, shape{"shape", "The sizes, a vector of integers."};
  static constexpr const char *matrix = "Tensor[(2, 3), float32]", *two = "Tensor[(2,), int64]",
                              *three = "Tensor[(3,), int64]";
  static const OpInfo rows[] = {
      with_static_form(as_view(dynamic_row("dyn.reshape",
                                           "Another shape for the same elements; 0 keeps a size "
                                           "unless allowzero says otherwise, -1 "
                                           "is "
                                           "what is left.",
                                           {data, {"newshape", "The sizes, a vector of integers."}},
                                           &ReshapeAttrs::static_info(), dyn_reshape_type,
                                           dynamic(reshape_sizes, as_in("reshape")),
                                           Absent::NoArithmetic, dyn_reshape_gradient,
                                           given({matrix, two}, {{1, 2, 3, 4, 5, 6}, {3, -1}}))),
                       {.op = "reshape",
                        .first = 1,
                        .attrs = {"newshape"},
                        .kept = {"allowzero"},
                        .takes_term = is_size}),
      with_static_form(
          dynamic_row("dyn.tile", "Repeats the whole tensor along each axis.",
                      {data, {"reps", "The repetitions, a vector of integers."}}, nullptr,
                      tile_type, dynamic(tile_sizes, as_in("tile")), Absent::NoArithmetic, moved,
                      given({matrix, three}, {{1, 2, 3, 4, 5, 6}, {2, 1, 3}})),
          {.op = "tile", .first = 1, .attrs = {"reps"}}),
      with_static_form(dynamic_row("dyn.broadcast_to", "Repeats axes of size one up to a shape.",
                                   {data, shape}, nullptr, broadcast_to_type,
                                   dynamic(broadcast_to_sizes, as_in("broadcast_to")),
                                   Absent::NoArithmetic, dyn_broadcast_gradient,
                                   given({"Tensor[(2, 1), float32]", three}, {{1, 2}, {3, 2, 4}})),
                       {.op = "broadcast_to", .first = 1, .attrs = {"shape"}}),
      with_static_form(
          dynamic_row("dyn.full", "One value everywhere.", {{"fill_value", "A scalar."}, shape},
                      nullptr, full_type, dynamic(sizes_in_argument(1), as_in("full")),
                      Absent::NoArithmetic, dyn_full_gradient,
                      given({"float32", two}, {{2.5}, {2, 3}})),
          {.op = "full", .first = 1, .attrs = {"shape"}}),
      with_static_form(
          dynamic_row(
              "dyn.strided_slice",
              "Part of a tensor: begin, end and step of the first axes, or of those in the "
              "attributes.",
              {data,
               {"begin", "Where to begin, a vector of integers; negative ones count from the end."},
               {"end", "Where to end."},
               {"strides", "The steps."}},
              &SliceAttrs::static_info(), strided_slice_type,
              dynamic(strided_slice_sizes, strided_slice), Absent::NoArithmetic, moved,
              given({matrix, two, two, two}, {{1, 2, 3, 4, 5, 6}, {0, -1}, {2, -4}, {1, -2}})),
          {.op = "strided_slice",
           .first = 1,
           .attrs = {"begin", "end", "strides"},
           .kept = {"axes"},
           .when = is_lenient}),
      with_static_form(
          dynamic_row("dyn.arange", "start, start + step, ... up to stop, which is left out.",
                      {{"start", "A scalar."}, {"stop", "A scalar."}, {"step", "A scalar."}},
                      nullptr, open_arange_type, dynamic(arange_sizes, arange), Absent::DataDecides,
                      dyn_arange_gradient,
                      given({"float32", "float32", "float32"}, {{1}, {-2.2}, {-0.75}})),
          {.op = "arange", .attrs = {"start", "stop", "step"}, .names_dtype = true}),
      with_static_form(
          dynamic_row("dyn.zeros", "Zeros.", {shape}, &InitOpAttrs::static_info(), open_init_type,
                      dynamic(sizes_in_argument(0), as_in("zeros")), Absent::NoArithmetic,
                      no_change, given({two}, {{2, 3}}, "dtype=\"int32\"")),
          {.op = "zeros", .attrs = {"shape"}, .names_dtype = true}),
      with_static_form(dynamic_row("dyn.ones", "Ones.", {shape}, &InitOpAttrs::static_info(),
                                   open_init_type, dynamic(sizes_in_argument(0), as_in("ones")),
                                   Absent::NoArithmetic, no_change, given({two}, {{2, 3}})),
                       {.op = "ones", .attrs = {"shape"}, .names_dtype = true}),
      for_any_data(dynamic_row(
          "argwhere", "The indices of the elements that are not zero, in row-major order.",
          {{"condition", "The input."}}, nullptr, argwhere_type, dynamic(argwhere_sizes, argwhere),
          Absent::NoArithmetic, Absent::NotDifferentiable, given({matrix}, {{0, 2, 0, 4, 5, 0}}))),
  };
  return rows;
}

}  // namespace relay::ops
