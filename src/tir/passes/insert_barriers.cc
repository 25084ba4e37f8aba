#include "tir/passes/insert_barriers.h"

#include <algorithm>
#include <compare>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::tir {
namespace {

// A buffer, or one of the buffers that take turns in it (tir/passes/pipeline_loops.h). Inside of the pipelined loop their
// numbers count from the one of the iteration's turn, elsewhere from the first.
struct Place {
  static constexpr int64_t kAny = -1;
  const BufferNode* buffer;
  int64_t slot = kAny;

  auto operator<=>(const Place&) const = default;
  bool meets(const Place& other) const {
    return buffer == other.buffer && (slot == other.slot || slot == kAny || other.slot == kAny);
  }
};

// Memory that items share, by how it is accessed.
struct SharedAccesses {
  std::set<Place> reads, writes;

  // Returns whether any of them is new.
  bool add(const SharedAccesses& other) {
    const size_t before = reads.size() + writes.size();
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
    return reads.size() + writes.size() > before;
  }
  bool conflicts(const SharedAccesses& next) const {
    auto meet = [](const auto& a, const auto& b) {
      return std::ranges::any_of(a, [&](const Place& x) {
        return std::ranges::any_of(b, [&](const Place& y) { return x.meets(y); });
      });
    };
    return meet(writes, next.reads) || meet(writes, next.writes) || meet(reads, next.writes);
  }
  // With other slots.
  template <class F>
  SharedAccesses with_slots(F slot_of) const {
    SharedAccesses out;
    for (const auto& [from, to] : {std::pair(&reads, &out.reads), {&writes, &out.writes}}) {
      for (const Place& p : *from) to->insert({p.buffer, slot_of(p)});
    }
    return out;
  }
};

// Buffers that take turns in a group's memory, and which of them an index names.
class Turns {
 public:
  Turns(const PrimFunc& f, const Stmt& group) {
    analyzer_.bind_function(f);
    post_order(
        group,
        [&](const Node& n) {
          auto* loop = as<ForNode>(&n);
          if (loop == nullptr) return;
          analyzer_.bind(loop->var, loop->min, loop->extent);
          if (loop->hints.pipeline > 1) find(*loop);
        },
        family::tir_stmt);
  }

  // Buffers that take turns; 0 for a single one.
  int64_t slots(const BufferNode* b) const {
    auto known = slots_.find(b);
    return known == slots_.end() ? 0 : known->second;
  }
  // `loop`: the pipelined one around, or null.
  Place place(const BufferNode* b, const std::vector<PrimExpr>& indices, const ForNode* loop) {
    const int64_t count = slots(b);
    if (count == 0 || indices[0]->dtype.lanes != 1) return {b};
    PrimExpr at = indices[0];
    if (indices.size() == 1) at = floor_div(at, index(elements(*b) / count));
    at = analyzer_.simplify(at);
    if (loop == nullptr) return {b, as_int(at).value_or(Place::kAny)};
    // Where the iteration's range says that no turn begins again.
    if (const auto turn = analyzer_.constant_difference(at, loop->var)) {
      return {b, (*turn % count + count) % count};
    }
    for (int64_t turn = 0; turn < count; ++turn) {
      const PrimExpr of_turn = floor_mod(PrimExpr(loop->var) + turn, index(count));
      if (structural_equal(at, analyzer_.simplify(of_turn))) return {b, turn};
    }
    return {b};
  }

 private:
  // 0 where the number is not a constant.
  static int64_t elements(const BufferNode& b) {
    int64_t out = 1;
    for (const PrimExpr& e : b.shape) out *= as_int(e).value_or(0);
    return out;
  }

  void find(const ForNode& loop) {
    const int64_t count = loop.hints.pipeline;
    auto look = [&](const Buffer& b) {
      const bool turns = b->scope == Scope::Shared && as_int(b->shape[0]).value_or(1) % count == 0;
      if (turns && elements(*b.get()) >= count) slots_[b.get()] = count;
    };
    post_order(
        loop.body,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n)) look(l->buffer);
          if (auto* s = as<StoreNode>(&n)) look(s->buffer);
        },
        family::tir);
  }

  Analyzer analyzer_;
  std::unordered_map<const BufferNode*, int64_t> slots_;
};

