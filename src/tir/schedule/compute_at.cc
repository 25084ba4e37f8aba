// Schedule steps compute_at and reverse_compute_at.
#include <algorithm>

#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// The part of each iteration variable that is computed: [mins[i], mins[i] + extents[i]).
struct IterBox {
  std::vector<PrimExpr> mins;
  std::vector<PrimExpr> extents;
};

IterBox whole_domain(const BlockNode& b) {
  IterBox box;
  for (const IterVar& v : b.iters) {
    box.mins.push_back(v->min);
    box.extents.push_back(v->extent);
  }
  return box;
}

// The regions of `buffer` in terms of loop variables.
void add_boxes(const BlockNode& b, const std::vector<Region>& regions, const Buffer& buffer,
               std::vector<Box>& out) {
  VarMap values = bindings_of(b);
  for (const Region& r : regions) {
    if (!(r->buffer == buffer)) continue;
    Box box;
    for (const PrimExpr& e : r->mins) box.mins.push_back(replace_vars(e, values));
    for (const PrimExpr& e : r->extents) box.extents.push_back(replace_vars(e, values));
    out.push_back(std::move(box));
  }
}

std::vector<const ForNode*> inner_loops(const LoopTree& tree, const BlockNode* b,
                                        const ForNode* at) {
  std::vector<const ForNode*> all = tree.loops_around(b);
  auto it = std::find(all.begin(), all.end(), at);
  return {it + 1, all.end()};
}

// Narrows the iterations that index the dimensions of `indices` to `box`.
void narrow(const BlockNode& b, const std::vector<PrimExpr>& indices, const Box& box,
            Analyzer& analyzer, IterBox& iters) {
  for (size_t d = 0; d < indices.size(); ++d) {
    for (size_t i = 0; i < b.iters.size(); ++i) {
      if (!(indices[d] == b.iters[i]->var)) continue;
      auto want = analyzer.bounds(box.extents[d]);
      auto have = as_int(b.iters[i]->extent);
      if (have && want.has_max() && want.max >= *have) continue;
      iters.mins[i] = box.mins[d];
      iters.extents[i] = box.extents[d];
    }
  }
}

// Whether the loops leave out indices between those they visit, as an interleaved loop does whose
// other half runs outside: `min` is a sum of their variables with a step beyond reach of the
// others.
bool leaves_gaps(const PrimExpr& min, const PrimExpr& extent,
                 const std::vector<const ForNode*>& loops) {
  Analyzer analyzer;
  std::vector<std::pair<int64_t, std::optional<int64_t>>> terms;  // step, extent
  for (const ForNode* f : loops) {
    if (!uses_var(min, f->var.get())) continue;
    PrimExpr next = replace_vars(min, {{f->var.get(), f->var + 1}});
    auto step = analyzer.constant_difference(next, min);
    if (!step) return false;  // a quotient or rest of a fused loop
    terms.emplace_back(std::abs(*step), as_int(f->extent));
  }
  std::sort(terms.begin(), terms.end());
  int64_t reach = as_int(extent).value_or(1);
  for (const auto& [step, count] : terms) {
    if (count == 1) continue;
    if (step > reach) return true;
    if (!count) return false;
    reach += step * (*count - 1);
  }
  return false;
}

// Whether it is a quotient or a remainder of the variable.
bool is_part_of(const PrimExpr& e, const Var& v) {
  auto* n = as<BinaryNode>(e);
  return n != nullptr && (n->op == BinaryOp::FloorDiv || n->op == BinaryOp::FloorMod) &&
         n->a == v && as_int(n->b);
}

// Statements of a loop's body, with the allocations that stand around them all.
struct Body {
  std::vector<Buffer> buffers;
  std::vector<Stmt> stmts;
  Stmt build() const {
    Stmt out = seq(stmts);
    for (size_t i = buffers.size(); i-- > 0;) out = allocate(buffers[i], out);
    return out;
  }
};

