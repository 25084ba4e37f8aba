#include "passes/to_basic_block_normal_form.h"

#include <unordered_set>
#include <vector>

#include "passes/name_values.h"

namespace relay {
namespace {

// The expressions that some other block uses.
std::unordered_set<const Node*> shared_by_blocks(const ScopeTree& tree) {
  auto block = [&](int scope) { return tree.scopes[static_cast<size_t>(scope)].block; };
  std::unordered_set<const Node*> out;
  for (const ExprNode* e : tree.order) {
    auto own = tree.scope_of.find(e);
    if (own == tree.scope_of.end()) continue;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      auto at = tree.scope_of.find(operand.get());
      if (at == tree.scope_of.end()) return;
      int use = opens ? tree.opened.at({e, operand.get()}) : own->second;
      if (block(use) != block(at->second)) out.insert(operand.get());
    });
  }
  return out;
}

// Adds the effects that come before a named one in its scope.
void keep_order(const ScopeTree& tree, const Purity& purity,
                std::unordered_set<const Node*>& named) {
  std::vector<bool> effect_follows(tree.scopes.size(), false);
  for (auto it = tree.order.rbegin(); it != tree.order.rend(); ++it) {
    auto scope = tree.scope_of.find(*it);
    if (scope == tree.scope_of.end() || purity.of(ref(**it)).pure()) continue;
    auto s = static_cast<size_t>(scope->second);
    if (effect_follows[s]) named.insert(*it);
    if (named.contains(*it)) effect_follows[s] = true;
  }
}

Module run(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : to_basic_block_normal_form(f, purity);
  });
}

}  // namespace

Function to_basic_block_normal_form(const Function& f, const Purity& purity) {
  ScopeTree tree = analyze_scopes(*f.get());
  std::unordered_set<const Node*> named = shared_by_blocks(tree);
  if (named.empty()) return f;
  keep_order(tree, purity, named);
  return name_values(f, tree, {.wanted = [&](const ExprNode& e) { return named.contains(&e); }});
}

const Pass kToBasicBlockNormalForm{"ToBasicBlockNormalForm",           1,  Form::any, Form::any,
                                   "Names what several blocks share.", run};

}  // namespace relay
