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

}  // namespace relay