Body open_body(const Stmt& body) {
  Body out;
  Stmt at = body;
  while (auto* a = as<AllocateNode>(at)) {
    out.buffers.push_back(a->buffer);
    at = a->body;
  }
  auto* s = as<SeqNode>(at);
  out.stmts = s != nullptr ? s->stmts : std::vector<Stmt>{at};
  return out;
}

}  // namespace

// The block in new loops over `box`, data-parallel iterations first.
Stmt ScheduleEdit::loops_over_box(Schedule& s, const BlockNode& b,
                                  const std::vector<PrimExpr>& mins,
                                  const std::vector<PrimExpr>& extents,
                                  const std::vector<const ForNode*>& around) {
  Analyzer analyzer;
  analyzer.bind_function(s.func());
  bind_loops(analyzer, around);
  std::vector<PrimExpr> bindings;
  std::vector<std::pair<size_t, Var>> loops;
  PrimExpr predicate;
  for (size_t i = 0; i < b.iters.size(); ++i) {
    if (as_int(extents[i]) == 1) {
      bindings.push_back(mins[i]);
    } else {
      Var v = s.fresh_var(b.iters[i]->var);
      analyzer.bind(v, index(0), extents[i]);
      bindings.push_back(analyzer.simplify(mins[i] + v));
      loops.push_back({i, v});
    }
    const IterVar& iter = b.iters[i];
    bool whole = mins[i] == iter->min && extents[i] == iter->extent;
    if (whole) continue;
    PrimExpr low = analyzer.simplify(ge(bindings[i], iter->min));
    PrimExpr high = analyzer.simplify(lt(bindings[i], iter->min + iter->extent));
    if (as_int(low) != 1) predicate = conjoin(predicate, low);
    if (as_int(high) != 1) predicate = conjoin(predicate, high);
  }
  Stmt out = modified(b, [&](BlockNode& n) {
    n.bindings = bindings;
    n.predicate = predicate;
  });
  std::stable_partition(loops.begin(), loops.end(), [&](const auto& l) {
    return b.iters[l.first]->kind == IterKind::DataParallel;
  });
  for (size_t i = loops.size(); i-- > 0;) {
    out = for_(loops[i].second, index(0), extents[loops[i].first], out);
  }
  return out;
}

