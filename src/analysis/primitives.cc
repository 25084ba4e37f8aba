#include "analysis/primitives.h"

#include "node/walk.h"

namespace relay {

void post_order_outside_primitives(const Expr& body,
                                   const std::function<void(const Node&)>& visit) {
  post_order_if(
      body,
      [](const Node& n) {
        auto* inner = as<FunctionNode>(&n);
        return inner == nullptr || !inner->is_primitive();
      },
      visit, family::expr | family::pattern);
}

Function without_reason(const Function& f) {
  if (!f->attrs.contains(attr::kFusionReason)) return f;
  Dict attrs = f->attrs;
  attrs.erase(attr::kFusionReason);
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

}  // namespace relay
