// Schedule steps on buffers: cache_read, cache_write, set_scope, transform_layout.
#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/block_contraction.h"
#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// Replaces a buffer in code and regions.
Block with_buffer(const BlockNode& b, const Buffer& from, const Buffer& to, bool reads,
                  bool writes) {
  struct Swap : Rewriter {
    Swap(const Buffer& from, const Buffer& to, bool reads, bool writes)
        : Rewriter(family::tir_expr | family::tir_stmt),
          from(from),
          to(to),
          reads(reads),
          writes(writes) {}
    NodeRef post(const NodeRef&, NodeRef rebuilt) override {
      if (auto* l = as<LoadNode>(rebuilt); l != nullptr && reads && l->buffer == from) {
        return modified(*l, [&](LoadNode& n) { n.buffer = to; });
      }
      if (auto* s = as<StoreNode>(rebuilt); s != nullptr && writes && s->buffer == from) {
        return modified(*s, [&](StoreNode& n) { n.buffer = to; });
      }
      return rebuilt;
    }
    Buffer from, to;
    bool reads, writes;
  };
  Swap swap(from, to, reads, writes);
  auto regions = [&](std::vector<Region>& list) {
    for (Region& r : list) {
      if (r->buffer == from) r = region(to, r->mins, r->extents);
    }
  };
  return modified(b, [&](BlockNode& n) {
    n.body = swap.apply(n.body);
    if (n.init) n.init = swap.apply(n.init);
    if (reads) regions(n.reads);
    if (writes) regions(n.writes);
    restate_contraction(n);
  });
}

// to[...] = from[...] over the whole buffer, in a block of that name; `index_at` changes the indices of `from`.
Stmt copy_nest(const std::string& name, const std::vector<Var>& loops, const Buffer& from,
               const Buffer& to,
               const std::function<void(std::vector<PrimExpr>&)>& index_at = nullptr) {
  std::vector<IterVar> iters;
  std::vector<PrimExpr> at;
  for (size_t d = 0; d < to->shape.size(); ++d) {
    iters.push_back(iter_var(var("v" + std::to_string(d)), to->shape[d]));
    at.push_back(iters.back()->var);
  }
  std::vector<PrimExpr> read = at;
  if (index_at) index_at(read);
  Block copy = make<BlockNode>([&](BlockNode& n) {
    n.name = name;
    n.iters = iters;
    for (const Var& v : loops) n.bindings.push_back(v);
    n.reads = {element_region(from, read)};
    n.writes = {element_region(to, at)};
    n.body = store(to, at, load(from, read));
  });
  Stmt out = index_at ? with_access_regions(copy) : copy;
  for (size_t d = loops.size(); d-- > 0;) out = for_(loops[d], index(0), to->shape[d], out);
  return out;
}

}  // namespace

const Node* ScheduleEdit::top_level(const LoopTree& tree, const Node* stmt) {
  // Around what is the outermost loop of all stand sequences and allocations only.
  auto is_around = [](const StmtNode* p) { return isa<SeqNode>(p) || isa<AllocateNode>(p); };
  const Node* at = stmt;
  for (const StmtNode* p = tree.parent(stmt); p != nullptr; p = tree.parent(p)) {
    if (!is_around(p)) at = p;
  }
  return at;
}

namespace {

// The element that a block reads of a buffer when one of its indices comes from memory, such as the number of a matrix: a
// cache has the block's iteration there, or one place if there is none.
struct SelectedElement {
  std::vector<PrimExpr> indices;
  size_t dim = 0;
  IterVar iteration;

  // The cache's extent there.
  PrimExpr count() const { return iteration ? iteration->extent : index(1); }
  // The index of the buffer for a place of the cache.
  PrimExpr index_at(const PrimExpr& place) const {
    if (!iteration) return indices[dim];
    return PrimExpr::unchecked(substitute(indices[dim], {{iteration->var.get(), place}}));
  }
};

// Null where no index comes from memory, and where loads differ.
std::optional<SelectedElement> selected_element(const BlockNode& b, const Buffer& from) {
  std::optional<SelectedElement> out;
  bool differ = false;
  post_order(b.body, [&](const Node& n) {
    auto* l = as<LoadNode>(&n);
    if (l == nullptr || !(l->buffer == from)) return;
    differ |= l->predicate || (out && !std::ranges::equal(out->indices, l->indices,
                                                          [](const auto& x, const auto& y) {
                                                            return structural_equal(x, y);
                                                          }));
    out = SelectedElement{l->indices, l->indices.size(), {}};
  });
  if (!out || differ) return std::nullopt;
  for (size_t d = 0; d < out->indices.size(); ++d) {
    bool loads = false;
    post_order(out->indices[d], [&](const Node& n) { loads |= isa<LoadNode>(&n); });
    if (!loads) continue;
    if (out->dim != out->indices.size()) return std::nullopt;
    out->dim = d;
  }
  if (out->dim == out->indices.size()) return std::nullopt;
  for (const IterVar& i : b.iters) {
    if (!uses_var(out->indices[out->dim], i->var.get())) continue;
    if (out->iteration) return std::nullopt;
    out->iteration = i;
  }
  return out;
}

// The block with its reads of the buffer from the cache of selected elements.
Block with_selected(const BlockNode& b, const Buffer& from, const Buffer& to,
                    const SelectedElement& selected) {
  auto cached = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
    auto* l = as<LoadNode>(rebuilt);
    if (l == nullptr || !(l->buffer == from)) return rebuilt;
    std::vector<PrimExpr> at = l->indices;
    at[selected.dim] = selected.iteration ? PrimExpr(selected.iteration->var) : index(0);
    return load(to, at);
  };
  return with_access_regions(modified(b, [&](BlockNode& n) {
    n.body = Stmt::unchecked(rewrite(n.body, cached, family::tir_expr | family::tir_stmt));
    restate_contraction(n);
  }));
}

}  // namespace

