// The places of the greatest elements of a pool's windows, and the operators that move values between windows and these
// elements: what the gradient of a maximum is made of. Each of the latter is linear in the values that it moves, and the
// other is its gradient.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/follow_layout.h"
#include "ops/image/pool.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct MaxPoolPlacesAttrs : AttrsOf<MaxPoolPlacesAttrs, PoolAttrs> {
  MaxPoolPlacesAttrs() : AttrsOf(2, "NCHW") {}
  static AttrsList describe() {
    return {"relay.attrs.MaxPoolPlacesAttrs",
            {attribute("pool_size", &Self::pool_size, "Size of the window, of one to three axes."),
             attribute("strides", &Self::strides, "Steps between windows."),
             attribute("dilation", &Self::dilation, "Distance between the elements of a window."),
             attribute("padding", &Self::padding,
                       "Border: one number, one for each axis, or begins then ends."),
             attribute("layout", &Self::layout, "Layout of the data."),
             attribute("ceil_mode", &Self::ceil_mode, "Windows may hang over the end.")}};
  }
};

size_t dims_of(const PoolAttrs& a) { return a.pool_size.size(); }

// The shape of the windows of data; fails in `ctx` where attributes do not fit.
std::optional<std::vector<Dim>> places_windows(RelationContext& ctx, const PoolAttrs& a,
                                               const TensorTypeNode& x) {
  constexpr size_t kMostDims = 3;
  if (!require(ctx, dims_of(a) >= 1 && dims_of(a) <= kMostDims, codes::op_bad_attribute,
               "pool_size has another number of axes", "1 to 3 sizes", std::to_string(dims_of(a))))
    return std::nullopt;
  return pooled_shape(ctx, a, dims_of(a), x);
}

bool fits_as(RelationContext& ctx, const TensorTypeNode& t, const std::vector<Dim>& shape,
             DType dtype) {
  bool same = t.shape.size() == shape.size();
  for (size_t i = 0; same && i < shape.size(); ++i) same = ctx.equal(t.shape[i], shape[i]);
  return require(ctx, same, codes::type_shape, "the argument has another shape", shape_text(shape),
                 shape_text(t.shape)) &&
         require(ctx, t.dtype == dtype, codes::type_dtype, "the argument has another dtype",
                 dtype.to_string(), t.dtype.to_string());
}

// Data, the greatest of each window, and values: with `spread` of the windows, otherwise of the data, or one for all.
Type places_relation(RelationContext& ctx, bool spread) {
  const TensorTypeNode *x = ctx.tensor(0), *best = ctx.tensor(1), *values = ctx.tensor(2);
  if (x == nullptr || best == nullptr || values == nullptr) return nullptr;
  auto& a = ctx.attrs<PoolAttrs>();
  if (!require(ctx, x->dtype.is_floating(), codes::type_dtype, "needs floats", "a floating dtype",
               x->dtype.to_string()))
    return nullptr;
  auto windows = places_windows(ctx, a, *x);
  if (!windows || !fits_as(ctx, *best, *windows, x->dtype) ||
      !fits_as(ctx, *values,
               spread                ? *windows
               : values->rank() == 0 ? std::vector<Dim>{}
                                     : x->shape,
               x->dtype))
    return nullptr;
  return tensor_type(spread ? x->shape : *windows, x->dtype);
}

DType sums_in(DType d) { return d.bits == 16 ? DType::Float(32) : d; }

// The value where the element is the greatest, otherwise none of it. A window with a NaN has no greatest element, and its
// share, a quotient by 0, stays seen: 0 times it is NaN.
PrimExpr taken(const PrimExpr& element, const PrimExpr& best, const PrimExpr& value) {
  return select(eq(element, best), value, value * imm(value->dtype, 0));
}

TirTensor in_dtype(const TirTensor& t, DType dtype) {
  if (t->dtype == dtype) return t;
  return tir::compute("max_pool_cast", t->shape(),
                      [&](const Indices& i) { return tir::cast(dtype, t(i)); });
}

TirTensor gather(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], best = ctx.inputs[1], values = ctx.inputs[2];
  const std::vector<WindowAxis> axes =
      window_axes(ctx.attrs<PoolAttrs>(), x->shape(), best->shape());
  const DType acc = sums_in(x->dtype);
  std::vector<PrimExpr> extents;
  for (const WindowAxis& a : axes) extents.push_back(index(a.count));
  TirTensor sums = tir::compute("max_pool_gather", ctx.outputs[0].shape, [&](const Indices& i) {
    return tir::reduce(Combiner::Sum, extents, [&](const Indices& k) {
      const Indices at = element_of(axes, i, k);
      PrimExpr inside = inside_image(axes, x->shape(), at);
      PrimExpr value = tir::cast(acc, values->shape().empty() ? values(Indices{}) : values(at));
      PrimExpr sum = taken(x(at), best(i), value);
      return as_int(inside) == 1 ? sum : select(inside, sum, imm(acc, 0));
    });
  });
  return in_dtype(sums, x->dtype);
}

