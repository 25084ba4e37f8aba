// Operators that move elements without changing them.
#include <algorithm>
#include <cctype>

#include "ops/attrs.h"
#include "ops/common.h"
#include "ops/families.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// The elements of `x` in row-major order under another shape.
TirTensor reshaped(const TirTensor& x, const std::vector<PrimExpr>& shape) {
  return tir::compute("T_reshape", shape, [&](const Indices& i) {
    // Axes of size one say nothing; if the others agree, no arithmetic is needed.
    std::vector<size_t> from, to;
    for (size_t d = 0; d < x->shape().size(); ++d) {
      if (!is_one(x->shape()[d])) from.push_back(d);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (!is_one(shape[d])) to.push_back(d);
    }
    Indices at(x->shape().size(), index(0));
    bool same = from.size() == to.size();
    for (size_t k = 0; same && k < from.size(); ++k) {
      auto a = as_int(x->shape()[from[k]]), b = as_int(shape[to[k]]);
      same = x->shape()[from[k]] == shape[to[k]] || (a && b && *a == *b);
    }
    if (same) {
      for (size_t k = 0; k < from.size(); ++k) at[from[k]] = i[to[k]];
      return x(at);
    }
    PrimExpr flat = index(0);
    for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + i[d];
    for (size_t k = from.size(); k-- > 0;) {
      at[from[k]] = k == 0 ? flat : floor_mod(flat, x->shape()[from[k]]);
      flat = floor_div(flat, x->shape()[from[k]]);
    }
    return x(at);
  });
}

