#include "passes/simplify/div_to_mul.h"

#include <cmath>

#include "analysis/calls.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

// Divisors with more elements are left as they are.
constexpr int64_t kMaxElements = 1 << 16;
// Far enough from the ends of float32's range.
constexpr int kMaxExponent = 100;

// The elements' reciprocals; null when one may not be taken.
Tensor reciprocals(const Tensor& divisor, bool inexact) {
  int64_t count = divisor.num_elements();
  if (count == 0 || count > kMaxElements) return nullptr;
  Tensor out = Tensor::empty(divisor.dtype(), divisor.shape());
  for (int64_t i = 0; i < count; ++i) {
    double v = divisor.get_as_double(i);
    int exponent = 0;
    double mantissa = std::frexp(v, &exponent);
    bool in_range = std::isfinite(v) && v != 0 && std::abs(exponent) <= kMaxExponent;
    if (!in_range || !(inexact || std::abs(mantissa) == 0.5)) return nullptr;
    out.set_from_double(i, 1 / v);
  }
  return out;
}

Expr product(const CallNode& c, bool inexact) {
  auto* divisor = as<ConstantNode>(c.args[1]);
  // What is computed from constants is FoldConstant's.
  if (divisor == nullptr || isa<ConstantNode>(c.args[0])) return nullptr;
  DType dtype = divisor->data.dtype();
  if (!dtype.is_float(32) && !dtype.is_float(64)) return nullptr;
  Tensor factors = reciprocals(divisor->data, inexact);
  if (!factors) return nullptr;
  return make_call("multiply", {c.args[0], constant(std::move(factors), divisor->span)}, {}, c);
}

// erf(x / c) as erf(x * (1 / c)); null where its operand is something else.
Expr of_product(const CallNode& erf) {
  auto* divided = as<CallNode>(erf.args[0]);
  if (divided == nullptr || !is_call_to(erf.args[0], "divide")) return nullptr;
  Expr operand = product(*divided, true);
  return operand ? make_call("erf", {operand}, {}, erf) : nullptr;
}

Module run_div_to_mul(const Module& mod, PassContext& ctx) {
  bool inexact = ctx.option<bool>(kDivToMul, "inexact");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return rewrite_calls(f, [&](const CallNode& c) -> Expr {
      if (is_call_to(Expr(&c), "erf")) return of_product(c);
      return is_call_to(Expr(&c), "divide") ? product(c, inexact) : nullptr;
    });
  });
}

}  // namespace

const Pass kDivToMul{"DivToMul",
                     0,
                     Form::any,
                     Form::any,
                     "Multiplies by the reciprocals of constant divisors.",
                     run_div_to_mul,
                     {{"inexact", PassOption::Type::boolean, AttrValue(false),
                       "All divisors, not only powers of two."}}};

}  // namespace relay