Stmt barrier() { return evaluate(call("barrier", DType::Int(32), {})); }

// Whether a barrier must stand in front of the accesses `next`, which it adds to those since the last barrier.
bool needs_barrier(SharedAccesses& since, const SharedAccesses& next) {
  const bool needed = since.conflicts(next);
  if (needed) since = {};
  since.add(next);
  return needed;
}

bool is_barrier(const Stmt& s) {
  auto* e = as<EvaluateNode>(s);
  auto* c = e == nullptr ? nullptr : as<CallNode>(e->value);
  return c != nullptr && c->name == "barrier";
}

class BarrierInsertion {
 public:
  BarrierInsertion(const PrimFunc& f, const Stmt& group)
      : holders_(holders_of_phases(group)), turns_(f, group) {}

  // `since`: the accesses since the last barrier, on entry before the statement, on return behind it.
  Stmt run(const Stmt& s, SharedAccesses& since) {
    if (is_barrier(s)) {
      since = {};
      return s;
    }
    const bool phase = is_phase(s);
    const SharedAccesses own = phase ? accesses_of(s) : accesses_before_inner(s);
    const bool needed = needs_barrier(since, own);
    const Stmt out = phase ? s : inner(s, own, since);
    return needed ? seq({barrier(), out}) : out;
  }

 private:
  SharedAccesses accesses_of(const NodeRef& n) {
    SharedAccesses out;
    auto shared = [](const Buffer& b) {
      return b->scope == Scope::Shared || b->scope == Scope::Global;
    };
    post_order(
        n,
        [&](const Node& at) {
          if (auto* l = as<LoadNode>(&at); l != nullptr && shared(l->buffer)) {
            out.reads.insert(turns_.place(l->buffer.get(), l->indices, pipelined_));
          }
          if (auto* t = as<StoreNode>(&at); t != nullptr && shared(t->buffer)) {
            out.writes.insert(turns_.place(t->buffer.get(), t->indices, pipelined_));
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

  bool is_phase(const Stmt& s) const {
    const auto nest = thread_nest(s);
    if (nest && nest->level == ThreadLevel::Item) return true;
    return !holders_.contains(s.get()) && as<AllocateNode>(s) == nullptr &&
           as<SeqNode>(s) == nullptr;
  }

  Stmt inner(const Stmt& s, const SharedAccesses& own, SharedAccesses& since) {
    switch (s->kind()) {
      case StmtKind::For:
        return as<ForNode>(s)->hints.pipeline > 1 ? pipelined_loop(s, since) : loop(s, {}, since);
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
      if (pipelined_ == s.get()) end = in_next_turn(end);
      carried.add(end);
    } while (since.add(end));
    return out;
  }

  // Slots count from the iteration's turn: the first one is number 0. Of a loop inside or around, they are not known.
  Stmt pipelined_loop(const Stmt& s, SharedAccesses& since) {
    const ForNode* around = std::exchange(pipelined_, as<ForNode>(s));
    const bool from_first = around == nullptr && as_int(pipelined_->min) == 0;
    auto any = [](const Place&) { return Place::kAny; };
    if (!from_first) since = since.with_slots(any);
    const Stmt out = loop(s, {}, since);
    since = since.with_slots(any);
    pipelined_ = around;
    return out;
  }
  SharedAccesses in_next_turn(const SharedAccesses& accesses) const {
    return accesses.with_slots([&](const Place& p) {
      const int64_t count = turns_.slots(p.buffer);
      return p.slot == Place::kAny ? p.slot : (p.slot + count - 1) % count;
    });
  }

  std::unordered_set<const Node*> holders_;
  Turns turns_;
  const ForNode* pipelined_ = nullptr;  // the innermost one around
  // The accesses at the end of each loop's body, in all its walks. Every walk starts from them, so that walks of nested
  // loops do not multiply.
  std::unordered_map<const Node*, SharedAccesses> carried_;
};

}  // namespace

PrimFunc insert_barriers(const PrimFunc& f) {
  return with_body(f, map_groups(f->body, [&](const ThreadNest& group) {
                     SharedAccesses since;
                     return BarrierInsertion(f, group.body).run(group.body, since);
                   }));
}

}  // namespace relay::tir
