// Schedule steps on loops: split, partition, fuse, reorder and the kinds of loops.
#include <algorithm>

#include "tir/lane_reduction.h"
#include "tir/schedule/edit.h"
#include "tir/thread_tags.h"

namespace relay::tir {
namespace {

std::string list_text(const std::vector<int64_t>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i ? ", " : "") + std::to_string(values[i]);
  return out + "]";
}

// Simplifies the blocks below the loop over `var`, which is in `body`.
Stmt simplify_below(const Stmt& body, const std::vector<Var>& vars) {
  LoopTree tree(body);
  std::vector<const ForNode*> loops;
  for (const Var& v : vars) {
    if (const ForNode* f = tree.find_loop(v)) loops.push_back(f);
  }
  return simplify_blocks(tree, [&](const BlockNode& b) {
    return std::any_of(loops.begin(), loops.end(),
                       [&](const ForNode* f) { return tree.contains(f, &b); });
  });
}

// Adds a condition to all blocks below `stmt`.
Stmt guard_blocks(const Stmt& stmt, const PrimExpr& condition) {
  LoopTree tree(stmt);
  std::unordered_map<const Node*, Stmt> edits;
  for (const BlockNode* b : tree.blocks()) {
    edits[b] = modified(*b, [&](BlockNode& n) { n.predicate = conjoin(n.predicate, condition); });
  }
  return replace_stmts(stmt, edits);
}

}  // namespace

StepResult<std::vector<LoopRV>> Schedule::split(const LoopRV& rv,
                                                const std::vector<int64_t>& factors) {
  ScheduleEdit edit(*this, "split");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (factors.size() < 2) return edit.fail("at least two factors are needed");
  if (f->loop_kind != ForKind::Serial)
    return edit.fail("loop " + f->var->name + " is not serial any more");
  int64_t known = 1;
  int inferred = -1;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (factors[i] == -1 && inferred < 0) {
      inferred = static_cast<int>(i);
    } else if (factors[i] <= 0 || known > (int64_t{1} << 40) / factors[i]) {
      return edit.fail("factor " + std::to_string(factors[i]) + " of loop " + f->var->name +
                       " is out of range");
    } else {
      known *= factors[i];
    }
  }
  std::optional<int64_t> extent = as_int(f->extent);
  if (inferred < 0 && (!extent || known < *extent)) {
    return edit.fail("the factors " + list_text(factors) + " do not cover loop " + f->var->name,
                     "let one factor be -1");
  }
  Analyzer analyzer;
  bind_loops(analyzer, edit.tree.loops_around(f));
  std::vector<PrimExpr> extents;
  for (size_t i = 0; i < factors.size(); ++i) {
    if (static_cast<int>(i) != inferred) {
      extents.push_back(index(factors[i]));
    } else if (extent) {
      extents.push_back(index((*extent + known - 1) / known));
    } else {
      extents.push_back(analyzer.simplify(floor_div(f->extent + (known - 1), index(known))));
    }
  }
  std::vector<LoopRV> out;
  PrimExpr value;
  PrimExpr total;
  for (size_t i = 0; i < factors.size(); ++i) {
    Var v = fresh_var(f->var->name + "_" + std::to_string(i), f->var->dtype);
    out.push_back({v});
    value = value ? value * extents[i] + v : PrimExpr(v);
    total = total ? total * extents[i] : extents[i];
  }
  if (as_int(f->min) != 0) value = value + f->min;
  Stmt body = replace_vars(f->body, {{f->var.get(), value}});
  std::optional<int64_t> covered = as_int(analyzer.simplify(total));
  if (!extent || !covered || *covered != *extent) {
    body = guard_blocks(body, lt(value, f->min + f->extent));
  }
  for (size_t i = factors.size(); i-- > 0;) {
    body = modified(*f, [&](ForNode& n) {
      n.var = out[i].var;
      n.min = index(0);
      n.extent = extents[i];
      n.body = body;
      if (i > 0) n.hints = {};
    });
  }
  Stmt all = replace_stmts(func_->body, {{f, body}});
  set_body(simplify_below(all, {out[0].var}));
  std::vector<std::string> names;
  for (const LoopRV& l : out) names.push_back(l.var->name);
  record("split", {f->var->name, list_text(factors)}, names);
  return out;
}

