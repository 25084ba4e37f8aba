#include "passes/simplify/fast_math.h"

#include "analysis/calls.h"
#include "ir/op.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

Expr approximated(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || op->row->approximation.empty()) return nullptr;
  auto* type = tensor_of(Expr(&c));
  if (type == nullptr || !type->dtype.is_float(32)) return nullptr;
  return make_call(op->row->approximation, c.args, attr_values(c.attrs), c);
}

Module run_fast_math(const Module& mod, PassContext&) {
  return map_functions(
      mod, [](const GlobalVar&, const Function& f) { return rewrite_calls(f, approximated); });
}

}  // namespace

const Pass kFastMath{"FastMath",
                     4,
                     Form::any,
                     Form::any,
                     "Replaces exp, tanh, erf and softmax by quicker, less exact ones.",
                     run_fast_math};

}  // namespace relay
