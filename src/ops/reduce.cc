// Reductions over axes.
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

// 16-bit floats are summed in float32.
DType accumulator(DType d) { return d.is_floating() && d.bits == 16 ? DType::Float(32) : d; }

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

std::shared_ptr<const ComputeRule> combine_rule(Combiner c, bool mean) {
  return compute_rule([c, mean](const ComputeContext& ctx) {
    auto& a = ctx.attrs<ReduceAttrs>();
    TirTensor x = ctx.inputs[0];
    std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
    DType acc = mean                                        ? mean_accumulator(x->dtype)
                : c == Combiner::Sum || c == Combiner::Prod ? accumulator(x->dtype)
                                                            : x->dtype;
    TirTensor r = reduce_in(acc, ctx, x, axes, a.keepdims, c);
    if (mean) return averaged(r, count_of(x, axes), x->dtype);
    if (acc == x->dtype) return r;
    return tir::compute("T_cast", r->shape(),
                        [&](const Indices& i) { return tir::cast(x->dtype, r(i)); });
  });
}

Type same_dtype(RelationContext& ctx) { return reduce_type<ReduceAttrs>(ctx, std::nullopt); }
Type bool_only(RelationContext& ctx) {
  const TensorTypeNode* t = ctx.tensor(0);
  if (t != nullptr && !require(ctx, t->dtype.is_bool(), codes::type_dtype, "needs a bool tensor",
                               "bool", t->dtype.to_string()))
    return nullptr;
  return same_dtype(ctx);
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
  return require(ctx, ctx.at_least(count, dim(1)), codes::type_shape,
                 "integers have no mean over nothing", "1 element or more", shape_text(t->shape))
             ? result
             : nullptr;
}
// Where the greatest is: there must be one, and its index must fit int32.
Type index_type(RelationContext& ctx) {
  Type result = reduce_type<ArgReduceAttrs>(ctx, DType::Int(32));
  if (!result) return nullptr;
  auto& a = ctx.attrs<ArgReduceAttrs>();
  const TensorTypeNode* t = ctx.tensor(0);
  Dim count = reduced_count(*t, mask_of(t->rank(), a.axis, a.exclude));
  if (!require(ctx, ctx.at_least(count, dim(1)), codes::type_shape,
               "no element is the greatest or least of none", "1 element or more",
               shape_text(t->shape)) ||
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
std::optional<LayoutDecision> reduce_layout(const CallNode& call, std::span<const Layout> offered,
                                            const Layout&) {
  auto& a = static_cast<const ReduceAttrs&>(*call.attrs.get());
  if (offered.empty() || !offered[0].defined() || !a.keepdims || a.exclude || !a.axis)
    return std::nullopt;
  const Layout& l = offered[0];
  int64_t rank = as<TensorTypeNode>(call.args[0]->type)->rank();
  std::string original = rank == 4 ? "NCHW" : rank == 3 ? "NCW" : rank == 5 ? "NCDHW" : "";
  if (original.empty() || l.rank() != rank) return std::nullopt;
  Ints axes;
  for (int64_t axis : *a.axis)
    axes.push_back(l.index_of(original[static_cast<size_t>(from_front(axis, rank))]));
  LayoutDecision out;
  out.inputs = out.outputs = {l};
  out.attrs = make<ReduceAttrs>([&](ReduceAttrs& n) {
    n.axis = axes;
    n.keepdims = true;
  });
  return out;
}

}  // namespace

void add_reduce(OpRegistry& registry) {
  struct Row {
    const char* name;
    const char* doc;
    TypeRelation relation;
    Combiner combiner;
    bool mean;
    const char* dtype;
  };
  const Row rows[] = {
      {"sum", "Sum over axes.", number_only, Combiner::Sum, false, "float32"},
      {"mean", "Mean over axes.", mean_type, Combiner::Sum, true, "float32"},
      {"prod", "Product over axes.", number_only, Combiner::Prod, false, "float32"},
      {"max", "Greatest over axes.", same_dtype, Combiner::Max, false, "float32"},
      {"min", "Least over axes.", same_dtype, Combiner::Min, false, "float32"},
      {"all", "Whether all hold.", bool_only, Combiner::And, false, "bool"},
      {"any", "Whether any holds.", bool_only, Combiner::Or, false, "bool"},
  };
  OpInfo op;
  op.args = {{"data", "The input."}};
  op.fusion = FusionClass::CommReduce;
  op.cost = [](const CallNode& c) { return num_elements(c.args[0]->type); };
  for (const Row& row : rows) {
    op.name = row.name;
    op.doc = row.doc;
    op.attrs = &ReduceAttrs::static_info();
    op.relation = row.relation;
    op.layout = reduce_layout;
    op.compute = combine_rule(row.combiner, row.mean);
    std::string t = "Tensor[(2, 3, 4), " + std::string(row.dtype) + "]";
    op.examples = {{{t}, "axis=[1]"}, {{t}, "axis=[-1, 0], keepdims=True"}, {{t}, ""}};
    registry.add(op);
  }
  op.layout = nullptr;
  op.attrs = &ArgReduceAttrs::static_info();
  op.relation = index_type;
  for (bool greatest : {true, false}) {
    op.name = greatest ? "argmax" : "argmin";
    op.doc = greatest ? "Where the greatest is, as int32." : "Where the least is, as int32.";
    op.examples = {{{"Tensor[(2, 3, 4), float32]"}, "axis=[1]"},
                   {{"Tensor[(2, 5), float32]"}, "axis=[-1], keepdims=True"}};
    op.compute = compute_rule([greatest](const ComputeContext& ctx) {
      auto& a = ctx.attrs<ArgReduceAttrs>();
      TirTensor x = ctx.inputs[0];
      std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
      std::vector<PrimExpr> extents = extents_of(x, axes);
      // The best value, then the first (or last) place of it, several axes in row-major order. A
      // NaN is never the best.
      DType place = DType::Int(32);
      if (extents.empty()) {  // each element is the best of itself
        return tir::compute("T_index", ctx.outputs[0].shape,
                            [&](const Indices&) { return imm(place, 0); });
      }
      PrimExpr none = a.select_last_index ? imm(place, -1) : tir::cast(place, count_of(x, axes));
      PrimExpr first =
          a.select_last_index ? tir::cast(place, count_of(x, axes) - 1) : imm(place, 0);
      PrimExpr worst = greatest ? min_value(x->dtype) : max_value(x->dtype);
      auto element = [&](const Indices& i, const Indices& k) {
        return x(full_index(axes, a.keepdims, i, k));
      };
      TirTensor best = tir::compute("T_best", ctx.outputs[0].shape, [&](const Indices& i) {
        return reduce(greatest ? Combiner::Max : Combiner::Min, extents, [&](const Indices& k) {
          PrimExpr v = element(i, k);
          return v->dtype.is_floating() ? select(eq(v, v), v, worst) : v;
        });
      });
      TirTensor found = tir::compute("T_arg", best->shape(), [&](const Indices& i) {
        return reduce(a.select_last_index ? Combiner::Max : Combiner::Min, extents,
                      [&](const Indices& k) {
                        PrimExpr flat = index(0);
                        for (size_t d = 0; d < k.size(); ++d) flat = flat * extents[d] + k[d];
                        return select(eq(element(i, k), best(i)), tir::cast(place, flat), none);
                      });
      });
      return tir::compute("T_index", found->shape(), [&](const Indices& i) {
        return select(eq(found(i), none), first, found(i));
      });
    });
    registry.add(op);
  }
  op.name = "variance";
  op.doc = "Mean of squared differences from a given mean.";
  op.args = {{"data", "The input."}, {"mean", "Its mean, with reduced axes kept."}};
  op.attrs = &VarianceAttrs::static_info();
  op.relation = variance_type;
  op.examples = {
      {{"Tensor[(2, 3), float32]", "Tensor[(2, 1), float32]"}, "axis=[1], keepdims=True"}};
  op.compute = compute_rule([](const ComputeContext& ctx) {
    auto& a = ctx.attrs<VarianceAttrs>();
    TirTensor x = ctx.inputs[0], mean = ctx.inputs[1];
    std::vector<bool> axes = mask_of(x->rank(), a.axis, a.exclude);
    DType acc = accumulator(x->dtype);
    TirTensor square = tir::compute("T_square", x->shape(), [&](const Indices& i) {
      PrimExpr d = tir::cast(acc, x(i)) - tir::cast(acc, broadcast_read(mean, i));
      return d * d;
    });
    TirTensor s = reduce_in(acc, ctx, square, axes, a.keepdims, Combiner::Sum);
    return averaged(s, count_of(x, axes) - (a.unbiased ? 1 : 0), x->dtype);
  });
  registry.add(op);
}

}  // namespace relay::ops