StepResult<Partition> Schedule::partition(const LoopRV& rv, int64_t point) {
  ScheduleEdit edit(*this, "partition");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  std::optional<int64_t> extent = as_int(f->extent);
  if (!extent || as_int(f->min) != 0) {
    return edit.fail("loop " + f->var->name + " has no constant bounds");
  }
  if (point <= 0 || point >= *extent) {
    return edit.fail("point " + std::to_string(point) + " is not inside loop " + f->var->name +
                     " [0, " + std::to_string(*extent) + ")");
  }
  Partition out = RELAY_TRY(cut(edit, f, index(point)));
  record("partition", {rv.var->name, std::to_string(point)});
  return out;
}

StepResult<Partition> Schedule::partition_tiles(const LoopRV& rv, int64_t size) {
  ScheduleEdit edit(*this, "partition_tiles");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (size <= 0) return edit.fail("tiles of " + std::to_string(size) + " are no tiles");
  if (as_int(f->min) != 0) return edit.fail("loop " + f->var->name + " starts not at 0");
  if (auto extent = as_int(f->extent); extent && (*extent < size || *extent % size == 0)) {
    return edit.fail("tiles of " + std::to_string(size) + " leave no two parts of loop " +
                     f->var->name);
  }
  Analyzer analyzer;
  bind_loops(analyzer, edit.tree.loops_around(f));
  Partition out =
      RELAY_TRY(cut(edit, f, analyzer.simplify(floor_div(f->extent, index(size)) * index(size))));
  record("partition_tiles", {rv.var->name, std::to_string(size)});
  return out;
}

bool Schedule::has_whole_tiles(const LoopRV& rv, int64_t size) const {
  const PrimExpr& extent = loop(rv)->extent;
  Analyzer analyzer;
  return as_int(analyzer.simplify(extent - floor_div(extent, index(size)) * index(size))) == 0;
}

StepResult<Partition> Schedule::cut(ScheduleEdit& edit, const ForNode* f, const PrimExpr& point) {
  for (const BlockNode* b : edit.tree.blocks_in(f)) {
    if (b->init && ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) {
      return edit.fail("loop " + f->var->name + " is a reduction loop of block " + b->name +
                           ", which still has its initialisation inside",
                       "apply decompose_reduction first");
    }
  }
  Partition out;
  // The copy: own variables, buffers and names.
  VarMap fresh;
  std::unordered_map<const Node*, Stmt> renamed;
  for (const ForNode* l : edit.tree.loops_in(f)) {
    Var v = fresh_var(l->var);
    fresh[l->var.get()] = v;
    out.loops.push_back({LoopRV{l->var}, LoopRV{v}});
  }
  for (const BlockNode* b : edit.tree.blocks_in(f)) {
    std::string name = fresh_name(b->name);
    out.blocks.push_back({BlockRV{b->name}, BlockRV{name}});
    renamed[b] = modified(*b, [&](BlockNode& n) {
      n.name = name;
      // A block's own variables are never shared between blocks.
      VarMap own;
      for (const IterVar& v : n.iters) own[v->var.get()] = var(v->var->name, v->var->dtype);
      for (IterVar& v : n.iters) v = replace_vars(v, own);
      for (Region& r : n.reads) r = replace_vars(r, own);
      for (Region& r : n.writes) r = replace_vars(r, own);
      if (n.contraction) n.contraction = replace_vars(n.contraction, own);
      if (n.init) n.init = replace_vars(n.init, own);
      n.body = replace_vars(n.body, own);
    });
  }
  for (const AllocateNode* a : edit.tree.allocations()) {
    if (!edit.tree.contains(f, a)) continue;
    fresh[a->buffer.get()] =
        modified(*a->buffer, [&](BufferNode& n) { n.name = fresh_name(n.name); });
  }
  Stmt copy = replace_vars(replace_stmts(ref(*f), renamed), fresh);
  auto* c = as<ForNode>(copy);
  Var tail_var = c->var;
  Stmt tail = modified(*c, [&](ForNode& n) {
    n.extent = Analyzer().simplify(f->extent - point);
    n.body = replace_vars(n.body, {{tail_var.get(), PrimExpr(tail_var) + point}});
  });
  Stmt head = modified(*f, [&](ForNode& n) { n.extent = point; });
  Stmt all = replace_stmts(func_->body, {{f, seq({head, tail})}});
  all = simplify_below(all, {f->var, tail_var});
  set_body(all);
  const LoopTree& tree = *this->tree();
  out.head = tree.find_loop(f->var) ? LoopRV{f->var} : LoopRV{};
  out.tail = tree.find_loop(tail_var) ? LoopRV{tail_var} : LoopRV{};
  out.loops.erase(out.loops.begin());
  return out;
}

