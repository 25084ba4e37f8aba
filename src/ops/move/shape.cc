// Operators that give elements another shape or order, or repeat them.
#include <algorithm>
#include <cctype>

#include "analysis/element_maps.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "node/structural.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/init_op.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

bool same_extent(const PrimExpr& a, const PrimExpr& b) {
  auto n = as_int(a), m = as_int(b);
  return n && m ? *n == *m : !n && !m && structural_equal(a, b);
}

// Whether two lists of sizes with equal products have equal sizes: those that differ are one symbolic size there, and one here.
// What PyTorch knows of symbols, such as that a number is a multiple of 4, is no part of sizes: (n, 4 * (a // 4)) is (n, a).
bool agree(const std::vector<PrimExpr>& from, const std::vector<PrimExpr>& to) {
  if (from.size() != to.size()) return false;
  std::optional<size_t> first;
  for (size_t k = 0; k < from.size(); ++k) {
    if (same_extent(from[k], to[k])) continue;
    if (as_int(from[k]) && as_int(to[k])) return false;
    if (!first) first = k;
    if (!same_extent(from[*first], from[k]) || !same_extent(to[*first], to[k])) return false;
  }
  return true;
}

// The elements of `x` in row-major order under another shape.
TirTensor reshaped(const TirTensor& x, const std::vector<PrimExpr>& shape) {
  return tir::compute("T_reshape", shape, [&](const Indices& i) {
    // Axes of size one say nothing; if the others agree, no arithmetic is needed.
    std::vector<size_t> from, to;
    std::vector<PrimExpr> sizes, wanted;
    for (size_t d = 0; d < x->shape().size(); ++d) {
      if (is_one(x->shape()[d])) continue;
      from.push_back(d);
      sizes.push_back(x->shape()[d]);
    }
    for (size_t d = 0; d < shape.size(); ++d) {
      if (is_one(shape[d])) continue;
      to.push_back(d);
      wanted.push_back(shape[d]);
    }
    Indices at(x->shape().size(), index(0));
    if (agree(sizes, wanted)) {
      for (size_t k = 0; k < from.size(); ++k) at[from[k]] = i[to[k]];
      return x(at);
    }
    // Nor for axes in front and behind that agree, where quotients by open sizes would be computed.
    size_t begin = 0, end = 0;
    if (!std::ranges::all_of(sizes, [](const PrimExpr& e) { return as_int(e).has_value(); })) {
      const size_t most = std::min(from.size(), to.size());
      while (begin < most && same_extent(sizes[begin], wanted[begin])) ++begin;
      while (begin + end < most &&
             same_extent(sizes[from.size() - 1 - end], wanted[to.size() - 1 - end]))
        ++end;
    }
    for (size_t k = 0; k < begin; ++k) at[from[k]] = i[to[k]];
    for (size_t k = 1; k <= end; ++k) at[from[from.size() - k]] = i[to[to.size() - k]];
    PrimExpr flat = index(0);
    for (size_t k = begin; k + end < to.size(); ++k) flat = flat * wanted[k] + i[to[k]];
    for (size_t k = from.size() - end; k-- > begin;) {
      at[from[k]] = k == begin ? flat : floor_mod(flat, sizes[k]);
      flat = floor_div(flat, sizes[k]);
    }
    return x(at);
  });
}

Dim product(const std::vector<Dim>& dims) {
  Dim p = dim(1);
  for (const Dim& d : dims) p = p * d;
  return p;
}

struct ReshapeAttrs : AttrsOf<ReshapeAttrs> {
  Dims newshape;
  bool allowzero = false;
  static AttrsList describe() {
    return {"relay.attrs.ReshapeAttrs",
            {child("newshape", &Self::newshape,
                   "Sizes; 0 copies, -1 is inferred, -2 copies the rest, -3 joins two, -4 splits "
                   "one."),
             attribute("allowzero", &Self::allowzero, "0 means an empty axis.")}};
  }
  // A size that turns out to be 0 is one, and no code.
  static void rebuilt(ReshapeAttrs& now, const ReshapeAttrs& before) {
    bool empty = false, copies = false;
    for (size_t i = 0; i < now.newshape.size(); ++i) {
      if (as_const(now.newshape[i]) != 0) continue;
      (as_const(before.newshape[i]) ? copies : empty) = true;
    }
    if (!empty) return;
    if (copies && !now.allowzero) {
      throw UserError(Diagnostic(codes::op_bad_attribute, {},
                                 "newshape copies an axis by 0 beside a size that is 0")
                          .expected("the size itself, or allowzero=True")
                          .found(to_string(to_value(before.newshape))));
    }
    now.allowzero = true;
  }
};

