// Reductions over axes.
#include <algorithm>
#include <cctype>

#include "analysis/known_rules.h"
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

// Which axes are reduced; fails in `ctx` for axes out of range or given twice.
std::optional<std::vector<bool>> reduced_axes(RelationContext& ctx, int64_t rank,
                                              const std::optional<Ints>& axis, bool exclude) {
  std::vector<bool> out(static_cast<size_t>(rank), !axis.has_value() && !exclude);
  if (!axis) return out;
  for (int64_t a : *axis) {
    auto at = normal_axis(ctx, a, rank);
    if (!at) return std::nullopt;
    if (!require(ctx, !out[static_cast<size_t>(*at)], codes::op_bad_attribute,
                 "an axis is given twice", "", std::to_string(a)))
      return std::nullopt;
    out[static_cast<size_t>(*at)] = true;
  }
  if (exclude) out.flip();
  return out;
}

std::vector<bool> mask_of(int64_t rank, const std::optional<Ints>& axis, bool exclude) {
  std::vector<bool> out(static_cast<size_t>(rank), !axis.has_value() && !exclude);
  if (axis) {
    for (int64_t a : *axis) out[static_cast<size_t>(from_front(a, rank))] = true;
    if (exclude) out.flip();
  }
  return out;
}

template <class A>
Type reduce_type(RelationContext& ctx, std::optional<DType> dtype) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t == nullptr) return nullptr;
  auto& a = ctx.attrs<A>();
  auto axes = reduced_axes(ctx, t->rank(), a.axis, a.exclude);
  if (!axes) return nullptr;
  std::vector<Dim> shape;
  for (size_t i = 0; i < axes->size(); ++i) {
    if (!(*axes)[i]) shape.push_back(t->shape[i]);
    if ((*axes)[i] && a.keepdims) shape.push_back(dim(1));
  }
  return tensor_type(std::move(shape), dtype.value_or(t->dtype));
}

// The number of elements that are reduced to one.
Dim reduced_count(const TensorTypeNode& t, const std::vector<bool>& axes) {
  Dim n = dim(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i]) n = n * t.shape[i];
  }
  return n;
}

// The index into the input from the result's index and the reduction's.
Indices full_index(const std::vector<bool>& axes, bool keepdims, const Indices& i,
                   const Indices& k) {
  Indices out;
  size_t at = 0, r = 0;
  for (bool reduced : axes) {
    if (reduced) {
      out.push_back(k[r++]);
      if (keepdims) ++at;
    } else {
      out.push_back(i[at++]);
    }
  }
  return out;
}

std::vector<PrimExpr> extents_of(const TirTensor& x, const std::vector<bool>& axes) {
  std::vector<PrimExpr> out;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d]) out.push_back(x->shape()[d]);
  }
  return out;
}

PrimExpr count_of(const TirTensor& x, const std::vector<bool>& axes) {
  PrimExpr n = index(1);
  for (const PrimExpr& e : extents_of(x, axes)) n = n * e;
  return n;
}

// The reduction in dtype `acc`; of no axes, the elements themselves.
TirTensor reduce_in(DType acc, const ComputeContext& ctx, const TirTensor& x,
                    const std::vector<bool>& axes, bool keepdims, Combiner c) {
  bool any = std::find(axes.begin(), axes.end(), true) != axes.end();
  if (!any)
    return tir::compute("T_copy", x->shape(),
                        [&](const Indices& i) { return tir::cast(acc, x(i)); });
  return tir::compute("T_reduce", ctx.outputs[0].shape, [&](const Indices& i) {
    return tir::reduce(c, extents_of(x, axes), [&](const Indices& k) {
      return tir::cast(acc, x(full_index(axes, keepdims, i, k)));
    });
  });
}

// What a mean is computed in: wide enough that neither the sum nor the count overflows.
DType mean_accumulator(DType d) { return d.is_floating() ? accumulator(d) : DType::Int(64); }

// A sum over its count, in the result's dtype.
TirTensor averaged(const TirTensor& total, const PrimExpr& count, DType out) {
  PrimExpr n = tir::cast(total->dtype, count);
  return tir::compute("T_mean", total->shape(),
                      [&](const Indices& i) { return tir::cast(out, div(total(i), n)); });
}

