// Operators that add a border.
#include <algorithm>

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

std::optional<std::vector<Dim>> padded_shape(RelationContext& ctx, const TensorTypeNode& x,
                                             const DimLists& widths) {
  if (!require(ctx, widths.size() == x.shape.size(), codes::op_bad_attribute,
               "pad_width must have an entry for each axis", std::to_string(x.shape.size()),
               std::to_string(widths.size())))
    return std::nullopt;
  constexpr int64_t kMost = int64_t{1} << 40;
  std::vector<Dim> shape = x.shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    auto possible = [](const Dim& w) {
      int64_t width = as_const(w).value_or(0);
      return width >= -kMost && width <= kMost;
    };
    if (!require(ctx, widths[d].size() == 2 && std::ranges::all_of(widths[d], possible),
                 codes::op_bad_attribute, "an entry of pad_width must be a begin and an end",
                 "two numbers below 2^40", to_string(to_value(widths[d]))))
      return std::nullopt;
    // What is cut off must be there, at each end and together. Only numbers cut.
    int64_t cut = 0;
    for (const Dim& w : widths[d]) {
      if (!as_const(w) && !check_size(ctx, w, "a width is negative")) return std::nullopt;
      cut -= std::min<int64_t>(as_const(w).value_or(0), 0);
    }
    if (!require(ctx, cut == 0 || ctx.at_least(shape[d], dim(cut)), codes::type_shape,
                 "pad_width removes more than there is on axis " + std::to_string(d),
                 "at most " + to_string(shape[d]), std::to_string(cut)))
      return std::nullopt;
    shape[d] = shape[d] + widths[d][0] + widths[d][1];
  }
  return shape;
}

// A border takes its values from inside: of an axis of n elements the nearest one (n >= 1), or
// mirrored ones, of which there are n, or n - 1 without the edge itself.
bool border_fits(RelationContext& ctx, const TensorTypeNode& x, const DimLists& widths,
                 const std::string& mode) {
  for (size_t d = 0; d < widths.size(); ++d) {
    Dim widest = max(widths[d][0], widths[d][1]);
    if (as_const(widest).value_or(1) <= 0) continue;
    Dim need = mode == "edge" ? dim(1) : mode == "REFLECT" ? widest + dim(1) : widest;
    if (ctx.at_least(x.shape[d], need)) continue;
    ctx.fail(codes::type_shape,
             "the border on axis " + std::to_string(d) + " is wider than what it repeats",
             "an axis of at least " + to_string(need), shape_text(x.shape),
             mode == "edge" ? "pad an empty axis with a constant"
                            : "use a narrower border, or pad in several steps");
    return false;
  }
  return true;
}

// The index in the input of an index in the result, which may lie outside.
PrimExpr behind_border(const ComputeContext& ctx, const PrimExpr& i, const Dim& begin) {
  auto width = as_const(begin);
  return width ? i - *width : i - ctx.size(begin);
}
// Whether there is, or may be, a border.
bool adds(const Dim& width) { return as_const(width).value_or(1) > 0; }

