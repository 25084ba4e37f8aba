#include "passes/structure/to_basic_block_normal_form.h"

#include <vector>

#include "node/node_map.h"
#include "passes/structure/name_values.h"

namespace relay {
namespace {

// The expressions that some other block uses.
NodeSet shared_by_blocks(const ScopeTree& tree) {
  auto block = [&](int scope) { return tree.scopes[static_cast<size_t>(scope)].block; };
  NodeSet out;
  for (const ExprNode* e : tree.order) {
    const int* own = tree.scope_of.find(e);
    if (own == nullptr) continue;
    for_each_operand(*e, [&](const Expr& operand, bool opens) {
      const int* at = tree.scope_of.find(operand.get());
      if (at == nullptr) return;
      int use = opens ? tree.opened(*e, operand.get()) : *own;
      if (block(use) != block(*at)) out.insert(operand.get());
    });
  }
  return out;
}

// Adds the effects that come before a named one in its scope.
void keep_order(const ScopeTree& tree, const Purity& purity, NodeSet& named) {
  std::vector<bool> effect_follows(tree.scopes.size(), false);
  for (auto it = tree.order.rbegin(); it != tree.order.rend(); ++it) {
    const int* scope = tree.scope_of.find(*it);
    if (scope == nullptr || purity.of(ref(**it)).pure()) continue;
    auto s = static_cast<size_t>(*scope);
    if (effect_follows[s]) named.insert(*it);
    if (named.contains(*it)) effect_follows[s] = true;
  }
}

Module run_to_basic_block_normal_form(const Module& mod, PassContext&) {
  Purity purity(mod);
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : to_basic_block_normal_form(f, purity);
  });
}

}  // namespace

Function to_basic_block_normal_form(const Function& f, const Purity& purity) {
  ScopeTree tree = analyze_scopes(*f.get());
  NodeSet named = shared_by_blocks(tree);
  if (named.size() == 0) return f;
  keep_order(tree, purity, named);
  return name_values(f, tree, {.wanted = [&](const ExprNode& e) { return named.contains(&e); }});
}

const Pass kToBasicBlockNormalForm{"ToBasicBlockNormalForm",
                                   1,
                                   Form::any,
                                   Form::basic_blocks,
                                   "Names what several blocks share.",
                                   run_to_basic_block_normal_form};

}  // namespace relay