// The windows that an element is in: along each axis the last that begins at or before it and those before that one.
TirTensor spread(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], best = ctx.inputs[1], values = ctx.inputs[2];
  const std::vector<WindowAxis> axes =
      window_axes(ctx.attrs<PoolAttrs>(), x->shape(), best->shape());
  const DType acc = sums_in(x->dtype);
  std::vector<PrimExpr> extents;
  for (const WindowAxis& a : axes) {
    extents.push_back(index(a.dilation == 1 ? (a.count + a.stride - 1) / a.stride : a.count));
  }
  TirTensor sums = tir::compute("max_pool_spread", x->shape(), [&](const Indices& i) {
    return tir::reduce(Combiner::Sum, extents, [&](const Indices& k) {
      Indices at = i;
      PrimExpr inside = boolean(true);
      for (size_t d = 0; d < axes.size(); ++d) {
        const WindowAxis& a = axes[d];
        PrimExpr place = i[a.at] + a.pad_begin;
        if (a.dilation == 1) {
          at[a.at] = floor_div(place, index(a.stride)) - k[d];
          if (a.count % a.stride != 0) {
            inside = logical_and(
                inside, lt(floor_mod(place, index(a.stride)) + k[d] * a.stride, index(a.count)));
          }
        } else {
          place = place - k[d] * a.dilation;
          at[a.at] = floor_div(place, index(a.stride));
          inside = logical_and(inside, eq(floor_mod(place, index(a.stride)), index(0)));
        }
        inside = logical_and(
            inside, logical_and(ge(at[a.at], index(0)), lt(at[a.at], best->shape()[a.at])));
      }
      return select(inside, taken(x(i), best(at), tir::cast(acc, values(at))), imm(acc, 0));
    });
  });
  return in_dtype(sums, x->dtype);
}

Type max_places_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *best = ctx.tensor(1);
  if (x == nullptr || best == nullptr) return nullptr;
  auto& a = ctx.attrs<PoolAttrs>();
  auto windows = places_windows(ctx, a, *x);
  if (!windows || !fits_as(ctx, *best, *windows, x->dtype)) return nullptr;
  return tensor_type(*windows, DType::Int(64));
}

// The least place of those that hold the greatest element: the maximum is known, so that a lane for each window compares.
// As wide as the data where places fit, so that both fill vectors alike.
TirTensor max_places(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], best = ctx.inputs[1];
  const std::vector<WindowAxis> axes =
      window_axes(ctx.attrs<PoolAttrs>(), x->shape(), best->shape());
  std::vector<PrimExpr> extents;
  PrimExpr image = index(1);
  for (const WindowAxis& a : axes) {
    extents.push_back(index(a.count));
    image = image * x->shape()[a.at];
  }
  const auto size = as_int(image);
  const DType place = size && *size < (int64_t{1} << 31) ? DType::Int(32) : DType::Int(64);
  TirTensor first = tir::compute("max_pool_place", best->shape(), [&](const Indices& i) {
    return tir::reduce(Combiner::Min, extents, [&](const Indices& k) {
      const Indices at = element_of(axes, i, k);
      PrimExpr here = index(0);
      for (const WindowAxis& a : axes) here = here * x->shape()[a.at] + at[a.at];
      // NaN is the greatest of a window that has one.
      PrimExpr e = x(at), greatest = best(i), found = eq(e, greatest);
      if (e->dtype.is_floating())
        found = logical_or(found, logical_and(ne(e, e), ne(greatest, greatest)));
      // Nothing is read outside of the image: the choice comes first.
      PrimExpr inside = inside_image(axes, x->shape(), at);
      PrimExpr counted = select(found, tir::cast(place, here), max_value(place));
      return as_int(inside) == 1 ? counted : select(inside, counted, max_value(place));
    });
  });
  return tir::compute("max_pool_places", best->shape(), [&](const Indices& i) {
    PrimExpr found = first(i);
    return select(eq(found, max_value(place)), imm(DType::Int(64), -1),
                  tir::cast(DType::Int(64), found));
  });
}

// All arguments of some axes in the current layout.
std::optional<LayoutDecision> places_layout(const CallNode& call, std::span<const Layout> offered,
                                            const Layout& desired) {
  auto out = follow_layout<MaxPoolPlacesAttrs>(call, offered, desired);
  if (!out) return out;
  const Layout layout = out->inputs[0];
  out->inputs.clear();
  for (const Expr& e : call.args) out->inputs.push_back(rank_of(e) == 0 ? Layout() : layout);
  return out;
}

