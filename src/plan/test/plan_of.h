// Programs as text, planned.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ops/test/parse.h"
#include "passes/pass.h"
#include "passes/pipelines.h"
#include "plan/make_plan.h"
#include "plan/verify.h"

namespace relay::plan_test {

// The plan of a program after the passes that give every kernel its function and every value its
// name; functions stay functions and constants constants. Level 3 fuses operators.
inline plan::PlanProgram plan_of(
    const std::string& text, int opt_level = 3,
    std::shared_ptr<KernelProvider> provider = std::make_shared<KernelProvider>()) {
  PassContext ctx;
  ctx.verify = true;
  ctx.opt_level = opt_level;
  for (const char* name : {"Inline", "FoldConstant", "EliminateCommonSubexpr"}) {
    ctx.disabled_pass.insert(name);
  }
  ctx.evaluate = [](const Function&, const std::vector<Tensor>&) -> std::vector<Tensor> {
    throw std::logic_error("nothing is folded here");
  };
  Module mod = run_passes(test::parse(text), optimize_pipeline(), ctx);
  LoweredProgram lowered(mod, std::move(provider));
  return plan::make_plan(mod, lowered);
}

// A function on a matrix %x and a square matrix %w, both of 16 columns.
inline std::string on_matrices(const std::string& body) {
  return "def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {\n" + body +
         "\n}";
}

// The index of the n-th step of the kind.
inline size_t find_step(const plan::PlanFunction& f, plan::StepKind kind, size_t n = 0) {
  for (size_t i = 0; i < f.steps.size(); ++i) {
    if (f.steps[i].kind == kind && n-- == 0) return i;
  }
  throw std::logic_error("the plan has no such step");
}

// What the verifier says of a plan.
inline std::string complaint(const plan::PlanProgram& p) {
  try {
    plan::verify(p);
  } catch (const InternalError& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace relay::plan_test
