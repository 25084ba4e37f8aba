#include "tir/passes/conditions.h"

#include <unordered_set>

#include "node/walk.h"

namespace relay::tir {

bool holds_throughout(const PrimExpr& cond, const Stmt& body) {
  std::unordered_set<const Node*> loaded;
  post_order(
      cond,
      [&](const Node& n) {
        if (auto* l = as<LoadNode>(&n)) loaded.insert(l->buffer.get());
      },
      family::tir_expr);
  if (loaded.empty()) return true;
  bool changes = false;
  post_order(
      body,
      [&](const Node& n) {
        auto* s = as<StoreNode>(&n);
        changes |= s != nullptr && loaded.contains(s->buffer.get());
      },
      family::tir_stmt);
  return !changes;
}

}  // namespace relay::tir