StepResult<LoopRV> Schedule::fuse(const std::vector<LoopRV>& rvs) {
  ScheduleEdit edit(*this, "fuse");
  if (rvs.empty()) return edit.fail("no loop is given");
  if (rvs.size() == 1) return rvs[0];
  std::vector<const ForNode*> loops;
  for (const LoopRV& rv : rvs) loops.push_back(RELAY_TRY(edit.loop(rv)));
  for (size_t i = 0; i < loops.size(); ++i) {
    if (loops[i]->loop_kind != ForKind::Serial) {
      return edit.fail("loop " + loops[i]->var->name + " is not serial any more");
    }
    if (as_int(loops[i]->min) != 0)
      return edit.fail("loop " + loops[i]->var->name + " starts not at 0");
    if (i > 0 && loops[i - 1]->body.get() != loops[i]) {
      return edit.fail("loop " + loops[i]->var->name + " is not directly inside loop " +
                       loops[i - 1]->var->name);
    }
    for (size_t j = 0; j < i; ++j) {
      if (uses_var(loops[i]->extent, loops[j]->var.get())) {
        return edit.fail("the extent of loop " + loops[i]->var->name + " depends on loop " +
                         loops[j]->var->name);
      }
    }
  }
  for (const BlockNode* b : edit.tree.blocks_in(loops.back())) {
    bool reduces = false, spatial = false;
    for (const ForNode* f : loops) {
      reduces |= ScheduleEdit::bound_to(*f, *b, IterKind::Reduce);
      spatial |= ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel);
    }
    if (reduces && spatial) {
      return edit.fail("block " + b->name + " has a reduction and a data-parallel loop among them");
    }
  }
  std::string name;
  PrimExpr total;
  for (const ForNode* f : loops) {
    name += (name.empty() ? "" : "_") + f->var->name;
    total = total ? total * f->extent : f->extent;
  }
  if (name.size() > 40) name = loops[0]->var->name + "_fused";
  Analyzer analyzer;
  bind_loops(analyzer, edit.tree.loops_around(loops[0]));
  Var fused = fresh_var(name, loops[0]->var->dtype);
  VarMap map;
  PrimExpr rest = fused;
  for (size_t i = loops.size(); i-- > 0;) {
    if (i == 0) {
      map[loops[i]->var.get()] = rest;
    } else {
      // A loop over nothing has no indices to tell apart, and nothing is divided by its extent.
      PrimExpr extent = as_int(loops[i]->extent) == 0 ? index(1) : loops[i]->extent;
      map[loops[i]->var.get()] = floor_mod(rest, extent);
      rest = floor_div(rest, extent);
    }
  }
  Stmt body = replace_vars(loops.back()->body, map);
  Stmt out = modified(*loops[0], [&](ForNode& n) {
    n.var = fused;
    n.min = index(0);
    n.extent = analyzer.simplify(total);
    n.body = body;
  });
  Stmt all = replace_stmts(func_->body, {{loops[0], out}});
  set_body(simplify_below(all, {fused}));
  std::string names = "[";
  for (size_t i = 0; i < loops.size(); ++i) names += (i ? ", " : "") + loops[i]->var->name;
  record("fuse", {names + "]"}, {fused->name});
  return LoopRV{fused};
}

