#include "tir/passes/lower_blocks.h"

#include <algorithm>
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

  // The initialisations of the reductions whose outermost loop is `f`; their blocks then come without
  // them. Null when there are none.
  Stmt init_before(const ForNode& f) {
    // The first item of a warp initialises, where the others combine what they have with its element.
    if (f.hints.nest == LoopNest::Lanes) return nullptr;
    std::vector<Stmt> inits;
    for (const ReductionNest& nest : reduction_nests(f)) {
      const BlockNode& b = *nest.block;
      if (done_.contains(&b) || !reduces_along(b, f)) continue;
      // Otherwise f starts again in each iteration of a loop around.
      bool starts_once = std::ranges::none_of(
          around_, [&](const ForNode* outer) { return reduces_along(b, *outer); });
      if (!starts_once) continue;
      // Where the first iteration is known to run, it initialises what no plain nest of loops does.
      bool plain = nest.loops.back()->body.get() == &b && !nest.has_mixed_condition();
      for (size_t i = 0; plain && i + 1 < nest.loops.size(); ++i) {
        plain = nest.loops[i]->body.get() == nest.loops[i + 1];
      }
      if (!plain && !nest.may_be_empty()) continue;
      inits.push_back(nest.initialisation());
      done_.emplace(&b, nullptr);
    }
    return inits.empty() ? nullptr : seq(std::move(inits));
  }

  NodeMap done_;  // blocks whose initialisation stands elsewhere
  std::vector<const ForNode*> around_;
};

}  // namespace

PrimFunc lower_blocks(const PrimFunc& f) { return with_body(f, BlockLowering().lower(f->body)); }

}  // namespace relay::tir
