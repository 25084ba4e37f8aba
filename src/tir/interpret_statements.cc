#include "base/quantities.h"
#include "tir/interpret_translator.h"

#include <algorithm>

#include "node/walk.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay::tir::interpret_detail {

void Translator::add_memory(const Buffer& b, bool parameter) {
  Memory memory;
  memory.buffer = b;
  memory.element_bytes = interpret_detail::element_bytes(b->dtype, storage_of(parameter));
  for (const PrimExpr& e : b->shape) memory.shape_slots.push_back(evaluate(e).slot);
  for (const PrimExpr& e : b->memory_shape()) memory.memory_slots.push_back(evaluate(e).slot);
  memories_[b.get()] = static_cast<int32_t>(memory_.size());
  parameters_.push_back(parameter);
  memory_.push_back(std::move(memory));
}

int32_t Translator::memory_of(const Buffer& b) const {
  auto it = memories_.find(b.get());
  RELAY_CHECK(it != memories_.end(), "buffer " + b->name + " is used where it has no memory");
  return it->second;
}

int32_t Translator::add_access(const Buffer& b, const std::vector<Operand>& indices, int lane,
                               bool is_store) {
  RELAY_CHECK(indices.size() == b->shape.size() || indices.size() == 1,
              counted(indices.size(), "index") + " for buffer " + b->name);
  Access access;
  access.memory = memory_of(b);
  access.is_store = is_store;
  for (const Operand& v : indices) access.indices.push_back(v.lane(lane));
  accesses_.push_back(std::move(access));
  return static_cast<int32_t>(accesses_.size()) - 1;
}

std::vector<Operand> Translator::values_of(const std::vector<PrimExpr>& list) const {
  std::vector<Operand> out;
  for (const PrimExpr& e : list) out.push_back(at(e));
  return out;
}

void Translator::step_load(const LoadNode& n) {
  const Storage storage = storage_of(parameters_[static_cast<size_t>(memory_of(n.buffer))]);
  DType dtype = n.buffer->dtype;
  int lanes = n.dtype.lanes;
  bool guarded = n.predicate || top().masked;
  // Consecutive elements are one instruction.
  auto* run = n.indices.size() == 1 ? as<RampNode>(n.indices[0]) : nullptr;
  if (run != nullptr && as_int(run->stride) == 1 && !guarded) {
    if (!ready(run->base)) return;
    Operand v = here(lanes);
    Instr i = instr({.run = load_run_handler(dtype, storage), .dst = v.slot});
    i.a = add_access(n.buffer, {at(run->base)}, 0, /*is_store=*/false);
    i.lanes.count = static_cast<uint16_t>(lanes);
    if (options_.find_undefined) {
      Instr note = i;
      note.run = &note_read;
      emit_to(top_index(), note);
    }
    if (options_.find_races) {
      Instr note = i;
      note.run = &note_access;
      emit_to(top_index(), note);
    }
    emit_to(top_index(), i);
    return finish(n, v);
  }
  if (!all_ready(n.indices)) return;
  if (n.predicate && !ready(n.predicate)) return;
  std::vector<Operand> indices = values_of(n.indices);
  Operand mask;
  if (n.predicate) mask = at(n.predicate);
  if (top().masked) {
    Operand outer = mask_for(lanes);
    mask = n.predicate ? operation({&outer, &mask}, lanes, and_handler) : outer;
  }
  Handler handler = load_handler(dtype, storage, indices.size(), guarded);
  Operand v = here(lanes);
  for (int l = 0; l < lanes; ++l) {
    const int32_t access = add_access(n.buffer, indices, l, /*is_store=*/false);
    const int32_t choice = guarded ? mask.lane(l) : 0;
    if (options_.find_undefined) {
      emit({.run = &note_read, .a = access, .b = guarded ? 1 : 0, .c = choice});
    }
    if (options_.find_races) {
      emit({.run = &note_access, .a = access, .b = guarded ? 1 : 0, .c = choice});
    }
    emit({.run = handler, .dst = v.lane(l), .a = access, .c = choice});
  }
  finish(n, v);
}