bool at_least_one(const Dim& d) { return !is_any(d) && never_negative(d - dim(1)); }

// Takes the sizes out of both that are in both, but those that may be 0.
void cancel(std::vector<Dim>& a, std::vector<Dim>& b) {
  std::erase_if(a, [&](const Dim& d) {
    auto same = std::ranges::find_if(b, [&](const Dim& e) { return dim_equal(d, e); });
    if (same == b.end() || !at_least_one(d)) return false;
    b.erase(same);
    return true;
  });
}

// The size for -1: what `left` of the input's axes hold beside `sizes`. Null: it fails.
Dim inferred_size(RelationContext& ctx, std::vector<Dim> left, std::vector<Dim> sizes) {
  cancel(left, sizes);
  const Dim have = product(left), want = product(sizes);
  auto n = as_const(have), m = as_const(want);
  const bool none = m && *m == 0;
  if (none ? !ctx.equal(have, want) : n && m && *n % *m != 0) return nullptr;
  if (none) return want;
  if (is_any(have) || is_any(want)) return dim_any();
  Dim out = floor_div(have, at_least_one(want) ? want : max(want, dim(1)));
  return ctx.equal(out * want, have) ? out : nullptr;
}

Type reshape_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<ReshapeAttrs>();
  std::vector<Dim> out;
  // The sizes that newshape names, and the axes that it does not copy: a copied axis that is empty leaves -1 its size.
  std::vector<Dim> named, left;
  size_t at = 0;
  std::optional<size_t> inferred;
  auto next = [&]() -> std::optional<Dim> {
    if (!require(ctx, at < x->shape.size(), codes::op_bad_attribute,
                 "newshape copies an axis that the input does not have", shape_text(x->shape)))
      return std::nullopt;
    return x->shape[at++];
  };
  auto pass = [&] {
    if (at < x->shape.size()) left.push_back(x->shape[at]);
    ++at;
  };
  for (size_t k = 0; k < a.newshape.size(); ++k) {
    auto code = as_const(a.newshape[k]);
    if (!code && !check_size(ctx, a.newshape[k], "a size is negative")) return nullptr;
    int64_t v = code.value_or(1);
    if (v > 0 || (v == 0 && a.allowzero)) {
      out.push_back(a.newshape[k]);
      named.push_back(a.newshape[k]);
      pass();
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
      pass();
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
      const Dim &p = a.newshape[k + 1], &q = a.newshape[k + 2];
      k += 2;
      const bool rest_first = as_const(p) == -1, rest_second = as_const(q) == -1;
      if (!require(ctx, !(rest_first && rest_second), codes::op_bad_attribute,
                   "-4 must be followed by two sizes above 0, one of them -1 at most",
                   "-4, then such as 2, -1", to_string(p) + ", " + to_string(q)) ||
          (!rest_first && !check_size(ctx, p, "-4 must be followed by two sizes above 0", 1)) ||
          (!rest_second && !check_size(ctx, q, "-4 must be followed by two sizes above 0", 1)))
        return nullptr;
      Dim first = rest_first ? floor_div(*d, q) : p;
      Dim second = rest_second ? floor_div(*d, p) : q;
      if (!require(ctx, ctx.equal(first * second, *d), codes::type_shape,
                   "the sizes behind -4 do not split the axis", "factors of " + to_string(*d),
                   to_string(p) + ", " + to_string(q)))
        return nullptr;
      out.push_back(std::move(first));
      out.push_back(std::move(second));
    } else {
      return ctx.fail(codes::op_bad_attribute, "newshape holds an unknown code",
                      "sizes, 0, -1, -2, -3 or -4", std::to_string(v));
    }
  }
  while (at < x->shape.size()) left.push_back(x->shape[at++]);
  Dim have = product(x->shape), want = product(out);
  if (inferred) {
    out[*inferred] = inferred_size(ctx, std::move(left), std::move(named));
    if (!require(ctx, out[*inferred] != nullptr, codes::type_shape,
                 "the elements do not fill the new shape",
                 to_string(have) + " elements of " + shape_text(x->shape),
                 to_string(to_value(a.newshape))))
      return nullptr;
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
               "axes must name every axis once", counted(rank, "axis"),
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

struct TransposeAttrs : AttrsOf<TransposeAttrs> {
  std::optional<Ints> axes;
  static AttrsList describe() {
    return {"relay.attrs.TransposeAttrs",
            {attribute("axes", &Self::axes, "Order of the axes; None: reversed.")}};
  }
};

std::vector<size_t> order_of(const TransposeAttrs& a, int64_t rank) {
  std::vector<size_t> out;
  for (int64_t d = 0; d < rank; ++d)
    out.push_back(static_cast<size_t>(a.axes && !a.axes->empty()
                                          ? from_front((*a.axes)[static_cast<size_t>(d)], rank)
                                          : rank - 1 - d));
  return out;
}

TirTensor same_elements(const ComputeContext& ctx) {
  return reshaped(ctx.inputs[0], ctx.outputs[0].shape);
}

TirTensor broadcast_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  return tir::compute("T_broadcast_to", shape,
                      [&](const Indices& i) { return broadcast_read(x, i, shape); });
}

