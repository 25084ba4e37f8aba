#include "tir/while.h"

namespace relay::tir {

const NodeInfo& WhileNode::static_info() {
  static const NodeInfo info =
      describe<WhileNode>("tir.While", kKind, family::tir_stmt,
                          {child("cond", &WhileNode::cond), child("body", &WhileNode::body)});
  return info;
}

Stmt while_(PrimExpr cond, Stmt body) {
  RELAY_CHECK(cond->dtype == DType::Bool(), "while on " + cond->dtype.to_string());
  return make<WhileNode>([&](WhileNode& n) {
    n.cond = std::move(cond);
    n.body = std::move(body);
  });
}

}  // namespace relay::tir
