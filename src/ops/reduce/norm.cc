// Normalisations and softmax.
#include <algorithm>
#include <functional>
#include <numeric>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/quantized_forms.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

template <class T>
std::vector<Field> norm_fields(const char* what) {
  return {attribute("axis", &T::axis, what),
          attribute("epsilon", &T::epsilon, "Added to the variance."),
          attribute("center", &T::center, "Add beta."),
          attribute("scale", &T::scale, "Multiply by gamma.")};
}

// Indices with one axis replaced.
Indices with(const Indices& i, size_t axis, const PrimExpr& v) {
  Indices out = i;
  out[axis] = v;
  return out;
}
Indices without(const Indices& i, size_t axis) {
  Indices out = i;
  out.erase(out.begin() + static_cast<std::ptrdiff_t>(axis));
  return out;
}

TirTensor same_elements(const TirTensor& t) {
  return tir::compute("T_same", t->shape(), [&](const Indices& i) { return t(i); });
}

template <class A>
Type norm_relation(RelationContext& ctx, int64_t tensors) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto axis = normal_axis(ctx, ctx.attrs<A>().axis, x->rank());
  if (!axis || !require(ctx, x->dtype.is_floating(), codes::type_dtype, "needs a floating dtype",
                        "float32", x->dtype.to_string()))
    return nullptr;
  Type vector = tensor_type(std::vector<Dim>{x->shape[static_cast<size_t>(*axis)]}, x->dtype);
  for (size_t i = 1; i < static_cast<size_t>(tensors); ++i) {
    const TensorTypeNode* v = ctx.tensor(i);
    if (v == nullptr) {
      if (ctx.failure()) return nullptr;
      ctx.solve(i, vector);
      continue;
    }
    if (!require(
            ctx,
            v->rank() == 1 && v->dtype == x->dtype &&
                ctx.equal(v->shape[0], x->shape[static_cast<size_t>(*axis)]),
            codes::type_shape,
            "argument '" + std::string(ctx.op().args[i].name) + "' must be a vector along the axis",
            to_string(vector), to_string(Type(v))))
      return nullptr;
  }
  return Type(x);
}

struct BatchNormAttrs : AttrsOf<BatchNormAttrs> {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static AttrsList describe() {
    return {"relay.attrs.BatchNormAttrs", norm_fields<Self>("Axis of the channels.")};
  }
};

Type batch_norm_relation(RelationContext& ctx) {
  Type x = norm_relation<BatchNormAttrs>(ctx, 5);
  if (!x) return nullptr;
  auto* t = as<TensorTypeNode>(x);
  Type v = tensor_type(
      std::vector<Dim>{
          t->shape[static_cast<size_t>(from_front(ctx.attrs<BatchNormAttrs>().axis, t->rank()))]},
      t->dtype);
  return tuple_type({x, v, v});
}

struct SoftmaxAttrs : AttrsOf<SoftmaxAttrs> {
  int64_t axis = -1;
  static AttrsList describe() {
    return {"relay.attrs.SoftmaxAttrs",
            {attribute("axis", &Self::axis, "The axis that sums to one.")}};
  }
};

Type softmax_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr || !normal_axis(ctx, ctx.attrs<SoftmaxAttrs>().axis, x->rank())) return nullptr;
  return float_identity(ctx);
}

