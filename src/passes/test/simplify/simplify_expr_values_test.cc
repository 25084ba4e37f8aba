// SimplifyExpr keeps every bit, those of denormal numbers where they are kept: the program on which a rule fires is
// evaluated before and after.
#include <cmath>

#include "eval/evaluator.h"
#include "passes/simplify/simplify_expr.h"
#include "passes/test/pass_test.h"
#include "passes/test/simplify_expr_rows.h"

namespace relay {
namespace {

// Inputs with everything that arithmetic stumbles over.
Tensor awkward(const Type& type) {
  static const double kFloats[] = {NAN, -0.0, INFINITY, -2.5, 1e-40, 7.5};
  static const int64_t kInts[] = {0, -1, 2147483647, -2147483648, 5, 300};
  auto* t = as<TensorTypeNode>(type);
  std::vector<int64_t> shape = *t->const_shape();
  Tensor out = Tensor::empty(t->dtype, shape);
  for (int64_t at = 0; at < out.num_elements(); ++at) {
    auto k = static_cast<size_t>(at);
    if (t->dtype.is_floating()) {
      out.set_from_double(at, kFloats[k % std::size(kFloats)]);
    } else {
      out.set_from_int(at, t->dtype.is_bool() ? at % 2 : kInts[k % std::size(kInts)]);
    }
  }
  return out;
}

Tensor value_of(const Module& mod) {
  std::vector<runtime::Value> args;
  for (const Var& p : mod->find("main")->params) args.push_back(awkward(p->type));
  EvalOptions options;
  options.denormals = runtime::Denormals::keep;
  return Evaluator(mod, options).call("main", std::move(args)).tensor();
}

TEST(SimplifyExpr, every_rule_keeps_the_bits) {
  for (const pass_test::Row& row : pass_test::rows()) {
    SCOPED_TRACE(row.rule);
    Module before = pass_test::parse(row.fires), after = pass_test::apply(kSimplifyExpr, before);
    Tensor want = value_of(before), got = value_of(after);
    if (row.rule != "power_two") {
      EXPECT_TRUE(bit_equal(want, got));
      continue;
    }
    for (int64_t at = 0; at < want.num_elements(); ++at) {
      double w = want.get_as_double(at), g = got.get_as_double(at);
      EXPECT_TRUE((std::isnan(w) && std::isnan(g)) || w == g ||
                  std::abs(w - g) <= 2e-7 * std::abs(w))
          << w << " against " << g;
    }
  }
}

}  // namespace
}  // namespace relay
