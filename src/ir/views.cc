#include "ir/views.h"

#include "ir/op.h"

namespace relay {

const ExprNode* behind_views(const ExprNode* e) {
  while (auto* c = as<CallNode>(e)) {
    auto* op = as<OpNode>(c->op);
    if (op == nullptr || !op->row->reshape_only) break;
    e = c->args[0].get();
  }
  return e;
}

}  // namespace relay