StepResult<> Schedule::reorder(const std::vector<LoopRV>& rvs) {
  ScheduleEdit edit(*this, "reorder");
  std::vector<const ForNode*> wanted;
  for (const LoopRV& rv : rvs) {
    const ForNode* f = RELAY_TRY(edit.loop(rv));
    if (std::find(wanted.begin(), wanted.end(), f) != wanted.end()) {
      return edit.fail("loop " + f->var->name + " is named twice");
    }
    wanted.push_back(f);
  }
  if (wanted.size() < 2) return {};
  // The nest from the outermost to the innermost of them.
  const ForNode* innermost = wanted[0];
  const ForNode* outermost = wanted[0];
  for (const ForNode* f : wanted) {
    if (edit.tree.contains(innermost, f)) innermost = f;
    if (edit.tree.contains(f, outermost)) outermost = f;
  }
  std::vector<const ForNode*> nest;
  for (const Node* at = innermost;; at = edit.tree.parent(at)) {
    auto* f = as<ForNode>(at);
    if (at == nullptr || f == nullptr) {
      return edit.fail("the loops are not directly inside one another",
                       "other statements stand between " + outermost->var->name + " and " +
                           innermost->var->name);
    }
    nest.push_back(f);
    if (f == outermost) break;
  }
  std::reverse(nest.begin(), nest.end());
  for (const ForNode* f : wanted) {
    if (std::find(nest.begin(), nest.end(), f) == nest.end()) {
      return edit.fail("loop " + f->var->name + " is not in the nest of loop " +
                       outermost->var->name);
    }
  }
  std::vector<const ForNode*> order;
  size_t next = 0;
  for (const ForNode* f : nest) {
    bool named = std::find(wanted.begin(), wanted.end(), f) != wanted.end();
    order.push_back(named ? wanted[next++] : f);
  }
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i; j < order.size(); ++j) {
      if (uses_var(order[i]->extent, order[j]->var.get()) ||
          uses_var(order[i]->min, order[j]->var.get())) {
        return edit.fail("the bounds of loop " + order[i]->var->name + " depend on loop " +
                         order[j]->var->name);
      }
    }
  }
  for (const BlockNode* b : edit.tree.blocks_in(innermost)) {
    for (const ForNode* f : nest) {
      if (ScheduleEdit::bound_to(*f, *b, IterKind::Opaque)) {
        return edit.fail("the order of loop " + f->var->name + " matters to block " + b->name);
      }
    }
  }
  Stmt body = innermost->body;
  for (size_t i = order.size(); i-- > 0;) {
    body = modified(*order[i], [&](ForNode& n) { n.body = body; });
  }
  set_body(replace_stmts(func_->body, {{outermost, body}}));
  std::vector<std::string> names;
  for (const LoopRV& rv : rvs) names.push_back(rv.var->name);
  record("reorder", names);
  return {};
}

StepResult<> Schedule::parallel(const LoopRV& rv) {
  ScheduleEdit edit(*this, "parallel");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  RELAY_TRY(edit.check_data_parallel(*f));
  for (const ForNode* outer : edit.tree.loops_around(f)) {
    if (outer->loop_kind == ForKind::Parallel) {
      return edit.fail("loop " + outer->var->name + " around loop " + f->var->name +
                       " is parallel already");
    }
  }
  Stmt out = modified(*f, [&](ForNode& n) { n.loop_kind = ForKind::Parallel; });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("parallel", {f->var->name});
  return {};
}