std::shared_ptr<const ComputeRule> softmax_rule(bool log, const char* exp = "exp") {
  return compute_rule([log, exp](const ComputeContext& ctx) {
    TirTensor x = ctx.inputs[0];
    size_t axis = static_cast<size_t>(from_front(ctx.attrs<SoftmaxAttrs>().axis, x->rank()));
    DType acc = accumulator(x->dtype);
    PrimExpr extent = x->shape()[axis];
    std::vector<PrimExpr> rows = x->shape();
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
    auto full = [&](const Indices& i, const PrimExpr& k) {
      Indices at = i;
      at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), k);
      return at;
    };
    TirTensor top = tir::compute("T_softmax_maxelem", rows, [&](const Indices& i) {
      return reduce(Combiner::Max, {extent},
                    [&](const Indices& k) { return tir::cast(acc, x(full(i, k[0]))); });
    });
    TirTensor e = tir::compute("T_softmax_exp", x->shape(), [&](const Indices& i) {
      return tir::call(exp, acc, {tir::cast(acc, x(i)) - top(without(i, axis))});
    });
    TirTensor s = tir::compute("T_softmax_expsum", rows, [&](const Indices& i) {
      return tir::sum({extent}, [&](const Indices& k) { return e(full(i, k[0])); });
    });
    return tir::compute("T_softmax_norm", x->shape(), [&](const Indices& i) {
      // One division a row.
      if (!log) return tir::cast(x->dtype, e(i) * div(imm_float(acc, 1), s(without(i, axis))));
      return tir::cast(x->dtype, tir::cast(acc, x(i)) - top(without(i, axis)) -
                                     tir::call("log", acc, {s(without(i, axis))}));
    });
  });
}

// Along an axis before few columns, of which a row fills only a part of a vector: with the columns before the axis, as
// `transpose(nn.softmax(transpose(x)))`. Of 20,001 rows of 2 float32, this took 46 us of 314 with AVX-512. Null for other calls.
Expr softmax_of_few_columns(const CallNode& c, WeightPacker& packer) {
  auto shape = static_shape(c.args[0]);
  if (!shape || !packer.packs(c.args[0]) || tensor_of(c.args[0])->dtype.bits < 32) return nullptr;
  const auto rank = static_cast<int64_t>(shape->size()),
             axis = from_front(int_attr(c, "axis"), rank);
  int64_t columns = 1;
  for (int64_t d = axis + 1; d < rank; ++d) columns *= (*shape)[static_cast<size_t>(d)];
  const int64_t panel = packer.panel(c.args[0]);
  if (columns < 2 || 4 * columns > panel || (*shape)[static_cast<size_t>(axis)] < panel)
    return nullptr;
  // The axis goes last, and back to its place.
  std::vector<int64_t> there(static_cast<size_t>(rank)), back;
  std::iota(there.begin(), there.end(), 0);
  back = there;
  const auto at = static_cast<std::ptrdiff_t>(axis);
  std::rotate(there.begin() + at, there.begin() + at + 1, there.end());
  std::rotate(back.begin() + at, back.end() - 1, back.end());
  auto transposed = [&](const Expr& x, const std::vector<int64_t>& axes) {
    return make_call("transpose", {x}, {{"axes", to_value(axes)}}, c);
  };
  return transposed(
      with_attrs(c, {transposed(c.args[0], there)}, {{"axis", AttrValue(int64_t{-1})}}), back);
}

// (x - mean) / sqrt(variance + epsilon) * gamma + beta with mean and variance over `axes` and, for
// groups, over the channels of one group. `statistics_at` gives the statistics' index of an
// element.
TirTensor normalize(const ComputeContext& ctx, const std::vector<PrimExpr>& rows,
                    const std::vector<PrimExpr>& extents, double epsilon, bool scale, bool center,
                    size_t channel_axis,
                    const std::function<Indices(const Indices& row, const Indices& k)>& element,
                    const std::function<Indices(const Indices& i)>& statistics_at) {
  TirTensor x = ctx.inputs[0], gamma = ctx.inputs[1], beta = ctx.inputs[2];
  DType acc = accumulator(x->dtype);
  PrimExpr n = index(1);
  for (const PrimExpr& e : extents) n = n * e;
  n = tir::cast(acc, n);
  TirTensor total = tir::compute("T_sum", rows, [&](const Indices& r) {
    return tir::sum(extents, [&](const Indices& k) { return tir::cast(acc, x(element(r, k))); });
  });
  TirTensor mean = tir::compute("T_mean", rows, [&](const Indices& r) { return div(total(r), n); });
  TirTensor squares = tir::compute("T_squares", rows, [&](const Indices& r) {
    return tir::sum(extents, [&](const Indices& k) {
      PrimExpr d = tir::cast(acc, x(element(r, k))) - mean(r);
      return d * d;
    });
  });
  TirTensor factor = tir::compute("T_rsqrt", rows, [&](const Indices& r) {
    return tir::call("rsqrt", acc, {div(squares(r), n) + imm_float(acc, epsilon)});
  });
  return tir::compute("T_norm", x->shape(), [&](const Indices& i) {
    Indices r = statistics_at(i);
    PrimExpr v = (tir::cast(acc, x(i)) - mean(r)) * factor(r);
    if (scale) v = v * tir::cast(acc, gamma(i[channel_axis]));
    if (center) v = v + tir::cast(acc, beta(i[channel_axis]));
    return tir::cast(x->dtype, v);
  });
}

