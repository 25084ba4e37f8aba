// Operators that join tensors along an axis, and that cut them.
#include <algorithm>

#include "analysis/element_maps.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct ConcatenateAttrs : AttrsOf<ConcatenateAttrs> {
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.ConcatenateAttrs",
            {attribute("axis", &Self::axis, "Axis along which the tensors are joined.")}};
  }
};

Type concatenate_relation(RelationContext& ctx) {
  auto list = ctx.tensors(0);
  if (!list) return nullptr;
  if (!require(ctx, !list->empty(), codes::type_arity, "needs at least one tensor")) return nullptr;
  const TensorType& first = (*list)[0];
  auto axis = normal_axis(ctx, ctx.attrs<ConcatenateAttrs>().axis, first->rank());
  if (!axis) return nullptr;
  std::vector<Dim> shape = first->shape;
  for (size_t k = 1; k < list->size(); ++k) {
    const TensorType& t = (*list)[k];
    bool fits = t->rank() == first->rank() && t->dtype == first->dtype;
    for (size_t d = 0; fits && d < shape.size(); ++d)
      fits = d == static_cast<size_t>(*axis) || ctx.equal(shape[d], t->shape[d]);
    if (!require(ctx, fits, codes::type_shape,
                 "tensor " + std::to_string(k) + " does not fit the first one",
                 to_string(Type(first)) + " but for axis " + std::to_string(*axis),
                 to_string(Type(t))))
      return nullptr;
    shape[static_cast<size_t>(*axis)] =
        shape[static_cast<size_t>(*axis)] + t->shape[static_cast<size_t>(*axis)];
  }
  return tensor_type(std::move(shape), first->dtype);
}

TirTensor concatenate_compute(const ComputeContext& ctx) {
  size_t axis =
      static_cast<size_t>(from_front(ctx.attrs<ConcatenateAttrs>().axis, ctx.inputs[0]->rank()));
  return tir::compute("T_concat", ctx.outputs[0].shape, [&](const Indices& i) {
    // From the last tensor to the first, so that the choices nest by their borders.
    std::vector<PrimExpr> begin{index(0)};
    for (const TirTensor& t : ctx.inputs) begin.push_back(begin.back() + t->shape()[axis]);
    PrimExpr out;
    for (size_t k = ctx.inputs.size(); k-- > 0;) {
      Indices at = i;
      at[axis] = i[axis] - begin[k];
      PrimExpr v = ctx.inputs[k](at);
      out = out ? select(lt(i[axis], begin[k + 1]), v, out) : v;
    }
    return out;
  });
}

std::optional<LayoutDecision> concatenate_layout(const CallNode& call,
                                                 std::span<const Layout> offered,
                                                 const Layout& desired) {
  auto out = follow_layout(call, offered, desired);
  if (!out) return std::nullopt;
  int64_t rank = as<TensorTypeNode>(call.type)->rank();
  auto axis =
      axis_in(out->outputs[0], static_cast<const ConcatenateAttrs&>(*call.attrs.get()).axis, rank);
  if (!axis) return std::nullopt;
  out->attrs = make<ConcatenateAttrs>([&](ConcatenateAttrs& a) { a.axis = *axis; });
  return out;
}

struct StackAttrs : AttrsOf<StackAttrs> {
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.StackAttrs", {attribute("axis", &Self::axis, "Where the new axis goes.")}};
  }
};

Type stack_relation(RelationContext& ctx) {
  auto list = ctx.tensors(0);
  if (!list || !require(ctx, !list->empty(), codes::type_arity, "needs at least one tensor"))
    return nullptr;
  auto axis = normal_axis(ctx, ctx.attrs<StackAttrs>().axis, (*list)[0]->rank() + 1);
  if (!axis) return nullptr;
  std::vector<Dim> shape = (*list)[0]->shape;
  for (const TensorType& t : *list) {
    bool fits = t->rank() == (*list)[0]->rank() && t->dtype == (*list)[0]->dtype;
    for (size_t d = 0; fits && d < shape.size(); ++d) fits = ctx.equal(shape[d], t->shape[d]);
    if (!require(ctx, fits, codes::type_shape, "all tensors must have one type",
                 to_string(Type((*list)[0])), to_string(Type(t))))
      return nullptr;
  }
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis),
               dim(static_cast<int64_t>(list->size())));
  return tensor_type(std::move(shape), (*list)[0]->dtype);
}