StepResult<> Schedule::vectorize(const LoopRV& rv) {
  ScheduleEdit edit(*this, "vectorize");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (!as_int(f->extent))
    return edit.fail("the extent of loop " + f->var->name + " is not a constant");
  if (edit.tree.loops_in(f).size() > 1) {
    return edit.fail("loop " + f->var->name + " is not an innermost loop");
  }
  std::vector<const BlockNode*> blocks = edit.tree.blocks_in(f);
  if (blocks.size() == 1 && ScheduleEdit::bound_to(*f, *blocks[0], IterKind::Reduce)) {
    const BlockNode& b = *blocks[0];
    ScheduleEdit::Update update = RELAY_TRY(edit.update_of(b));
    if (ScheduleEdit::bound_to(*f, b, IterKind::DataParallel)) {
      return edit.fail("loop " + f->var->name + " belongs to the reduction and to the result");
    }
    if (b.predicate)
      return edit.fail("block " + b.name + " is guarded", "apply mask_reduction first");
    DType d = update.value->dtype;
    if (d.is_floating() && d.bits == 16) {
      return edit.fail("values of " + d.to_string() + " are not combined in lanes");
    }
  } else {
    RELAY_TRY(edit.check_data_parallel(*f));
  }
  Stmt out = modified(*f, [&](ForNode& n) { n.loop_kind = ForKind::Vectorized; });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("vectorize", {f->var->name});
  return {};
}

StepResult<> Schedule::unroll(const LoopRV& rv, int64_t factor) {
  ScheduleEdit edit(*this, "unroll");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (factor < 0) return edit.fail("the factor is negative");
  if (factor == 0 && !as_int(f->extent)) {
    return edit.fail("the extent of loop " + f->var->name + " is not a constant", "give a factor");
  }
  Stmt out = modified(*f, [&](ForNode& n) {
    if (factor == 0) {
      n.loop_kind = ForKind::Unrolled;
    } else {
      n.hints.unroll = factor;
    }
  });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("unroll", {f->var->name, std::to_string(factor)});
  return {};
}

StepResult<> Schedule::bind(const LoopRV& rv, const std::string& thread_tag) {
  ScheduleEdit edit(*this, "bind");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  RELAY_TRY(edit.check_data_parallel(*f));
  if (!thread_axis(thread_tag)) {
    return edit.fail("there is no axis " + quoted(thread_tag),
                     "use globalIdx, blockIdx or threadIdx, along x, y or z");
  }
  Stmt out = modified(*f, [&](ForNode& n) {
    n.loop_kind = ForKind::ThreadBound;
    n.thread_tag = thread_tag;
  });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("bind", {f->var->name, quoted(thread_tag)});
  return {};
}

StepResult<> Schedule::reduce_lanes(const LoopRV& rv) {
  ScheduleEdit edit(*this, "reduce_lanes");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  const std::string name = "loop " + f->var->name;
  if (f->loop_kind != ForKind::Serial) return edit.fail(name + " is not serial any more");
  if (as_int(f->extent) != kWarpItems || as_int(f->min) != 0) {
    return edit.fail(name + " is not over the " + std::to_string(kWarpItems) + " items of a warp");
  }
  auto* b = as<BlockNode>(f->body);
  if (b == nullptr) return edit.fail(name + " has no block directly inside");
  RELAY_TRY(edit.update_of(*b));
  if (b->predicate)
    return edit.fail("block " + b->name + " is guarded", "apply mask_reduction first");
  if (!ScheduleEdit::bound_to(*f, *b, IterKind::Reduce) ||
      ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel)) {
    return edit.fail("block " + b->name + " does not reduce along " + name + " alone");
  }
  for (const ForNode* around : edit.tree.loops_around(f)) {
    if (!ScheduleEdit::bound_to(*around, *b, IterKind::Reduce)) continue;
    return edit.fail("block " + b->name + " reduces along loop " + around->var->name + ", too");
  }
  Stmt out = modified(*f, [&](ForNode& n) {
    n.loop_kind = ForKind::ThreadBound;
    n.thread_tag = std::string(kItemTags[0]);
    n.hints.nest = LoopNest::Lanes;
  });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("reduce_lanes", {f->var->name});
  return {};
}