double norm_cost(const CallNode& c) { return 5 * num_elements(c.type); }

struct LayerNormAttrs : AttrsOf<LayerNormAttrs> {
  int64_t axis = -1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static AttrsList describe() {
    return {"relay.attrs.LayerNormAttrs", norm_fields<Self>("Axis that is normalised.")};
  }
};

TirTensor layer_norm_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<LayerNormAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  std::vector<PrimExpr> rows = x->shape();
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(axis));
  return normalize(
      ctx, rows, {x->shape()[axis]}, a.epsilon, a.scale, a.center, axis,
      [&](const Indices& r, const Indices& k) {
        Indices at = r;
        at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), k[0]);
        return at;
      },
      [&](const Indices& i) { return without(i, axis); });
}

struct InstanceNormAttrs : AttrsOf<InstanceNormAttrs> {
  int64_t axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static AttrsList describe() {
    return {"relay.attrs.InstanceNormAttrs", norm_fields<Self>("Axis of the channels.")};
  }
};

Type instance_norm_relation(RelationContext& ctx) {
  Type t = norm_relation<InstanceNormAttrs>(ctx, 3);
  if (!t) return nullptr;
  auto* x = as<TensorTypeNode>(t);
  if (!require(ctx, x->rank() >= 3, codes::type_rank, "needs spatial axes", "3 dimensions or more",
               shape_text(x->shape)) ||
      !require(ctx, from_front(ctx.attrs<InstanceNormAttrs>().axis, x->rank()) != 0,
               codes::op_bad_attribute, "axis 0 holds the items, not the channels",
               "between 1 and " + std::to_string(x->rank() - 1), "0"))
    return nullptr;
  return t;
}

TirTensor instance_norm_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<InstanceNormAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  std::vector<PrimExpr> extents;
  for (size_t d = 1; d < x->shape().size(); ++d) {
    if (d != axis) extents.push_back(x->shape()[d]);
  }
  return normalize(
      ctx, {x->shape()[0], x->shape()[axis]}, extents, a.epsilon, a.scale, a.center, axis,
      [&](const Indices& r, const Indices& k) {
        Indices at{r[0]};
        size_t next = 0;
        for (size_t d = 1; d < x->shape().size(); ++d) at.push_back(d == axis ? r[1] : k[next++]);
        return at;
      },
      [&](const Indices& i) {
        return Indices{i[0], i[axis]};
      });
}

struct GroupNormAttrs : AttrsOf<GroupNormAttrs> {
  int64_t num_groups = 0, axis = 1;
  double epsilon = 1e-5;
  bool center = true, scale = true;
  static AttrsList describe() {
    return {"relay.attrs.GroupNormAttrs",
            {attribute("num_groups", &Self::num_groups, "Groups of channels."),
             attribute("axis", &Self::axis, "Axis of the channels."),
             attribute("epsilon", &Self::epsilon, "Added to the variance."),
             attribute("center", &Self::center, "Add beta."),
             attribute("scale", &Self::scale, "Multiply by gamma.")}};
  }
};

Type group_norm_relation(RelationContext& ctx) {
  Type t = norm_relation<GroupNormAttrs>(ctx, 3);
  if (!t) return nullptr;
  auto& a = ctx.attrs<GroupNormAttrs>();
  auto* x = as<TensorTypeNode>(t);
  if (!require(ctx, from_front(a.axis, x->rank()) == 1, codes::op_bad_attribute,
               "the channels must be on axis 1", "1", std::to_string(a.axis)) ||
      !require(
          ctx,
          a.num_groups >= 1 &&
              ctx.equal(floor_div(x->shape[1], dim(a.num_groups)) * dim(a.num_groups), x->shape[1]),
          codes::op_bad_attribute, "num_groups does not divide the channels",
          "a divisor of " + to_string(x->shape[1]), std::to_string(a.num_groups)))
    return nullptr;
  return t;
}

