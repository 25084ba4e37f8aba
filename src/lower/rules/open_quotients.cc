#include "lower/rules/open_quotients.h"

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

bool is_open_quotient(const Node& n) {
  auto* op = as<BinaryNode>(&n);
  return op != nullptr && op->dtype == tir::kIndex &&
         (op->op == BinaryOp::FloorDiv || op->op == BinaryOp::FloorMod) && !tir::as_int(op->b);
}

tir::Stmt simplified(const tir::PrimFunc& f, const BlockNode& b) {
  tir::Analyzer analyzer;
  analyzer.bind_function(f);
  for (const tir::IterVar& i : b.iters) analyzer.bind(i->var, i->min, i->extent);
  NodeRef body = rewrite(
      b.body,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        if (!is_open_quotient(*before.get())) return after;
        PrimExpr simple = analyzer.simplify(PrimExpr::unchecked(after));
        return is_open_quotient(*simple.get()) ? after : simple;
      },
      family::tir_expr | family::tir_stmt);
  return tir::Stmt::unchecked(body);
}

}  // namespace

tir::PrimFunc without_open_quotients(const tir::PrimFunc& f) {
  if (f->dims.empty()) return f;
  std::unordered_map<const Node*, tir::Stmt> edits;
  tir::LoopTree tree(f->body);
  for (const BlockNode* b : tree.blocks()) {
    bool divides = false;
    post_order(b->body, [&](const Node& n) { divides |= is_open_quotient(n); });
    if (!divides) continue;
    tir::Stmt body = simplified(f, *b);
    if (body == b->body) continue;
    edits[b] = tir::with_access_regions(tir::modified(*b, [&](BlockNode& n) { n.body = body; }));
  }
  if (edits.empty()) return f;
  return tir::modified(*f.get(),
                       [&](tir::PrimFuncNode& n) { n.body = tir::replace_stmts(f->body, edits); });
}

}  // namespace relay
