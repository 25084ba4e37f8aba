#include "tir/passes/statements.h"

#include "base/budget.h"
#include "node/walk.h"

namespace relay::tir {
namespace {

constexpr uint32_t kAll = family::tir_expr | family::tir_stmt | family::tir_other;

}  // namespace

Stmt map_inner(const Stmt& s, const std::function<Stmt(const Stmt&)>& f) {
  check_budget();
  switch (s->kind()) {
    case StmtKind::For: {
      auto* n = as<ForNode>(s);
      Stmt body = f(n->body);
      return body == n->body ? s : with_body(*n, body);
    }
    case StmtKind::Seq: {
      std::vector<Stmt> out;
      bool same = true;
      for (const Stmt& inner : as<SeqNode>(s)->stmts) {
        out.push_back(f(inner));
        same &= out.back() == inner;
      }
      return same ? s : seq(std::move(out));
    }
    case StmtKind::If: {
      auto* n = as<IfNode>(s);
      Stmt then_body = f(n->then_body);
      Stmt else_body = n->else_body ? f(n->else_body) : nullptr;
      if (then_body == n->then_body && else_body == n->else_body) return s;
      return if_(n->cond, then_body, else_body);
    }
    case StmtKind::Allocate: {
      auto* n = as<AllocateNode>(s);
      Stmt body = f(n->body);
      return body == n->body ? s : allocate(n->buffer, body);
    }
    case StmtKind::LetStmt: {
      auto* n = as<LetStmtNode>(s);
      Stmt body = f(n->body);
      return body == n->body ? s : let_stmt(n->var, n->value, body);
    }
    default:
      return s;
  }
}

void for_each_inner(const StmtNode& s, const std::function<void(const Stmt&)>& f) {
  check_budget();
  switch (s.kind()) {
    case StmtKind::For:
      f(static_cast<const ForNode&>(s).body);
      break;
    case StmtKind::Seq:
      for (const Stmt& inner : static_cast<const SeqNode&>(s).stmts) f(inner);
      break;
    case StmtKind::If: {
      auto& n = static_cast<const IfNode&>(s);
      f(n.then_body);
      if (n.else_body) f(n.else_body);
      break;
    }
    case StmtKind::Allocate:
      f(static_cast<const AllocateNode&>(s).body);
      break;
    case StmtKind::LetStmt:
      f(static_cast<const LetStmtNode&>(s).body);
      break;
    default:
      break;
  }
}

Stmt with_body(const ForNode& f, Stmt body) {
  return make<ForNode>([&](ForNode& n) {
    n.var = f.var;
    n.min = f.min;
    n.extent = f.extent;
    n.loop_kind = f.loop_kind;
    n.thread_tag = f.thread_tag;
    n.annotations = f.annotations;
    n.body = std::move(body);
  });
}

PrimFunc with_body(const PrimFunc& f, Stmt body) {
  if (body == f->body) return f;
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = f->name;
    n.params = f->params;
    n.num_inputs = f->num_inputs;
    n.dims = f->dims;
    n.attrs = f->attrs;
    n.body = std::move(body);
  });
}

bool uses(const NodeRef& root, const Node* what) {
  bool found = false;
  post_order_if(
      root, [&](const Node&) { return !found; }, [&](const Node& n) { found |= &n == what; }, kAll);
  return found;
}

NodeRef replace_nodes(const NodeRef& root, const NodeMap& map) {
  return substitute(root, map, kAll);
}

}  // namespace relay::tir
