// Tensors made of numbers, of shapes, and of coordinates.
#include <algorithm>
#include <cmath>

#include "analysis/known_rules.h"
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

std::optional<double> number(const AttrValue& v) {
  if (auto* i = v.get_if<int64_t>()) return static_cast<double>(*i);
  if (auto* f = v.get_if<double>()) return *f;
  return std::nullopt;
}

// A number of arange as a constant of the dtype; integers stay exact.
PrimExpr constant_of(const ComputeContext& ctx, const DimOrNumber& a, int64_t otherwise,
                     DType dtype) {
  const AttrValue& v = a.value;
  if (const NodeRef* size = node_in(v)) return tir::cast(dtype, ctx.size(Dim::unchecked(*size)));
  if (auto* f = v.get_if<double>()) return tir::cast(dtype, imm_float(DType::Float(64), *f));
  auto* i = v.get_if<int64_t>();
  return imm(dtype, i != nullptr ? *i : otherwise);
}

// start, stop and step are integers or floats; start and stop may be sizes.
struct ArangeAttrs : AttrsOf<ArangeAttrs> {
  DimOrNumber start, stop, step;
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.ArangeAttrs",
            {child("start", &Self::start, "First number; None: 0."),
             child("stop", &Self::stop, "Where to end, which is left out."),
             child("step", &Self::step, "Distance between numbers; None: 1."),
             attribute("dtype", &Self::dtype, "dtype of the result; unset: float32.")}};
  }
};

// ceil((stop - start) / step), at least 0; nullopt when step is 0 or a number is not finite.
std::optional<double> length_of(const ArangeAttrs& a) {
  auto *start = a.start.value.get_if<int64_t>(), *stop = a.stop.value.get_if<int64_t>(),
       *step = a.step.value.get_if<int64_t>();
  bool whole = stop != nullptr && (start != nullptr || a.start.value.is_none()) &&
               (step != nullptr || a.step.value.is_none());
  int64_t from = start != nullptr ? *start : 0, by = step != nullptr ? *step : 1, distance = 0;
  if (whole && by != 0 && by != INT64_MIN && !__builtin_sub_overflow(*stop, from, &distance) &&
      distance != INT64_MIN) {
    if ((distance < 0) != (by < 0)) return 0;
    int64_t d = std::abs(distance), s = std::abs(by);
    return static_cast<double>(d / s + (d % s != 0 ? 1 : 0));
  }
  double n = std::ceil((*number(a.stop.value) - number(a.start.value).value_or(0)) /
                       number(a.step.value).value_or(1));
  if (!std::isfinite(n)) return std::nullopt;
  return std::max(n, 0.0);
}

// The length where start or stop is a size; null, with the failure, when the others are none.
Dim symbolic_length(RelationContext& ctx, const ArangeAttrs& a) {
  Dim start = dim(0), stop;
  auto* by = a.step.value.get_if<int64_t>();
  int64_t step = by != nullptr ? *by : 1;
  bool whole = (a.start.value.is_none() || from_value(a.start.value, start)) &&
               from_value(a.stop.value, stop) && (by != nullptr || a.step.value.is_none());
  if (!require(ctx, whole && step != 0 && step != INT64_MIN, codes::op_bad_attribute,
               "start or stop is a size, so all are whole numbers",
               "whole numbers or sizes, and a step other than 0",
               to_string(a.start.value) + ", " + to_string(a.stop.value) + ", " +
                   to_string(a.step.value)))
    return nullptr;
  for (const Dim& d : {start, stop}) {
    if (!as_const(d) && !check_size(ctx, d, "a size is negative")) return nullptr;
  }
  Dim distance = step > 0 ? stop - start : start - stop;
  if (!never_negative(distance)) distance = max(distance, dim(0));
  return ceil_div(distance, dim(std::abs(step)));
}

