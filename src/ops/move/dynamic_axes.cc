// Operators whose axes, borders and parts are tensors.
#include <algorithm>
#include <numeric>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/create/dynamic.h"
#include "ops/gradient.h"
#include "ops/rows.h"
#include "runtime/core/kernel_abi.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// ---- dyn.transpose

Type transpose_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto length = length_of_sizes(ctx, 1);
  if (x == nullptr || !length) return nullptr;
  if (!require(ctx, *length == x->rank(), codes::type_rank, "axes must have an entry for each axis",
               std::to_string(x->rank()), std::to_string(*length)))
    return nullptr;
  return open_tensor(*length, x->dtype);
}

// The value for the entry of `options` that `which` is, a chain of comparisons.
PrimExpr one_of(const PrimExpr& which, const std::vector<PrimExpr>& options) {
  PrimExpr out = options.empty() ? index(0) : options[0];
  for (size_t d = 1; d < options.size(); ++d) {
    out = select(eq(which, index(static_cast<int64_t>(d))), options[d], out);
  }
  return out;
}

Stmt transpose_sizes(const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
  const std::vector<PrimExpr>& from = in[0]->shape;
  const auto rank = static_cast<int64_t>(from.size());
  std::vector<Stmt> steps;
  for (size_t d = 0; d < from.size(); ++d) {
    PrimExpr axis = element(in[1], d);
    PrimExpr good = logical_and(ge(axis, index(0)), lt(axis, index(rank)));
    for (size_t e = 0; e < d; ++e) good = logical_and(good, ne(axis, element(in[1], e)));
    steps.push_back(mismatch_unless(good, "the axes are not a permutation"));
    steps.push_back(set(sizes, d, one_of(axis, from)));
  }
  return seq(std::move(steps));
}

TirTensor transpose(const ComputeContext& ctx) {
  const TirTensor &x = ctx.inputs[0], &axes = ctx.inputs[1];
  return tir::compute("T_dyn_transpose", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at;
    for (int64_t d = 0; d < x->rank(); ++d) {
      PrimExpr place = index(0);
      for (size_t e = 0; e < i.size(); ++e) {
        PrimExpr axis = tir::cast(kIndex, axes(index(static_cast<int64_t>(e))));
        place = select(eq(axis, index(d)), i[e], place);
      }
      at.push_back(place);
    }
    return x(at);
  });
}

// ---- dyn.pad

struct DynPadAttrs : AttrsOf<DynPadAttrs> {
  std::string pad_mode = "constant";
  static AttrsList describe() {
    return {"relay.attrs.DynPadAttrs",
            {attribute("pad_mode", &Self::pad_mode, "constant, edge, reflect or wrap.")}};
  }
};

Type pad_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *value = ctx.tensor(2);
  auto length = length_of_sizes(ctx, 1);
  if (x == nullptr || value == nullptr || !length) return nullptr;
  const std::string& mode = ctx.attrs<DynPadAttrs>().pad_mode;
  bool known = mode == "constant" || mode == "edge" || mode == "reflect" || mode == "wrap";
  if (!require(ctx, known, codes::op_bad_attribute, "pad_mode is not known",
               "constant, edge, reflect or wrap", mode) ||
      !require(ctx, *length == 2 * x->rank(), codes::type_rank,
               "pad_width must have two entries for each axis", std::to_string(2 * x->rank()),
               std::to_string(*length)) ||
      !require(ctx, value->rank() == 0 && value->dtype == x->dtype, codes::type_mismatch,
               "pad_value must be a scalar of the input's dtype", x->dtype.to_string(),
               to_string(Type(value))))
    return nullptr;
  return open_tensor(x->rank(), x->dtype);
}

// One axis with a border: what is cut off at its ends, and what is left.
struct Border {
  PrimExpr before, cut, left;
};
Border border_of(const PrimExpr& before, const PrimExpr& after, const PrimExpr& size) {
  PrimExpr cut = min(before, index(0));
  return {max(before, index(0)), cut, size + cut + min(after, index(0))};
}

