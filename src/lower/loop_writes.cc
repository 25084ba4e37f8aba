#include "lower/loop_writes.h"

#include <algorithm>
#include <vector>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay {

using tir::PrimExpr;
using tir::Stmt;

namespace {

// The store of a nest, and what is around it. A loop of one iteration gives its variable a value.
struct Nest {
  const tir::StoreNode* store = nullptr;
  std::vector<const tir::ForNode*> loops;
  tir::NodeMap lets;
};

// The nest of the only store; without one where the statements are no such nest.
Nest nest_of(const Stmt& write, const Node* buffer) {
  Nest out;
  const tir::StmtNode* s = write.get();
  while (s != nullptr) {
    const tir::StmtNode* next = nullptr;
    if (auto* seq = as<tir::SeqNode>(s)) {
      for (const Stmt& inner : seq->stmts) {
        if (!tir::uses(inner, buffer)) continue;
        if (next != nullptr) return out;
        next = inner.get();
      }
    } else if (auto* l = as<tir::LetStmtNode>(s)) {
      if (tir::uses(l->value, buffer)) return out;
      out.lets.emplace(l->var.get(), tir::replace(l->value, out.lets));
      next = l->body.get();
    } else if (auto* f = as<tir::ForNode>(s)) {
      if (tir::uses(f->min, buffer) || tir::uses(f->extent, buffer)) return out;
      if (tir::as_int(f->extent) == 1) {
        out.lets.emplace(f->var.get(), tir::replace(f->min, out.lets));
      } else {
        out.loops.push_back(f);
      }
      next = f->body.get();
    } else if (auto* store = as<tir::StoreNode>(s)) {
      if (store->buffer.get() == buffer && !store->predicate) out.store = store;
    }
    s = next;
  }
  return out;
}

}  // namespace

Stmt with_own_elements(const Stmt& write, const tir::Buffer& buffer, tir::Analyzer& analyzer) {
  const Nest nest = nest_of(write, buffer.get());
  if (nest.store == nullptr) return nullptr;
  std::vector<tir::Analyzer::Scope> facts;
  std::vector<PrimExpr> extents;
  for (const tir::ForNode* f : nest.loops) {
    extents.push_back(tir::replace(f->extent, nest.lets));
    facts.push_back(analyzer.inside(f->var, tir::replace(f->min, nest.lets), extents.back()));
  }
  auto plain = [&](const PrimExpr& e) { return analyzer.simplify(tir::replace(e, nest.lets)); };

  // Along each axis the part that is written begins at a number, and goes on as the variable of a loop of its own.
  struct Axis {
    PrimExpr at, begin, end;
  };
  std::vector<Axis> axes;
  std::vector<bool> found(nest.loops.size());
  for (const PrimExpr& index : nest.store->indices) {
    Axis axis{plain(index), nullptr, nullptr};
    axis.begin = axis.at;
    axis.end = axis.at + 1;
    for (size_t k = 0; k < nest.loops.size(); ++k) {
      const tir::ForNode& f = *nest.loops[k];
      if (!tir::uses(axis.at, f.var.get())) continue;
      if (found[k]) return nullptr;
      found[k] = true;
      axis.begin = analyzer.simplify(axis.begin - f.var + tir::replace(f.min, nest.lets));
      axis.end = axis.begin + extents[k];
    }
    for (const tir::ForNode* f : nest.loops) {
      if (tir::uses(axis.begin, f->var.get()) || tir::uses(axis.end, f->var.get())) return nullptr;
    }
    axes.push_back(axis);
  }
  if (std::ranges::count(found, false) > 0) return nullptr;

  bool safe = true;
  tir::NodeMap own;
  post_order(
      nest.store->value,
      [&](const Node& n) {
        auto* load = as<tir::LoadNode>(&n);
        if (load == nullptr || load->buffer != buffer || !safe) return;
        bool same = true, apart = false;
        for (size_t d = 0; d < axes.size(); ++d) {
          if (tir::uses(load->indices[d], buffer.get())) {
            same = false;
            continue;
          }
          const PrimExpr at = plain(load->indices[d]);
          same = same && structural_equal(at, axes[d].at);
          apart = apart || analyzer.can_prove(tir::lt(at, axes[d].begin)) ||
                  analyzer.can_prove(tir::ge(at, axes[d].end));
        }
        safe = same || apart;
        if (same) own.emplace(load, tir::load(buffer, nest.store->indices));
      },
      family::tir_expr);
  return safe ? tir::replace(write, own) : nullptr;
}

}  // namespace relay