TirTensor stack_compute(const ComputeContext& ctx) {
  size_t axis =
      static_cast<size_t>(from_front(ctx.attrs<StackAttrs>().axis, ctx.inputs[0]->rank() + 1));
  return tir::compute("T_stack", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    PrimExpr out;
    for (size_t k = ctx.inputs.size(); k-- > 0;) {
      PrimExpr v = ctx.inputs[k](at);
      out = out ? select(eq(i[axis], index(static_cast<int64_t>(k))), v, out) : v;
    }
    return out;
  });
}

Memory stack_memory(const CallNode& call) {
  // Along an axis behind others, each argument has gaps everywhere.
  auto* x = as<TensorTypeNode>(call.type);
  int64_t axis = static_cast<const StackAttrs&>(*call.attrs.get()).axis;
  auto end = x->shape.begin() + from_front(axis, x->rank());
  bool together =
      std::all_of(x->shape.begin(), end, [](const Dim& d) { return dim_equal(d, dim(1)); });
  return together ? Memory::Joined : Memory::Own;
}

struct SplitAttrs : AttrsOf<SplitAttrs> {
  AttrValue indices_or_sections{int64_t{1}};
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.SplitAttrs",
            {attribute("indices_or_sections", &Self::indices_or_sections,
                       "A number of equal parts, or where parts begin."),
             attribute("axis", &Self::axis, "Axis to split.")}};
  }
};

Type split_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<SplitAttrs>();
  auto axis = normal_axis(ctx, a.axis, x->rank());
  if (!axis) return nullptr;
  const Dim& size = x->shape[static_cast<size_t>(*axis)];
  std::vector<Dim> sizes;
  if (auto* n = a.indices_or_sections.get_if<int64_t>()) {
    auto known = as_const(size);
    if (!require(ctx, *n >= 1 && *n <= 1 << 20, codes::op_bad_attribute,
                 "the number of parts is out of range", "1 or more", std::to_string(*n)) ||
        !require(ctx, !known || *known % *n == 0, codes::type_shape,
                 "the axis does not divide into equal parts", "a multiple of " + std::to_string(*n),
                 to_string(size)))
      return nullptr;
    Dim part = floor_div(size, dim(*n));
    ctx.equal(part * dim(*n), size);
    sizes.assign(static_cast<size_t>(*n), part);
  } else {
    Ints starts;
    if (!require(ctx, field_detail::Convert<Ints>::from(a.indices_or_sections, starts),
                 codes::op_bad_attribute, "indices_or_sections must be a number or a list"))
      return nullptr;
    Dim at = dim(0);
    for (int64_t s : starts) {
      auto part = as_const(dim(s) - at);
      if (!require(ctx, part && *part >= 0, codes::op_bad_attribute, "the parts must be in order",
                   "", std::to_string(s)))
        return nullptr;
      sizes.push_back(dim(*part));
      at = dim(s);
    }
    sizes.push_back(size - at);
    if (!require(ctx, ctx.at_least(size, at), codes::op_bad_attribute,
                 "a part begins behind the end", to_string(size), to_string(at)))
      return nullptr;
  }
  std::vector<Type> parts;
  for (const Dim& d : sizes) {
    std::vector<Dim> shape = x->shape;
    shape[static_cast<size_t>(*axis)] = d;
    parts.push_back(tensor_type(std::move(shape), x->dtype));
  }
  return tuple_type(std::move(parts));
}

std::vector<TirTensor> split_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(ctx.attrs<SplitAttrs>().axis, x->rank()));
  std::vector<TirTensor> out;
  PrimExpr begin = index(0);
  for (const auto& o : ctx.outputs) {
    out.push_back(
        tir::compute("T_split" + std::to_string(out.size()), o.shape, [&](const Indices& i) {
          Indices at = i;
          at[axis] = i[axis] + begin;
          return x(at);
        }));
    begin = begin + o.shape[axis];
  }
  return out;
}

// ---- Gradients