Stmt pad_sizes(const ComputeContext& ctx, const std::vector<Buffer>& in, const Buffer& sizes) {
  const size_t rank = in[0]->shape.size();
  std::vector<Stmt> steps;
  for (size_t d = 0; d < rank; ++d) {
    PrimExpr before = element(in[1], d), after = element(in[1], rank + d);
    Border b = border_of(before, after, in[0]->shape[d]);
    steps.push_back(mismatch_unless(ge(b.left, index(0)), "more is cut off than there is"));
    PrimExpr adds = logical_or(gt(before, index(0)), gt(after, index(0)));
    if (ctx.attrs<DynPadAttrs>().pad_mode != "constant") {
      steps.push_back(mismatch_unless(logical_or(gt(b.left, index(0)), logical_not(adds)),
                                      "the border of an empty axis repeats nothing"));
    }
    steps.push_back(set(sizes, d, in[0]->shape[d] + before + after));
  }
  return seq(std::move(steps));
}

TirTensor pad(const ComputeContext& ctx) {
  const TirTensor &x = ctx.inputs[0], &widths = ctx.inputs[1], &value = ctx.inputs[2];
  const std::string& mode = ctx.attrs<DynPadAttrs>().pad_mode;
  return tir::compute("T_dyn_pad", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at;
    PrimExpr inside = boolean(true);
    for (size_t d = 0; d < i.size(); ++d) {
      auto width = [&](size_t k) {
        return tir::cast(kIndex, widths(index(static_cast<int64_t>(k))));
      };
      Border b = border_of(width(d), width(i.size() + d), x->shape()[d]);
      PrimExpr place = i[d] - b.before, last = b.left - 1;
      if (mode == "constant") {
        inside = logical_and(inside, logical_and(ge(place, index(0)), le(place, last)));
      } else if (mode == "edge") {
        place = max(min(place, last), index(0));
      } else if (mode == "wrap") {
        place = floor_mod(place, max(b.left, index(1)));
      } else {
        // There and back again, without either end twice.
        PrimExpr period = max(last * 2, index(1));
        place = floor_mod(place, period);
        place = min(place, period - place);
        place = select(eq(last, index(0)), index(0), place);
      }
      at.push_back(place - b.cut);
    }
    return mode == "constant" ? select(inside, x(at), value(Indices{})) : x(at);
  });
}

// ---- dyn.split

struct DynSplitAttrs : AttrsOf<DynSplitAttrs> {
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.DynSplitAttrs", {attribute("axis", &Self::axis, "The axis that is cut.")}};
  }
};

Type split_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto parts = length_of_sizes(ctx, 1);
  if (x == nullptr || !parts) return nullptr;
  auto axis = normal_axis(ctx, ctx.attrs<DynSplitAttrs>().axis, x->rank());
  if (!axis || !require(ctx, *parts >= 1, codes::type_rank, "sizes must have an entry", "1 or more",
                        std::to_string(*parts)))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  shape[static_cast<size_t>(*axis)] = dim_any();
  return tuple_type(
      std::vector<Type>(static_cast<size_t>(*parts), tensor_type(std::move(shape), x->dtype)));
}

size_t split_axis(const ComputeContext& ctx) {
  return static_cast<size_t>(from_front(ctx.attrs<DynSplitAttrs>().axis, ctx.inputs[0]->rank()));
}

std::vector<TirTensor> split_sizes(const ComputeContext& ctx) {
  const size_t axis = split_axis(ctx), parts = ctx.outputs.size();
  std::vector<TirTensor> out;
  for (size_t p = 0; p < parts; ++p) {
    out.push_back(sizes_of(
        ctx, ctx.inputs[0]->rank(),
        [=](const ComputeContext&, const std::vector<Buffer>& in, const Buffer& sizes) {
          std::vector<Stmt> steps;
          PrimExpr sum = index(0);
          for (size_t k = 0; p == 0 && k < parts; ++k) {
            steps.push_back(mismatch_unless(ge(element(in[1], k), index(0)), "a part is negative"));
            sum = sum + element(in[1], k);
          }
          if (p == 0) {
            steps.push_back(
                mismatch_unless(eq(sum, in[0]->shape[axis]), "the parts do not add up"));
          }
          for (size_t d = 0; d < in[0]->shape.size(); ++d) {
            steps.push_back(set(sizes, d, d == axis ? element(in[1], p) : in[0]->shape[d]));
          }
          return seq(std::move(steps));
        }));
  }
  return out;
}

