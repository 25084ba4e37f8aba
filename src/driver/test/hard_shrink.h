// The operator of docs/adding_an_operator.md, for tests of what an operator from outside takes part
// in. tests/python/test_guides.py compares the guide's code with this file.
#pragma once

#include "base/codes/types.h"
#include "driver/test/networks.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"

namespace mylib {
namespace {

using namespace relay;  // NOLINT

struct HardShrinkAttrs : AttrsOf<HardShrinkAttrs> {
  double lambd = 0.5;
  static AttrsList describe() {
    return {"mylib.attrs.HardShrinkAttrs",
            {attribute("lambd", &Self::lambd, "What is no further from zero becomes zero.")}};
  }
};

Type hard_shrink_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  if (!x->dtype.is_floating())
    return ctx.fail(codes::type_dtype, "needs a floating dtype", "float32", x->dtype.to_string());
  return Type(x);
}

tir::Tensor hard_shrink(const ComputeContext& ctx) {
  const tir::Tensor& x = ctx.inputs[0];
  double lambd = ctx.attrs<HardShrinkAttrs>().lambd;
  return tir::compute("T_hard_shrink", x->shape(), [&](const tir::Indices& i) {
    tir::PrimExpr v = x(i), size = tir::call("abs", v->dtype, {v});
    return tir::select(tir::gt(size, tir::imm_float(v->dtype, lambd)), v,
                       tir::imm_float(v->dtype, 0));
  });
}

std::vector<Expr> hard_shrink_gradient(const GradientContext& ctx) {
  Expr zero = call("zeros_like", {ctx.result}), shrunk = call("equal", {ctx.result, zero});
  return {call("where", {shrunk, zero, ctx.adjoint()})};
}

OpInfo hard_shrink_row() {
  return {
      .name = "mylib.hard_shrink",
      .doc = "x where it is further than lambd from zero, else 0.",
      .args = {{"data", "The input."}},
      .attrs = &HardShrinkAttrs::static_info(),
      .fusion = FusionClass::ElemWise,
      .effect = Effect::Pure,
      .relation = hard_shrink_type,
      .compute = compute_rule(hard_shrink),
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Follow,
      .cost = Absent::NoArithmetic,
      .gradient = hard_shrink_gradient,
      .examples = {{.args = {"Tensor[(4,), float32]"},
                    .attrs = "lambd=1f",
                    .inputs = {{-2, -1, 0.5, 3}},
                    .results = {{-2, 0, 0, 3}}}},
      .expected = "by hand, from the sentence above",
  };
}

// Registers the operator for as long as it lives.
struct Registered {
  Registered() {
    initialize();
    OpRegistry::global().add(hard_shrink_row());
  }
  ~Registered() { OpRegistry::global().remove("mylib.hard_shrink"); }
};

}  // namespace
}  // namespace mylib
