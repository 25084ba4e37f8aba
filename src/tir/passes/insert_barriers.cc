#include "tir/passes/insert_barriers.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

// Memory that items share, by how it is accessed.
struct SharedAccesses {
  std::set<const BufferNode*> reads, writes;

  // Returns whether any of them is new.
  bool add(const SharedAccesses& other) {
    const size_t before = reads.size() + writes.size();
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
    return reads.size() + writes.size() > before;
  }
  bool conflicts(const SharedAccesses& next) const {
    auto meet = [](const auto& a, const auto& b) {
      return std::ranges::any_of(a, [&](const BufferNode* x) { return b.contains(x); });
    };
    return meet(writes, next.reads) || meet(writes, next.writes) || meet(reads, next.writes);
  }
};

SharedAccesses accesses_of(const NodeRef& n) {
  SharedAccesses out;
  auto shared = [](const Buffer& b) {
    return b->scope == Scope::Shared || b->scope == Scope::Global;
  };
  post_order(
      n,
      [&](const Node& at) {
        if (auto* l = as<LoadNode>(&at); l != nullptr && shared(l->buffer)) {
          out.reads.insert(l->buffer.get());
        }
        if (auto* t = as<StoreNode>(&at); t != nullptr && shared(t->buffer)) {
          out.writes.insert(t->buffer.get());
        }
      },
      family::tir);
  return out;
}

// The accesses of a statement around phases before the statements inside it run.
SharedAccesses accesses_before_inner(const Stmt& s) {
  SharedAccesses out;
  if (auto* f = as<ForNode>(s)) {
    out = accesses_of(f->min);
    out.add(accesses_of(f->extent));
  }
  if (auto* i = as<IfNode>(s)) out = accesses_of(i->cond);
  if (auto* w = as<WhileNode>(s)) out = accesses_of(w->cond);
  if (auto* l = as<LetStmtNode>(s)) out = accesses_of(l->value);
  return out;
}

Stmt barrier() { return evaluate(call("barrier", DType::Int(32), {})); }

// Whether a barrier must stand in front of the accesses `next`, which it adds to those since the last barrier.
bool needs_barrier(SharedAccesses& since, const SharedAccesses& next) {
  const bool needed = since.conflicts(next);
  if (needed) since = {};
  since.add(next);
  return needed;
}

class BarrierInsertion {
 public:
  explicit BarrierInsertion(const Stmt& group) : holders_(holders_of_phases(group)) {}

  // `since`: the accesses since the last barrier, on entry before the statement, on return behind it.
  Stmt run(const Stmt& s, SharedAccesses& since) {
    const bool phase = is_phase(s);
    const SharedAccesses own = phase ? accesses_of(s) : accesses_before_inner(s);
    const bool needed = needs_barrier(since, own);
    const Stmt out = phase ? s : inner(s, own, since);
    return needed ? seq({barrier(), out}) : out;
  }

 private:
  bool is_phase(const Stmt& s) const {
    const auto nest = thread_nest(s);
    if (nest && nest->level == ThreadLevel::Item) return true;
    return !holders_.contains(s.get()) && as<AllocateNode>(s) == nullptr &&
           as<SeqNode>(s) == nullptr;
  }

  Stmt inner(const Stmt& s, const SharedAccesses& own, SharedAccesses& since) {
    switch (s->kind()) {
      case StmtKind::For:
        return loop(s, {}, since);
      case StmtKind::While:
        return loop(s, own, since);
      case StmtKind::If:
        return branches(s, since);
      default:
        return map_inner(s, [&](const Stmt& part) { return run(part, since); });
    }
  }

  Stmt branches(const Stmt& s, SharedAccesses& since) {
    SharedAccesses ends;
    const Stmt out = map_inner(s, [&](const Stmt& branch) {
      SharedAccesses end = since;
      Stmt changed = run(branch, end);
      ends.add(end);
      return changed;
    });
    if (!as<IfNode>(s)->else_body) ends.add(since);
    since = ends;
    return out;
  }

  // An iteration follows the accesses in front of the loop, or those at the end of another iteration. The walk that gives
  // the result starts from both; they grow, because they decide where an iteration has barriers. `again`: the accesses
  // between two iterations.
  Stmt loop(const Stmt& s, const SharedAccesses& again, SharedAccesses& since) {
    SharedAccesses& carried = carried_[s.get()];
    since.add(carried);
    SharedAccesses end;
    Stmt out;
    do {
      end = since;
      out = map_inner(s, [&](const Stmt& body) {
        const Stmt changed = run(body, end);
        return needs_barrier(end, again) ? seq({changed, barrier()}) : changed;
      });
      carried.add(end);
    } while (since.add(end));
    return out;
  }

  std::unordered_set<const Node*> holders_;
  // The accesses at the end of each loop's body, in all its walks. Every walk starts from them, so that walks of nested
  // loops do not multiply.
  std::unordered_map<const Node*, SharedAccesses> carried_;
};

}  // namespace

PrimFunc insert_barriers(const PrimFunc& f) {
  return with_body(f, map_groups(f->body, [](const ThreadNest& group) {
                     SharedAccesses since;
                     return BarrierInsertion(group.body).run(group.body, since);
                   }));
}

}  // namespace relay::tir