StepResult<> Schedule::compute_at(const BlockRV& rv, const LoopRV& loop_rv) {
  ScheduleEdit edit(*this, "compute_at");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const ForNode* at = RELAY_TRY(edit.loop(loop_rv));
  Buffer buffer = RELAY_TRY(edit.written_buffer(*b));
  if (is_output(buffer)) return edit.fail("block " + b->name + " writes an output");
  if (edit.writers(buffer).size() != 1) {
    return edit.fail("block " + b->name + " is not the only one that writes " + buffer->name);
  }
  if (!b->init && ScheduleEdit::is_reduction(*b)) {
    return edit.fail("the initialisation of block " + b->name + " is a block of its own already");
  }
  const StoreNode* s = single_store(*b);
  if (s == nullptr) return edit.fail("block " + b->name + " is not a single store");
  RELAY_TRY(edit.check_guarded_by_ranges(*b));
  for (const IterVar& v : b->iters) {
    if (v->kind == IterKind::Opaque) return edit.fail("the order of block " + b->name + " matters");
    if (v->kind != IterKind::DataParallel || as_int(v->extent) == 1) continue;
    // One of which quotients and remainders are indices runs over its whole range.
    if (std::none_of(s->indices.begin(), s->indices.end(),
                     [&](const PrimExpr& e) { return e == v->var || is_part_of(e, v->var); })) {
      return edit.fail("block " + b->name + " does not store at its plain iteration variable " +
                       v->var->name);
    }
  }
  std::vector<const BlockNode*> consumers = edit.consumers(*b);
  if (consumers.empty()) return edit.fail("nothing reads the result of block " + b->name);
  std::vector<Box> boxes;
  std::vector<const ForNode*> inner;
  for (const BlockNode* c : consumers) {
    if (!edit.tree.contains(at, c)) {
      return edit.fail("consumer " + c->name + " of block " + b->name + " is not inside loop " +
                       at->var->name);
    }
    add_boxes(*c, c->reads, buffer, boxes);
    for (const ForNode* f : inner_loops(edit.tree, c, at)) {
      if (std::find(inner.begin(), inner.end(), f) == inner.end()) inner.push_back(f);
    }
  }
  std::vector<const ForNode*> outer = edit.tree.loops_around(at);
  outer.push_back(at);
  Box box = relaxed_box(buffer, boxes, outer, inner);
  Analyzer analyzer;
  bind_loops(analyzer, outer);
  IterBox iters = whole_domain(*b);
  narrow(*b, s->indices, box, analyzer, iters);

  // Between the last producer and the first consumer among the statements of the loop's body.
  Body body = open_body(at->body);
  std::vector<const BlockNode*> producers = edit.producers(*b);
  size_t first_consumer = body.stmts.size(), after_producers = 0;
  for (size_t i = 0; i < body.stmts.size(); ++i) {
    auto holds = [&](const BlockNode* x) { return edit.tree.contains(body.stmts[i].get(), x); };
    if (std::any_of(consumers.begin(), consumers.end(), holds)) {
      first_consumer = std::min(first_consumer, i);
    }
    if (std::any_of(producers.begin(), producers.end(), holds)) after_producers = i + 1;
  }
  if (after_producers > first_consumer) {
    return edit.fail("a producer of block " + b->name + " comes after its first consumer in loop " +
                     at->var->name);
  }
  for (const BlockNode* p : producers) {
    for (const ForNode* f : edit.tree.loops_around(p)) {
      bool shared = f == at || edit.tree.contains(f, at);
      if (shared && ScheduleEdit::bound_to(*f, *p, IterKind::Reduce)) {
        return edit.fail("producer " + p->name + " is complete only after loop " + f->var->name);
      }
    }
  }
  Stmt nest = ScheduleEdit::loops_over_box(*this, *b, iters.mins, iters.extents, outer);
  body.stmts.insert(body.stmts.begin() + static_cast<std::ptrdiff_t>(first_consumer), nest);
  // The block may stand in the loop already; it leaves its old place first.
  Stmt new_body = replace_stmts(body.build(), {{b, nullptr}});
  Stmt moved = modified(*at, [&](ForNode& n) { n.body = new_body; });
  Stmt all = replace_stmts(func_->body, {{at, moved}, {b, nullptr}});
  all = ScheduleEdit::place_allocation(all, buffer);
  set_body(ScheduleEdit::reach_moved(all, *b));
  record("compute_at", {b->name, at->var->name});
  return {};
}