// Lanes are more images.
Expr batch_places(const BatchingContext& ctx) {
  if (!text_attr(ctx.call, "layout").starts_with('N')) return nullptr;
  std::vector<Expr> args;
  for (size_t i = 0; i < ctx.args.size(); ++i) {
    const bool number = rank_of(ctx.call.args[i]) == 0;
    if (number && ctx.batched[i]) return nullptr;
    Expr e = number ? ctx.args[i] : in_lanes(ctx, i);
    if (!number && !has_named_sizes(e)) return nullptr;
    args.push_back(number ? e : fold_lanes(e, 0));
  }
  return unfold_lanes(same_call(ctx, std::move(args)), 0, ctx.lanes, ctx.call.type);
}

Adjoints places_gradient(const GradientContext& ctx) {
  const bool spreads = is_call_to(Expr(&ctx.call), "nn.max_pool_spread");
  Expr back = apply(spreads ? "nn.max_pool_gather" : "nn.max_pool_spread",
                    {ctx.arg(0), ctx.arg(1), ctx.adjoint()}, attr_values(ctx.call.attrs));
  if (rank_of(ctx.arg(2)) == 0) back = apply("sum", {back}, {});
  return {nullptr, nullptr, back};
}

double places_cost(const CallNode& c) { return 2 * num_elements(c.args[0]->type); }

OpInfo places_row(const char* name, const char* doc, const char* values, bool spreads,
                  std::vector<OpExample> examples) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The data of the pool, in `layout`."},
               {"result", "The greatest of each window."},
               {"values", values}},
      .attrs = &MaxPoolPlacesAttrs::static_info(),
      .support_level = 10,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = [spreads](RelationContext& ctx) { return places_relation(ctx, spreads); },
      .compute = compute_rule(spreads ? spread : gather),
      .contraction = Absent::NotOneSum,
      .layout = places_layout,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = places_cost,
      .gradient = places_gradient,
      .batching = batch_places,
      .examples = std::move(examples),
      .expected = Absent::ByNumPy,
  };
}

// Data that tie.
const std::vector<double> kTies{1, 3, 2, 3, 0, 3, 5, 5, 4, 1, 5, 2};

}  // namespace

OpInfo max_pool_places_row() {
  return {
      .name = "nn.max_pool_places",
      .doc =
          "For each window the place of the first element that is its greatest, counted through "
          "the rows of the image; -1 where no element is.",
      .args = {{"data", "The data of the pool, in `layout`."},
               {"result", "The greatest of each window."}},
      .attrs = &MaxPoolPlacesAttrs::static_info(),
      .support_level = 10,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = max_places_relation,
      .compute = compute_rule(max_places),
      .contraction = Absent::NotOneSum,
      .layout = places_layout,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = places_cost,
      .gradient = Absent::NotDifferentiable,
      .batching = batch_places,
      .examples = {{.args = {"Tensor[(1, 1, 3, 4), float32]", "Tensor[(1, 1, 2, 2), float32]"},
                    .attrs = "pool_size=[3, 3], strides=[2, 2], padding=[1, 1]",
                    .inputs = {kTies, {3, 5, 4, 5}}},
                   {.args = {"Tensor[(1, 5, 1), int8]", "Tensor[(1, 3, 1), int8]"},
                    .attrs =
                        "pool_size=[9], strides=[1], dilation=[1], padding=[3], layout=\"NWC\"",
                    .inputs = {{-7, 2, 9, 9, -3}, {9, 9, 9}}}},
      .expected = Absent::ByNumPy,
  };
}

OpInfo max_pool_gather_row() {
  return places_row(
      "nn.max_pool_gather",
      "For each window the sum of the values of the elements that are its greatest: of "
      "ones, how many tie.",
      "A value of each element, or one for all.", false,
      {{.args = {"Tensor[(1, 1, 3, 4), float32]", "Tensor[(1, 1, 2, 2), float32]",
                 "Tensor[(1, 1, 3, 4), float32]"},
        .attrs = "pool_size=[3, 3], strides=[2, 2], padding=[1, 1]",
        .inputs = {kTies, {3, 5, 4, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}}});
}

OpInfo max_pool_spread_row() {
  return places_row("nn.max_pool_spread",
                    "For each element the sum of the values of the windows whose greatest it is.",
                    "A value of each window.", true,
                    {{.args = {"Tensor[(1, 1, 3, 4), float32]", "Tensor[(1, 1, 2, 2), float32]",
                               "Tensor[(1, 1, 2, 2), float32]"},
                      .attrs = "pool_size=[3, 3], strides=[2, 2], padding=[1, 1]",
                      .inputs = {kTies, {3, 5, 4, 5}, {1, 2, 3, 4}}}});
}

}  // namespace relay::ops
