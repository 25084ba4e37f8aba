#include "passes/gradient/derivative_pass.h"

#include "analysis/definitions.h"
#include "analysis/fresh_names.h"
#include "grad/checkpoints.h"
#include "grad/dataflow.h"
#include "grad/lift.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/partial/partial_evaluate.h"
#include "passes/structure/added_functions.h"
#include "passes/structure/dead_code_elimination.h"
#include "passes/structure/remove_unused_functions.h"
#include "passes/structure/to_a_normal_form.h"
#include "passes/trees/batch_trees.h"

namespace relay {
namespace {

// What the loops of a function that is differentiated may compute when they are written out. Reverse
// mode keeps a step of a loop as a closure with a cell for each tensor, which costs more than a
// kernel for it does: an LSTM of 50 steps has 700 tensors.
constexpr int64_t kMaxUnrolledTensors = 4096;
constexpr int64_t kMaxBindings = 4 * kMaxUnrolledTensors;

PassContext for_entry(const PassContext& ctx, const std::string& name) {
  PassContext own = ctx;
  own.config["relay.RemoveUnusedFunctions.entry_functions"] = AttrValue(ValueList{AttrValue(name)});
  return own;
}

// Whether what a `where` chooses among may be computed by functions: masks do not reach into calls
// (grad/untaken.h).
bool has_where(const Module& mod) {
  bool found = false;
  auto look = [&](const Node& n) {
    auto* op = as<OpNode>(&n);
    found |= op != nullptr && op->name == "where";
  };
  for (const Function& g : mod->functions) post_order(g, look, family::program);
  return found;
}

// The function with loops over counters written out, as far as that is worth it, and functions put where
// they are called: their gradients are plain dataflow then. Functions with a gradient of their own, or that are computed again, are to
// stay calls: with such in the module nothing is done.
Function without_loops(const Module& mod, const Function& f, const PassContext& ctx) {
  for (const Function& g : mod->functions) {
    if (g->has_attr(kCustomGradient) || g->has_attr(kCheckpoint)) return f;
  }
  const std::string name = FreshNames(mod).fresh("differentiated");
  PassContext own = for_entry(ctx, name);
  own.config["relay.PartialEvaluate.max_unrolled_tensors"] = AttrValue(kMaxUnrolledTensors);
  own.config["relay.PartialEvaluate.max_bindings"] = AttrValue(kMaxBindings);
  own.config["relay.PartialEvaluate.calls"] = AttrValue(has_where(mod));
  Module whole = with_function(mod, global_var(name, f->type), f);
  return run_pass(whole, kPartialEvaluate, own)->find(name);
}

}  // namespace

Module add_derivative(const Module& mod, const Function& f, DerivativeKind kind,
                      const std::string& name, PassContext& ctx, size_t count) {
  check_name_is_free(mod, name);
  auto [program, marked] = with_checkpoints(expand_for_gradients(mod), expand_for_gradients(f));
  const std::string of = FreshNames(program).fresh("differentiated");
  program = with_function(program, global_var(of, f->type), marked);
  if (ctx.enabled(kBatchTrees)) program = run_pass(program, kBatchTrees, ctx);
  // Operators that follow each other are differentiated as one (grad/dataflow_runs.h).
  program = run_pass(program, kToANormalForm, ctx);
  Function plain = without_loops(program, program->find(of), ctx);
  Derivative made = derivative(program, plain, kind, count);
  GlobalVar entry = global_var(name, made.function->type);
  Module whole = with_function(made.module, entry, made.function);
  PassContext own = for_entry(ctx, name);
  for (const Pass* pass : {&kPartialEvaluate, &kDeadCodeElimination, &kRemoveUnusedFunctions})
    whole = run_pass(whole, *pass, own);
  return with_what_is_new(mod, whole);
}

Module add_first_order_gradient(const Module& mod, const Function& f, const std::string& name) {
  check_name_is_free(mod, name);
  Function g = first_order_gradient(expand_for_gradients(f));
  return with_function(mod, global_var(name, g->type), g);
}

}  // namespace relay