TirTensor group_norm_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<GroupNormAttrs>();
  TirTensor x = ctx.inputs[0];
  PrimExpr per_group = floor_div(x->shape()[1], index(a.num_groups));
  std::vector<PrimExpr> extents{per_group};
  for (size_t d = 2; d < x->shape().size(); ++d) extents.push_back(x->shape()[d]);
  return normalize(
      ctx, {x->shape()[0], index(a.num_groups)}, extents, a.epsilon, a.scale, a.center, 1,
      [&](const Indices& r, const Indices& k) {
        Indices at{r[0], r[1] * per_group + k[0]};
        at.insert(at.end(), k.begin() + 1, k.end());
        return at;
      },
      [&](const Indices& i) {
        return Indices{i[0], floor_div(i[1], per_group)};
      });
}

struct LRNAttrs : AttrsOf<LRNAttrs> {
  int64_t size = 5, axis = 1;
  double bias = 2, alpha = 1e-5, beta = 0.75;
  static AttrsList describe() {
    return {"relay.attrs.LRNAttrs",
            {attribute("size", &Self::size, "Channels in a window, odd."),
             attribute("axis", &Self::axis, "Axis of the channels."),
             attribute("bias", &Self::bias, "Added to the sum."),
             attribute("alpha", &Self::alpha, "Factor of the sum."),
             attribute("beta", &Self::beta, "Exponent.")}};
  }
};

Type lrn_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr || !normal_axis(ctx, ctx.attrs<LRNAttrs>().axis, x->rank()) ||
      !require(ctx,
               ctx.attrs<LRNAttrs>().size >= 1 && ctx.attrs<LRNAttrs>().size <= int64_t{1} << 20,
               codes::op_bad_attribute, "size is out of range", "1 to 2^20",
               std::to_string(ctx.attrs<LRNAttrs>().size)))
    return nullptr;
  return float_identity(ctx);
}

TirTensor lrn_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<LRNAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  DType acc = accumulator(x->dtype);
  TirTensor squares = tir::compute("T_squares", x->shape(), [&](const Indices& i) {
    return tir::sum({index(a.size)}, [&](const Indices& k) {
      PrimExpr at = i[axis] + k[0] - (a.size - 1) / 2;
      PrimExpr v = tir::cast(acc, x(with(i, axis, at)));
      return select(logical_and(ge(at, index(0)), lt(at, x->shape()[axis])), v * v, imm(acc, 0));
    });
  });
  return tir::compute("T_lrn", x->shape(), [&](const Indices& i) {
    PrimExpr base =
        squares(i) * imm_float(acc, a.alpha / static_cast<double>(a.size)) + imm_float(acc, a.bias);
    return tir::cast(
        x->dtype, div(tir::cast(acc, x(i)), tir::call("pow", acc, {base, imm_float(acc, a.beta)})));
  });
}

std::vector<TirTensor> batch_norm_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<BatchNormAttrs>();
  TirTensor x = ctx.inputs[0], gamma = ctx.inputs[1], beta = ctx.inputs[2];
  TirTensor mean = ctx.inputs[3], variance = ctx.inputs[4];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  DType acc = accumulator(x->dtype);
  TirTensor y = tir::compute("T_batch_norm", x->shape(), [&](const Indices& i) {
    auto of = [&](const TirTensor& t) { return tir::cast(acc, t(i[axis])); };
    PrimExpr deviation = tir::call("sqrt", acc, {of(variance) + imm_float(acc, a.epsilon)});
    PrimExpr scale = div(a.scale ? of(gamma) : imm_float(acc, 1), deviation);
    PrimExpr v = (tir::cast(acc, x(i)) - of(mean)) * scale;
    return tir::cast(x->dtype, a.center ? v + of(beta) : v);
  });
  return std::vector<TirTensor>{y, same_elements(mean), same_elements(variance)};
}

