#include "passes/derivative_pass.h"

#include "analysis/definitions.h"
#include "analysis/fresh_names.h"
#include "base/codes/text.h"
#include "grad/dataflow.h"
#include "grad/lift.h"
#include "node/walk.h"
#include "passes/dead_code_elimination.h"
#include "passes/partial_evaluate.h"
#include "passes/remove_unused_functions.h"

namespace relay {
namespace {

void check_free(const Module& mod, const std::string& name) {
  if (!mod->find(name)) return;
  throw UserError(
      Diagnostic(codes::text_duplicate_name, {}, "the module has a function @" + name + " already")
          .help("give the derivative another name"));
}

// The data types that functions of a module mention, and those that these mention.
std::vector<TypeData> mentioned_types(const Module& mod, const Module& known) {
  std::set<std::string> names;
  for (const TypeData& t : known->type_definitions) names.insert(t->header->name_hint);
  auto collect = [&](const NodeRef& root) {
    post_order(root, [&](const Node& n) {
      if (auto* g = as<GlobalTypeVarNode>(&n)) names.insert(g->name_hint);
      auto* e = n.info().family == family::expr ? static_cast<const ExprNode*>(&n) : nullptr;
      if (e == nullptr || !e->type) return;
      post_order(
          e->type,
          [&](const Node& t) {
            if (auto* g = as<GlobalTypeVarNode>(&t)) names.insert(g->name_hint);
          },
          family::type);
    });
  };
  for (const Function& f : mod->functions) collect(f);
  size_t before;
  do {
    before = names.size();
    for (const TypeData& t : mod->type_definitions) {
      if (!names.contains(t->header->name_hint)) continue;
      for (const Constructor& c : t->constructors) collect(c);
    }
  } while (names.size() != before);
  std::vector<TypeData> out;
  for (const TypeData& t : mod->type_definitions) {
    if (names.contains(t->header->name_hint)) out.push_back(t);
  }
  return out;
}

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

// The function with loops over counters written out, as far as that is worth it: their gradients are
// plain dataflow then. Functions with a gradient of their own, or that are computed again, are to
// stay calls: with such in the module nothing is done.
Function without_loops(const Module& mod, const Function& f, const PassContext& ctx) {
  for (const Function& g : mod->functions) {
    if (g->has_attr(kCustomGradient) || g->has_attr(kCheckpoint)) return f;
  }
  const std::string name = FreshNames(mod).fresh("differentiated");
  PassContext own = for_entry(ctx, name);
  own.config["relay.PartialEvaluate.max_unrolled_tensors"] = AttrValue(kMaxUnrolledTensors);
  own.config["relay.PartialEvaluate.max_bindings"] = AttrValue(kMaxBindings);
  Module whole = with_function(mod, global_var(name, f->type), f);
  return run_pass(whole, kPartialEvaluate, own)->find(name);
}

}  // namespace

Module add_derivative(const Module& mod, const Function& f, DerivativeKind kind,
                      const std::string& name, PassContext& ctx, size_t count) {
  check_free(mod, name);
  Module program = expand_for_gradients(mod);
  Function plain = without_loops(program, expand_for_gradients(f), ctx);
  Derivative made = derivative(program, plain, kind, count);
  GlobalVar entry = global_var(name, made.function->type);
  Module whole = with_function(made.module, entry, made.function);
  PassContext own = for_entry(ctx, name);
  for (const Pass* pass : {&kPartialEvaluate, &kDeadCodeElimination, &kRemoveUnusedFunctions})
    whole = run_pass(whole, *pass, own);
  // The functions that were there stay as they were.
  std::vector<GlobalVar> names = mod->global_vars;
  std::vector<Function> functions = mod->functions;
  for (size_t i = 0; i < whole->functions.size(); ++i) {
    if (mod->find(whole->global_vars[i]->name_hint)) continue;
    names.push_back(whole->global_vars[i]);
    functions.push_back(whole->functions[i]);
  }
  Module all = make_module(names, functions, whole->type_definitions, mod->attrs);
  return make_module(names, functions, mentioned_types(all, mod), mod->attrs);
}

Module add_first_order_gradient(const Module& mod, const Function& f, const std::string& name) {
  check_free(mod, name);
  Function g = first_order_gradient(expand_for_gradients(f));
  return with_function(mod, global_var(name, g->type), g);
}

}  // namespace relay
