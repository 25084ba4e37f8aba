#include "passes/structure/remove_unused_functions.h"

#include <unordered_set>
#include <vector>

#include "node/walk.h"
#include "passes/structure/entry_functions.h"

namespace relay {
namespace {

Module run_remove_unused_functions(const Module& mod, PassContext& ctx) {
  std::vector<Function> work = entry_functions(mod, ctx);
  std::unordered_set<const Node*> kept;
  for (const Function& f : work) kept.insert(f.get());
  while (!work.empty()) {
    Function f = work.back();
    work.pop_back();
    post_order(
        f,
        [&](const Node& n) {
          auto* g = as<GlobalVarNode>(&n);
          Function callee = g == nullptr ? nullptr : mod->find(g->name_hint);
          if (callee && kept.insert(callee.get()).second) work.push_back(callee);
        },
        family::program);
  }
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (!kept.contains(mod->functions[i].get())) continue;
    names.push_back(mod->global_vars[i]);
    functions.push_back(mod->functions[i]);
  }
  if (functions.size() == mod->functions.size()) return mod;
  return make_module(std::move(names), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace

const Pass kRemoveUnusedFunctions{
    "RemoveUnusedFunctions",
    1,
    Form::any,
    Form::any,
    "Drops the functions that the entry functions do not reach.",
    run_remove_unused_functions,
    {{"entry_functions", PassOption::Type::names, AttrValue(),
      "The functions that are kept; without, main and those with a global_symbol."}}};

}  // namespace relay