Type dropout_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  return x == nullptr ? nullptr : Type(tuple_type({Type(x), Type(x)}));
}

std::vector<TirTensor> dropout_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  TirTensor mask = tir::compute("T_mask", x->shape(), [&](const Indices&) {
    return x->dtype.is_floating() ? imm_float(x->dtype, 1) : imm(x->dtype, 1);
  });
  return std::vector<TirTensor>{same_elements(x), mask};
}

// ---- Gradients

Adjoints softmax_gradient(const GradientContext& ctx) {
  int64_t axis = from_front(ctx.attrs<SoftmaxAttrs>().axis, rank_of(ctx.result));
  const Expr &g = ctx.adjoint(), &y = ctx.result;
  return {y * (g - sum_over(g * y, {axis}, true))};
}

Adjoints log_softmax_gradient(const GradientContext& ctx) {
  int64_t axis = from_front(ctx.attrs<SoftmaxAttrs>().axis, rank_of(ctx.result));
  const Expr &g = ctx.adjoint(), &y = ctx.result;
  return {g - apply("exp", {y}) * sum_over(g, {axis}, true)};
}

// Of a normalisation over `axes` of the data seen in the shape `view`: the mean and the part along
// the normalised data are taken out of the adjoint.
Adjoints normalize_gradient(const GradientContext& ctx, const std::vector<Dim>& view,
                            const Ints& axes, int64_t channel_axis, double epsilon, bool scale,
                            bool center) {
  const Expr &x = ctx.arg(0), &gamma = ctx.arg(1), &g = ctx.adjoint();
  int64_t rank = rank_of(x);
  bool same = view.size() == static_cast<size_t>(rank);
  auto seen = [&](const Expr& e) { return same ? e : reshape_to(e, view); };
  auto mean = [&](const Expr& e) {
    return apply("mean", {e}, {{"axis", to_value(axes)}, {"keepdims", true}});
  };
  Expr data = seen(x), centered = data - mean(data);
  Expr factor = apply("rsqrt", {epsilon + mean(centered * centered)});
  Expr normal = centered * factor;
  Expr scaled = seen(scale ? g * along(gamma, channel_axis, rank) : g);
  Expr dx = factor * (scaled - mean(scaled) - normal * mean(scaled * normal));
  Adjoints out{same ? dx : reshape_like(dx, x), nullptr, nullptr};
  if (scale) out[1] = sum_over_all_but(g * (same ? normal : reshape_like(normal, x)), channel_axis);
  if (center) out[2] = sum_over_all_but(g, channel_axis);
  return out;
}

Adjoints layer_norm_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<LayerNormAttrs>();
  int64_t axis = from_front(a.axis, rank_of(ctx.arg(0)));
  return normalize_gradient(ctx, type_of(ctx.arg(0)).shape, {axis}, axis, a.epsilon, a.scale,
                            a.center);
}

Adjoints instance_norm_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<InstanceNormAttrs>();
  int64_t rank = rank_of(ctx.arg(0)), axis = from_front(a.axis, rank);
  Ints axes;
  for (int64_t d = 1; d < rank; ++d) {
    if (d != axis) axes.push_back(d);
  }
  return normalize_gradient(ctx, type_of(ctx.arg(0)).shape, axes, axis, a.epsilon, a.scale,
                            a.center);
}

Adjoints group_norm_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<GroupNormAttrs>();
  std::vector<Dim> view = type_of(ctx.arg(0)).shape;
  if (std::ranges::any_of(view, is_any)) no_gradient(ctx, "only the data tells a size");
  view[1] = floor_div(view[1], dim(a.num_groups));
  view.insert(view.begin() + 1, dim(a.num_groups));
  Ints axes;
  for (size_t d = 2; d < view.size(); ++d) axes.push_back(static_cast<int64_t>(d));
  return normalize_gradient(ctx, view, axes, 1, a.epsilon, a.scale, a.center);
}