StepResult<> Schedule::reverse_compute_at(const BlockRV& rv, const LoopRV& loop_rv) {
  ScheduleEdit edit(*this, "reverse_compute_at");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const ForNode* at = RELAY_TRY(edit.loop(loop_rv));
  if (ScheduleEdit::is_reduction(*b)) return edit.fail("block " + b->name + " is a reduction");
  const StoreNode* s = single_store(*b);
  if (s == nullptr) return edit.fail("block " + b->name + " is not a single store");
  RELAY_TRY(edit.check_guarded_by_ranges(*b));
  std::vector<const BlockNode*> producers = edit.producers(*b);
  std::vector<const BlockNode*> inside;
  for (const BlockNode* p : producers) {
    if (edit.tree.contains(at, p)) inside.push_back(p);
  }
  if (inside.empty())
    return edit.fail("no producer of block " + b->name + " is inside loop " + at->var->name);
  const std::vector<const BlockNode*>& order = edit.tree.blocks();
  auto last = std::find_if(order.rbegin(), order.rend(),
                           [&](const BlockNode* x) { return edit.tree.contains(at, x); });
  for (const BlockNode* p : producers) {
    if (std::find(order.rbegin(), last, p) != last) {
      return edit.fail("producer " + p->name + " of block " + b->name + " comes after loop " +
                       at->var->name);
    }
  }
  for (const BlockNode* c : edit.consumers(*b)) {
    if (edit.tree.contains(at, c)) {
      return edit.fail("consumer " + c->name + " of block " + b->name + " is inside loop " +
                       at->var->name);
    }
  }
  std::vector<const ForNode*> outer = edit.tree.loops_around(at);
  outer.push_back(at);
  Analyzer analyzer;
  bind_loops(analyzer, outer);
  IterBox iters = whole_domain(*b);
  std::vector<Buffer> buffers;
  for (const BlockNode* p : inside) {
    for (const ForNode* f : outer) {
      if (ScheduleEdit::bound_to(*f, *p, IterKind::Reduce)) {
        return edit.fail("producer " + p->name + " is complete only after its reduction loop " +
                         f->var->name);
      }
    }
    for (const Region& w : p->writes) {
      if (!ScheduleEdit::touches(b->reads, w->buffer)) continue;
      for (const BlockNode* other : edit.writers(w->buffer)) {
        if (!edit.tree.contains(at, other)) {
          return edit.fail("block " + other->name + " outside loop " + at->var->name + " writes " +
                           w->buffer->name + " too");
        }
      }
      if (std::find(buffers.begin(), buffers.end(), w->buffer) == buffers.end()) {
        buffers.push_back(w->buffer);
      }
    }
  }
  for (const Buffer& buffer : buffers) {
    std::vector<Box> boxes;
    std::vector<const ForNode*> inner;
    for (const BlockNode* p : inside) {
      add_boxes(*p, p->writes, buffer, boxes);
      if (!ScheduleEdit::touches(p->writes, buffer)) continue;
      for (const ForNode* f : inner_loops(edit.tree, p, at)) {
        if (std::find(inner.begin(), inner.end(), f) == inner.end()) inner.push_back(f);
      }
    }
    for (const Box& part : boxes) {
      for (size_t d = 0; d < part.mins.size(); ++d) {
        if (!leaves_gaps(part.mins[d], part.extents[d], inner)) continue;
        return edit.fail("loop " + at->var->name + " fills " + buffer->name +
                         " with gaps between the elements of an iteration");
      }
    }
    Box box = relaxed_box(buffer, boxes, outer, inner);
    for (const Region& r : b->reads) {
      if (!(r->buffer == buffer)) continue;
      for (size_t d = 0; d < r->mins.size(); ++d) {
        bool plain = std::any_of(b->iters.begin(), b->iters.end(),
                                 [&](const IterVar& v) { return r->mins[d] == v->var; });
        if (!plain && as_int(buffer->shape[d]) != 1) {
          return edit.fail("block " + b->name + " does not read " + buffer->name +
                           " at its plain iteration variables");
        }
        // Iterations beyond the buffer write nothing.
        for (const IterVar& v : b->iters) {
          if (!(r->mins[d] == v->var) || v->extent == buffer->shape[d]) continue;
          auto runs = as_int(v->extent), stored = as_int(buffer->shape[d]);
          if (runs && stored && *runs <= *stored) continue;
          return edit.fail("block " + b->name + " runs over more than " + buffer->name);
        }
      }
      narrow(*b, r->mins, box, analyzer, iters);
    }
  }
  // What the loop's iterations produce must be all that the consumer runs over.
  for (const ForNode* f : outer) {
    bool used = std::any_of(iters.mins.begin(), iters.mins.end(),
                            [&](const PrimExpr& e) { return uses_var(e, f->var.get()); });
    if (!used && as_int(f->extent) != 1) {
      return edit.fail("block " + b->name + " would run again in every iteration of loop " +
                       f->var->name);
    }
  }
  Stmt nest = ScheduleEdit::loops_over_box(*this, *b, iters.mins, iters.extents, outer);
  Body body = open_body(at->body);
  body.stmts.push_back(nest);
  Stmt moved = modified(*at, [&](ForNode& n) { n.body = body.build(); });
  Stmt all = replace_stmts(func_->body, {{at, moved}, {b, nullptr}});
  for (const Buffer& buffer : buffers) all = ScheduleEdit::place_allocation(all, buffer);
  set_body(ScheduleEdit::reach_moved(all, *b));
  record("reverse_compute_at", {b->name, at->var->name});
  return {};
}

}  // namespace relay::tir