struct ReduceAttrs : AttrsOf<ReduceAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false;
  static AttrsList describe() {
    return {"relay.attrs.ReduceAttrs",
            {attribute("axis", &Self::axis, "Axes to reduce; None: all."),
             attribute("keepdims", &Self::keepdims, "Keep reduced axes with size one."),
             attribute("exclude", &Self::exclude, "Reduce all axes but these.")}};
  }
};

// Of the greatest and the least, which nothing has.
struct ExtremumAttrs : AttrsOf<ExtremumAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false, identity_if_empty = false;
  static AttrsList describe() {
    return {
        "relay.attrs.ExtremumAttrs",
        {attribute("axis", &Self::axis, "Axes to reduce; None: all."),
         attribute("keepdims", &Self::keepdims, "Keep reduced axes with size one."),
         attribute("exclude", &Self::exclude, "Reduce all axes but these."),
         attribute("identity_if_empty", &Self::identity_if_empty,
                   "Of no elements max gives the least value of the dtype and min the greatest. "
                   "Without it they are an error, found in the run where the size is open.")}};
  }
};

template <class A>
std::shared_ptr<const ComputeRule> combine_rule(Combiner c, bool mean) {
  return compute_rule([c, mean](const ComputeContext& ctx) {
    auto& a = ctx.attrs<A>();
    TirTensor x = ctx.inputs[0];
    std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
    DType acc = mean ? mean_accumulator(x->dtype) : accumulator(x->dtype);
    TirTensor r = reduce_in(acc, ctx, x, axes, a.keepdims, c);
    if (mean) return averaged(r, count_of(x, axes), x->dtype);
    if (acc == x->dtype) return r;
    return tir::compute("T_cast", r->shape(),
                        [&](const Indices& i) { return tir::cast(x->dtype, r(i)); });
  });
}

struct ArgReduceAttrs : AttrsOf<ArgReduceAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false, select_last_index = false, exclude = false;
  static AttrsList describe() {
    return {
        "relay.attrs.ArgReduceAttrs",
        {attribute("axis", &Self::axis, "Axes to reduce; None: all."),
         attribute("keepdims", &Self::keepdims, "Keep reduced axes with size one."),
         attribute("select_last_index", &Self::select_last_index, "The last of equal values wins."),
         attribute("exclude", &Self::exclude, "Reduce all axes but these.")}};
  }
};

struct VarianceAttrs : AttrsOf<VarianceAttrs> {
  std::optional<Ints> axis;
  bool keepdims = false, exclude = false, unbiased = false;
  static AttrsList describe() {
    return {"relay.attrs.VarianceAttrs",
            {attribute("axis", &Self::axis, "Axes to reduce; None: all."),
             attribute("keepdims", &Self::keepdims, "Keep reduced axes with size one."),
             attribute("exclude", &Self::exclude, "Reduce all axes but these."),
             attribute("unbiased", &Self::unbiased, "Divide by the count less one.")}};
  }
};