StepResult<BlockRV> Schedule::cache_read(const BlockRV& rv, const std::string& name, Scope scope) {
  ScheduleEdit edit(*this, "cache_read");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  Buffer from;
  for (const Region& r : b->reads) {
    if (r->buffer->name == name) from = r->buffer;
  }
  if (!from) return edit.fail("block " + b->name + " does not read a buffer " + name);
  if (ScheduleEdit::touches(b->writes, from))
    return edit.fail("block " + b->name + " writes " + name);
  const std::optional<SelectedElement> selected = selected_element(*b, from);
  Buffer to = modified(*from, [&](BufferNode& n) {
    n.name = fresh_name(from->name + "_cache");
    n.scope = scope;
    n.within.clear();
    if (selected) n.shape[selected->dim] = selected->count();
  });
  BlockRV out{fresh_name(from->name + "_read")};
  std::vector<Var> loops;
  for (size_t d = 0; d < from->shape.size(); ++d) loops.push_back(fresh_var("c", kIndex));
  auto select = [&](std::vector<PrimExpr>& at) {
    at[selected->dim] = selected->index_at(at[selected->dim]);
  };
  Stmt nest = selected ? copy_nest(out.name, loops, from, to, select)
                       : copy_nest(out.name, loops, from, to);
  const Node* place = ScheduleEdit::top_level(edit.tree, b);
  for (const BlockNode* w : edit.writers(from)) {
    if (edit.tree.contains(place, w)) {
      return edit.fail(name + " is written by block " + w->name + " in the same loops");
    }
  }
  Stmt here = ref(*static_cast<const StmtNode*>(place));
  const Block reading =
      selected ? with_selected(*b, from, to, *selected) : with_buffer(*b, from, to, true, false);
  Stmt reader = replace_stmts(here, {{b, reading}});
  Stmt body = replace_stmts(func_->body, {{place, seq({nest, reader})}});
  set_body(allocate(to, body));
  record("cache_read", {b->name, from->name, std::string(to_string(scope))}, {out.name});
  return out;
}

StepResult<BlockRV> Schedule::cache_write(const BlockRV& rv, Scope scope) {
  ScheduleEdit edit(*this, "cache_write");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  Buffer to = RELAY_TRY(edit.written_buffer(*b));
  if (edit.writers(to).size() != 1) {
    return edit.fail("block " + b->name + " is not the only one that writes " + to->name);
  }
  Buffer cache = modified(*to, [&](BufferNode& n) {
    n.name = fresh_name(to->name + "_cache");
    n.scope = scope;
    n.within.clear();
  });
  BlockRV out{fresh_name(to->name + "_write")};
  std::vector<Var> loops;
  for (size_t d = 0; d < to->shape.size(); ++d) loops.push_back(fresh_var("c", kIndex));
  const Node* place = ScheduleEdit::top_level(edit.tree, b);
  for (const BlockNode* c : edit.consumers(*b)) {
    if (edit.tree.contains(place, c)) {
      return edit.fail("consumer " + c->name + " stands in the same loops as block " + b->name);
    }
  }
  Stmt here = ref(*static_cast<const StmtNode*>(place));
  Stmt writer = replace_stmts(here, {{b, with_buffer(*b, to, cache, true, true)}});
  Stmt nest = copy_nest(out.name, loops, cache, to);
  Stmt body = replace_stmts(func_->body, {{place, seq({writer, nest})}});
  set_body(allocate(cache, body));
  record("cache_write", {b->name, std::string(to_string(scope))}, {out.name});
  return out;
}

