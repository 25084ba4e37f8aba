#include "tir/passes/lower_blocks.h"

#include <vector>

#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

class BlockLowering {
 public:
  Stmt lower(const Stmt& s) {
    switch (s->kind()) {
      case StmtKind::For: {
        auto* f = as<ForNode>(s);
        Stmt init = init_before(*f);
        around_.push_back(f);
        Stmt body = with_body(*f, lower(f->body));
        around_.pop_back();
        return init ? seq({init, body}) : body;
      }
      case StmtKind::Block:
        return block(*as<BlockNode>(s));
      default:
        return map_inner(s, [&](const Stmt& inner) { return lower(inner); });
    }
  }

 private:
  // Iteration variables replaced by their bindings.
  static NodeMap bindings_of(const BlockNode& b) {
    NodeMap map;
    for (size_t i = 0; i < b.iters.size(); ++i) map[b.iters[i]->var.get()] = b.bindings[i];
    return map;
  }

  Stmt block(const BlockNode& b) {
    NodeMap map = bindings_of(b);
    Stmt body = replace(lower(b.body), map);
    if (b.init && !done_.contains(&b)) {
      PrimExpr first = boolean(true);
      for (size_t i = 0; i < b.iters.size(); ++i) {
        if (b.iters[i]->kind != IterKind::Reduce) continue;
        first = logical_and(first, eq(b.bindings[i], b.iters[i]->min));
      }
      body = seq({if_(first, replace(b.init, map)), body});
    }
    if (!b.predicate || as_int(b.predicate) == 1) return body;
    return if_(replace(b.predicate, map), body);
  }

  // The initialisation of the reduction whose outermost loop is `f`, in loops of its own over the
  // data-parallel loops inside; null when `f` is no such loop. The block then comes without it.
  Stmt init_before(const ForNode& f) {
    std::vector<const ForNode*> loops{&f};
    const Node* at = f.body.get();
    while (auto* inner = as<ForNode>(at)) {
      loops.push_back(inner);
      at = inner->body.get();
    }
    auto* b = as<BlockNode>(at);
    if (b == nullptr || !b->init || done_.contains(b)) return nullptr;
    auto reduces = [&](const ForNode& loop) {
      for (size_t i = 0; i < b->iters.size(); ++i) {
        if (b->iters[i]->kind == IterKind::Reduce && uses(b->bindings[i], loop.var.get()))
          return true;
      }
      return false;
    };
    if (!reduces(f)) return nullptr;
    for (const ForNode* outer : around_) {
      if (reduces(*outer)) return nullptr;  // f starts again in each of its iterations
    }
    NodeMap map = bindings_of(*b);
    Stmt init = replace(b->init, map);
    if (b->predicate && as_int(b->predicate) != 1) {
      // Conditions on the reduction's loops alone say nothing about the initialisation.
      std::vector<PrimExpr> conditions{replace(b->predicate, map)};
      while (!conditions.empty()) {
        PrimExpr c = std::move(conditions.back());
        conditions.pop_back();
        if (auto* both = as<BinaryNode>(c); both != nullptr && both->op == BinaryOp::And) {
          conditions.push_back(both->a);
          conditions.push_back(both->b);
          continue;
        }
        bool about_reduction = false, about_others = false;
        for (const ForNode* loop : loops) {
          if (uses(c, loop->var.get())) (reduces(*loop) ? about_reduction : about_others) = true;
        }
        if (about_reduction && about_others) return nullptr;
        if (!about_reduction) init = if_(c, init);
      }
    }
    NodeMap fresh;
    std::vector<std::pair<const ForNode*, Var>> kept;
    for (const ForNode* loop : loops) {
      if (reduces(*loop)) continue;
      Var v = var(loop->var->name + "_init", loop->var->dtype);
      fresh[loop->var.get()] = v;
      kept.emplace_back(loop, v);
    }
    init = replace(init, fresh);
    for (auto it = kept.rbegin(); it != kept.rend(); ++it) {
      const ForNode& loop = *it->first;
      init = for_(it->second, replace(loop.min, fresh), replace(loop.extent, fresh), init,
                  loop.loop_kind == ForKind::Parallel ? ForKind::Serial : loop.loop_kind);
    }
    done_.emplace(b, nullptr);
    return init;
  }

  NodeMap done_;  // blocks whose initialisation stands elsewhere
  std::vector<const ForNode*> around_;
};

}  // namespace

PrimFunc lower_blocks(const PrimFunc& f) { return with_body(f, BlockLowering().lower(f->body)); }

}  // namespace relay::tir
