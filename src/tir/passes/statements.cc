#include "tir/passes/statements.h"

#include <algorithm>
#include <utility>

#include "base/budget.h"
#include "node/walk.h"
#include "tir/while.h"

namespace relay::tir {
namespace {}  // namespace

bool is_empty(const Stmt& s) {
  auto* all = as<SeqNode>(s);
  return all != nullptr && all->stmts.empty();
}

NodeRef without_empty(const NodeRef& rebuilt) {
  if (auto* all = as<SeqNode>(rebuilt)) {
    if (std::ranges::none_of(all->stmts, is_empty)) return rebuilt;
    std::vector<Stmt> left;
    std::ranges::copy_if(all->stmts, std::back_inserter(left),
                         [](const Stmt& s) { return !is_empty(s); });
    return seq(std::move(left));
  }
  if (auto* i = as<IfNode>(rebuilt)) {
    const bool no_else = !i->else_body || is_empty(i->else_body);
    return is_empty(i->then_body) && no_else ? seq({}) : rebuilt;
  }
  Stmt body;
  if (auto* loop = as<ForNode>(rebuilt)) body = loop->body;
  if (auto* block = as<BlockNode>(rebuilt)) body = block->body;
  if (auto* let = as<LetStmtNode>(rebuilt)) body = let->body;
  if (auto* allocate = as<AllocateNode>(rebuilt)) body = allocate->body;
  return body && is_empty(body) ? NodeRef(seq({})) : rebuilt;
}

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
    case StmtKind::While: {
      auto* n = as<WhileNode>(s);
      Stmt body = f(n->body);
      return body == n->body ? s : while_(n->cond, body);
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
    case StmtKind::While:
      f(static_cast<const WhileNode&>(s).body);
      break;
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
    n.hints = f.hints;
    n.body = std::move(body);
  });
}

PrimFunc with_body(const PrimFunc& f, Stmt body) {
  if (body == f->body) return f;
  return modified(*f, [&](PrimFuncNode& n) { n.body = std::move(body); });
}

bool uses(const NodeRef& root, const Node* what) {
  bool found = false;
  post_order_if(
      root, [&](const Node&) { return !found; }, [&](const Node& n) { found |= &n == what; },
      family::tir);
  return found;
}

NodeRef replace_nodes(const NodeRef& root, const NodeMap& map) {
  return substitute(root, map, family::tir);
}

bool reduces_along(const BlockNode& b, const ForNode& loop) {
  for (size_t i = 0; i < b.iters.size(); ++i) {
    if (b.iters[i]->kind == IterKind::Reduce && uses(b.bindings[i], loop.var.get())) return true;
  }
  return false;
}

namespace {

// The parts of the block's predicate, in terms of the loops.
std::vector<PrimExpr> conditions_of(const BlockNode& b, const NodeMap& bindings) {
  std::vector<PrimExpr> out, work;
  if (b.predicate && as_int(b.predicate) != 1) work.push_back(replace(b.predicate, bindings));
  while (!work.empty()) {
    PrimExpr c = std::move(work.back());
    work.pop_back();
    if (auto* both = as<BinaryNode>(c); both != nullptr && both->op == BinaryOp::And) {
      work.push_back(both->a);
      work.push_back(both->b);
    } else {
      out.push_back(std::move(c));
    }
  }
  return out;
}

NodeMap bindings_of_iters(const BlockNode& b) {
  NodeMap map;
  for (size_t i = 0; i < b.iters.size(); ++i) map[b.iters[i]->var.get()] = b.bindings[i];
  return map;
}

// Whether the condition is about loops that reduce, and whether about others.
std::pair<bool, bool> subject_of(const PrimExpr& condition, const ReductionNest& nest) {
  bool reduction = false, others = false;
  for (const ForNode* l : nest.loops) {
    if (uses(condition, l->var.get())) (reduces_along(*nest.block, *l) ? reduction : others) = true;
  }
  return {reduction, others};
}

}  // namespace

bool ReductionNest::may_be_empty() const {
  return std::ranges::any_of(loops, [&](const ForNode* l) {
    auto extent = as_int(l->extent);
    return reduces_along(*block, *l) && (!extent || *extent <= 0);
  });
}

bool ReductionNest::has_mixed_condition() const {
  return std::ranges::any_of(conditions_of(*block, bindings_of_iters(*block)),
                             [&](const PrimExpr& c) {
                               auto [reduction, others] = subject_of(c, *this);
                               return reduction && others;
                             });
}

Stmt ReductionNest::initialisation() const {
  const NodeMap bindings = bindings_of_iters(*block);
  NodeMap first;
  for (const ForNode* l : loops) {
    if (reduces_along(*block, *l)) first[l->var.get()] = l->min;
  }
  Stmt init = replace(block->init, bindings);
  for (const PrimExpr& c : conditions_of(*block, bindings)) {
    auto [reduction, others] = subject_of(c, *this);
    if (!reduction) init = if_(c, init);
    if (reduction && others) init = if_(replace(c, first), init);
  }
  NodeMap fresh;
  std::vector<std::pair<const ForNode*, Var>> kept;
  for (const ForNode* l : loops) {
    if (first.contains(l->var.get())) continue;
    Var v = var(l->var->name + "_init", l->var->dtype);
    fresh[l->var.get()] = v;
    kept.emplace_back(l, v);
  }
  init = replace(init, fresh);
  for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
    const ForNode& l = *it->first;
    init = for_(it->second, replace(l.min, fresh), replace(l.extent, fresh), init,
                l.loop_kind == ForKind::Parallel ? ForKind::Serial : l.loop_kind);
  }
  return init;
}

std::vector<ReductionNest> reduction_nests(const ForNode& f) {
  std::vector<ReductionNest> out;
  std::vector<const ForNode*> loops;
  // A statement to enter, or a loop to leave.
  std::vector<std::pair<const StmtNode*, bool>> work{{&f, false}};
  while (!work.empty()) {
    auto [s, leave] = work.back();
    work.pop_back();
    if (leave) {
      loops.pop_back();
    } else if (auto* l = as<ForNode>(s)) {
      loops.push_back(l);
      work.emplace_back(s, true);
      work.emplace_back(l->body.get(), false);
    } else if (auto* b = as<BlockNode>(s)) {
      if (b->init) out.push_back({b, loops});
    } else if (auto* a = as<AllocateNode>(s)) {
      work.emplace_back(a->body.get(), false);
    } else if (auto* all = as<SeqNode>(s)) {
      for (size_t i = all->stmts.size(); i-- > 0;) work.emplace_back(all->stmts[i].get(), false);
    }
  }
  return out;
}

}  // namespace relay::tir