Dim product(const std::vector<Dim>& dims) {
  Dim p = dim(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

Type reshape_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ReshapeAttrs>();
  std::vector<Dim> out;
  size_t at = 0;
  std::optional<size_t> inferred;
  auto next = [&]() -> std::optional<Dim> {
    if (!require(ctx, at < x->shape.size(), codes::op_bad_attribute,
                 "newshape copies an axis that the input does not have", shape_text(x->shape)))
      return std::nullopt;
    return x->shape[at++];
  };
  for (size_t k = 0; k < a.newshape.size(); ++k) {
    int64_t v = a.newshape[k];
    if (v > 0 || (v == 0 && a.allowzero)) {
      out.push_back(dim(v));
      ++at;
    } else if (v == 0) {
      auto d = next();
      if (!d) return nullptr;
      out.push_back(*d);
    } else if (v == -1) {
      if (!require(ctx, !inferred, codes::op_bad_attribute, "newshape holds -1 twice",
                   "one -1 at most"))
        return nullptr;
      inferred = out.size();
      out.push_back(dim(1));
      ++at;
    } else if (v == -2) {
      while (at < x->shape.size()) out.push_back(x->shape[at++]);
    } else if (v == -3) {
      auto d = next(), e = d ? next() : std::nullopt;
      if (!e) return nullptr;
      out.push_back(*d * *e);
    } else if (v == -4) {
      auto d = next();
      if (!d || !require(ctx, k + 2 < a.newshape.size(), codes::op_bad_attribute,
                         "-4 must be followed by two sizes"))
        return nullptr;
      int64_t p = a.newshape[k + 1], q = a.newshape[k + 2];
      k += 2;
      if (!require(ctx, p >= -1 && q >= -1 && p != 0 && q != 0 && (p > 0 || q > 0),
                   codes::op_bad_attribute,
                   "-4 must be followed by two sizes above 0, one of them -1 at most",
                   "-4, then such as 2, -1", std::to_string(p) + ", " + std::to_string(q)))
        return nullptr;
      Dim first = p > 0 ? dim(p) : floor_div(*d, dim(q));
      Dim second = q > 0 ? dim(q) : floor_div(*d, dim(p));
      if (!require(ctx, ctx.equal(first * second, *d), codes::type_shape,
                   "the sizes behind -4 do not split the axis", "factors of " + to_string(*d),
                   std::to_string(p) + ", " + std::to_string(q)))
        return nullptr;
      out.push_back(std::move(first));
      out.push_back(std::move(second));
    } else {
      return ctx.fail(codes::op_bad_attribute, "newshape holds an unknown code",
                      "sizes, 0, -1, -2, -3 or -4", std::to_string(v));
    }
  }
  Dim have = product(x->shape), want = product(out);
  if (inferred) {
    auto n = as_const(have), m = as_const(want);
    bool fits = !m || (*m > 0 && (!n || *n % *m == 0)) || (*m == 0 && n && *n == 0);
    if (!require(ctx, fits, codes::type_shape, "the elements do not fill the new shape",
                 to_string(have) + " elements of " + shape_text(x->shape),
                 to_string(Value(field_detail::Convert<Ints>::to(a.newshape)))))
      return nullptr;
    out[*inferred] = m && *m == 0                   ? dim(0)
                     : is_any(have) || is_any(want) ? dim_any()
                                                    : floor_div(have, want);
    if (!m || *m != 0) ctx.equal(out[*inferred] * want, have);
  } else if (!require(ctx, ctx.equal(have, want), codes::type_shape,
                      "the new shape holds another number of elements",
                      to_string(have) + " elements of " + shape_text(x->shape),
                      to_string(want) + " of " + shape_text(out))) {
    return nullptr;
  }
  return tensor_type(std::move(out), x->dtype);
}

std::optional<std::vector<size_t>> axes_order(RelationContext& ctx, const std::optional<Ints>& axes,
                                              int64_t rank) {
  std::vector<size_t> out;
  if (!axes || axes->empty()) {
    for (int64_t d = rank; d-- > 0;) out.push_back(static_cast<size_t>(d));
    return out;
  }
  if (!require(ctx, static_cast<int64_t>(axes->size()) == rank, codes::op_bad_attribute,
               "axes must name every axis once", std::to_string(rank) + " axes",
               std::to_string(axes->size())))
    return std::nullopt;
  std::vector<bool> seen(static_cast<size_t>(rank), false);
  for (int64_t v : *axes) {
    auto a = normal_axis(ctx, v, rank, "an entry of axes");
    if (!a || !require(ctx, !seen[static_cast<size_t>(*a)], codes::op_bad_attribute,
                       "axes must name every axis once", "", std::to_string(v)))
      return std::nullopt;
    seen[static_cast<size_t>(*a)] = true;
    out.push_back(static_cast<size_t>(*a));
  }
  return out;
}

std::vector<size_t> order_of(const TransposeAttrs& a, int64_t rank) {
  std::vector<size_t> out;
  for (int64_t d = 0; d < rank; ++d)
    out.push_back(static_cast<size_t>(a.axes && !a.axes->empty()
                                          ? from_front((*a.axes)[static_cast<size_t>(d)], rank)
                                          : rank - 1 - d));
  return out;
}

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

std::optional<std::vector<Dim>> padded_shape(RelationContext& ctx, const TensorTypeNode& x,
                                             const std::vector<Ints>& widths) {
  if (!require(ctx, widths.size() == x.shape.size(), codes::op_bad_attribute,
               "pad_width must have an entry for each axis", std::to_string(x.shape.size()),
               std::to_string(widths.size())))
    return std::nullopt;
  constexpr int64_t kMost = int64_t{1} << 40;
  std::vector<Dim> shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (!require(ctx,
                 widths[d].size() == 2 &&
                     std::all_of(widths[d].begin(), widths[d].end(),
                                 [](int64_t w) { return w >= -kMost && w <= kMost; }),
                 codes::op_bad_attribute, "an entry of pad_width must be a begin and an end",
                 "two numbers below 2^40", to_string(field_detail::Convert<Ints>::to(widths[d]))))
      return std::nullopt;
    // What is cut off must be there, at each end and together.
    int64_t cut = -std::min<int64_t>(widths[d][0], 0) - std::min<int64_t>(widths[d][1], 0);
    if (!require(ctx, cut == 0 || ctx.at_least(shape[d], dim(cut)), codes::type_shape,
                 "pad_width removes more than there is on axis " + std::to_string(d),
                 "at most " + to_string(shape[d]), std::to_string(cut)))
      return std::nullopt;
    shape[d] = shape[d] + dim(widths[d][0]) + dim(widths[d][1]);
  }
  return shape;
}