// `want`, if x broadcasts to it.
Type broadcast_type(RelationContext& ctx, const TensorTypeNode& x, std::vector<Dim> want) {
  auto both = broadcast_shapes(ctx, x.shape, want);
  if (!both) return nullptr;
  bool fits = both->size() == want.size();
  for (size_t d = 0; fits && d < want.size(); ++d) fits = ctx.equal((*both)[d], want[d]);
  if (!require(ctx, fits, codes::type_shape, "the input does not broadcast to the shape",
               shape_text(want), shape_text(x.shape)))
    return nullptr;
  return tensor_type(std::move(want), x.dtype);
}

struct ExpandDimsAttrs : AttrsOf<ExpandDimsAttrs> {
  int64_t axis = 0, num_newaxis = 1;
  static AttrsList describe() {
    return {"relay.attrs.ExpandDimsAttrs",
            {attribute("axis", &Self::axis, "Where the new axes go."),
             attribute("num_newaxis", &Self::num_newaxis, "How many.")}};
  }
};

Type expand_dims_relation(RelationContext& ctx) {
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
}

struct SqueezeAttrs : AttrsOf<SqueezeAttrs> {
  std::optional<Ints> axis;
  static AttrsList describe() {
    return {"relay.attrs.SqueezeAttrs",
            {attribute("axis", &Self::axis, "Axes of size one to drop; None: all of them.")}};
  }
};

Type squeeze_relation(RelationContext& ctx) {
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
}

Type batch_flatten_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr ||
      !require(ctx, x->rank() >= 1, codes::type_rank, "needs at least one dimension"))
    return nullptr;
  return tensor_type({x->shape[0], product({x->shape.begin() + 1, x->shape.end()})}, x->dtype);
}

Type reshape_like_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  if (x == nullptr || y == nullptr ||
      !require(ctx, ctx.equal(product(x->shape), product(y->shape)), codes::type_shape,
               "the shapes hold different numbers of elements", shape_text(x->shape),
               shape_text(y->shape)))
    return nullptr;
  return tensor_type(y->shape, x->dtype);
}

Type transpose_relation(RelationContext& ctx) {
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
}

TirTensor transpose_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  std::vector<size_t> order = order_of(ctx.attrs<TransposeAttrs>(), x->rank());
  return tir::compute("T_transpose", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at(order.size());
    for (size_t d = 0; d < order.size(); ++d) at[order[d]] = i[d];
    return x(at);
  });
}