Type arange_type(RelationContext& ctx) {
  auto& a = ctx.attrs<ArangeAttrs>();
  DType dtype = is_set(a.dtype) ? a.dtype : DType::Float(32);
  if (has_symbolic_sizes(ctx.attrs_ref())) {
    Dim length = symbolic_length(ctx, a);
    return length ? Type(tensor_type(std::vector<Dim>{length}, dtype)) : Type();
  }
  for (const DimOrNumber* n : {&a.start, &a.stop, &a.step}) {
    if (!require(ctx, number(n->value) || (n->value.is_none() && n != &a.stop),
                 codes::op_bad_attribute, "start, stop and step must be numbers",
                 "a number, or None but for stop", to_string(n->value)))
      return nullptr;
  }
  auto n = length_of(a);
  if (!require(ctx, n.has_value(), codes::op_bad_attribute, "step leads nowhere",
               "finite numbers and a step other than 0", to_string(a.step.value)) ||
      !require(ctx, *n < 0x1p48, codes::type_overflow, "the range is absurdly long"))
    return nullptr;
  return tensor_type(std::vector<Dim>{dim(static_cast<int64_t>(*n))}, dtype);
}

struct MeshgridAttrs : AttrsOf<MeshgridAttrs> {
  std::string indexing = "ij";
  static AttrsList describe() {
    return {"relay.attrs.MeshgridAttrs",
            {attribute("indexing", &Self::indexing,
                       "ij: matrix order; xy: the first two axes swapped.")}};
  }
};

Type meshgrid_type(RelationContext& ctx) {
  auto list = ctx.tensors(0);
  if (!list) return nullptr;
  auto& a = ctx.attrs<MeshgridAttrs>();
  if (!require(ctx, a.indexing == "ij" || a.indexing == "xy", codes::op_bad_attribute,
               "indexing is not known", "ij or xy", a.indexing) ||
      !require(ctx, !list->empty(), codes::type_arity, "needs at least one tensor"))
    return nullptr;
  std::vector<Dim> shape;
  for (const TensorType& t : *list) {
    if (!require(ctx, t->rank() <= 1, codes::type_rank, "needs scalars and vectors",
                 "at most 1 dimension", shape_text(t->shape)) ||
        !require(ctx, t->dtype == list->front()->dtype, codes::type_dtype,
                 "the tensors have different dtypes", list->front()->dtype.to_string(),
                 t->dtype.to_string()))
      return nullptr;
    shape.push_back(t->rank() == 0 ? dim(1) : t->shape[0]);
  }
  if (a.indexing == "xy" && shape.size() >= 2) std::swap(shape[0], shape[1]);
  return tuple_type(
      std::vector<Type>(list->size(), Type(tensor_type(std::move(shape), list->front()->dtype))));
}

Type unravel_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *s = ctx.tensor(1);
  if (x == nullptr || s == nullptr) return nullptr;
  if (!require(ctx, x->dtype.is_integer() && s->dtype.is_integer(), codes::type_dtype,
               "data and shape must hold integers", "int32 or int64",
               x->dtype.to_string() + " and " + s->dtype.to_string()) ||
      !require(ctx, s->rank() == 1 && as_const(s->shape[0]), codes::type_rank,
               "shape must be a vector of known length", "1 dimension", shape_text(s->shape)) ||
      !require(ctx, *as_const(s->shape[0]) <= 64, codes::type_rank, "shape has too many sizes",
               "64 at most", shape_text(s->shape)))
    return nullptr;
  std::vector<Dim> shape{s->shape[0]};
  shape.insert(shape.end(), x->shape.begin(), x->shape.end());
  return tensor_type(std::move(shape), x->dtype);
}

TirTensor arange_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ArangeAttrs>();
  DType dtype = ctx.outputs[0].dtype;
  // In int64 or float64, so that a long range does not drift.
  bool whole =
      a.start.value.get_if<double>() == nullptr && a.step.value.get_if<double>() == nullptr;
  DType wide = whole ? kIndex : DType::Float(64);
  return tir::compute("T_arange", ctx.outputs[0].shape, [&](const Indices& i) {
    return tir::cast(dtype, constant_of(ctx, a.start, 0, wide) +
                                tir::cast(wide, i[0]) * constant_of(ctx, a.step, 1, wide));
  });
}

