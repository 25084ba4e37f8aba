// Strided slices.
#include <algorithm>

#include "ops/common.h"
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

// NumPy's rules: bounds below zero count from the end, then they are brought into range.
template <class N>
Slice<N> slice_of(const N& size, std::optional<int64_t> begin, std::optional<int64_t> end,
                  int64_t stride, bool by_size) {
  constexpr int64_t kFar = int64_t{1} << 48;  // beyond any size
  auto at = [&](int64_t v) { return number(size, v); };
  // A bound that no size reaches says "to the end", whatever the size is.
  if (!constant(size) && end && (*end >= INT32_MAX || *end <= -INT32_MAX)) {
    if ((*end > 0) == (stride > 0)) end.reset();
  }
  auto bound = [&](int64_t v, int64_t low, const N& high) {
    v = std::clamp(v, -kFar, kFar);
    return v >= 0 ? min(at(v), high) : max(size + at(v), at(low));
  };
  bool forward = stride > 0;
  N highest = forward ? size : size - at(1);
  int64_t lowest = forward ? 0 : -1;
  N first = forward && begin.value_or(0) == 0      ? at(0)
            : !forward && begin.value_or(-1) == -1 ? highest
                                                   : bound(*begin, lowest, highest);
  if (by_size) {
    N rest = size - first;
    return {first, 1, end && *end >= 0 ? min(at(std::min(*end, kFar)), rest) : rest};
  }
  N last = end ? bound(*end, lowest, highest) : forward ? size : at(-1);
  if (forward && constant(first) == 0 && stride == 1) return {first, 1, last};
  N distance = forward ? last - first : first - last;
  if (!same_size(distance, size)) distance = max(distance, at(0));
  int64_t step = std::min(forward ? stride : -stride, kFar);
  return {first, stride, step == 1 ? distance : floor_div(distance + at(step - 1), at(step))};
}

struct StridedSliceAttrs : AttrsOf<StridedSliceAttrs> {
  std::optional<Ints> begin, end, strides, axes;
  std::string slice_mode = "end";
  static AttrsList describe() {
    return {"relay.attrs.StridedSliceAttrs",
            {attribute("begin", &Self::begin, "First index of each axis."),
             attribute("end", &Self::end, "Index behind the last, or size."),
             attribute("strides", &Self::strides, "Steps."),
             attribute("slice_mode", &Self::slice_mode, "\"end\" or \"size\"."),
             attribute("axes", &Self::axes, "Axes that the lists are for; None: the first ones.")}};
  }
};

// The slices of every axis; null entries are taken whole.
template <class N>
std::optional<std::vector<std::optional<Slice<N>>>> slices_of(const StridedSliceAttrs& a,
                                                              const std::vector<N>& sizes) {
  std::vector<std::optional<Slice<N>>> out(sizes.size());
  size_t n = std::max(a.begin ? a.begin->size() : 0, a.end ? a.end->size() : 0);
  for (size_t k = 0; k < n; ++k) {
    if (a.axes && k >= a.axes->size()) return std::nullopt;
    int64_t axis = from_front(a.axes ? (*a.axes)[k] : static_cast<int64_t>(k),
                              static_cast<int64_t>(sizes.size()));
    if (axis < 0 || axis >= static_cast<int64_t>(sizes.size())) return std::nullopt;
    if (out[static_cast<size_t>(axis)]) return std::nullopt;
    std::optional<int64_t> begin, end;
    if (a.begin && k < a.begin->size()) begin = (*a.begin)[k];
    if (a.end && k < a.end->size()) end = (*a.end)[k];
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
  auto slices = slices_of(a, x->shape);
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
  auto slices = *slices_of(ctx.attrs<StridedSliceAttrs>(), x->shape());
  return tir::compute("T_strided_slice", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at = i;
    for (size_t d = 0; d < at.size(); ++d) {
      if (slices[d]) at[d] = i[d] * slices[d]->stride + slices[d]->begin;
    }
    return x(at);
  });
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
          .relation = strided_slice_relation,
          .compute = compute_rule(strided_slice_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::Pending,
          .examples = {{{"Tensor[(5, 6), float32]"}, "begin=[1, 0], end=[4, 6], strides=[1, 2]"},
                       {{"Tensor[(5, 6), float32]"},
                        "begin=[-1], end=[-7], strides=[-2], axes=[1]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
