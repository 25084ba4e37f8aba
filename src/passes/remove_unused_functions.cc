#include "passes/remove_unused_functions.h"

#include <unordered_set>
#include <vector>

#include "node/walk.h"

namespace relay {
namespace {

constexpr const char* kEntries = "relay.RemoveUnusedFunctions.entry_functions";

std::vector<Function> entries(const Module& mod, const PassContext& ctx) {
  std::vector<Function> out;
  auto it = ctx.config.find(kEntries);
  auto* names = it == ctx.config.end() ? nullptr : it->second.get_if<ValueList>();
  if (names != nullptr) {
    for (const Value& name : *names) {
      auto* text = name.get_if<std::string>();
      Function f = text == nullptr ? nullptr : mod->find(*text);
      if (f) out.push_back(f);
    }
    return out;
  }
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const Function& f = mod->functions[i];
    if (mod->global_vars[i]->name_hint == "main" || f->has_attr(attr::kGlobalSymbol)) {
      out.push_back(f);
    }
  }
  return out;
}

Module run(const Module& mod, PassContext& ctx) {
  std::vector<Function> work = entries(mod, ctx);
  if (work.empty()) return mod;
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
        family::expr | family::pattern);
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

const Pass kRemoveUnusedFunctions{"RemoveUnusedFunctions",
                                  1,
                                  Form::any,
                                  Form::any,
                                  "Drops the functions that the entry functions do not reach.",
                                  run};

}  // namespace relay
