#include "passes/simplify/fast_math.h"

#include "analysis/calls.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

struct Approximation {
  std::string_view exact;
  std::string_view fast;
};

constexpr Approximation kApproximations[] = {{"exp", "fast_exp"},
                                             {"tanh", "fast_tanh"},
                                             {"erf", "fast_erf"},
                                             {"nn.softmax", "nn.fast_softmax"}};

Module run(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    return rewrite_calls(f, [](const CallNode& c) -> Expr {
      for (const Approximation& a : kApproximations) {
        if (!is_call_to(Expr(&c), a.exact)) continue;
        auto* type = tensor_of(Expr(&c));
        if (type == nullptr || !type->dtype.is_float(32)) continue;
        return make_call(a.fast, c.args, attr_values(c.attrs), c);
      }
      return nullptr;
    });
  });
}

}  // namespace

const Pass kFastMath{"FastMath",
                     4,
                     Form::any,
                     Form::any,
                     "Replaces exp, tanh, erf and softmax by quicker, less exact ones.",
                     run};

}  // namespace relay