struct TileAttrs : AttrsOf<TileAttrs> {
  Dims reps;
  static AttrsList describe() {
    return {"relay.attrs.TileAttrs", {child("reps", &Self::reps, "Repetitions of each axis.")}};
  }
};

Type tile_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  const Dims& reps = ctx.attrs<TileAttrs>().reps;
  size_t rank = std::max(reps.size(), x->shape.size());
  std::vector<Dim> shape(rank, dim(1));
  for (size_t d = 0; d < rank; ++d) {
    if (d < x->shape.size()) shape[rank - 1 - d] = x->shape[x->shape.size() - 1 - d];
    if (d >= reps.size()) continue;
    const Dim& times = reps[reps.size() - 1 - d];
    if (!check_size(ctx, times, "a repetition is negative")) return nullptr;
    shape[rank - 1 - d] = shape[rank - 1 - d] * times;
  }
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor tile_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_tile", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at;
    size_t skip = i.size() - x->shape().size();
    for (size_t d = 0; d < x->shape().size(); ++d)
      at.push_back(is_one(x->shape()[d]) ? index(0) : floor_mod(i[skip + d], x->shape()[d]));
    return x(at);
  });
}

struct RepeatAttrs : AttrsOf<RepeatAttrs> {
  int64_t repeats = 1;
  std::optional<int64_t> axis;
  static AttrsList describe() {
    return {"relay.attrs.RepeatAttrs",
            {attribute("repeats", &Self::repeats, "Times each element is repeated."),
             attribute("axis", &Self::axis, "Along which axis; None: flattened.")}};
  }
};

Type repeat_relation(RelationContext& ctx) {
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
}

TirTensor repeat_compute(const ComputeContext& ctx) {
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
}

struct ReverseAttrs : AttrsOf<ReverseAttrs> {
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.ReverseAttrs", {attribute("axis", &Self::axis, "Axis to reverse.")}};
  }
};

Type reverse_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  return x == nullptr || !normal_axis(ctx, ctx.attrs<ReverseAttrs>().axis, x->rank()) ? nullptr
                                                                                      : Type(x);
}

TirTensor reverse_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(ctx.attrs<ReverseAttrs>().axis, x->rank()));
  return tir::compute("T_reverse", x->shape(), [&](const Indices& i) {
    Indices at = i;
    at[axis] = x->shape()[axis] - 1 - i[axis];
    return x(at);
  });
}

Type broadcast_to_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  const Dims& want = ctx.attrs<InitOpAttrs>().shape;
  return check_shape(ctx, want) ? broadcast_type(ctx, *x, want) : nullptr;
}

Type broadcast_to_like_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *y = ctx.tensor(1);
  return x == nullptr || y == nullptr ? nullptr : broadcast_type(ctx, *x, y->shape);
}

// ---- Gradients

Adjoints reshape_gradient(const GradientContext& ctx) {
  return {reshape_like(ctx.adjoint(), ctx.arg(0))};
}

Adjoints transpose_gradient(const GradientContext& ctx) {
  std::vector<size_t> order = order_of(ctx.attrs<TransposeAttrs>(), rank_of(ctx.arg(0)));
  Ints back(order.size());
  for (size_t d = 0; d < order.size(); ++d) back[order[d]] = static_cast<int64_t>(d);
  return {transposed(ctx.adjoint(), back)};
}

// Sums over axes that a reshape of the adjoint takes apart.
Adjoints sums_of_parts(const GradientContext& ctx, const std::vector<Dim>& parts,
                       const Ints& axes) {
  if (std::ranges::any_of(parts, is_any)) return moved(ctx);
  return {reshape_like(sum_over(reshape_to(ctx.adjoint(), parts), axes), ctx.arg(0))};
}