std::vector<TirTensor> split(const ComputeContext& ctx) {
  const size_t axis = split_axis(ctx);
  const TirTensor &x = ctx.inputs[0], &sizes = ctx.inputs[1];
  std::vector<TirTensor> out;
  for (size_t p = 0; p < ctx.outputs.size(); ++p) {
    out.push_back(tir::compute("T_dyn_split", ctx.outputs[p].shape, [&](const Indices& i) {
      Indices at = i;
      PrimExpr first = index(0);
      for (size_t k = 0; k < p; ++k) {
        first = first + tir::cast(kIndex, sizes(index(static_cast<int64_t>(k))));
      }
      at[axis] = i[axis] + first;
      return x(at);
    }));
  }
  return out;
}

// ---- Gradients

// The border takes its values from inside, or it is the value of an argument.
Adjoints dyn_pad_gradient(const GradientContext& ctx) {
  const Expr &x = ctx.arg(0), &widths = ctx.arg(1), &value = ctx.arg(2), &g = ctx.adjoint();
  auto padded = [&](const Expr& e) {
    return call(ctx.call.op, {e, widths, scalar(0, e)}, ctx.call.attrs, ctx.call.span);
  };
  Expr places = numbered(x);
  if (ctx.attrs<DynPadAttrs>().pad_mode != "constant") return {scattered(g, padded(places), x)};
  Expr inside = kept(is_equal(padded(apply("ones_like", {places})), 1), g);
  Expr border = apply("sum", {g}) - apply("sum", {inside});
  return {scattered(inside, padded(places), x), nullptr, reshape_like(border, value)};
}

Adjoints dyn_split_gradient(const GradientContext& ctx) {
  std::vector<Expr> parts;
  for (size_t k = 0; k < ctx.adjoints.size(); ++k) {
    const Expr& g = ctx.adjoints[k];
    parts.push_back(g ? g : zeros_like(tuple_get_item(ctx.result, static_cast<int64_t>(k))));
  }
  return {apply("concatenate", {tuple(parts)}, {{"axis", ctx.attrs<DynSplitAttrs>().axis}})};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::DynamicAxes>() {
  const ArgInfo data{"data", "The input."};
  static constexpr const char *matrix = "Tensor[(2, 3), float32]", *two = "Tensor[(2,), int64]",
                              *four = "Tensor[(4,), int64]";
  static const OpInfo rows[] = {
      with_static_form(
          dynamic_row(
              "dyn.transpose", "Moves the axes into another order.",
              {data, {"axes", "The input's axis for each of the result, a vector of integers."}},
              nullptr, transpose_type,
              compute_rule_with_shape(sizes_rule(transpose_sizes), transpose), Absent::NoArithmetic,
              moved, given({matrix, two}, {{1, 2, 3, 4, 5, 6}, {1, 0}})),
          {.op = "transpose", .first = 1, .attrs = {"axes"}}),
      dynamic_row(
          "dyn.pad",
          "Adds a border, or cuts one off: a value, the nearest element, mirrored or periodic.",
          {data,
           {"pad_width",
            "The widths before each axis, then those after; what is negative is cut off first."},
           {"pad_value", "A scalar."}},
          &DynPadAttrs::static_info(), pad_type,
          compute_rule_with_shape(sizes_rule(pad_sizes), pad), Absent::NoArithmetic,
          dyn_pad_gradient,
          given({matrix, four, "float32"}, {{1, 2, 3, 4, 5, 6}, {1, 2, 0, -1}, {7}})),
      dynamic_row("dyn.split", "Cuts an axis into parts.",
                  {data, {"sizes", "The size of each part, a vector of integers."}},
                  &DynSplitAttrs::static_info(), split_type,
                  std::make_shared<const ComputeRule>(ComputeRule{split, split_sizes}),
                  Absent::NoArithmetic, dyn_split_gradient,
                  given({matrix, two}, {{1, 2, 3, 4, 5, 6}, {1, 2}}, "axis=1")),
  };
  return rows;
}

}  // namespace relay::ops