StepResult<> Schedule::set_scope(const BlockRV& rv, Scope scope) {
  ScheduleEdit edit(*this, "set_scope");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  Buffer old = RELAY_TRY(edit.written_buffer(*b));
  if (is_output(old)) return edit.fail(old->name + " is a parameter of the kernel");
  Buffer fresh = modified(*old, [&](BufferNode& n) { n.scope = scope; });
  set_body(Stmt::unchecked(substitute(func_->body, {{old.get(), fresh}})));
  record("set_scope", {b->name, std::string(to_string(scope))});
  return {};
}

StepResult<> Schedule::transform_layout(const BlockRV& rv, const std::vector<LayoutAxis>& layout) {
  ScheduleEdit edit(*this, "transform_layout");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  Buffer old = RELAY_TRY(edit.written_buffer(*b));
  if (is_output(old)) return edit.fail(old->name + " is a parameter of the kernel");
  std::vector<int64_t> covered(old->shape.size(), 0);
  std::vector<PrimExpr> shape;
  std::string text = "[";
  for (const LayoutAxis& axis : layout) {
    bool fits = axis.dim >= 0 && axis.dim < static_cast<int64_t>(old->shape.size()) &&
                axis.divide >= 1 && axis.modulo >= 0;
    if (!fits) return edit.fail("an axis of the layout is out of range");
    const PrimExpr& size = old->shape[static_cast<size_t>(axis.dim)];
    if (std::optional<int64_t> extent = as_int(size)) {
      int64_t count = (*extent + axis.divide - 1) / axis.divide;
      if (axis.modulo > 0) count = std::min(count, axis.modulo);
      shape.push_back(index(count));
    } else {
      shape.push_back(axis.modulo > 0   ? PrimExpr(index(axis.modulo))
                      : axis.divide > 1 ? Analyzer().simplify(floor_div(size + (axis.divide - 1),
                                                                        index(axis.divide)))
                                        : size);
    }
    text += (text.size() > 1 ? ", " : "") + std::to_string(axis.dim) + ", " +
            std::to_string(axis.divide) + ", " + std::to_string(axis.modulo);
  }
  // Each dimension must be resolved in full: its axes, from fine to coarse, leave no gap. An open one may be of any length.
  for (size_t d = 0; d < old->shape.size(); ++d) {
    const int64_t extent = as_int(old->shape[d]).value_or(std::numeric_limits<int64_t>::max());
    int64_t reached = 1;
    for (bool grew = true; grew;) {
      grew = false;
      for (const LayoutAxis& axis : layout) {
        if (axis.dim != static_cast<int64_t>(d) || axis.divide > reached) continue;
        int64_t upto = axis.modulo == 0 ? extent : axis.divide * axis.modulo;
        if (upto > reached) {
          reached = upto;
          grew = true;
        }
      }
    }
    if (extent > reached) {
      return edit.fail("two elements of dimension " + std::to_string(d) + " of " + old->name +
                       " would share a place");
    }
  }
  Buffer fresh = modified(*old, [&](BufferNode& n) { n.shape = shape; });
  auto at = [&](const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> out;
    for (const LayoutAxis& axis : layout) {
      PrimExpr e = indices[static_cast<size_t>(axis.dim)];
      if (axis.divide > 1) e = floor_div(e, index(axis.divide));
      if (axis.modulo > 0) e = floor_mod(e, index(axis.modulo));
      out.push_back(e);
    }
    return out;
  };
  auto code = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
    if (auto* l = as<LoadNode>(rebuilt); l != nullptr && l->buffer == old) {
      return load(fresh, at(l->indices), l->predicate);
    }
    if (auto* s = as<StoreNode>(rebuilt); s != nullptr && s->buffer == old) {
      return store(fresh, at(s->indices), s->value, s->predicate);
    }
    return rebuilt;
  };
  std::unordered_map<const Node*, Stmt> edits;
  for (const BlockNode* user : edit.users(old)) {
    Block out = modified(*user, [&](BlockNode& n) {
      const uint32_t where = family::tir_expr | family::tir_stmt;
      n.body = Stmt::unchecked(rewrite(n.body, code, where));
      if (n.init) n.init = Stmt::unchecked(rewrite(n.init, code, where));
      for (std::vector<Region>* list : {&n.reads, &n.writes}) {
        for (Region& r : *list) {
          if (!(r->buffer == old)) continue;
          r = region(fresh, std::vector<PrimExpr>(shape.size(), index(0)), shape);
        }
      }
    });
    edits[user] = with_access_regions(out);
  }
  Stmt body = replace_stmts(func_->body, edits);
  LoopTree tree(body);
  const AllocateNode* a = tree.allocation_of(old);
  set_body(replace_stmts(body, {{a, allocate(fresh, a->body)}}));
  record("transform_layout", {b->name, text + "]"});
  return {};
}

}  // namespace relay::tir