Adjoints tile_gradient(const GradientContext& ctx) {
  const std::vector<Dim>& shape = type_of(ctx.arg(0)).shape;
  const Dims& reps = ctx.attrs<TileAttrs>().reps;
  size_t rank = std::max(reps.size(), shape.size());
  std::vector<Dim> parts;
  Ints axes;
  for (size_t d = 0; d < rank; ++d) {
    auto at = [&](const auto& list) {
      return d + list.size() < rank ? dim(1) : list[d + list.size() - rank];
    };
    axes.push_back(static_cast<int64_t>(parts.size()));
    parts.push_back(at(reps));
    parts.push_back(at(shape));
  }
  return sums_of_parts(ctx, parts, axes);
}

Adjoints repeat_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<RepeatAttrs>();
  const std::vector<Dim>& shape = type_of(ctx.arg(0)).shape;
  std::vector<Dim> parts = a.axis ? shape : std::vector<Dim>{product(shape)};
  int64_t axis = a.axis ? from_front(*a.axis, rank_of(ctx.arg(0))) : 0;
  parts.insert(parts.begin() + axis + 1, dim(a.repeats));
  return sums_of_parts(ctx, parts, {axis + 1});
}

Adjoints reverse_gradient(const GradientContext& ctx) {
  return {call(ctx.call.op, {ctx.adjoint()}, ctx.call.attrs)};
}

Adjoints broadcast_gradient(const GradientContext& ctx) {
  return {unbroadcast(ctx.adjoint(), ctx.arg(0))};
}

// ---- Batching

Expr batch_transpose(const BatchingContext& ctx) {
  Ints axes{0};
  for (size_t d : order_of(ctx.attrs<TransposeAttrs>(), rank_of(ctx.call.args[0])))
    axes.push_back(static_cast<int64_t>(d) + 1);
  return transposed(ctx.arg(0), axes);
}

Expr batch_tile(const BatchingContext& ctx) {
  Dims reps = ctx.attrs<TileAttrs>().reps;
  auto rank = static_cast<size_t>(rank_of(ctx.call.args[0]));
  Expr data = lanes_of_rank(ctx.arg(0), static_cast<int64_t>(std::max(rank, reps.size())));
  reps.insert(reps.begin(), 1 + std::max(rank, reps.size()) - reps.size(), dim(1));
  return with_attrs(ctx.call, {data}, {{"reps", to_value(reps)}});
}

Expr batch_repeat(const BatchingContext& ctx) {
  auto& a = ctx.attrs<RepeatAttrs>();
  if (a.axis) return with_attrs(ctx.call, ctx.args, {{"axis", behind_lanes(*a.axis)}});
  if (!has_named_sizes(ctx.arg(0))) return nullptr;
  Dim count = product(type_of(ctx.call.args[0]).shape);
  return with_attrs(ctx.call, {reshape_to(ctx.arg(0), {ctx.lanes, count})}, {{"axis", int64_t{1}}});
}

