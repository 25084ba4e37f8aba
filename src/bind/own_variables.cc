#include "bind/own_variables.h"

#include <unordered_set>
#include <vector>

#include "grad/dataflow.h"
#include "node/walk.h"

namespace relay::bind {

Module with_own_variables(const Module& mod) {
  std::unordered_set<const Node*> taken;
  std::vector<Function> functions;
  bool changed = false;
  for (const Function& f : mod->functions) {
    std::vector<const Node*> own;
    bool shared = false;
    post_order(
        f,
        [&](const Node& n) {
          if (n.kind() != ExprKind::Var) return;
          own.push_back(&n);
          shared = shared || taken.contains(&n);
        },
        family::program);
    taken.insert(own.begin(), own.end());
    functions.push_back(shared ? fresh_copy(f) : f);
    changed = changed || shared;
  }
  if (!changed) return mod;
  return make_module(mod->global_vars, std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace relay::bind
