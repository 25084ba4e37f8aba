#include "tir/passes/pipeline_loops.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/thread_nests.h"

namespace relay::tir {
namespace {

Stmt effect(const char* name, std::vector<PrimExpr> args = {}) {
  return evaluate(call(name, DType::Int(32), std::move(args)));
}

std::unordered_set<const Node*> stored_in(const Stmt& s) {
  std::unordered_set<const Node*> out;
  post_order(
      s,
      [&](const Node& n) {
        if (auto* store = as<StoreNode>(&n)) out.insert(store->buffer.get());
      },
      family::tir_stmt);
  return out;
}

// Whether the statement is a phase that stores only in shared memory and reads nothing of what is stored in the loop.
bool is_copy(const Stmt& s, const std::unordered_set<const Node*>& stored) {
  const auto nest = thread_nest(s);
  if (!nest || nest->level != ThreadLevel::Item) return false;
  bool stores = false, copies = true;
  post_order(
      s,
      [&](const Node& n) {
        if (auto* store = as<StoreNode>(&n)) {
          stores = true;
          copies &= store->buffer->scope == Scope::Shared;
        }
        if (auto* load = as<LoadNode>(&n)) copies &= !stored.contains(load->buffer.get());
      },
      family::tir);
  return stores && copies;
}

// Whether the items begin the copies of the phase and go on.
bool arrives_later(const Stmt& phase) {
  const auto nest = thread_nest(phase);
  return std::ranges::any_of(nest->axes, [](const ForNode* axis) {
    return axis != nullptr && axis->hints.nest == LoopNest::Copy;
  });
}

// The phases with copies that arrive at once: no item waits for those that no pipelined loop begins with.
Stmt without_later(const Stmt& s) {
  return Stmt::unchecked(rewrite(
      s,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        auto* loop = as<ForNode>(rebuilt);
        if (loop == nullptr || loop->hints.nest != LoopNest::Copy) return rebuilt;
        return modified(*loop, [](ForNode& n) { n.hints.nest = LoopNest::None; });
      },
      family::tir_stmt));
}

class Pipeline {
 public:
  Pipeline(const PrimFunc& f, const ForNode& loop, const std::array<int64_t, 3>& group)
      : f_(f), loop_(loop), slots_(loop.hints.pipeline), group_(group) {}

  Stmt run() {
    Stmt body = loop_.body;
    std::vector<Buffer> allocated;
    while (auto* a = as<AllocateNode>(body)) {
      allocated.push_back(a->buffer);
      body = a->body;
    }
    std::vector<Stmt> copies, rest;
    const auto stored = stored_in(body);
    for (const Stmt& s : statements_of(body)) {
      if (rest.empty() && is_copy(s, stored)) {
        copies.push_back(s);
      } else {
        rest.push_back(without_later(s));
      }
    }
    if (copies.empty() || rest.empty() || as_int(loop_.min) != 0) {
      refuse("does not begin with copies to shared memory that others follow");
    }
    std::vector<Buffer> inside;
    for (const Buffer& b : allocated) {
      const bool copied = std::ranges::any_of(
          copies, [&](const Stmt& s) { return stored_in(s).contains(b.get()); });
      if (copied) {
        turning_.emplace_back(b, modified(*b, [&](BufferNode& n) {
                                n.shape.insert(n.shape.begin(), index(slots_));
                              }));
      } else {
        inside.push_back(b);
      }
    }
    for (const Stmt& s : copies) {
      for (const Node* b : stored_in(s)) {
        if (turning(b) == nullptr) refuse("leaves what it copies to statements behind it");
      }
    }
    for (const Stmt& s : rest) {
      for (const Node* b : stored_in(s)) {
        if (turning(b) != nullptr) refuse("stores to what it copies");
      }
    }
    Stmt out = seq({prologue(copies), steady(copies, rest, inside)});
    for (const auto& [old, turns] : turning_) out = allocate(turns, out);
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw UserError(
        Diagnostic(codes::lower_unsupported, {},
                   "in kernel " + f_->name + ", the pipelined loop " + loop_.var->name + " " + why)
            .help("do not pipeline the loop"));
  }

  static std::vector<Stmt> statements_of(const Stmt& s) {
    auto* all = as<SeqNode>(s);
    return all == nullptr ? std::vector{s} : all->stmts;
  }

  const Buffer* turning(const Node* b) const {
    auto found = std::ranges::find(turning_, b, [](const auto& t) { return t.first.get(); });
    return found == turning_.end() ? nullptr : &found->second;
  }

  // The statement in the iteration `at`, with the buffers of that turn.
  Stmt at_step(const Stmt& s, const PrimExpr& at) const {
    const auto known = as_int(at);
    const PrimExpr slot = known ? index(*known % slots_) : floor_mod(at, index(slots_));
    auto in_turn = [&](std::vector<PrimExpr> indices) {
      indices.insert(indices.begin(), slot);
      return indices;
    };
    const bool here = at.get() == loop_.var.get();
    return Stmt::unchecked(rewrite(
        here ? s : replace(s, {{loop_.var.get(), at}}),
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          if (auto* l = as<LoadNode>(rebuilt)) {
            if (auto* to = turning(l->buffer.get())) {
              return load(*to, in_turn(l->indices), l->predicate);
            }
          }
          if (auto* t = as<StoreNode>(rebuilt)) {
            if (auto* to = turning(t->buffer.get())) {
              return store(*to, in_turn(t->indices), t->value, t->predicate);
            }
          }
          return rebuilt;
        },
        family::tir_code));
  }

