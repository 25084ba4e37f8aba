#include "passes/gradient/batch_pass.h"

#include "analysis/definitions.h"
#include "analysis/fresh_names.h"
#include "node/walk.h"
#include "passes/structure/added_functions.h"
#include "passes/structure/dead_code_elimination.h"
#include "passes/structure/remove_unused_functions.h"
#include "passes/structure/to_a_normal_form.h"
#include "passes/structure/to_graph_normal_form.h"

namespace relay {
namespace {

// Without the functions that @main does not need any longer.
Module run_batch_pass(const Module& mod, PassContext& ctx) {
  const std::string main = "main";
  if (!mod->find(main)) return mod;
  // What calls @main goes on to call what it was.
  GlobalVar lane = global_var(FreshNames(mod).fresh("lane"), mod->find(main)->type);
  auto renamed = [&](const Function& f) {
    return Function::unchecked(rewrite(
        f,
        [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
          auto* g = as<GlobalVarNode>(original);
          return g != nullptr && g->name_hint == main ? NodeRef(lane) : rebuilt;
        },
        family::program));
  };
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    bool is_main = mod->global_vars[i]->name_hint == main;
    names.push_back(is_main ? lane : mod->global_vars[i]);
    functions.push_back(renamed(mod->functions[i]));
  }
  Module out = add_batched(make_module(names, functions, mod->type_definitions, mod->attrs),
                           lane->name_hint, {}, main, ctx);
  PassContext own = ctx;
  own.config["relay.RemoveUnusedFunctions.entry_functions"] = AttrValue(ValueList{AttrValue(main)});
  return run_pass(out, kRemoveUnusedFunctions, own);
}

}  // namespace

const Pass kBatch{"Batch",
                  0,
                  Form::any,
                  Form::any,
                  "Makes of @main a function for a batch along the first axes.",
                  run_batch_pass,
                  {},
                  /*keeps_meaning=*/false};

Module add_batched(const Module& mod, const std::string& of, const BatchOptions& options,
                   const std::string& name, PassContext& ctx,
                   std::vector<LaneByLane>* lane_by_lane) {
  check_name_is_free(mod, name);
  Module named = has_definitions(mod) ? expand_definitions(mod) : mod;
  Batched made = batch(run_pass(named, kToANormalForm, ctx), of, options);
  if (lane_by_lane != nullptr) *lane_by_lane = std::move(made.lane_by_lane);
  Module whole = with_function(made.module, global_var(name, made.function->type), made.function);
  PassContext own = ctx;
  own.config["relay.RemoveUnusedFunctions.entry_functions"] = AttrValue(ValueList{AttrValue(name)});
  for (const Pass* pass : {&kRemoveUnusedFunctions, &kToGraphNormalForm, &kDeadCodeElimination})
    whole = run_pass(whole, *pass, own);
  return with_what_is_new(mod, whole);
}

}  // namespace relay