// A border takes its values from inside: of an axis of n elements the nearest one (n >= 1), or
// mirrored ones, of which there are n, or n - 1 without the edge itself.
bool border_fits(RelationContext& ctx, const TensorTypeNode& x, const std::vector<Ints>& widths,
                 const std::string& mode) {
  for (size_t d = 0; d < widths.size(); ++d) {
    int64_t widest = std::max(widths[d][0], widths[d][1]);
    if (widest <= 0) continue;
    int64_t need = mode == "edge" ? 1 : mode == "REFLECT" ? widest + 1 : widest;
    if (ctx.at_least(x.shape[d], dim(need))) continue;
    ctx.fail(codes::type_shape,
             "the border on axis " + std::to_string(d) + " is wider than what it repeats",
             "an axis of at least " + std::to_string(need), shape_text(x.shape),
             mode == "edge" ? "pad an empty axis with a constant"
                            : "use a narrower border, or pad in several steps");
    return false;
  }
  return true;
}

// Reads beyond the border: the nearest element, or mirrored with or without the border itself.
TirTensor mirrored(const TirTensor& x, const std::vector<PrimExpr>& shape,
                   const std::vector<Ints>& widths, const std::string& mode) {
  return tir::compute("T_mirror_pad", shape, [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < i.size(); ++d) {
      PrimExpr p = i[d] - widths[d][0], size = x->shape()[d];
      if (widths[d][0] == 0 && widths[d][1] == 0) {
        at.push_back(p);
      } else if (mode == "edge") {
        at.push_back(min(max(p, index(0)), size - 1));
      } else {
        int64_t skip = mode == "SYMMETRIC" ? 1 : 0;
        PrimExpr low = select(lt(p, index(0)), index(-skip) - p, p);
        PrimExpr high = select(ge(low, size), size * 2 - 2 + skip - low, low);
        at.push_back(min(max(high, index(0)), size - 1));
      }
    }
    return x(at);
  });
}

}  // namespace

