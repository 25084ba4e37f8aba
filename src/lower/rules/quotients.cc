#include "lower/rules/quotients.h"

#include <unordered_map>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::BinaryNode;
using tir::BinaryOp;
using tir::BlockNode;
using tir::PrimExpr;

namespace {

bool is_quotient(const Node& n) {
  auto* op = as<BinaryNode>(&n);
  return op != nullptr && op->dtype == tir::kIndex &&
         (op->op == BinaryOp::FloorDiv || op->op == BinaryOp::FloorMod);
}

bool is_open_quotient(const Node& n) {
  return is_quotient(n) && !tir::as_int(as<BinaryNode>(&n)->b);
}

bool divides(const NodeRef& e) {
  bool found = false;
  post_order(e, [&](const Node& n) { found |= is_quotient(n); });
  return found;
}

tir::Stmt simplified(const tir::PrimFunc& f, const BlockNode& b) {
  tir::Analyzer analyzer;
  analyzer.bind_function(f);
  for (const tir::IterVar& i : b.iters) analyzer.bind(i->var, i->min, i->extent);
  NodeRef body = rewrite(
      b.body,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        if (!is_quotient(*before.get())) return after;
        const PrimExpr simple = analyzer.simplify(PrimExpr::unchecked(after));
        const bool stays =
            is_open_quotient(*before.get()) ? is_open_quotient(*simple.get()) : divides(simple);
        return stays ? after : NodeRef(simple);
      },
      family::tir_expr | family::tir_stmt);
  return tir::Stmt::unchecked(body);
}

}  // namespace

tir::PrimFunc without_quotients(const tir::PrimFunc& f) {
  std::unordered_map<const Node*, tir::Stmt> edits;
  tir::LoopTree tree(f->body);
  for (const BlockNode* b : tree.blocks()) {
    if (!divides(b->body)) continue;
    tir::Stmt body = simplified(f, *b);
    if (body == b->body) continue;
    edits[b] = tir::with_access_regions(tir::modified(*b, [&](BlockNode& n) { n.body = body; }));
  }
  if (edits.empty()) return f;
  return tir::modified(*f.get(),
                       [&](tir::PrimFuncNode& n) { n.body = tir::replace_stmts(f->body, edits); });
}

}  // namespace relay