// Each tensor's part, where only the data tells the sizes: what the operator makes of the numbers of
// its elements says which are its.
Adjoints found_parts(const GradientContext& ctx) {
  Adjoints out;
  auto* types = as<TupleTypeNode>(ctx.arg(0)->type);
  for (size_t k = 0; k < types->fields.size(); ++k) {
    std::vector<Expr> places;
    for (size_t i = 0; i < types->fields.size(); ++i) {
      Expr part = tuple_get_item(ctx.arg(0), static_cast<int64_t>(i));
      Expr none = zeros_like(cast_to(part, DType::Int(64)));
      places.push_back(i == k ? 1 + numbered(part) : none);
    }
    Expr from_one = call(ctx.call.op, {tuple(places)}, ctx.call.attrs);
    Expr is_part = is_greater(from_one, 0), first = scalar(1, from_one);
    out.push_back(scattered(kept(is_part, ctx.adjoint()),
                            apply("maximum", {from_one, first}) - first,
                            tuple_get_item(ctx.arg(0), static_cast<int64_t>(k))));
  }
  return out;
}

Adjoints concatenate_gradient(const GradientContext& ctx) {
  int64_t rank = rank_of(ctx.result);
  int64_t axis = from_front(ctx.attrs<ConcatenateAttrs>().axis, rank);
  Adjoints out;
  Dim begin = dim(0);
  auto types = *flatten_tensor_types(ctx.arg(0)->type);
  for (const TensorType& t : types) {
    const Dim& size = t->shape[static_cast<size_t>(axis)];
    if (is_any(size)) return found_parts(ctx);
    out.push_back(slice_axis(ctx.adjoint(), axis, begin, size));
    begin = begin + size;
  }
  return out;
}

Adjoints stack_gradient(const GradientContext& ctx) {
  int64_t axis = from_front(ctx.attrs<StackAttrs>().axis, rank_of(ctx.result));
  Adjoints out;
  size_t count = flatten_tensor_types(ctx.arg(0)->type)->size();
  for (size_t k = 0; k < count; ++k) {
    Expr part = slice_axis(ctx.adjoint(), axis, dim(static_cast<int64_t>(k)), dim(1));
    out.push_back(apply("squeeze", {part}, {{"axis", to_value(Ints{axis})}}));
  }
  return out;
}

Adjoints split_gradient(const GradientContext& ctx) {
  std::vector<Expr> parts;
  for (size_t k = 0; k < ctx.adjoints.size(); ++k) {
    const Expr& g = ctx.adjoints[k];
    parts.push_back(g ? g : zeros_like(tuple_get_item(ctx.result, static_cast<int64_t>(k))));
  }
  return {apply("concatenate", {tuple(parts)}, {{"axis", ctx.attrs<SplitAttrs>().axis}})};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Join>() {
  static const OpInfo rows[] = {
      {
          .name = "concatenate",
          .doc = "Joins tensors along an axis.",
          .args = {{"data", "A tuple of tensors."}},
          .attrs = &ConcatenateAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = concatenate_relation,
          .compute = compute_rule(concatenate_compute),
          .layout = concatenate_layout,
          .memory = [](const CallNode&) { return Memory::Joined; },
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = concatenate_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.map = element_maps::concatenate},
          .examples = {{{"(Tensor[(2, 3), float32], Tensor[(2, 1), float32])"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "stack",
          .doc = "Joins tensors along a new axis.",
          .args = {{"data", "A tuple of tensors."}},
          .attrs = &StackAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = stack_relation,
          .compute = compute_rule(stack_compute),
          .layout = Absent::AxesAsWritten,
          .memory = stack_memory,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = stack_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.map = element_maps::stack},
          .examples = {{{"(Tensor[(2, 3), float32], Tensor[(2, 3), float32])"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "split",
          .doc = "Cuts a tensor along an axis into a tuple.",
          .args = {{"data", "The input."}},
          .attrs = &SplitAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = split_relation,
          .compute = compute_rule_multi(split_compute),
          .layout = Absent::AxesAsWritten,
          .memory = [](const CallNode&) { return Memory::Cut; },
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = split_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.map = element_maps::split},
          .examples = {{{"Tensor[(2, 6), float32]"}, "indices_or_sections=3, axis=1"},
                       {{"Tensor[(2, 6), float32]"}, "indices_or_sections=[1, 4], axis=1"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