// The sum over the channels from `before` ahead of each to `after` behind it.
Expr channel_window(const Expr& e, int64_t axis, int64_t before, int64_t after) {
  const Dim channels = type_of(e).shape[static_cast<size_t>(axis)];
  Expr padded = pad_axis(e, axis, dim(before), dim(after)), out;
  for (int64_t k = 0; k <= before + after; ++k) {
    Expr part = slice_axis(padded, axis, dim(k), channels);
    out = out ? out + part : part;
  }
  return out;
}

Adjoints lrn_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<LRNAttrs>();
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  int64_t axis = from_front(a.axis, rank_of(x)), before = (a.size - 1) / 2;
  if (is_any(type_of(x).shape[static_cast<size_t>(axis)]))
    no_gradient(ctx, "only the data tells the number of channels");
  double slope = a.alpha / static_cast<double>(a.size);
  Expr base = a.bias + slope * channel_window(x * x, axis, before, a.size - 1 - before);
  auto power = [&](double exponent) { return apply("power", {base, scalar(exponent, x)}); };
  Expr inner = channel_window(g * x * power(-a.beta - 1), axis, a.size - 1 - before, before);
  return {g * power(-a.beta) - (2 * slope * a.beta) * (x * inner)};
}

Adjoints batch_norm_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<BatchNormAttrs>();
  const Expr &x = ctx.arg(0), &g = ctx.adjoints[0];
  Adjoints out{nullptr, nullptr, nullptr, ctx.adjoints[1], ctx.adjoints[2]};
  if (!g) return out;
  auto channel = [&](size_t i) { return along(ctx.arg(i), a.axis, rank_of(x)); };
  auto total = [&](const Expr& e) { return sum_over_all_but(e, a.axis); };
  auto add_to = [](Expr& sum, const Expr& e) { sum = sum ? sum + e : e; };
  Expr factor = apply("rsqrt", {a.epsilon + ctx.arg(4)});
  Expr scale = a.scale ? factor * ctx.arg(1) : factor;
  // By channel: the adjoint itself, and its part along the centered data.
  Expr plain = total(g), inner = total(g * (x - channel(3)));
  out[0] = g * along(scale, a.axis, rank_of(x));
  if (a.scale) out[1] = inner * factor;
  if (a.center) out[2] = plain;
  add_to(out[3], negative(plain * scale));
  add_to(out[4], -0.5 * (inner * scale * factor * factor));
  return out;
}

// Nothing is dropped, and the mask is a constant.
Adjoints dropout_gradient(const GradientContext& ctx) { return {ctx.adjoints[0]}; }

// ---- Batching

// A vector with lanes or without as it is broadcast to the data of a lane of that rank.
Expr lane_along(const Expr& v, int64_t axis, int64_t rank) {
  return rank_of(v) == 2 ? lanes_along(v, axis, rank) : along(v, from_front(axis, rank), rank);
}

// Data normalised in all lanes, neither scaled nor shifted, scaled and shifted by what is each lane's own,
// or one for all. As in the kernel of one lane, only the result is rounded to 16 bits.
template <class A>
Expr normalized_by_lane(const BatchingContext& ctx,
                        const std::function<Expr(std::vector<Expr> args)>& normalized) {
  auto& a = ctx.attrs<A>();
  const TensorTypeNode& of_one = type_of(ctx.call.args[0]);
  const DType wide = accumulator(of_one.dtype);
  // What is not scaled or shifted by, but has to be there.
  Expr none =
      apply("zeros", {},
            {{"shape", shape_value(type_of(ctx.call.args[1]).shape)}, {"dtype", wide.to_string()}});
  Expr y = normalized({cast_to(ctx.arg(0), wide), none, none});
  auto value = [&](size_t i) {
    return lane_along(cast_to(ctx.arg(i), wide), a.axis, of_one.rank());
  };
  if (a.scale) y = y * value(1);
  if (a.center) y = y + value(2);
  y = cast_to(y, of_one.dtype);
  return rank_of(y) == of_one.rank() ? in_all_lanes(y, ctx.lanes) : y;
}

