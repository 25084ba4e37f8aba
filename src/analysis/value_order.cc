#include "analysis/value_order.h"

namespace relay {

ValueOrder order_values(const ScopeTree& scopes, bool flatten) {
  ValueOrder out;
  out.of_scope.resize(scopes.scopes.size());
  for (const ExprNode* e : scopes.order) {
    const int* scope = scopes.scope_of.find(e);
    if (scope == nullptr) continue;
    std::list<const ExprNode*>& list = out.of_scope[static_cast<size_t>(*scope)];
    list.push_back(e);
    if (auto* l = as<LetNode>(e); l != nullptr && flatten) {
      int body = scopes.opened(*l, l->body.get());
      list.splice(list.end(), out.of_scope[static_cast<size_t>(body)]);
    }
  }
  return out;
}

}  // namespace relay
