// Strided slices.
#include <algorithm>
#include <numeric>

#include "analysis/element_maps.h"
#include "base/codes/operators.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Sizes are dimensions in the relation and expressions in the compute rule; the arithmetic of
// slices is written once for both.
Dim number(const Dim&, int64_t v) { return dim(v); }
PrimExpr number(const PrimExpr&, int64_t v) { return index(v); }
std::optional<int64_t> constant(const Dim& d) { return as_const(d); }
std::optional<int64_t> constant(const PrimExpr& e) { return as_int(e); }
bool same_size(const Dim& a, const Dim& b) { return dim_equal(a, b); }
bool same_size(const PrimExpr& a, const PrimExpr& b) { return a == b; }

// One axis of a strided slice: `count` elements from `begin` on.
template <class N>
struct Slice {
  N begin;
  int64_t stride;
  N count;
};

// A bound of a slice: a number, or a position from the front that a run tells.
template <class N>
struct Bound {
  std::optional<int64_t> number;
  N position = nullptr;
  explicit operator bool() const { return number || position; }
};

// NumPy's rules: numbers below zero count from the end, then bounds are brought into range.
template <class N>
Slice<N> slice_of(const N& size, const Bound<N>& begin, Bound<N> end, int64_t stride,
                  bool by_size) {
  constexpr int64_t kFar = int64_t{1} << 48;  // beyond any size
  auto at = [&](int64_t v) { return number(size, v); };
  // A bound that no size reaches says "to the end", whatever the size is.
  if (!constant(size) && end.number && (*end.number >= INT32_MAX || *end.number <= -INT32_MAX)) {
    if ((*end.number > 0) == (stride > 0)) end = {};
  }
  auto bound = [&](const Bound<N>& b, int64_t low, const N& high) -> N {
    if (!b.number) return min(b.position, high);
    int64_t v = std::clamp(*b.number, -kFar, kFar);
    return v >= 0 ? min(at(v), high) : max(size + at(v), at(low));
  };
  bool forward = stride > 0;
  N highest = forward ? size : size - at(1);
  int64_t lowest = forward ? 0 : -1;
  N first = !begin || (forward ? begin.number == 0 : begin.number == -1)
                ? (forward ? at(0) : highest)
                : bound(begin, lowest, highest);
  if (by_size) {
    N rest = size - first;
    if (!end.number) return {first, 1, end ? min(end.position, rest) : rest};
    return {first, 1, *end.number >= 0 ? min(at(std::min(*end.number, kFar)), rest) : rest};
  }
  N last = end ? bound(end, lowest, highest) : forward ? size : at(-1);
  if (forward && constant(first) == 0 && stride == 1) return {first, 1, last};
  N distance = forward ? last - first : first - last;
  if (!same_size(distance, size)) distance = max(distance, at(0));
  int64_t step = std::min(forward ? stride : -stride, kFar);
  return {first, stride, step == 1 ? distance : floor_div(distance + at(step - 1), at(step))};
}

struct StridedSliceAttrs : AttrsOf<StridedSliceAttrs> {
  std::optional<Dims> begin, end;
  std::optional<Ints> strides, axes;
  std::string slice_mode = "end";
  static AttrsList describe() {
    return {"relay.attrs.StridedSliceAttrs",
            {child("begin", &Self::begin, "First index of each axis."),
             child("end", &Self::end, "Index behind the last, or size."),
             attribute("strides", &Self::strides, "Steps."),
             attribute("slice_mode", &Self::slice_mode, "\"end\" or \"size\"."),
             attribute("axes", &Self::axes, "Axes that the lists are for; None: the first ones.")}};
  }
};

// The slices of every axis; null entries are taken whole. `number_of` makes a size a number.
template <class N, class F>
std::optional<std::vector<std::optional<Slice<N>>>> slices_of(const StridedSliceAttrs& a,
                                                              const std::vector<N>& sizes,
                                                              const F& number_of) {
  std::vector<std::optional<Slice<N>>> out(sizes.size());
  size_t n = std::max(a.begin ? a.begin->size() : 0, a.end ? a.end->size() : 0);
  for (size_t k = 0; k < n; ++k) {
    if (a.axes && k >= a.axes->size()) return std::nullopt;
    int64_t axis = from_front(a.axes ? (*a.axes)[k] : static_cast<int64_t>(k),
                              static_cast<int64_t>(sizes.size()));
    if (axis < 0 || axis >= static_cast<int64_t>(sizes.size())) return std::nullopt;
    if (out[static_cast<size_t>(axis)]) return std::nullopt;
    auto bound = [&](const std::optional<Dims>& list) -> Bound<N> {
      if (!list || k >= list->size()) return {};
      if (auto value = as_const((*list)[k])) return {value};
      return {std::nullopt, number_of((*list)[k])};
    };
    Bound<N> begin = bound(a.begin), end = bound(a.end);
    int64_t stride = 1;
    if (a.strides && !a.strides->empty() && a.slice_mode != "size")
      stride = k < a.strides->size()    ? (*a.strides)[k]
               : a.strides->size() == 1 ? (*a.strides)[0]
                                        : 1;
    if (stride == 0 || stride == INT64_MIN) return std::nullopt;
    out[static_cast<size_t>(axis)] =
        slice_of(sizes[static_cast<size_t>(axis)], begin, end, stride, a.slice_mode == "size");
  }
  return out;
}