Type same_dtype(RelationContext& ctx) { return reduce_type<ReduceAttrs>(ctx, std::nullopt); }
Type bool_only(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t != nullptr && !require(ctx, t->dtype.is_bool(), codes::type_dtype, "needs a bool tensor",
                               "bool", t->dtype.to_string()))
    return nullptr;
  return same_dtype(ctx);
}
// Something is reduced to each element.
bool some_reduced(RelationContext& ctx, const Dim& count, const TensorTypeNode& t,
                  const char* otherwise) {
  return require(ctx, ctx.at_least(count, dim(1)), codes::type_shape, otherwise,
                 "1 element or more", shape_text(t.shape));
}
Type extremum_type(RelationContext& ctx) {
  Type result = reduce_type<ExtremumAttrs>(ctx, std::nullopt);
  if (!result) return nullptr;
  auto& a = ctx.attrs<ExtremumAttrs>();
  const TensorTypeNode* t = ctx.tensor(0);
  if (a.identity_if_empty) return result;
  Dim count = reduced_count(*t, mask_of(t->rank(), a.axis, a.exclude));
  return some_reduced(ctx, count, *t, "no element is the greatest or least of none") ? result
                                                                                     : nullptr;
}
// bool has no sums; whole numbers have no mean of nothing.
Type number_only(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t != nullptr && t->dtype.is_bool())
    return ctx.fail(codes::type_dtype, "needs numbers", "an integer or floating dtype", "bool",
                    "cast to int32 to count, or use any or all");
  return same_dtype(ctx);
}
Type mean_type(RelationContext& ctx) {
  Type result = number_only(ctx);
  if (!result) return nullptr;
  auto& a = ctx.attrs<ReduceAttrs>();
  const TensorTypeNode* t = ctx.tensor(0);
  if (t->dtype.is_floating()) return result;
  Dim count = reduced_count(*t, mask_of(t->rank(), a.axis, a.exclude));
  return some_reduced(ctx, count, *t, "integers have no mean over nothing") ? result : nullptr;
}
// Where the greatest is: there must be one, and its index must fit int32.
Type index_type(RelationContext& ctx) {
  Type result = reduce_type<ArgReduceAttrs>(ctx, DType::Int(32));
  if (!result) return nullptr;
  auto& a = ctx.attrs<ArgReduceAttrs>();
  const TensorTypeNode* t = ctx.tensor(0);
  Dim count = reduced_count(*t, mask_of(t->rank(), a.axis, a.exclude));
  if (!some_reduced(ctx, count, *t, "no element is the greatest or least of none") ||
      !require(ctx, ctx.at_least(dim((int64_t{1} << 31) - 1), count), codes::type_overflow,
               "the index does not fit int32", "fewer than 2^31 elements", to_string(count)))
    return nullptr;
  return result;
}
Type variance_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *mean = ctx.tensor(1);
  if (x == nullptr || mean == nullptr) return nullptr;
  if (!require(ctx, x->dtype.is_floating() && x->dtype == mean->dtype, codes::type_dtype,
               "needs data and mean of one floating dtype", "float32",
               x->dtype.to_string() + " and " + mean->dtype.to_string()))
    return nullptr;
  auto both = broadcast_shapes(ctx, x->shape, mean->shape);
  bool fits = both && both->size() == x->shape.size();
  for (size_t d = 0; fits && d < both->size(); ++d) fits = ctx.equal((*both)[d], x->shape[d]);
  if (!require(ctx, fits, codes::type_shape, "the mean does not broadcast to the data",
               shape_text(x->shape), shape_text(mean->shape)))
    return nullptr;
  return reduce_type<VarianceAttrs>(ctx, std::nullopt);
}

// Reduced axes move with the layout; the result loses its layout unless all stay in place.
template <class A>
std::optional<LayoutDecision> reduce_layout(const CallNode& call, std::span<const Layout> offered,
                                            const Layout&) {
  auto& a = static_cast<const A&>(*call.attrs.get());
  if (offered.empty() || !offered[0].defined() || !a.keepdims || a.exclude || !a.axis)
    return std::nullopt;
  const Layout& l = offered[0];
  int64_t rank = as<TensorTypeNode>(call.args[0]->type)->rank();
  if (l.rank() != rank) return std::nullopt;
  Ints axes;
  for (int64_t axis : *a.axis) {
    auto place = axis_in(l, axis, rank);
    if (!place) return std::nullopt;
    axes.push_back(*place);
  }
  LayoutDecision out;
  out.inputs = out.outputs = {l};
  out.attrs = make<A>([&](A& n) {
    n.axis = axes;
    n.keepdims = true;
    if constexpr (requires { n.identity_if_empty; }) n.identity_if_empty = a.identity_if_empty;
  });
  return out;
}

double reduce_cost(const CallNode& c) { return num_elements(c.args[0]->type); }

// ---- Gradients

// A reduction, seen from its gradient.
struct Reduced {
  const Expr& x;
  std::vector<bool> axes;
  bool keepdims;

  // What has the result's shape, in that of the data.
  Expr spread(const Expr& e) const {
    std::vector<Dim> shape = type_of(x).shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      if (axes[d]) shape[d] = dim(1);
    }
    Expr kept = e;
    if (!keepdims) {
      // One axis after the other, since a size may be `?`.
      for (size_t d = 0; d < axes.size(); ++d) {
        if (axes[d]) kept = apply("expand_dims", {kept}, {{"axis", static_cast<int64_t>(d)}});
      }
    }
    return broadcast_like(kept, x);
  }
  Expr total(const Expr& e) const {
    Ints list;
    for (size_t d = 0; d < axes.size(); ++d) {
      if (axes[d]) list.push_back(static_cast<int64_t>(d));
    }
    return list.empty() ? e : sum_over(e, list, keepdims);
  }
  // How many elements become one, as a scalar of the dtype of the data.
  Expr count() const {
    Dim n = reduced_count(type_of(x), axes);
    if (!is_any(n)) return size_as(n, x);
    auto size = [&](const Expr& e) {
      return cast_to(apply("ndarray_size", {e}, {{"dtype", "int64"}}), type_of(x).dtype);
    };
    return size(x) / size(total(x));
  }
};

