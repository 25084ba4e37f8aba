// Vectors of length one.
#include "base/codes/operators.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

struct L2NormalizeAttrs : AttrsOf<L2NormalizeAttrs> {
  double eps = 0;
  std::optional<Ints> axis;
  static AttrsList describe() {
    return {"relay.attrs.L2NormalizeAttrs",
            {attribute("eps", &Self::eps, "Least sum of squares to divide by."),
             attribute("axis", &Self::axis, "Axes to sum over; None: all.")}};
  }
};

Type l2_normalize_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<L2NormalizeAttrs>();
  std::vector<bool> seen(x->shape.size(), false);
  for (int64_t v : a.axis.value_or(Ints{})) {
    auto axis = normal_axis(ctx, v, x->rank());
    if (!axis || !require(ctx, !seen[static_cast<size_t>(*axis)], codes::op_bad_attribute,
                          "an axis is given twice", "", std::to_string(v)))
      return nullptr;
    seen[static_cast<size_t>(*axis)] = true;
  }
  if (!require(ctx, a.eps >= 0, codes::op_bad_attribute, "eps is negative", "0 or more",
               std::to_string(a.eps)))
    return nullptr;
  return float_identity(ctx);
}

TirTensor l2_normalize_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<L2NormalizeAttrs>();
  TirTensor x = ctx.inputs[0];
  DType acc = working_dtype(x->dtype);
  std::vector<bool> summed(x->shape().size(), !a.axis || a.axis->empty());
  for (int64_t v : a.axis.value_or(Ints{}))
    summed[static_cast<size_t>(from_front(v, x->rank()))] = true;
  std::vector<PrimExpr> kept, extents;
  for (size_t d = 0; d < summed.size(); ++d) (summed[d] ? extents : kept).push_back(x->shape()[d]);
  TirTensor squares = tir::compute("T_squares", kept, [&](const Indices& i) {
    auto square = [&](const Indices& k) {
      Indices at;
      size_t from_i = 0, from_k = 0;
      for (bool s : summed) at.push_back(s ? k[from_k++] : i[from_i++]);
      PrimExpr v = tir::cast(acc, x(at));
      return v * v;
    };
    return extents.empty() ? square({}) : tir::sum(extents, square);
  });
  return tir::compute("T_l2_normalize", x->shape(), [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < summed.size(); ++d) {
      if (!summed[d]) at.push_back(i[d]);
    }
    PrimExpr least = imm_float(acc, a.eps);
    PrimExpr norm = tir::call("sqrt", acc, {max(squares(at), least)});
    return tir::cast(x->dtype, div(tir::cast(acc, x(i)), norm));
  });
}

double l2_normalize_cost(const CallNode& c) { return 3 * num_elements(c.type); }

Adjoints l2_normalize_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<L2NormalizeAttrs>();
  const Expr &x = ctx.arg(0), &g = ctx.adjoint();
  auto total = [&](const Expr& e) {
    return apply("sum", {e},
                 {{"axis", a.axis && !a.axis->empty() ? to_value(*a.axis) : AttrValue()},
                  {"keepdims", true}});
  };
  Expr squares = total(x * x);
  Expr factor = apply("rsqrt", {apply("maximum", {squares, scalar(a.eps, x)})});
  // A sum that is limited does not change.
  Expr along_x = kept(is_greater(squares, a.eps), total(g * x) * factor * factor * factor);
  return {g * factor - x * along_x};
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::L2Normalize>() {
  static const OpInfo rows[] = {
      {
          .name = "nn.l2_normalize",
          .doc = "x / sqrt(max(sum(x * x), eps)), the sum over axes.",
          .args = {{"data", "The input."}},
          .attrs = &L2NormalizeAttrs::static_info(),
          .support_level = 2,
          .fusion = FusionClass::OutEWiseFusable,
          .effect = Effect::Pure,
          .relation = l2_normalize_type,
          .compute = compute_rule(l2_normalize_compute),
          .contraction = Absent::NotOneSum,
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Never,
          .cost = l2_normalize_cost,
          .gradient = l2_normalize_gradient,
          .batching = batch_axes,
          .examples = {{{"Tensor[(2, 5, 3), float32]"}, "eps=0.001f, axis=[1]"},
                       {{"Tensor[(2, 5), float32]"}, "eps=1e-12f"}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