Type strided_slice_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<StridedSliceAttrs>();
  if (!require(ctx, a.slice_mode == "end" || a.slice_mode == "size", codes::op_bad_attribute,
               "slice_mode is not known", "end or size", a.slice_mode))
    return nullptr;
  for (const std::optional<Dims>* list : {&a.begin, &a.end}) {
    for (const Dim& d : list->value_or(Dims())) {
      if (!as_const(d) && !check_size(ctx, d, "a bound of the slice is negative")) return nullptr;
    }
  }
  auto slices = slices_of(a, x->shape, [](const Dim& d) { return d; });
  if (!require(
          ctx, slices.has_value(), codes::op_bad_attribute, "the slice does not fit the input",
          "different axes within " + shape_text(x->shape) + " of known size, steps other than 0"))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((*slices)[d]) shape[d] = (*slices)[d]->count;
  }
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor strided_slice_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  auto slices = *slices_of(ctx.attrs<StridedSliceAttrs>(), x->shape(), ctx.size);
  return tir::compute("T_strided_slice", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    for (size_t d = 0; d < at.size(); ++d) {
      if (slices[d]) at[d] = i[d] * slices[d]->stride + slices[d]->begin;
    }
    return x(at);
  });
}

// The elements go back to their places: apart by the step, with zeros around them.
Adjoints strided_slice_gradient(const GradientContext& ctx) {
  const TensorTypeNode& x = type_of(ctx.arg(0));
  auto has_any = [](const TensorTypeNode& t) { return std::ranges::any_of(t.shape, is_any); };
  if (has_any(x) || has_any(type_of(ctx.result))) return moved(ctx);
  auto slices = *slices_of(ctx.attrs<StridedSliceAttrs>(), x.shape, [](const Dim& d) { return d; });
  Expr out = ctx.adjoint();
  for (size_t d = 0; d < slices.size(); ++d) {
    if (!slices[d]) continue;
    auto axis = static_cast<int64_t>(d);
    const auto& [begin, stride, count] = *slices[d];
    if (as_const(count) == 0) return {zeros_like(ctx.arg(0))};
    // One element, or none, has no distance: the stride may be anything.
    int64_t step = as_const(count) == 1 ? 1 : std::abs(stride);
    if (stride < 0 && step > 0 && as_const(count) != 1)
      out = apply("reverse", {out}, {{"axis", axis}});
    if (step > 1) {
      Ints strides(slices.size(), 1);
      strides[d] = step;
      out = apply("nn.dilate", {out}, {{"strides", to_value(strides)}});
    }
    Dim reach = dilated_size(count, step);
    Dim first = stride < 0 ? begin - (reach - dim(1)) : begin;
    out = pad_axis(out, axis, first, x.shape[d] - first - reach);
  }
  return {out};
}

// The axes that the lists are for.
Ints sliced_axes(const StridedSliceAttrs& a) {
  if (a.axes) return *a.axes;
  Ints axes(std::max(a.begin ? a.begin->size() : 0, a.end ? a.end->size() : 0));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return axes;
}

// The axes that are cut move with the layout.
std::optional<LayoutDecision> strided_slice_layout(const CallNode& call,
                                                   std::span<const Layout> offered,
                                                   const Layout& desired) {
  auto out = follow_layout(call, offered, desired);
  if (!out) return std::nullopt;
  auto& a = static_cast<const StridedSliceAttrs&>(*call.attrs.get());
  const int64_t rank = as<TensorTypeNode>(call.type)->rank();
  Ints axes;
  for (int64_t axis : sliced_axes(a)) {
    auto place = axis_in(out->outputs[0], axis, rank);
    if (!place) return std::nullopt;
    axes.push_back(*place);
  }
  out->attrs = make<StridedSliceAttrs>([&](StridedSliceAttrs& n) {
    n.begin = a.begin;
    n.end = a.end;
    n.strides = a.strides;
    n.axes = std::move(axes);
    n.slice_mode = a.slice_mode;
  });
  return out;
}

// ---- Batching

Expr batch_strided_slice(const BatchingContext& ctx) {
  const Ints axes = sliced_axes(ctx.attrs<StridedSliceAttrs>());
  return with_attrs(ctx.call, ctx.args, {{"axes", to_value(behind_lanes(axes))}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Slice>() {
  static const OpInfo rows[] = {
      {
          .name = "strided_slice",
          .doc = "Part of a tensor: begin, end and step of each axis.",
          .args = {{"data", "The input."}},
          .attrs = &StridedSliceAttrs::static_info(),
          .support_level = 4,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = strided_slice_relation,
          .compute = compute_rule(strided_slice_compute),
          .layout = strided_slice_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = strided_slice_gradient,
          .batching = batch_strided_slice,
          .moves = ElementMoves{.map = element_maps::strided_slice},
          .examples = {{{"Tensor[(5, 6), float32]"}, "begin=[1, 0], end=[4, 6], strides=[1, 2]"},
                       {{"Tensor[(5, 6), float32]"},
                        "begin=[-1], end=[-7], strides=[-2], axes=[1]"},
                       {{"Tensor[(5, 6), float32]"}, "begin=[1], end=[4, 2]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