void Translator::store(const StoreNode& s, bool guarded) {
  std::vector<Operand> indices;
  for (const PrimExpr& e : s.indices) indices.push_back(evaluate(e));
  Operand value = evaluate(s.value);
  Operand mask = guarded ? evaluate(s.predicate) : Operand{};
  if (options_.max_steps > 0) emit({.run = &count_step});
  int32_t memory = memory_of(s.buffer);
  const Storage storage = storage_of(parameters_[static_cast<size_t>(memory)]);
  Handler handler = store_handler(s.buffer->dtype, storage, indices.size(), guarded);
  for (int l = 0; l < s.value->dtype.lanes; ++l) {
    const int32_t access = add_access(s.buffer, indices, l, /*is_store=*/true);
    const int32_t choice = guarded ? mask.lane(l) : 0;
    emit({.run = handler, .a = access, .b = value.lane(l), .c = choice});
    if (options_.find_undefined) {
      emit({.run = &note_write, .a = access, .b = guarded ? 1 : 0, .c = choice});
    }
    if (options_.find_races) {
      const bool later = copies_ > 0 && s.buffer->scope == Scope::Shared;
      emit({.run = &note_access,
            .dst = later ? 1 : 0,
            .a = access,
            .b = guarded ? 1 : 0,
            .c = choice});
    }
  }
}

void Translator::statements(const Stmt& body) {
  stack_.push_back({body.get()});
  while (!stack_.empty()) statement(stack_.back());
}

Operand Translator::once(const PrimExpr& e) {
  open();
  Operand v = evaluate(e);
  close();
  return clamp_scope(v);
}

void Translator::divide(StmtFrame& f) {
  if (!options_.find_races || f.divided || items_ == ItemLevel::Item) return;
  f.divided = true;
  const Stmt s = relay::ref(*f.node);
  if (items_ == ItemLevel::Kernel && is_around_launches(s)) return;
  f.outside = items_;
  const auto nest = thread_nest(s);
  const bool launches = items_ == ItemLevel::Kernel;
  if (launches) {
    emit({.run = &begin_launch});
    items_ = nest && nest->level == ThreadLevel::Group ? ItemLevel::Group : ItemLevel::Item;
  }
  if (!nest || (nest->level == ThreadLevel::Item) == launches) return;
  if (!launches) items_ = ItemLevel::Item;
  for (size_t i = 0; i < nest->axes.size(); ++i) {
    const auto axis = static_cast<int64_t>(launches ? nest->axes.size() + i : i);
    if (nest->axes[i] != nullptr) axes_[nest->axes[i]] = axis;
  }
}

void Translator::note_item(const ForNode& s, const Operand& var) {
  auto axis = axes_.find(&s);
  if (axis != axes_.end()) emit_numbered({.run = &enter_item, .a = var.slot}, axis->second);
}
void Translator::note_item_end(const ForNode& s) {
  auto axis = axes_.find(&s);
  if (axis != axes_.end()) emit_numbered({.run = &leave_items}, axis->second);
}

void Translator::note_effect(const CallNode& c) {
  if (c.name == "barrier") emit({.run = &pass_barrier});
  if (c.name == "end_copies") emit({.run = &end_copies});
  if (c.name == "wait_copies") emit_numbered({.run = &wait_copies}, *as_int(c.args[0]));
}

