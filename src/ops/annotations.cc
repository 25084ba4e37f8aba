// Operators that say something about a value to the compiler and give it as it is.
#include <algorithm>

#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/common.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

TirTensor same(const ComputeContext& ctx) {
  const TirTensor& x = ctx.inputs[0];
  return tir::compute("T_same", x->shape(), [&](const Indices& i) { return x(i); });
}

Type both_alike(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *like = ctx.tensor(1);
  if (x == nullptr || like == nullptr) return nullptr;
  const bool alike = x->dtype == like->dtype && x->shape.size() == like->shape.size() &&
                     std::ranges::equal(x->shape, like->shape, [](const Dim& a, const Dim& b) {
                       return is_any(a) || is_any(b) || dim_equal(a, b);
                     });
  if (!require(ctx, alike, codes::type_shape, "the arguments have different types",
               to_string(Type(x)), to_string(Type(like))))
    return nullptr;
  return Type(x);
}

Adjoints passed_on(const GradientContext& ctx) { return {ctx.adjoint()}; }

OpInfo annotation_row(const char* name, const char* doc, FusionClass fusion) {
  return {
      .name = name,
      .doc = doc,
      .args = {{"data", "The values."}},
      .support_level = 10,
      .fusion = fusion,
      .effect = Effect::Pure,
      .reshape_only = true,
      .takes_narrow = true,
      .relation = identity,
      .compute = compute_rule(same),
      .layout = follow_layout,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = passed_on,
      .batching = batch_as_it_is,
      .examples = {{{"Tensor[(2, 3), float32]"}, ""}},
      .expected = Absent::ByNumPy,
  };
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Annotations>() {
  static const OpInfo rows[] = {
      annotation_row("annotation.stop_fusion",
                     "The same values, in memory: no kernel reaches from before to behind it.",
                     FusionClass::Opaque),
      annotation_row(
          "annotation.checkpoint",
          "The same values. A gradient in reverse mode does not keep what they are computed "
          "from, and computes them again from the names in the expression.",
          FusionClass::ElemWise),
      {
          .name = "annotation.derivative_of",
          .doc =
              "The values of the first argument with the derivative of the second: where both are "
              "the same, in ways of which only one has a derivative everywhere.",
          .args = {{"data", "The values."}, {"like", "What is differentiated."}},
          .support_level = 10,
          .fusion = FusionClass::ElemWise,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = both_alike,
          .compute = compute_rule(same),
          .layout = follow_layout,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = [](const GradientContext& ctx) -> Adjoints {
            return {nullptr, ctx.adjoint()};
          },
          .batching = batch_as_it_is,
          .examples = {{{"Tensor[(2, 3), float32]", "Tensor[(2, 3), float32]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