Expr batch_broadcast(const BatchingContext& ctx) {
  const std::vector<Dim> shape = shape_in_lanes(ctx);
  if (std::ranges::any_of(shape, is_any)) return nullptr;
  Expr data = ctx.batched[0] ? lanes_of_rank(ctx.arg(0), static_cast<int64_t>(shape.size()) - 1)
                             : ctx.arg(0);
  return apply("broadcast_to", {data}, {{"shape", shape_value(shape)}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Shape>() {
  static const OpInfo rows[] = {
      {
          .name = "reshape",
          .doc = "The same elements under another shape.",
          .args = {{"data", "The input."}},
          .attrs = &ReshapeAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .reshape_only = true,
          .takes_narrow = true,
          .relation = reshape_relation,
          .compute = compute_rule(same_elements),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reshape_gradient,
          .batching = batch_reshape,
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, "newshape=[4, -1]"},
                       {{"Tensor[(2, 3, 4), float32]"}, "newshape=[0, -3]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "expand_dims",
          .doc = "Adds axes of size one.",
          .args = {{"data", "The input."}},
          .attrs = &ExpandDimsAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .reshape_only = true,
          .takes_narrow = true,
          .relation = expand_dims_relation,
          .compute = compute_rule(same_elements),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reshape_gradient,
          .batching = batch_reshape,
          .examples = {{{"Tensor[(2, 3), float32]"}, "axis=1, num_newaxis=2"},
                       {{"float32"}, "axis=0"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "squeeze",
          .doc = "Drops axes of size one.",
          .args = {{"data", "The input."}},
          .attrs = &SqueezeAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .reshape_only = true,
          .takes_narrow = true,
          .relation = squeeze_relation,
          .compute = compute_rule(same_elements),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reshape_gradient,
          .batching = batch_reshape,
          .examples = {{{"Tensor[(2, 1, 3, 1), float32]"}, ""},
                       {{"Tensor[(2, 1, 3, 1), float32]"}, "axis=[1]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.batch_flatten",
          .doc = "Joins all axes but the first.",
          .args = {{"data", "The input."}},
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .reshape_only = true,
          .relation = batch_flatten_relation,
          .compute = compute_rule(same_elements),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reshape_gradient,
          .batching = batch_reshape,
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "reshape_like",
          .doc = "The elements of data in the shape of another tensor.",
          .args = {{"data", "The input."}, {"shape_like", "Gives the shape."}},
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          // Not reshape_only: there is a second argument, which a view would have to keep.
          .relation = reshape_like_relation,
          .compute = compute_rule(same_elements),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reshape_gradient,
          .batching = batch_reshape,
          .examples = {{{"Tensor[(2, 6), float32]", "Tensor[(3, 4), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "transpose",
          .doc = "Axes in another order.",
          .args = {{"data", "The input."}},
          .attrs = &TransposeAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = transpose_relation,
          .compute = compute_rule(transpose_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = transpose_gradient,
          .batching = batch_transpose,
          .moves = ElementMoves{.map = element_maps::transpose},
          .quantized = quantized_transpose,
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, "axes=[2, 0, 1]"},
                       {{"Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "tile",
          .doc = "Repeats the whole tensor along each axis.",
          .args = {{"data", "The input."}},
          .attrs = &TileAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = tile_relation,
          .compute = compute_rule(tile_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = tile_gradient,
          .batching = batch_tile,
          .moves = ElementMoves{.map = element_maps::tile},
          .examples = {{{"Tensor[(2, 3), float32]"}, "reps=[2, 1, 2]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "repeat",
          .doc = "Repeats every element along an axis.",
          .args = {{"data", "The input."}},
          .attrs = &RepeatAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = repeat_relation,
          .compute = compute_rule(repeat_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = repeat_gradient,
          .batching = batch_repeat,
          .moves = ElementMoves{.map = element_maps::repeat},
          .examples = {{{"Tensor[(2, 3), float32]"}, "repeats=2, axis=1"},
                       {{"Tensor[(2, 3), float32]"}, "repeats=2"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "reverse",
          .doc = "Reverses an axis.",
          .args = {{"data", "The input."}},
          .attrs = &ReverseAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = reverse_relation,
          .compute = compute_rule(reverse_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reverse_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.map = element_maps::reverse},
          .examples = {{{"Tensor[(2, 3), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "broadcast_to",
          .doc = "Repeats axes of size one up to a shape.",
          .args = {{"data", "The input."}},
          .attrs = &InitOpAttrs::static_info(),
          .support_level = 4,
          .fusion = FusionClass::Broadcast,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = broadcast_to_relation,
          .compute = compute_rule(broadcast_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = broadcast_gradient,
          .batching = batch_broadcast,
          .moves = ElementMoves{.map = element_maps::broadcast},
          .examples = {{{"Tensor[(2, 1), float32]"}, "shape=[3, 2, 4]"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "broadcast_to_like",
          .doc = "Repeats axes of size one up to the shape of another tensor.",
          .args = {{"data", "The input."}, {"broadcast_type", "Gives the shape."}},
          .support_level = 4,
          .fusion = FusionClass::Broadcast,
          .effect = Effect::Pure,
          .relation = broadcast_to_like_relation,
          .compute = compute_rule(broadcast_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = broadcast_gradient,
          .batching = batch_broadcast,
          .moves = ElementMoves{.map = element_maps::broadcast},
          .examples = {{{"Tensor[(2, 1), float32]", "Tensor[(2, 4), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
