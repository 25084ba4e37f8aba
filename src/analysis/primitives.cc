#include "analysis/primitives.h"

namespace relay {

const FunctionNode* as_primitive(const Node* n) {
  auto* f = as<FunctionNode>(n);
  return f != nullptr && f->is_primitive() ? f : nullptr;
}

NodeRef RewriterOutsidePrimitives::pre(const NodeRef& node) {
  return as_primitive(node.get()) != nullptr ? node : nullptr;
}

void post_order_outside_primitives(const Expr& body,
                                   const std::function<void(const Node&)>& visit) {
  post_order_if(
      body, [](const Node& n) { return as_primitive(&n) == nullptr; }, visit, family::program);
}

Function without_reason(const Function& f) {
  if (!f->attrs.contains(attr::kFusionReason)) return f;
  Dict attrs = f->attrs;
  attrs.erase(attr::kFusionReason);
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

}  // namespace relay