StepResult<> Schedule::prefetch(const LoopRV& rv, int64_t bytes) {
  ScheduleEdit edit(*this, "prefetch");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (bytes <= 0) return edit.fail("the distance is not positive");
  Stmt out = modified(*f, [&](ForNode& n) { n.hints.prefetch = bytes; });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("prefetch", {f->var->name, std::to_string(bytes)});
  return {};
}

StepResult<> Schedule::prefetch_next(const LoopRV& rv, NextOperand next, int64_t rows) {
  ScheduleEdit edit(*this, "prefetch_next");
  if ((next == NextOperand::Read) != (rows > 0)) {
    return edit.fail("a number of rows belongs to those that are read");
  }
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  if (f->loop_kind != ForKind::Serial) {
    return edit.fail("loop " + f->var->name + " is not serial any more");
  }
  Stmt out = modified(*f, [&](ForNode& n) {
    n.hints.next = next;
    n.hints.next_rows = rows;
  });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("prefetch_next", {f->var->name, std::string(to_string(next)), std::to_string(rows)});
  return {};
}

StepResult<> Schedule::pipeline(const LoopRV& rv, int64_t slots) {
  ScheduleEdit edit(*this, "pipeline");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  const std::string name = "loop " + f->var->name;
  if (slots < 2) return edit.fail("fewer than two buffers cannot take turns");
  if (f->loop_kind != ForKind::Serial) return edit.fail(name + " is not serial any more");
  if (as_int(f->min) != 0) return edit.fail(name + " starts not at 0");
  // The blocks in front that fill shared memory.
  const std::vector<const BlockNode*> blocks = edit.tree.blocks_in(f);
  size_t copies = 0;
  auto in_shared = [](const Region& r) { return r->buffer->scope == Scope::Shared; };
  while (copies < blocks.size() && std::ranges::all_of(blocks[copies]->writes, in_shared)) {
    ++copies;
  }
  if (copies == 0) return edit.fail("no block in front in " + name + " writes to shared memory");
  if (copies == blocks.size()) return edit.fail("no block in " + name + " follows its copies");
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (const Region& w : blocks[i]->writes) {
      for (size_t c = 0; c < copies; ++c) {
        if (!ScheduleEdit::touches(blocks[c]->reads, w->buffer)) continue;
        return edit.fail("block " + blocks[c]->name + " reads " + w->buffer->name + ", which " +
                         name + " writes");
      }
      if (i >= copies) continue;
      for (const BlockNode* user : edit.users(w->buffer)) {
        if (edit.tree.contains(f, user)) continue;
        return edit.fail("block " + user->name + " uses " + w->buffer->name + " outside of " +
                         name);
      }
    }
  }
  Stmt out = modified(*f, [&](ForNode& n) { n.hints.pipeline = slots; });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("pipeline", {f->var->name, std::to_string(slots)});
  return {};
}

StepResult<> Schedule::nest(const LoopRV& rv, LoopNest nest, StreamedOperand streamed) {
  ScheduleEdit edit(*this, "nest");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  Stmt out = modified(*f, [&](ForNode& n) {
    n.hints.nest = nest;
    n.hints.streamed = streamed;
  });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("nest", {f->var->name, std::string(to_string(nest)), std::string(to_string(streamed))});
  return {};
}

StepResult<> Schedule::run_backward(const LoopRV& rv) {
  ScheduleEdit edit(*this, "run_backward");
  const ForNode* f = RELAY_TRY(edit.loop(rv));
  Stmt out = modified(*f, [&](ForNode& n) { n.hints.order = LoopOrder::Backward; });
  set_body(replace_stmts(func_->body, {{f, out}}));
  record("run_backward", {f->var->name});
  return {};
}

}  // namespace relay::tir