std::vector<TirTensor> meshgrid_compute(const ComputeContext& ctx) {
  bool swapped = ctx.attrs<MeshgridAttrs>().indexing == "xy" && ctx.inputs.size() >= 2;
  std::vector<TirTensor> out;
  for (size_t k = 0; k < ctx.inputs.size(); ++k) {
    size_t axis = swapped && k < 2 ? 1 - k : k;
    TirTensor x = ctx.inputs[k];
    out.push_back(tir::compute(
        "T_meshgrid" + std::to_string(k), ctx.outputs[k].shape,
        [&](const Indices& i) { return x->rank() == 0 ? x(Indices{}) : x(Indices{i[axis]}); }));
  }
  return out;
}

TirTensor unravel_index_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0], s = ctx.inputs[1];
  int64_t rank = *as_int(s->shape()[0]);
  DType dtype = ctx.outputs[0].dtype;
  return tir::compute("T_unravel_index", ctx.outputs[0].shape, [&](const Indices& i) {
    PrimExpr rest = tir::cast(kIndex, x(Indices(i.begin() + 1, i.end())));
    PrimExpr out = index(0);
    for (int64_t k = rank; k-- > 0;) {
      // A size of zero holds no index; nothing is divided by it.
      PrimExpr size = max(tir::cast(kIndex, s(Indices{index(k)})), index(1));
      out = select(eq(i[0], index(k)), floor_mod(rest, size), out);
      rest = floor_div(rest, size);
    }
    return tir::cast(dtype, out);
  });
}

struct ShapeOfAttrs : AttrsOf<ShapeOfAttrs> {
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.ShapeOfAttrs",
            {attribute("dtype", &Self::dtype, "dtype of the result; unset: int32.")}};
  }
};

Type shape_of_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  DType dtype = ctx.attrs<ShapeOfAttrs>().dtype;
  return tensor_type(std::vector<Dim>{dim(x->rank())}, is_set(dtype) ? dtype : DType::Int(32));
}

TirTensor shape_of_compute(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_shape_of", ctx.outputs[0].shape, [&](const Indices& i) {
    PrimExpr out = index(0);
    for (size_t d = x->shape().size(); d-- > 0;)
      out = select(eq(i[0], index(static_cast<int64_t>(d))), x->shape()[d], out);
    return tir::cast(ctx.outputs[0].dtype, out);
  });
}

struct NdarraySizeAttrs : AttrsOf<NdarraySizeAttrs> {
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.NdarraySizeAttrs",
            {attribute("dtype", &Self::dtype, "dtype of the result; unset: int32.")}};
  }
};

Type ndarray_size_relation(RelationContext& ctx) {
  if (ctx.tensor(0) == nullptr) return nullptr;
  DType dtype = ctx.attrs<NdarraySizeAttrs>().dtype;
  return tensor_type(std::vector<Dim>{}, is_set(dtype) ? dtype : DType::Int(32));
}

TirTensor ndarray_size_compute(const ComputeContext& ctx) {
  return tir::compute("T_ndarray_size", {}, [&](const Indices&) {
    return tir::cast(ctx.outputs[0].dtype, count_elements(ctx.inputs[0]->shape()));
  });
}

// Each vector's elements stand all over the grid: sums over the axes of the others.
Adjoints meshgrid_gradient(const GradientContext& ctx) {
  bool swapped = ctx.attrs<MeshgridAttrs>().indexing == "xy" && ctx.adjoints.size() >= 2;
  auto types = *flatten_tensor_types(ctx.arg(0)->type);
  Adjoints out;
  for (size_t k = 0; k < ctx.adjoints.size(); ++k) {
    size_t axis = swapped && k < 2 ? 1 - k : k;
    Expr g = ctx.adjoints[k];
    if (g) {
      g = types[k]->rank() == 0 ? apply("sum", {g})
                                : sum_over_all_but(g, static_cast<int64_t>(axis));
    }
    out.push_back(g);
  }
  return out;
}

// ---- Batching

