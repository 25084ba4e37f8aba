// Loops of which only the body knows when they end: what loops of the program become
// (lower/compose_loop.h). Schedules make none.
#pragma once

#include "tir/stmt.h"

namespace relay::tir {

namespace StmtKind {
enum : int { While = Evaluate + 1 };
}

// Runs `body` as long as `cond` holds, which is evaluated before each iteration. What one iteration
// hands to the next is in buffers; nothing that holds in one iteration is known to hold in the next,
// `cond` included, which the body may make false.
struct WhileNode : StmtNode {
  static constexpr int kKind = StmtKind::While;
  PrimExpr cond;
  Stmt body;
  WhileNode() : StmtNode(static_info()) {}
  static const NodeInfo& static_info();
};

Stmt while_(PrimExpr cond, Stmt body);

}  // namespace relay::tir