template <class A>
Reduced reduced_of(const GradientContext& ctx) {
  auto& a = ctx.attrs<A>();
  return {ctx.arg(0), mask_of(rank_of(ctx.arg(0)), a.axis, a.exclude), a.keepdims};
}

Adjoints sum_gradient(const GradientContext& ctx) {
  return {reduced_of<ReduceAttrs>(ctx).spread(ctx.adjoint())};
}

Adjoints mean_gradient(const GradientContext& ctx) {
  Reduced r = reduced_of<ReduceAttrs>(ctx);
  return {r.spread(ctx.adjoint() / r.count())};
}

// Elements that tie share the adjoint.
Adjoints extremum_gradient(const GradientContext& ctx) {
  Reduced r = reduced_of<ExtremumAttrs>(ctx);
  const Expr& g = ctx.adjoint();
  Expr best = indicator(is_equal(r.x, r.spread(ctx.result)), g);
  return {best * r.spread(g / r.total(best))};
}

// The product of all elements but one: along an axis those before it and those behind it, times the
// product of the other lines, one axis after the other, since sizes may be `?`. Right for zeros, too.
Adjoints prod_gradient(const GradientContext& ctx) {
  Reduced r = reduced_of<ReduceAttrs>(ctx);
  Expr lines = r.x, adjoint = r.spread(ctx.adjoint());
  for (size_t d = r.axes.size(); d-- > 0;) {
    if (!r.axes[d]) continue;
    const auto axis = static_cast<int64_t>(d);
    auto before = [&](const Expr& e) {
      return apply("cumprod", {e}, {{"axis", axis}, {"exclusive", true}});
    };
    auto reversed = [&](const Expr& e) { return apply("reverse", {e}, {{"axis", axis}}); };
    adjoint = adjoint * (before(lines) * reversed(before(reversed(lines))));
    lines = apply("prod", {lines}, {{"axis", to_value(Ints{axis})}, {"keepdims", true}});
  }
  return {adjoint};
}

Adjoints variance_gradient(const GradientContext& ctx) {
  Reduced r = reduced_of<VarianceAttrs>(ctx);
  const Expr& mean = ctx.arg(1);
  Expr n = r.count();
  if (ctx.attrs<VarianceAttrs>().unbiased) n = n - scalar(1, n);
  Expr d = r.spread(2.0 * ctx.adjoint() / n) * (r.x - mean);
  return {d, negative(unbroadcast(d, mean))};
}

// A reduction by one combiner, or a mean; the dtype is that of its examples.
struct Reduction {
  const char* name;
  const char* doc;
  Type (*relation)(RelationContext& ctx);
  Combiner combiner;
  bool mean = false;
  const char* dtype = "float32";
  Precision precision = Precision::Follow;
  Column<Adjoints (*)(const GradientContext&)> gradient;
  const BinaryElement* known = nullptr;
  QuantizedResult (*quantized)(const QuantizedCall& q) = nullptr;
  Algebra::OneElement of_one_element = Algebra::OneElement::Changes;
};

// Of one element: sums and products of floats begin with 0 or 1, and 0.0 takes the sign from -0.0.
constexpr auto kStaysInteger = Algebra::OneElement::StaysInteger;
constexpr auto kStays = Algebra::OneElement::Stays;