// The numbers of all lanes, one behind the other.
Expr batch_unravel_index(const BatchingContext& ctx) {
  return only_first(ctx) ? move_axis(same_call(ctx, ctx.args), 1, 0) : nullptr;
}

// Each grid repeats its vector along the axes of the others.
Expr batch_meshgrid(const BatchingContext& ctx) {
  const std::vector<Type>& grids = as<TupleTypeNode>(ctx.call.type)->fields;
  const bool swapped = ctx.attrs<MeshgridAttrs>().indexing == "xy" && grids.size() >= 2;
  std::vector<Dim> shape = as<TensorTypeNode>(grids[0])->shape;
  if (std::ranges::any_of(shape, is_any)) return nullptr;
  const std::vector<Dim> of_one = shape;
  shape.insert(shape.begin(), ctx.lanes);
  std::vector<Expr> out;
  for (size_t k = 0; k < grids.size(); ++k) {
    const size_t axis = swapped && k < 2 ? 1 - k : k;
    std::vector<Dim> line(shape.size(), dim(1));
    line[axis + 1] = of_one[axis];
    if (field_has_lanes(ctx, 0, k)) line[0] = ctx.lanes;
    Expr values = reshape_to(tuple_get_item(ctx.arg(0), static_cast<int64_t>(k)), line);
    out.push_back(apply("broadcast_to", {values}, {{"shape", shape_value(shape)}}));
  }
  return tuple(std::move(out));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Generate>() {
  static const OpInfo rows[] = {
      {
          .name = "arange",
          .doc = "start, start + step, ... up to stop, which is left out.",
          .attrs = &ArangeAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = arange_type,
          .compute = compute_rule(arange_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = elementwise_cost,
          .gradient = no_change,
          .batching = Absent::LaneByLane,
          .known = known_rules::arange(),
          .examples = {{{}, "start=2, stop=11, step=3, dtype=\"int32\""},
                       {{}, "start=1.0f, stop=0.0f, step=-0.25f"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "meshgrid",
          .doc = "The coordinates of a grid: each vector repeated along the axes of the others.",
          .args = {{"data", "A tuple of vectors and scalars."}},
          .attrs = &MeshgridAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = meshgrid_type,
          .compute = compute_rule_multi(meshgrid_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = meshgrid_gradient,
          .batching = batch_meshgrid,
          .examples = {{{"(Tensor[(3,), float32], Tensor[(2,), float32])"}, ""},
                       {{"(Tensor[(3,), int32], Tensor[(2,), int32], Tensor[(4,), int32])"},
                        "indexing=\"xy\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "unravel_index",
          .doc =
              "The coordinates of flat indices in a tensor of the given shape, along a first axis.",
          .args = {{"data", "Flat indices."}, {"shape", "The sizes, a vector."}},
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = unravel_type,
          .compute = compute_rule(unravel_index_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = elementwise_cost,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_unravel_index,
          .examples = {{{"Tensor[(6,), int64]", "Tensor[(3,), int64]"}, "", 1, 9},
                       {{"int32", "Tensor[(2,), int32]"}, "", 1, 9}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "shape_of",
          .doc = "The sizes of a tensor, as a vector.",
          .args = {{"data", "The input."}},
          .attrs = &ShapeOfAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = shape_of_relation,
          .compute = compute_rule(shape_of_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::OnlySizes,
          .known = known_rules::shape_of(),
          .examples = {{{"Tensor[(2, 3, 5), float32]"}, ""},
                       {{"Tensor[(2, 3), float32]"}, "dtype=\"int64\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "ndarray_size",
          .doc = "The number of elements of a tensor.",
          .args = {{"data", "The input."}},
          .attrs = &NdarraySizeAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = ndarray_size_relation,
          .compute = compute_rule(ndarray_size_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = Absent::OnlySizes,
          .known = known_rules::num_elements(),
          .examples = {{{"Tensor[(2, 3, 5), float32]"}, ""},
                       {{"Tensor[(2, 3), float32]"}, "dtype=\"int64\""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