// Reads beyond the border: the nearest element, or mirrored with or without the border itself.
TirTensor mirrored(const ComputeContext& ctx, const DimLists& widths, const std::string& mode) {
  const TirTensor& x = ctx.inputs[0];
  return tir::compute("T_mirror_pad", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < i.size(); ++d) {
      PrimExpr p = behind_border(ctx, i[d], widths[d][0]), size = x->shape()[d];
      if (as_const(widths[d][0]) == 0 && as_const(widths[d][1]) == 0) {
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

struct PadAttrs : AttrsOf<PadAttrs> {
  DimLists pad_width;
  std::string pad_mode = "constant";
  static AttrsList describe() {
    return {"relay.attrs.PadAttrs",
            {child("pad_width", &Self::pad_width, "Begin and end of each axis."),
             attribute("pad_mode", &Self::pad_mode, "constant, edge or reflect.")}};
  }
};

Type pad_relation(RelationContext& ctx) {
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
    const bool moved = x->dtype.is_only_moved() || value->dtype.is_only_moved();
    if (!require(ctx, one, codes::type_shape, "pad_value must be one element", "a scalar",
                 to_string(Type(value))) ||
        !require(ctx, !moved || value->dtype == x->dtype, codes::type_dtype,
                 "pad_value has another dtype", x->dtype.to_string(), value->dtype.to_string()))
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
}

TirTensor pad_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<PadAttrs>();
  TirTensor x = ctx.inputs[0], value = ctx.inputs[1];
  if (a.pad_mode != "constant")
    return mirrored(ctx, a.pad_width, a.pad_mode == "edge" ? "edge" : "REFLECT");
  return tir::compute("T_pad", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at;
    PrimExpr inside = boolean(true);
    for (size_t d = 0; d < i.size(); ++d) {
      at.push_back(behind_border(ctx, i[d], a.pad_width[d][0]));
      if (adds(a.pad_width[d][0])) inside = logical_and(inside, ge(at[d], index(0)));
      if (adds(a.pad_width[d][1]) || adds(a.pad_width[d][0]))
        inside = logical_and(inside, lt(at[d], x->shape()[d]));
    }
    return select(
        inside, x(at),
        tir::cast(x->dtype, value(Indices(static_cast<size_t>(value->rank()), index(0)))));
  });
}

struct MirrorPadAttrs : AttrsOf<MirrorPadAttrs> {
  std::string mode = "SYMMETRIC";
  DimLists pad_width;
  static AttrsList describe() {
    return {"relay.attrs.MirrorPadAttrs",
            {attribute("mode", &Self::mode, "SYMMETRIC or REFLECT."),
             child("pad_width", &Self::pad_width, "Begin and end of each axis.")}};
  }
};

Type mirror_pad_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto& a = ctx.attrs<MirrorPadAttrs>();
  if (x == nullptr ||
      !require(ctx, a.mode == "SYMMETRIC" || a.mode == "REFLECT", codes::op_bad_attribute,
               "mode is not known", "SYMMETRIC or REFLECT", a.mode))
    return nullptr;
  auto shape = padded_shape(ctx, *x, a.pad_width);
  if (!shape || !border_fits(ctx, *x, a.pad_width, a.mode)) return nullptr;
  return tensor_type(std::move(*shape), x->dtype);
}

TirTensor mirror_pad_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<MirrorPadAttrs>();
  return mirrored(ctx, a.pad_width, a.mode);
}

// ---- Gradients

// The border takes no part; what was cut off gets 0.
Expr without_border(const Expr& g, const TensorTypeNode& x, const DimLists& widths) {
  Expr out = g;
  for (size_t d = 0; d < widths.size(); ++d) {
    auto axis = static_cast<int64_t>(d);
    auto before = as_const(widths[d][0]), after = as_const(widths[d][1]);
    if (before && after) {
      ValueList back(widths.size(), to_value(Ints{0, 0}));
      back[d] = to_value(Ints{-*before, -*after});
      if (*before != 0 || *after != 0)
        out = apply("nn.pad", {out, scalar(0, out)}, {{"pad_width", AttrValue(std::move(back))}});
    } else if (before.value_or(0) < 0) {
      // The first elements are missing.
      out = pad_axis(slice_axis(out, axis, dim(0), x.shape[d] + dim(*before)), axis, dim(-*before),
                     dim(0));
    } else if (after.value_or(0) < 0) {
      out = pad_axis(slice_axis(out, axis, widths[d][0], x.shape[d] + dim(*after)), axis, dim(0),
                     dim(-*after));
    } else {
      out = slice_axis(out, axis, widths[d][0], x.shape[d]);
    }
  }
  return out;
}