void Translator::statement(StmtFrame& f) {
  divide(f);
  switch (f.node->kind()) {
    case StmtKind::Seq: {
      auto& s = static_cast<const SeqNode&>(*f.node);
      if (f.state == s.stmts.size()) return leave();
      return enter(s.stmts[f.state++]);
    }
    case StmtKind::Store:
      step_store(static_cast<const StoreNode&>(*f.node));
      return leave();
    case StmtKind::For:
      return step_for(static_cast<const ForNode&>(*f.node), f);
    case StmtKind::Block:
      return step_block(static_cast<const BlockNode&>(*f.node), f);
    case StmtKind::If:
      return step_if(static_cast<const IfNode&>(*f.node), f);
    case StmtKind::While: {
      auto& s = static_cast<const WhileNode&>(*f.node);
      if (f.state++ == 0) {
        // Behind the loop.
        f.piece = new_label();
        open(/*own_code=*/true, level() + 1);
        emit_numbered({.run = &jump_unless, .a = once(s.cond).slot}, f.piece);
        if (options_.max_steps > 0) emit({.run = &count_step});
        return enter(s.body);
      }
      const int piece = close(), again = new_label();
      emit_label(again);
      emit_piece(piece);
      emit_numbered({.run = &jump_back}, again);
      emit_label(f.piece);
      return leave();
    }
    case StmtKind::Allocate: {
      auto& s = static_cast<const AllocateNode&>(*f.node);
      if (f.state++ > 0) {
        memories_.erase(s.buffer.get());
        return leave();
      }
      open();
      add_memory(s.buffer, /*parameter=*/false);
      memory_.back().tracked = options_.find_undefined;
      memory_.back().contended = options_.find_races && items_ != ItemLevel::Item;
      close();
      emit({.run = &allocate, .a = memories_.at(s.buffer.get())});
      return enter(s.body);
    }
    case StmtKind::LetStmt: {
      auto& s = static_cast<const LetStmtNode&>(*f.node);
      if (f.state++ > 0) {
        close();
        return leave();
      }
      Operand v = once(s.value);
      open();
      bind(s.var, v);
      return enter(s.body);
    }
    case StmtKind::Check: {
      auto& s = static_cast<const CheckNode&>(*f.node);
      emit_numbered({.run = &check, .a = once(s.cond).slot}, s.error);
      return leave();
    }
    case StmtKind::Evaluate:
      if (auto* c = as<CallNode>(static_cast<const EvaluateNode&>(*f.node).value);
          c != nullptr && options_.find_races) {
        note_effect(*c);
      }
      once(static_cast<const EvaluateNode&>(*f.node).value);
      return leave();
    default:
      internal_error(__FILE__, __LINE__,
                     "a " + std::string(f.node->info().name) + " in the kernel " + f_.name);
  }
}

void Translator::step_store(const StoreNode& s) {
  open();
  if (s.predicate && s.value->dtype.is_scalar()) {
    Operand cond = evaluate(s.predicate);
    open(/*own_code=*/true, level());
    store(s, /*guarded=*/false);
    emit_branch(cond, close(), -1);
  } else {
    store(s, s.predicate != nullptr);
  }
  close();
}

void Translator::step_for(const ForNode& s, StmtFrame& f) {
  if (f.state == 0 && !f.guarded) {
    f.guarded = true;
    if (Stmt init = init_of_empty(s)) {
      kept_.push_back(init);
      return enter(init);
    }
  }
  const bool lanes = options_.find_races && s.hints.nest == LoopNest::Lanes;
  if (f.state++ == 0) {
    if (lanes) emit({.run = &begin_lanes});
    f.value = once(s.min);
    f.extent = once(extent_of_nest(s)).slot;
    f.var = {new_slots(1), 0, level() + 1, 0};
    Operand var = f.var;
    open(/*own_code=*/true, level() + 1);
    bind(s.var, var);
    note_item(s, var);
    copies_ += s.hints.nest == LoopNest::Copy ? 1 : 0;
    return enter(s.body);
  }
  int piece = close();
  copies_ -= s.hints.nest == LoopNest::Copy ? 1 : 0;
  int32_t stop = new_slots(1);
  int body = new_label(), after = new_label();
  emit_numbered(
      {.run = &loop_begin, .dst = f.var.slot, .a = f.value.slot, .b = f.extent, .c = stop}, after);
  emit_label(body);
  emit_piece(piece);
  emit_numbered({.run = &loop_next, .dst = f.var.slot, .c = stop}, body);
  emit_label(after);
  note_item_end(s);
  if (lanes) emit({.run = &end_lanes});
  leave();
}