constexpr Reduction kReductions[] = {
    {.name = "sum",
     .doc = "Sum over axes.",
     .relation = number_only,
     .combiner = Combiner::Sum,
     .precision = Precision::Never,
     .gradient = sum_gradient,
     .known = &binary_elements::add,
     .quantized = quantized_sum,
     .of_one_element = kStaysInteger},
    {.name = "mean",
     .doc = "Mean over axes.",
     .relation = mean_type,
     .combiner = Combiner::Sum,
     .mean = true,
     .precision = Precision::Never,
     .gradient = mean_gradient,
     .quantized = quantized_mean},
    {.name = "prod",
     .doc = "Product over axes.",
     .relation = number_only,
     .combiner = Combiner::Prod,
     .precision = Precision::Never,
     .gradient = prod_gradient,
     .known = &binary_elements::multiply,
     .of_one_element = kStaysInteger},
    {.name = "max",
     .doc = "Greatest over axes; of no elements an error.",
     .relation = extremum_type,
     .combiner = Combiner::Max,
     .gradient = extremum_gradient,
     .known = &binary_elements::maximum,
     .of_one_element = kStays},
    {.name = "min",
     .doc = "Least over axes; of no elements an error.",
     .relation = extremum_type,
     .combiner = Combiner::Min,
     .gradient = extremum_gradient,
     .known = &binary_elements::minimum,
     .of_one_element = kStays},
    {.name = "all",
     .doc = "Whether all hold.",
     .relation = bool_only,
     .combiner = Combiner::And,
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable},
    {.name = "any",
     .doc = "Whether any holds.",
     .relation = bool_only,
     .combiner = Combiner::Or,
     .dtype = "bool",
     .gradient = Absent::NotDifferentiable},
};

// ---- Batching

// The axes of a lane.
Expr batch_reduction(const BatchingContext& ctx) {
  int64_t rank = rank_of(ctx.call.args[0]);
  const std::vector<bool> reduced =
      mask_of(rank, ints_attr(ctx.call, "axis"), bool_attr(ctx.call, "exclude"));
  Ints axes;
  for (int64_t d = 0; d < rank; ++d) {
    if (reduced[static_cast<size_t>(d)]) axes.push_back(d + 1);
  }
  std::vector<Expr> args = all_in_lanes(ctx);
  // A mean of fewer axes than the data stands behind those that it lacks.
  for (size_t i = 1; i < args.size(); ++i) {
    std::vector<Dim> shape = type_of(args[i]).shape;
    if (std::ranges::any_of(shape, is_any)) return nullptr;
    shape.insert(shape.begin() + 1, static_cast<size_t>(rank + 1) - shape.size(), dim(1));
    args[i] = reshape_to(args[i], shape);
  }
  return with_attrs(ctx.call, std::move(args), {{"axis", to_value(axes)}, {"exclude", false}});
}

template <class A>
OpInfo reduction_row(const Reduction& op) {
  Column<GradientRule> gradient = op.gradient.reason();
  if (op.gradient) gradient = op.gradient.get();
  std::optional<ElementMoves> moves;
  if (op.combiner == Combiner::Max || op.combiner == Combiner::Min)
    moves = ElementMoves{.by_order = true};
  std::string type = "Tensor[(2, 3, 4), " + std::string(op.dtype) + "]";
  return {
      .name = op.name,
      .doc = op.doc,
      .args = {{"data", "The input."}},
      .attrs = &A::static_info(),
      .fusion = FusionClass::CommReduce,
      .effect = Effect::Pure,
      .relation = op.relation,
      .compute = combine_rule<A>(op.combiner, op.mean),
      .layout = reduce_layout<A>,
      .memory = Absent::OnePiece,
      .precision = op.precision,
      .cost = reduce_cost,
      .gradient = std::move(gradient),
      .batching = batch_reduction,
      .moves = std::move(moves),
      .known = op.known == nullptr ? nullptr : known_rules::reduction(*op.known),
      .quantized = op.quantized,
      .algebra = {.of_one_element = op.of_one_element},
      .examples = {{{type}, "axis=[1]"}, {{type}, "axis=[-1, 0], keepdims=True"}, {{type}, ""}},
      .expected = Absent::ByNumPy,
  };
}