  // Where the loop has an iteration of that number.
  Stmt if_any(const PrimExpr& step, Stmt body) const {
    const auto known = as_int(step), extent = as_int(loop_.extent);
    if (known && extent) return *known < *extent ? body : seq({});
    return if_(lt(step, loop_.extent), std::move(body));
  }

  Stmt prologue(const std::vector<Stmt>& copies) const {
    std::vector<Stmt> out;
    const bool later = std::ranges::any_of(copies, arrives_later);
    for (int64_t step = 0; step + 1 < slots_; ++step) {
      std::vector<Stmt> begun;
      for (const Stmt& s : copies) begun.push_back(at_step(s, index(step)));
      out.push_back(if_any(index(step), seq(std::move(begun))));
      if (later) out.push_back(effect("end_copies"));
    }
    return seq(std::move(out));
  }

  Stmt steady(const std::vector<Stmt>& copies, const std::vector<Stmt>& rest,
              const std::vector<Buffer>& inside) const {
    const PrimExpr ahead = PrimExpr(loop_.var) + (slots_ - 1);
    std::vector<Stmt> begun, arriving, body;
    std::vector<Buffer> registers;
    bool later = false;
    for (const Stmt& s : copies) {
      if (arrives_later(s)) {
        later = true;
        begun.push_back(at_step(s, ahead));
        continue;
      }
      const auto [to_registers, to_memory] = through_registers(s, registers);
      begun.push_back(at_step(to_registers, ahead));
      arriving.push_back(at_step(to_memory, ahead));
    }
    if (later) body.push_back(effect("wait_copies", {imm(DType::Int(32), slots_ - 2)}));
    body.push_back(effect("barrier"));
    body.push_back(if_any(ahead, seq(std::move(begun))));
    if (later) body.push_back(effect("end_copies"));
    Stmt uses = seq(rest);
    for (size_t i = inside.size(); i-- > 0;) uses = allocate(inside[i], uses);
    body.push_back(at_step(uses, loop_.var));
    if (!arriving.empty()) body.push_back(if_any(ahead, seq(std::move(arriving))));
    Stmt all = seq(std::move(body));
    for (size_t i = registers.size(); i-- > 0;) all = allocate(registers[i], all);
    return with_body(loop_, all);
  }

  // The phase in two: what its items store, first to registers of theirs, then from these to memory.
  std::pair<Stmt, Stmt> through_registers(const Stmt& phase, std::vector<Buffer>& registers) const {
    const auto nest = thread_nest(phase);
    std::vector<PrimExpr> shape, at;
    for (size_t i = group_.size(); i-- > 0;) {
      if (group_[i] == 1) continue;
      shape.push_back(index(group_[i]));
      at.push_back(nest->axes[i] == nullptr ? index(0) : PrimExpr(nest->axes[i]->var));
    }
    const StoreNode* copy = nullptr;
    for (Stmt s = nest->body; copy == nullptr;) {
      if (auto* f = as<ForNode>(s)) {
        if (as_int(f->min) != 0 || !as_int(f->extent)) refuse("copies in a loop of an open length");
        shape.push_back(f->extent);
        at.push_back(f->var);
        s = f->body;
      } else if (auto* i = as<IfNode>(s); i != nullptr && !i->else_body) {
        s = i->then_body;
      } else {
        copy = as<StoreNode>(s);
        if (copy == nullptr) refuse("copies by several statements");
      }
    }
    const Buffer own =
        buffer(copy->buffer->name + "_next", copy->buffer->dtype, shape, Scope::Register);
    registers.push_back(own);
    auto with = [&](const Stmt& store) { return replace(phase, {{copy, store}}); };
    return {with(store(own, at, copy->value, copy->predicate)),
            with(store(copy->buffer, copy->indices, load(own, at), copy->predicate))};
  }

  const PrimFunc& f_;
  const ForNode& loop_;
  const int64_t slots_;
  const std::array<int64_t, 3>& group_;
  std::vector<std::pair<Buffer, Buffer>>
      turning_;  // what is copied, and the buffers that take turns for it
};

Stmt pipeline(const PrimFunc& f, const Stmt& s, const std::array<int64_t, 3>& group) {
  if (auto nest = thread_nest(s); nest && nest->level == ThreadLevel::Item) {
    return without_later(s);
  }
  auto* loop = as<ForNode>(s);
  if (loop != nullptr && loop->hints.pipeline > 0) return Pipeline(f, *loop, group).run();
  return map_inner(s, [&](const Stmt& inner) { return pipeline(f, inner, group); });
}

}  // namespace

PrimFunc pipeline_loops(const PrimFunc& f) {
  return with_body(f, map_groups(f->body, [&](const ThreadNest& group) {
                     const auto size = group_size(group.body);
                     return size ? pipeline(f, group.body, *size) : group.body;
                   }));
}

}  // namespace relay::tir