Expr batch_layer_norm(const BatchingContext& ctx) {
  auto& a = ctx.attrs<LayerNormAttrs>();
  int64_t axis = ctx.batched[0] ? behind_lanes(a.axis) : a.axis;
  if (only_first(ctx)) return with_attrs(ctx.call, ctx.args, {{"axis", axis}});
  return normalized_by_lane<LayerNormAttrs>(ctx, [&](std::vector<Expr> args) {
    return with_attrs(ctx.call, std::move(args),
                      {{"axis", axis}, {"scale", false}, {"center", false}});
  });
}

// Lanes are more items.
template <class A>
Expr batch_items_norm(const BatchingContext& ctx) {
  if (only_first(ctx)) return batch_rows_of_first(ctx);
  if (!has_named_sizes(ctx.arg(0))) return nullptr;
  return normalized_by_lane<A>(ctx, [&](std::vector<Expr> args) {
    if (ctx.batched[0]) args[0] = fold_lanes(args[0], 0);
    Type lane = tensor_type(type_of(ctx.call.args[0]).shape, type_of(args[0]).dtype);
    Expr y = with_attrs(ctx.call, std::move(args), {{"scale", false}, {"center", false}});
    return ctx.batched[0] ? unfold_lanes(y, 0, ctx.lanes, lane) : y;
  });
}

// The statistics are given, for all lanes or for each: channels are scaled and shifted.
Expr batch_batch_norm(const BatchingContext& ctx) {
  auto& a = ctx.attrs<BatchNormAttrs>();
  auto statistics = [&](size_t i, const Expr& e) {
    return ctx.batched[i] ? e : in_all_lanes(e, ctx.lanes);
  };
  if (only_first(ctx)) {
    Expr all = with_attrs(ctx.call, ctx.args, {{"axis", behind_lanes(a.axis)}});
    return tuple({tuple_get_item(all, 0), statistics(3, tuple_get_item(all, 1)),
                  statistics(4, tuple_get_item(all, 2))});
  }
  const TensorTypeNode& of_one = type_of(ctx.call.args[0]);
  const DType wide = accumulator(of_one.dtype);
  std::vector<Expr> args;
  for (const Expr& e : ctx.args) args.push_back(cast_to(e, wide));
  // A lane's (channels,) and (lanes, channels) broadcast to each other.
  Expr deviation = apply("sqrt", {a.epsilon + args[4]});
  Expr factor = (a.scale ? args[1] : scalar(1, deviation)) / deviation;
  auto channel = [&](const Expr& v) { return lane_along(v, a.axis, of_one.rank()); };
  Expr y = (args[0] - channel(args[3])) * channel(factor);
  if (a.center) y = y + channel(args[2]);
  y = cast_to(y, of_one.dtype);
  if (rank_of(y) == of_one.rank()) y = in_all_lanes(y, ctx.lanes);
  return tuple({y, statistics(3, ctx.arg(3)), statistics(4, ctx.arg(4))});
}

}  // namespace

struct DropoutAttrs : AttrsOf<DropoutAttrs> {
  double rate = 0.5;
  static AttrsList describe() {
    return {"relay.attrs.DropoutAttrs",
            {attribute("rate", &Self::rate, "Share of elements that training drops.")}};
  }
};

