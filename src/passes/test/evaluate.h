// Programs computed by the reference evaluator: for passes that fold, and for comparing results.
#pragma once

#include <cmath>
#include <functional>

#include "eval/evaluator.h"
#include "passes/pass.h"

namespace relay::pass_test {

inline void flatten(const runtime::Value& v, std::vector<Tensor>& out) {
  // As deep as a result's type.
  if (v.is_tensor()) return out.push_back(v.tensor());
  for (size_t i = 0; i < v.num_fields(); ++i) flatten(v.field(i), out);
}

inline PassContext folding_context() {
  PassContext ctx;
  ctx.evaluate = [](const Function& f, const std::vector<Tensor>& args) {
    std::vector<runtime::Value> values(args.begin(), args.end());
    std::vector<Tensor> out;
    flatten(Evaluator(module_from_expr(f)).call("main", std::move(values)), out);
    return out;
  };
  return ctx;
}

// A tensor of a static type; `element` gives each element by its position.
inline Tensor sample(const Type& type, const std::function<double(int64_t at)>& element) {
  auto* t = as<TensorTypeNode>(type);
  Tensor out = Tensor::empty(t->dtype, *t->const_shape());
  for (int64_t at = 0; at < out.num_elements(); ++at) out.set_from_double(at, element(at));
  return out;
}

// No two elements the same, between -3 and 3.
inline double ordinary(int64_t at) { return 3 * std::sin(0.7 * static_cast<double>(at) + 1); }

// What main gives for samples of its parameters' types, tuples flattened.
inline std::vector<Tensor> results(const Module& mod,
                                   const std::function<double(int64_t at)>& element = ordinary) {
  std::vector<runtime::Value> args;
  for (const Var& p : mod->find("main")->params) args.push_back(sample(p->type, element));
  std::vector<Tensor> out;
  flatten(Evaluator(mod).call("main", std::move(args)), out);
  return out;
}

}  // namespace relay::pass_test
