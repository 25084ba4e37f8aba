#include "tir/passes/insert_barriers.h"

#include <algorithm>
#include <set>

#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"

namespace relay::tir {
namespace {

// Memory that items share, by how it is accessed.
struct SharedAccesses {
  std::set<const BufferNode*> reads, writes;

  void add(const SharedAccesses& other) {
    reads.insert(other.reads.begin(), other.reads.end());
    writes.insert(other.writes.begin(), other.writes.end());
  }
  bool conflicts(const SharedAccesses& next) const {
    auto meet = [](const auto& a, const auto& b) {
      return std::ranges::any_of(a, [&](const BufferNode* x) { return b.contains(x); });
    };
    return meet(writes, next.reads) || meet(writes, next.writes) || meet(reads, next.writes);
  }
};

SharedAccesses accesses_of(const Stmt& s) {
  SharedAccesses out;
  auto shared = [](const Buffer& b) {
    return b->scope == Scope::Shared || b->scope == Scope::Global;
  };
  post_order(
      s,
      [&](const Node& n) {
        if (auto* l = as<LoadNode>(&n); l != nullptr && shared(l->buffer)) {
          out.reads.insert(l->buffer.get());
        }
        if (auto* t = as<StoreNode>(&n); t != nullptr && shared(t->buffer)) {
          out.writes.insert(t->buffer.get());
        }
      },
      family::tir);
  return out;
}

// `since`: what phases have accessed since the last barrier.
Stmt with_barriers(const Stmt& s, SharedAccesses& since) {
  const auto nest = thread_nest(s);
  const bool is_phase = (nest && nest->level == ThreadLevel::Item) || !has_phases(s);
  if (is_phase && as<AllocateNode>(s) == nullptr && as<SeqNode>(s) == nullptr) {
    const SharedAccesses next = accesses_of(s);
    if (!since.conflicts(next)) {
      since.add(next);
      return s;
    }
    since = next;
    return seq({evaluate(call("barrier", DType::Int(32), {})), s});
  }
  auto inner = [&](SharedAccesses& at) {
    return map_inner(s, [&](const Stmt& part) { return with_barriers(part, at); });
  };
  if (as<ForNode>(s) == nullptr) {
    const SharedAccesses before = since;
    Stmt out = inner(since);
    if (as<IfNode>(s) != nullptr) since.add(before);
    return out;
  }
  // An iteration comes behind what is in front of the loop, and behind another iteration.
  const SharedAccesses before = since;
  inner(since);
  since.add(before);
  Stmt out = inner(since);
  since.add(before);
  return out;
}

}  // namespace

PrimFunc insert_barriers(const PrimFunc& f) {
  return with_body(f, map_groups(f->body, [](const ThreadNest& group) {
                     SharedAccesses since;
                     return with_barriers(group.body, since);
                   }));
}

}  // namespace relay::tir