template <>
std::span<const OpInfo> rows_of<Family::Norm>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.softmax",
          .doc = "exp(x) over its sum along an axis.",
          .args = {{"data", "The input."}},
          .attrs = &SoftmaxAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = softmax_relation,
          .compute = softmax_rule(false),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = softmax_gradient,
          .batching = batch_axis,
          .quantized = by_dialect("qnn.softmax"),
          .packing = softmax_of_few_columns,
          .approximation = "nn.fast_softmax",
          .examples = {{{"Tensor[(3, 7), float32]"}, ""},
                       {{"Tensor[(2, 3, 4), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.log_softmax",
          .doc = "Logarithm of softmax.",
          .args = {{"data", "The input."}},
          .attrs = &SoftmaxAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = softmax_relation,
          .compute = softmax_rule(true),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = log_softmax_gradient,
          .batching = batch_axis,
          .packing = softmax_of_few_columns,
          .examples = {{{"Tensor[(3, 7), float32]"}, ""},
                       {{"Tensor[(2, 3, 4), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.fast_softmax",
          .doc = "nn.softmax by fast_exp: compiled for float32 it may be off by 1e-5 of its size.",
          .args = {{"data", "The input."}},
          .attrs = &SoftmaxAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = softmax_relation,
          .compute = softmax_rule(false, "fast_exp"),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = softmax_gradient,
          .batching = batch_axis,
          .packing = softmax_of_few_columns,
          .examples = {{{"Tensor[(3, 7), float32]"}, ""},
                       {{"Tensor[(2, 3, 4), float32]"}, "axis=1"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.layer_norm",
          .doc =
              "Normalises along one axis to mean zero and deviation one, then scales and shifts.",
          .args = {{"data", "The input."},
                   {"gamma", "Scale along the axis."},
                   {"beta", "Shift along the axis."}},
          .attrs = &LayerNormAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = [](RelationContext& ctx) { return norm_relation<LayerNormAttrs>(ctx, 3); },
          .compute = compute_rule(layer_norm_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = layer_norm_gradient,
          .batching = batch_layer_norm,
          .examples = {{{"Tensor[(2, 3, 8), float32]", "Tensor[(8,), float32]",
                         "Tensor[(8,), float32]"},
                        ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.instance_norm",
          .doc =
              "Normalises each channel of each item over all other axes, then scales and shifts.",
          .args = {{"data", "The input."},
                   {"gamma", "Scale along the axis."},
                   {"beta", "Shift along the axis."}},
          .attrs = &InstanceNormAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = instance_norm_relation,
          .compute = compute_rule(instance_norm_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = instance_norm_gradient,
          .batching = batch_items_norm<InstanceNormAttrs>,
          .examples = {{{"Tensor[(2, 3, 4, 4), float32]", "Tensor[(3,), float32]",
                         "Tensor[(3,), float32]"},
                        ""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.group_norm",
          .doc = "Normalises each group of channels of each item, then scales and shifts.",
          .args = {{"data", "The input."},
                   {"gamma", "Scale along the axis."},
                   {"beta", "Shift along the axis."}},
          .attrs = &GroupNormAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = group_norm_relation,
          .compute = compute_rule(group_norm_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = group_norm_gradient,
          .batching = batch_items_norm<GroupNormAttrs>,
          .examples = {{{"Tensor[(2, 6, 4, 4), float32]", "Tensor[(6,), float32]",
                         "Tensor[(6,), float32]"},
                        "num_groups=3"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.lrn",
          .doc = "Divides by a power of the mean square over neighbouring channels.",
          .args = {{"data", "The input."}},
          .attrs = &LRNAttrs::static_info(),
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = lrn_relation,
          .compute = compute_rule(lrn_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = lrn_gradient,
          .batching = batch_axis,
          .examples = {{{"Tensor[(1, 6, 3, 3), float32]"}, "size=3, alpha=0.1f"},
                       {{"Tensor[(5, 2), float32]"}, "size=3, alpha=0.1f, axis=0"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.batch_norm",
          .doc = "Normalises channels by given statistics; gives the result and the statistics.",
          .args = {{"data", "The input."},
                   {"gamma", "Scale."},
                   {"beta", "Shift."},
                   {"moving_mean", "Mean of each channel."},
                   {"moving_var", "Variance of each channel."}},
          .attrs = &BatchNormAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = batch_norm_relation,
          .compute = compute_rule_multi(batch_norm_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = norm_cost,
          .gradient = batch_norm_gradient,
          .batching = batch_batch_norm,
          .examples = {{{"Tensor[(2, 3, 4), float32]", "Tensor[(3,), float32]",
                         "Tensor[(3,), float32]", "Tensor[(3,), float32]", "Tensor[(3,), float32]"},
                        "epsilon=0.001f",
                        0.5,
                        2.0}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.dropout",
          .doc = "The input and a mask; inference drops nothing.",
          .args = {{"data", "The input."}},
          .attrs = &DropoutAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = dropout_relation,
          .compute = compute_rule_multi(dropout_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = dropout_gradient,
          .batching = batch_as_it_is,
          .examples = {{{"Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