std::shared_ptr<const ComputeRule> arg_rule(bool greatest) {
  return compute_rule([greatest](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ArgReduceAttrs>();
    TirTensor x = ctx.inputs[0];
    std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
    std::vector<PrimExpr> extents = extents_of(x, axes);
    // The best value, then the first (or last) place of it, several axes in row-major order. The
    // best value of what has a NaN is NaN, and its place is that of the NaN.
    DType place = DType::Int(32);
    if (extents.empty()) {  // each element is the best of itself
      return tir::compute("T_index", ctx.outputs[0].shape,
                          [&](const Indices&) { return imm(place, 0); });
    }
    PrimExpr none = a.select_last_index ? imm(place, -1) : tir::cast(place, count_of(x, axes));
    PrimExpr first = a.select_last_index ? tir::cast(place, count_of(x, axes) - 1) : imm(place, 0);
    auto element = [&](const Indices& i, const Indices& k) {
      return x(full_index(axes, a.keepdims, i, k));
    };
    TirTensor best = tir::compute("T_best", ctx.outputs[0].shape, [&](const Indices& i) {
      return reduce(greatest ? Combiner::Max : Combiner::Min, extents,
                    [&](const Indices& k) { return element(i, k); });
    });
    TirTensor found = tir::compute("T_arg", best->shape(), [&](const Indices& i) {
      return reduce(a.select_last_index ? Combiner::Max : Combiner::Min, extents,
                    [&](const Indices& k) {
                      PrimExpr flat = index(0);
                      for (size_t d = 0; d < k.size(); ++d) flat = flat * extents[d] + k[d];
                      PrimExpr v = element(i, k), is_best = eq(v, best(i));
                      if (v->dtype.is_floating()) is_best = logical_or(is_best, ne(v, v));
                      return select(is_best, tir::cast(place, flat), none);
                    });
    });
    return tir::compute("T_index", found->shape(), [&](const Indices& i) {
      return select(eq(found(i), none), first, found(i));
    });
  });
}

TirTensor variance_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<VarianceAttrs>();
  TirTensor x = ctx.inputs[0], mean = ctx.inputs[1];
  std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
  DType acc = accumulator(x->dtype);
  TirTensor square = tir::compute("T_square", x->shape(), [&](const Indices& i) {
    PrimExpr d = tir::cast(acc, x(i)) - tir::cast(acc, broadcast_read(mean, i, x->shape()));
    return d * d;
  });
  TirTensor s = reduce_in(acc, ctx, square, axes, a.keepdims, Combiner::Sum);
  return averaged(s, count_of(x, axes) - (a.unbiased ? 1 : 0), x->dtype);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Reduce>() {
  static const std::vector<OpInfo> rows = [] {
    std::vector<OpInfo> out;
    for (const Reduction& op : kReductions) {
      const bool extremum = op.combiner == Combiner::Max || op.combiner == Combiner::Min;
      out.push_back(extremum ? reduction_row<ExtremumAttrs>(op) : reduction_row<ReduceAttrs>(op));
    }
    return out;
  }();
  return rows;
}

template <>
std::span<const OpInfo> rows_of<Family::ArgReduce>() {
  static const OpInfo rows[] = {
      {
          .name = "argmax",
          .doc = "Where the greatest, or a NaN, is, as int32.",
          .args = {{"data", "The input."}},
          .attrs = &ArgReduceAttrs::static_info(),
          .fusion = FusionClass::CommReduce,
          .effect = Effect::Pure,
          .relation = index_type,
          .compute = arg_rule(true),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = reduce_cost,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_reduction,
          .moves = ElementMoves{.by_order = true},
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, "axis=[1]"},
                       {{"Tensor[(2, 5), float32]"}, "axis=[-1], keepdims=True"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "argmin",
          .doc = "Where the least, or a NaN, is, as int32.",
          .args = {{"data", "The input."}},
          .attrs = &ArgReduceAttrs::static_info(),
          .fusion = FusionClass::CommReduce,
          .effect = Effect::Pure,
          .relation = index_type,
          .compute = arg_rule(false),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = reduce_cost,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_reduction,
          .moves = ElementMoves{.by_order = true},
          .examples = {{{"Tensor[(2, 3, 4), float32]"}, "axis=[1]"},
                       {{"Tensor[(2, 5), float32]"}, "axis=[-1], keepdims=True"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "variance",
          .doc = "Mean of squared differences from a given mean.",
          .args = {{"data", "The input."}, {"mean", "Its mean, with reduced axes kept."}},
          .attrs = &VarianceAttrs::static_info(),
          .fusion = FusionClass::CommReduce,
          .effect = Effect::Pure,
          .relation = variance_type,
          .compute = compute_rule(variance_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = reduce_cost,
          .gradient = variance_gradient,
          .batching = batch_reduction,
          .examples = {{{"Tensor[(2, 3), float32]", "Tensor[(2, 1), float32]"},
                        "axis=[1], keepdims=True"},
                       {{"Tensor[(2, 3), float32]", "Tensor[(3,), float32]"}, "axis=[0, 1]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
