#include "ir/views.h"

namespace relay {

const ExprNode* behind_views(const ExprNode* e) {
  while (auto* c = as<CallNode>(e)) {
    auto* op = as<OpNode>(c->op);
    if (op == nullptr || !op->row->reshape_only) break;
    e = c->args[0].get();
  }
  return e;
}

bool only_reshapes(const OpInfo& row) {
  return row.reshape_only && row.args.size() == 1 && row.fusion.get() != FusionClass::Opaque;
}

}  // namespace relay