PrimExpr Translator::extent_of_nest(const ForNode& outer) {
  PrimExpr extent = outer.extent;
  // What a reduction over nothing starts from is stored outside of the loops that reduce.
  for (const ReductionNest& nest : reduction_nests(outer)) {
    if (!reduces_along(*nest.block, outer)) return extent;
  }
  std::vector<const ForNode*> loops{&outer};
  while (auto* inner = as<ForNode>(loops.back()->body)) {
    auto known = as_int(inner->extent);
    bool varies = std::ranges::any_of(
        loops, [&](const ForNode* l) { return uses(inner->extent, l->var.get()); });
    if (varies) break;
    if (!known || *known <= 0) {
      extent =
          select(le(inner->extent, imm(inner->extent->dtype, 0)), imm(extent->dtype, 0), extent);
    }
    loops.push_back(inner);
  }
  if (!(extent == outer.extent)) kept_.push_back(extent);
  return extent;
}

Stmt Translator::init_of_empty(const ForNode& outer) {
  std::vector<Stmt> inits;
  for (const ReductionNest& nest : reduction_nests(outer)) {
    const BlockNode& b = *nest.block;
    if (initialised_.contains(&b) || !reduces_along(b, outer)) continue;
    PrimExpr empty = boolean(false);
    for (const IterVar& iter : b.iters) {
      if (iter->kind == IterKind::Reduce) empty = logical_or(empty, le(iter->extent, index(0)));
    }
    if (as_int(empty) == 0) continue;
    initialised_.insert(&b);
    inits.push_back(if_(empty, nest.initialisation()));
  }
  return inits.empty() ? nullptr : seq(std::move(inits));
}

void Translator::step_if(const IfNode& s, StmtFrame& f) {
  if (f.state++ == 0) {
    f.value = once(s.cond);
    open(/*own_code=*/true, level());
    return enter(s.then_body);
  }
  int piece = close();
  if (f.state == 2 && s.else_body) {
    f.piece = piece;
    open(/*own_code=*/true, level());
    return enter(s.else_body);
  }
  if (f.state == 3) {
    emit_branch(f.value, f.piece, piece);
  } else {
    emit_branch(f.value, piece, -1);
  }
  leave();
}

void Translator::step_block(const BlockNode& b, StmtFrame& f) {
  enum { kStart, kAfterInit, kAfterBody };
  if (f.state == kStart) {
    RELAY_CHECK(b.iters.size() == b.bindings.size(), "bindings of the block " + b.name);
    std::vector<Operand> values;
    for (const PrimExpr& e : b.bindings) values.push_back(once(e));
    open();
    for (size_t i = 0; i < values.size(); ++i) bind(b.iters[i]->var, values[i]);
    f.guarded = b.predicate && as_int(b.predicate) != 1;
    if (f.guarded) {
      f.value = once(b.predicate);
      open(/*own_code=*/true, level());
    }
    f.state = b.init ? kAfterInit : kAfterBody;
    if (!b.init) return enter(b.body);
    PrimExpr first = boolean(true);
    for (const IterVar& i : b.iters) {
      if (i->kind == IterKind::Reduce) first = logical_and(first, eq(i->var, i->min));
    }
    kept_.push_back(first);
    f.var = once(first);
    open(/*own_code=*/true, level());
    return enter(b.init);
  }
  if (f.state == kAfterInit) {
    emit_branch(f.var, close(), -1);
    f.state = kAfterBody;
    return enter(b.body);
  }
  if (f.guarded) emit_branch(f.value, close(), -1);
  close();
  leave();
}

}  // namespace relay::tir::interpret_detail