// A border of values from inside is a product with a matrix along each axis: what it makes of the
// identity matrix.
Expr through_border(const GradientContext& ctx, const DimLists& widths) {
  const TensorTypeNode& x = type_of(ctx.arg(0));
  Expr out = ctx.adjoint();
  for (size_t d = 0; d < widths.size(); ++d) {
    if (as_const(widths[d][0]) == 0 && as_const(widths[d][1]) == 0) continue;
    if (is_any(x.shape[d])) no_gradient(ctx, "only the data tells a size");
    AttrValue line{ValueList{to_value(Ints{0, 0}), to_value(Dims{widths[d][0], widths[d][1]})}};
    Expr lines = identity_matrix(x.shape[d], out);
    Expr matrix = is_call_to(Expr(&ctx.call), "nn.pad")
                      ? apply("nn.pad", {lines, scalar(0, lines)},
                              {{"pad_width", line}, {"pad_mode", ctx.attrs<PadAttrs>().pad_mode}})
                      : apply("nn.mirror_pad", {lines},
                              {{"pad_width", line}, {"mode", ctx.attrs<MirrorPadAttrs>().mode}});
    out = along_axis(out, static_cast<int64_t>(d), matrix);
  }
  return out;
}

Adjoints pad_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<PadAttrs>();
  if (a.pad_mode != "constant") return {through_border(ctx, a.pad_width)};
  const Expr &g = ctx.adjoint(), &value = ctx.arg(1);
  Expr inside = without_border(g, type_of(ctx.arg(0)), a.pad_width);
  if (!type_of(value).dtype.is_floating()) return {inside};
  Expr border = apply("sum", {g}) - apply("sum", {inside});
  return {inside, reshape_like(cast_to(border, type_of(value).dtype), value)};
}

Adjoints mirror_pad_gradient(const GradientContext& ctx) {
  return {through_border(ctx, ctx.attrs<MirrorPadAttrs>().pad_width)};
}

// ---- Batching

// Nothing is put around the lanes. A value of each lane's own is put where one lane's border is.
Expr batch_pad(const BatchingContext& ctx) {
  const bool mirrored = ctx.args.size() == 1;
  ValueList widths{to_value(Ints{0, 0})};
  for (const Dims& width :
       mirrored ? ctx.attrs<MirrorPadAttrs>().pad_width : ctx.attrs<PadAttrs>().pad_width)
    widths.push_back(to_value(width));
  const std::pair<std::string, AttrValue> around{"pad_width", AttrValue(std::move(widths))};
  if (only_first(ctx)) return with_attrs(ctx.call, ctx.args, {around});
  Expr data = in_lanes(ctx, 0), value = cast_to(ctx.arg(1), type_of(data).dtype);
  Expr padded = with_attrs(ctx.call, {data, scalar(0, data)}, {around});
  if (ctx.attrs<PadAttrs>().pad_mode != "constant") return padded;
  const std::vector<Dim>& shape = type_of(ctx.call.args[0]).shape;
  if (std::ranges::any_of(shape, is_any)) return nullptr;
  Expr yes = apply("ones", {}, {{"shape", shape_value(shape)}, {"dtype", "bool"}});
  Expr inside = same_call(ctx, {yes, constant(runtime::Tensor::scalar(0, DType::Bool()))});
  return choose(inside, padded, lanes_of_rank(value, rank_of(inside)));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Pad>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.pad",
          .doc = "Adds a border: a value, the nearest element, or mirrored.",
          .args = {{"data", "The input."}, {"pad_value", "A scalar."}},
          .attrs = &PadAttrs::static_info(),
          .support_level = 4,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = pad_relation,
          .compute = compute_rule(pad_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = pad_gradient,
          .batching = batch_pad,
          .moves = ElementMoves{.of = {0, 1}},
          .quantized = quantized_pad,
          .examples = {{{"Tensor[(3, 4), float32]", "float32"}, "pad_width=[[1, 2], [0, 3]]"},
                       {{"Tensor[(3, 4), float32]", "float32"},
                        "pad_width=[[1, 2], [2, 0]], pad_mode=\"reflect\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "nn.mirror_pad",
          .doc = "Adds a border that mirrors the tensor.",
          .args = {{"data", "The input."}},
          .attrs = &MirrorPadAttrs::static_info(),
          .support_level = 4,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = mirror_pad_relation,
          .compute = compute_rule(mirror_pad_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = mirror_pad_gradient,
          .batching = batch_pad,
          .moves = ElementMoves{},
          .examples = {{{"Tensor[(3, 4), float32]"}, "pad_width=[[1, 2], [2, 0]]"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