void add_shape(OpRegistry& registry) {
  OpInfo op;
  op.args = {{"data", "The input."}};
  op.fusion = FusionClass::Injective;
  op.support_level = 3;
  auto reshape_rule = compute_rule(
      [](const ComputeContext& ctx) { return reshaped(ctx.inputs[0], ctx.outputs[0].shape); });

  op.reshape_only = true;
  op.compute = reshape_rule;
  op.name = "reshape";
  op.doc = "The same elements under another shape.";
  op.attrs = &ReshapeAttrs::static_info();
  op.relation = reshape_relation;
  op.examples = {{{"Tensor[(2, 3, 4), float32]"}, "newshape=[4, -1]"},
                 {{"Tensor[(2, 3, 4), float32]"}, "newshape=[0, -3]"}};
  registry.add(op);

  op.name = "expand_dims";
  op.doc = "Adds axes of size one.";
  op.attrs = &ExpandDimsAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    auto& a = ctx.attrs<ExpandDimsAttrs>();
    auto axis = normal_axis(ctx, a.axis, x->rank() + 1);
    if (!axis || !require(ctx, a.num_newaxis >= 0 && a.num_newaxis <= 64, codes::op_bad_attribute,
                          "num_newaxis is out of range", "0 to 64", std::to_string(a.num_newaxis)))
      return nullptr;
    std::vector<Dim> shape = x->shape;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(*axis),
                 static_cast<size_t>(a.num_newaxis), dim(1));
    return tensor_type(std::move(shape), x->dtype);
  };
  op.examples = {{{"Tensor[(2, 3), float32]"}, "axis=1, num_newaxis=2"}, {{"float32"}, "axis=0"}};
  registry.add(op);

  op.name = "squeeze";
  op.doc = "Drops axes of size one.";
  op.attrs = &SqueezeAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    auto& a = ctx.attrs<SqueezeAttrs>();
    std::vector<bool> drop(x->shape.size(), false);
    for (size_t d = 0; d < drop.size() && !a.axis; ++d) {
      drop[d] = as_const(x->shape[d]) == 1;
      // Otherwise the rank of the result would depend on a size that only a run tells.
      if (!as_const(x->shape[d])) {
        return ctx.fail(codes::type_shape, "it is not known which axes have size one",
                        "known sizes, or the attribute axis", to_string(x->shape[d]),
                        "name the axes: axis=[...]");
      }
    }
    for (int64_t v : a.axis.value_or(Ints{})) {
      auto axis = normal_axis(ctx, v, x->rank());
      if (!axis || !require(ctx, ctx.equal(x->shape[static_cast<size_t>(*axis)], dim(1)),
                            codes::type_shape, "a squeezed axis must have size one", "1",
                            to_string(x->shape[static_cast<size_t>(*axis)])))
        return nullptr;
      drop[static_cast<size_t>(*axis)] = true;
    }
    std::vector<Dim> shape;
    for (size_t d = 0; d < drop.size(); ++d) {
      if (!drop[d]) shape.push_back(x->shape[d]);
    }
    return tensor_type(std::move(shape), x->dtype);
  };
  op.examples = {{{"Tensor[(2, 1, 3, 1), float32]"}, ""},
                 {{"Tensor[(2, 1, 3, 1), float32]"}, "axis=[1]"}};
  registry.add(op);

  op.attrs = nullptr;
  op.name = "nn.batch_flatten";
  op.doc = "Joins all axes but the first.";
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr ||
        !require(ctx, x->rank() >= 1, codes::type_rank, "needs at least one dimension"))
      return nullptr;
    return tensor_type({x->shape[0], product({x->shape.begin() + 1, x->shape.end()})}, x->dtype);
  };
  op.examples = {{{"Tensor[(2, 3, 4), float32]"}, ""}};
  registry.add(op);
  op.name = "reshape_like";
  op.doc = "The elements of data in the shape of another tensor.";
  op.args = {{"data", "The input."}, {"shape_like", "Gives the shape."}};
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
    if (x == nullptr || y == nullptr ||
        !require(ctx, ctx.equal(product(x->shape), product(y->shape)), codes::type_shape,
                 "the shapes hold different numbers of elements", shape_text(x->shape),
                 shape_text(y->shape)))
      return nullptr;
    return tensor_type(y->shape, x->dtype);
  };
  op.reshape_only = false;  // has a second argument, which a view would have to keep
  op.examples = {{{"Tensor[(2, 6), float32]", "Tensor[(3, 4), float32]"}, ""}};
  registry.add(op);

  op.args = {{"data", "The input."}};
  op.name = "transpose";
  op.doc = "Axes in another order.";
  op.attrs = &TransposeAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *x = ctx.tensor(0), *y = ctx.wanted_result();
    if (x == nullptr && (ctx.failure() || y == nullptr)) return nullptr;
    auto order = axes_order(ctx, ctx.attrs<TransposeAttrs>().axes, (x ? x : y)->rank());
    if (!order) return nullptr;
    if (x == nullptr) {
      std::vector<Dim> shape(y->shape.size());
      for (size_t i = 0; i < shape.size(); ++i) shape[(*order)[i]] = y->shape[i];
      ctx.solve(0, tensor_type(std::move(shape), y->dtype));
      return nullptr;
    }
    std::vector<Dim> shape;
    for (size_t a : *order) shape.push_back(x->shape[a]);
    return tensor_type(std::move(shape), x->dtype);
  };
  op.examples = {{{"Tensor[(2, 3, 4), float32]"}, "axes=[2, 0, 1]"},
                 {{"Tensor[(2, 3), float32]"}, ""}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    std::vector<size_t> order = order_of(ctx.attrs<TransposeAttrs>(), x->rank());
    return tir::compute("T_transpose", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at(order.size());
      for (size_t d = 0; d < order.size(); ++d) at[order[d]] = i[d];
      return x(at);
    });
  });
  registry.add(op);

  op.name = "concatenate";
  op.doc = "Joins tensors along an axis.";
  op.args = {{"data", "A tuple of tensors."}};
  op.attrs = &ConcatenateAttrs::static_info();
  op.layout = [](const CallNode& call, std::span<const Layout> offered,
                 const Layout& desired) -> std::optional<LayoutDecision> {
    auto out = follow_layout(call, offered, desired);
    if (!out) return std::nullopt;
    int64_t rank = as<TensorTypeNode>(call.type)->rank();
    const char* original = rank == 4 ? "NCHW" : rank == 3 ? "NCW" : rank == 5 ? "NCDHW" : nullptr;
    if (original == nullptr) return std::nullopt;
    char axis =
        original[from_front(static_cast<const ConcatenateAttrs&>(*call.attrs.get()).axis, rank)];
    out->attrs = make<ConcatenateAttrs>(
        [&](ConcatenateAttrs& a) { a.axis = out->outputs[0].index_of(axis); });
    return out;
  };
  op.relation = [](RelationContext& ctx) -> Type {
    auto list = ctx.tensors(0);
    if (!list) return nullptr;
    if (!require(ctx, !list->empty(), codes::type_arity, "needs at least one tensor"))
      return nullptr;
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
  };
  op.memory = [](const CallNode&) { return Memory::Joined; };
  op.examples = {{{"(Tensor[(2, 3), float32], Tensor[(2, 1), float32])"}, "axis=1"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
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
  });
  registry.add(op);
  op.layout = nullptr;

  op.name = "stack";
  op.doc = "Joins tensors along a new axis.";
  op.attrs = &StackAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
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
  };
  op.memory = [](const CallNode& call) {
    // Along an axis behind others, each argument has gaps everywhere.
    auto* x = as<TensorTypeNode>(call.type);
    int64_t axis = static_cast<const StackAttrs&>(*call.attrs.get()).axis;
    auto end = x->shape.begin() + from_front(axis, x->rank());
    bool together =
        std::all_of(x->shape.begin(), end, [](const Dim& d) { return dim_equal(d, dim(1)); });
    return together ? Memory::Joined : Memory::Own;
  };
  op.examples = {{{"(Tensor[(2, 3), float32], Tensor[(2, 3), float32])"}, "axis=1"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
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
  });
  registry.add(op);

  op.name = "split";
  op.doc = "Cuts a tensor along an axis into a tuple.";
  op.args = {{"data", "The input."}};
  op.attrs = &SplitAttrs::static_info();
  op.memory = [](const CallNode&) { return Memory::Cut; };
  op.relation = [](RelationContext& ctx) -> Type {
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
                   "the axis does not divide into equal parts",
                   "a multiple of " + std::to_string(*n), to_string(size)))
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
  };
  op.examples = {{{"Tensor[(2, 6), float32]"}, "indices_or_sections=3, axis=1"},
                 {{"Tensor[(2, 6), float32]"}, "indices_or_sections=[1, 4], axis=1"}};
  op.compute = compute_rule_multi([](const ComputeContext& ctx) {
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
  });
  registry.add(op);
  op.memory = nullptr;

  op.name = "strided_slice";
  op.doc = "Part of a tensor: begin, end and step of each axis.";
  op.attrs = &StridedSliceAttrs::static_info();
  op.support_level = 4;
  op.relation = [](RelationContext& ctx) -> Type {
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
  };
  op.examples = {{{"Tensor[(5, 6), float32]"}, "begin=[1, 0], end=[4, 6], strides=[1, 2]"},
                 {{"Tensor[(5, 6), float32]"}, "begin=[-1], end=[-7], strides=[-2], axes=[1]"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    auto slices = *slices_of(ctx.attrs<StridedSliceAttrs>(), x->shape());
    return tir::compute("T_strided_slice", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at = i;
      for (size_t d = 0; d < at.size(); ++d) {
        if (slices[d]) at[d] = i[d] * slices[d]->stride + slices[d]->begin;
      }
      return x(at);
    });
  });
  registry.add(op);

  op.name = "nn.pad";
  op.doc = "Adds a border: a value, the nearest element, or mirrored.";
  op.args = {{"data", "The input."}, {"pad_value", "A scalar."}};
  op.attrs = &PadAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    auto& a = ctx.attrs<PadAttrs>();
    if (x == nullptr ||
        !require(ctx, a.pad_mode == "constant" || a.pad_mode == "edge" || a.pad_mode == "reflect",
                 codes::op_bad_attribute, "pad_mode is not known", "constant, edge or reflect",
                 a.pad_mode))
      return nullptr;
    const TensorTypeNode* value = ctx.tensor(1);
    if (value != nullptr) {
      auto sizes = value->const_shape();
      bool one = sizes && std::all_of(sizes->begin(), sizes->end(), [](auto n) { return n == 1; });
      if (!require(ctx, one, codes::type_shape, "pad_value must be one element", "a scalar",
                   to_string(Type(value))))
        return nullptr;
    } else if (ctx.failure()) {
      return nullptr;
    } else {
      ctx.solve(1, scalar_type(x->dtype));
    }
    auto shape = padded_shape(ctx, *x, a.pad_width);
    if (!shape || (a.pad_mode != "constant" &&
                   !border_fits(ctx, *x, a.pad_width, a.pad_mode == "edge" ? "edge" : "REFLECT")))
      return nullptr;
    return tensor_type(std::move(*shape), x->dtype);
  };
  op.examples = {
      {{"Tensor[(3, 4), float32]", "float32"}, "pad_width=[[1, 2], [0, 3]]"},
      {{"Tensor[(3, 4), float32]", "float32"}, "pad_width=[[1, 2], [2, 0]], pad_mode=\"reflect\""}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<PadAttrs>();
    TirTensor x = ctx.inputs[0], value = ctx.inputs[1];
    if (a.pad_mode != "constant")
      return mirrored(x, ctx.outputs[0].shape, a.pad_width,
                      a.pad_mode == "edge" ? "edge" : "REFLECT");
    return tir::compute("T_pad", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at;
      PrimExpr inside = boolean(true);
      for (size_t d = 0; d < i.size(); ++d) {
        at.push_back(i[d] - a.pad_width[d][0]);
        if (a.pad_width[d][0] > 0) inside = logical_and(inside, ge(at[d], index(0)));
        if (a.pad_width[d][1] > 0 || a.pad_width[d][0] > 0)
          inside = logical_and(inside, lt(at[d], x->shape()[d]));
      }
      return select(
          inside, x(at),
          tir::cast(x->dtype, value(Indices(static_cast<size_t>(value->rank()), index(0)))));
    });
  });
  registry.add(op);

  op.args = {{"data", "The input."}};
  op.name = "nn.mirror_pad";
  op.doc = "Adds a border that mirrors the tensor.";
  op.attrs = &MirrorPadAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    auto& a = ctx.attrs<MirrorPadAttrs>();
    if (x == nullptr ||
        !require(ctx, a.mode == "SYMMETRIC" || a.mode == "REFLECT", codes::op_bad_attribute,
                 "mode is not known", "SYMMETRIC or REFLECT", a.mode))
      return nullptr;
    auto shape = padded_shape(ctx, *x, a.pad_width);
    if (!shape || !border_fits(ctx, *x, a.pad_width, a.mode)) return nullptr;
    return tensor_type(std::move(*shape), x->dtype);
  };
  op.examples = {{{"Tensor[(3, 4), float32]"}, "pad_width=[[1, 2], [2, 0]]"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    return mirrored(ctx.inputs[0], ctx.outputs[0].shape, ctx.attrs<MirrorPadAttrs>().pad_width,
                    ctx.attrs<MirrorPadAttrs>().mode);
  });
  registry.add(op);

  op.name = "tile";
  op.doc = "Repeats the whole tensor along each axis.";
  op.attrs = &TileAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    const Ints& reps = ctx.attrs<TileAttrs>().reps;
    size_t rank = std::max(reps.size(), x->shape.size());
    std::vector<Dim> shape(rank, dim(1));
    for (size_t d = 0; d < rank; ++d) {
      if (d < x->shape.size()) shape[rank - 1 - d] = x->shape[x->shape.size() - 1 - d];
      if (d >= reps.size()) continue;
      if (!require(ctx, reps[reps.size() - 1 - d] >= 0, codes::op_bad_attribute,
                   "a repetition is negative"))
        return nullptr;
      shape[rank - 1 - d] = shape[rank - 1 - d] * dim(reps[reps.size() - 1 - d]);
    }
    return tensor_type(std::move(shape), x->dtype);
  };
  op.examples = {{{"Tensor[(2, 3), float32]"}, "reps=[2, 1, 2]"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    return tir::compute("T_tile", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at;
      size_t skip = i.size() - x->shape().size();
      for (size_t d = 0; d < x->shape().size(); ++d)
        at.push_back(is_one(x->shape()[d]) ? index(0) : floor_mod(i[skip + d], x->shape()[d]));
      return x(at);
    });
  });
  registry.add(op);

  op.name = "repeat";
  op.doc = "Repeats every element along an axis.";
  op.attrs = &RepeatAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    auto& a = ctx.attrs<RepeatAttrs>();
    if (!require(ctx, a.repeats >= 0, codes::op_bad_attribute, "repeats is negative", "0 or more",
                 std::to_string(a.repeats)))
      return nullptr;
    if (!a.axis) return tensor_type(std::vector<Dim>{product(x->shape) * dim(a.repeats)}, x->dtype);
    auto axis = normal_axis(ctx, *a.axis, x->rank());
    if (!axis) return nullptr;
    std::vector<Dim> shape = x->shape;
    shape[static_cast<size_t>(*axis)] = shape[static_cast<size_t>(*axis)] * dim(a.repeats);
    return tensor_type(std::move(shape), x->dtype);
  };
  op.examples = {{{"Tensor[(2, 3), float32]"}, "repeats=2, axis=1"},
                 {{"Tensor[(2, 3), float32]"}, "repeats=2"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<RepeatAttrs>();
    TirTensor x = ctx.inputs[0];
    if (!a.axis) {
      PrimExpr n = index(1);
      for (const PrimExpr& d : x->shape()) n = n * d;
      x = reshaped(x, {n});
    }
    size_t axis = a.axis ? static_cast<size_t>(from_front(*a.axis, x->rank())) : 0;
    return tir::compute("T_repeat", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at = i;
      at[axis] = floor_div(i[axis], index(std::max<int64_t>(a.repeats, 1)));
      return x(at);
    });
  });
  registry.add(op);

  op.name = "reverse";
  op.doc = "Reverses an axis.";
  op.attrs = &ReverseAttrs::static_info();
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    return x == nullptr || !normal_axis(ctx, ctx.attrs<ReverseAttrs>().axis, x->rank()) ? nullptr
                                                                                        : Type(x);
  };
  op.examples = {{{"Tensor[(2, 3), float32]"}, "axis=1"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    size_t axis = static_cast<size_t>(from_front(ctx.attrs<ReverseAttrs>().axis, x->rank()));
    return tir::compute("T_reverse", x->shape(), [&](const Indices& i) {
      Indices at = i;
      at[axis] = x->shape()[axis] - 1 - i[axis];
      return x(at);
    });
  });
  registry.add(op);

  op.fusion = FusionClass::Broadcast;
  op.name = "broadcast_to";
  op.doc = "Repeats axes of size one up to a shape.";
  op.attrs = &InitOpAttrs::static_info();
  auto broadcast_compute = compute_rule([](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    return tir::compute("T_broadcast_to", ctx.outputs[0].shape,
                        [&](const Indices& i) { return broadcast_read(x, i); });
  });
  auto check = [](RelationContext& ctx, const TensorTypeNode& x, std::vector<Dim> want) -> Type {
    auto both = broadcast_shapes(ctx, x.shape, want);
    if (!both) return nullptr;
    bool fits = both->size() == want.size();
    for (size_t d = 0; fits && d < want.size(); ++d) fits = ctx.equal((*both)[d], want[d]);
    if (!require(ctx, fits, codes::type_shape, "the input does not broadcast to the shape",
                 shape_text(want), shape_text(x.shape)))
      return nullptr;
    return tensor_type(std::move(want), x.dtype);
  };
  static const auto check_broadcast = check;
  op.compute = broadcast_compute;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode* x = ctx.tensor(0);
    if (x == nullptr) return nullptr;
    std::vector<Dim> want;
    for (int64_t d : ctx.attrs<InitOpAttrs>().shape) {
      if (!require(ctx, d >= 0, codes::op_bad_attribute, "a size is negative", "0 or more",
                   std::to_string(d)))
        return nullptr;
      want.push_back(dim(d));
    }
    return check_broadcast(ctx, *x, std::move(want));
  };
  op.examples = {{{"Tensor[(2, 1), float32]"}, "shape=[3, 2, 4]"}};
  registry.add(op);
  op.name = "broadcast_to_like";
  op.doc = "Repeats axes of size one up to the shape of another tensor.";
  op.args = {{"data", "The input."}, {"broadcast_type", "Gives the shape."}};
  op.attrs = nullptr;
  op.relation = [](RelationContext& ctx) -> Type {
    const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
    return x == nullptr || y == nullptr ? nullptr : check_broadcast(ctx, *x, y->shape);
  };
  op.examples = {{{"Tensor[(2, 1), float32]", "Tensor[(2, 4), float32]"}, ""}};
  registry.add(op);
}

}  // namespace relay::ops
