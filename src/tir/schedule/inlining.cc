// Schedule steps compute_inline and reverse_compute_inline.
#include <algorithm>
#include <unordered_map>

#include "node/structural.h"
#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// The iteration variable that an index is, alone; or null.
const VarNode* plain_iter(const PrimExpr& index, const BlockNode& block) {
  for (const IterVar& v : block.iters) {
    if (index == v->var) return v->var.get();
  }
  return nullptr;
}

// Replaces loads of a buffer by an expression of their indices. Loads of one element become one
// expression: with a copy for each, a chain of operators that use a value twice would double with
// every one of them.
class LoadReplacer : public Rewriter {
 public:
  LoadReplacer(Buffer buffer, std::function<PrimExpr(const std::vector<PrimExpr>&)> value)
      : Rewriter(family::tir_expr | family::tir_stmt),
        buffer_(std::move(buffer)),
        value_(std::move(value)) {}
  NodeRef post(const NodeRef&, NodeRef rebuilt) override {
    auto* l = as<LoadNode>(rebuilt);
    if (l == nullptr || !(l->buffer == buffer_)) return rebuilt;
    uint64_t hash = 0;
    for (const PrimExpr& i : l->indices) hash = hash_combine(hash, structural_hash(i));
    auto [first, last] = made_.equal_range(hash);
    auto same = std::find_if(first, last, [&](const auto& entry) {
      return std::ranges::equal(entry.second.first, l->indices, [](const auto& a, const auto& b) {
        return a == b || structural_equal(a, b);
      });
    });
    if (same == last) same = made_.emplace(hash, std::pair(l->indices, value_(l->indices)));
    return same->second.second;
  }

 private:
  Buffer buffer_;
  std::function<PrimExpr(const std::vector<PrimExpr>&)> value_;
  // The indices of loads, by their hash, and what the loads became.
  std::unordered_multimap<uint64_t, std::pair<std::vector<PrimExpr>, PrimExpr>> made_;
};

// Why the block does not store, once for each element, a value at plain iteration variables (or
// at 0 in dimensions of one element).
std::optional<std::string> why_not_element_wise(const BlockNode& b) {
  const StoreNode* s = single_store(b);
  if (s == nullptr || s->predicate) return "block " + b.name + " is not a single store";
  std::vector<const VarNode*> seen;
  for (size_t d = 0; d < s->indices.size(); ++d) {
    const VarNode* v = plain_iter(s->indices[d], b);
    if (v != nullptr && std::find(seen.begin(), seen.end(), v) == seen.end()) {
      seen.push_back(v);
    } else if (!(as_int(s->indices[d]) == 0 && as_int(s->buffer->shape[d]) == 1)) {
      return "block " + b.name + " does not store at its plain iteration variables";
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> Schedule::why_not_inline(const BlockRV& rv) const {
  ScheduleEdit edit(*this, "compute_inline");
  const BlockNode* b = edit.tree.find_block(rv.name);
  if (b == nullptr) return "there is no block " + rv.name;
  if (b->writes.size() != 1) return "block " + b->name + " does not write exactly one buffer";
  const Buffer& buffer = b->writes[0]->buffer;
  if (is_output(buffer)) return "block " + b->name + " writes an output";
  if (ScheduleEdit::is_reduction(*b) || b->init) return "block " + b->name + " is a reduction";
  if (edit.writers(buffer).size() != 1) {
    return "block " + b->name + " writes only a part of " + buffer->name;
  }
  if (auto why = why_not_element_wise(*b)) return why;
  if (ScheduleEdit::touches(b->reads, buffer)) return "block " + b->name + " reads its result";
  if (edit.consumers(*b).empty()) return "nothing reads the result of block " + b->name;
  for (const BlockNode* c : edit.consumers(*b)) {
    for (const Region& r : b->reads) {
      const AllocateNode* a = edit.tree.allocation_of(r->buffer);
      if (a == nullptr || edit.tree.contains(a, c)) continue;
      return "block " + b->name + " reads " + r->buffer->name +
             ", which does not exist where its consumer " + c->name + " is";
    }
  }
  return std::nullopt;
}

StepResult<> Schedule::compute_inline(const BlockRV& rv) {
  ScheduleEdit edit(*this, "compute_inline");
  if (auto why = why_not_inline(rv)) return edit.fail(*why);
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const Buffer buffer = b->writes[0]->buffer;
  const StoreNode* s = single_store(*b);
  std::unordered_map<const Node*, Stmt> edits{{b, nullptr}};
  for (const BlockNode* c : edit.consumers(*b)) {
    LoadReplacer replacer(buffer, [&](const std::vector<PrimExpr>& indices) {
      VarMap map;
      for (size_t d = 0; d < indices.size(); ++d) {
        if (const VarNode* v = plain_iter(s->indices[d], *b)) map[v] = indices[d];
      }
      for (const IterVar& v : b->iters) {
        if (!map.contains(v->var.get())) map[v->var.get()] = v->min;  // a dimension of one
      }
      return replace_vars(s->value, map);
    });
    edits[c] = with_access_regions(modified(*c, [&](BlockNode& n) {
      n.body = replacer.apply(n.body);
      if (n.init) n.init = replacer.apply(n.init);
      // For a body with loops, whose regions are not computed anew.
      std::erase_if(n.reads, [&](const Region& r) { return r->buffer == buffer; });
      for (const Region& r : b->reads) {
        std::vector<PrimExpr> start(r->buffer->shape.size(), index(0));
        n.reads.push_back(region(r->buffer, start, r->buffer->shape));
      }
    }));
  }
  const AllocateNode* a = edit.tree.allocation_of(buffer);
  Stmt body = replace_stmts(func_->body, edits);
  if (a != nullptr) {
    LoopTree tree(body);
    if (const AllocateNode* left = tree.allocation_of(buffer)) {
      body = replace_stmts(body, {{left, left->body}});
    }
  }
  set_body(body);
  record("compute_inline", {b->name});
  return {};
}

StepResult<> Schedule::reverse_compute_inline(const BlockRV& rv) {
  ScheduleEdit edit(*this, "reverse_compute_inline");
  const BlockNode* e = RELAY_TRY(edit.block(rv));
  if (ScheduleEdit::is_reduction(*e) || e->init)
    return edit.fail("block " + e->name + " is a reduction");
  std::vector<const BlockNode*> producers = edit.producers(*e);
  if (producers.size() != 1) {
    return edit.fail("block " + e->name + " has not exactly one producer inside the kernel");
  }
  const BlockNode* p = producers[0];
  if (ScheduleEdit::is_reduction(*p) || p->init) {
    return edit.fail(
        "producer " + p->name + " is a reduction, whose result is ready only at its end",
        "use cache_write on the producer and inline into the copy");
  }
  Buffer buffer = RELAY_TRY(edit.written_buffer(*p));
  if (is_output(buffer)) return edit.fail("producer " + p->name + " writes an output");
  if (edit.consumers(*p).size() != 1)
    return edit.fail("producer " + p->name + " has other consumers");
  if (edit.writers(buffer).size() != 1) {
    return edit.fail("producer " + p->name + " writes only a part of " + buffer->name);
  }
  if (auto why = why_not_element_wise(*p)) return edit.fail(*why);
  const StoreNode* ps = single_store(*p);
  const StoreNode* es = single_store(*e);
  if (es == nullptr || es->predicate)
    return edit.fail("block " + e->name + " is not a single store");
  if (e->predicate) return edit.fail("block " + e->name + " is guarded by a condition");
  // All reads of the buffer must be at one place, a permutation of the consumer's iterations.
  std::vector<const LoadNode*> loads;
  post_order(es->value, [&](const Node& n) {
    auto* l = as<LoadNode>(&n);
    if (l != nullptr && l->buffer == buffer) loads.push_back(l);
  });
  VarMap map;
  if (loads.empty()) return edit.fail("block " + e->name + " does not read " + buffer->name);
  for (const LoadNode* l : loads) {
    for (size_t d = 0; d < l->indices.size(); ++d) {
      const VarNode* mine = plain_iter(l->indices[d], *e);
      bool same = mine == plain_iter(loads[0]->indices[d], *e);
      if (mine != nullptr && same) {
        if (l == loads[0] && map.contains(mine)) {
          return edit.fail("block " + e->name + " reads a diagonal of " + buffer->name);
        }
        map[mine] = ps->indices[d];
      } else if (!same || !(as_int(l->indices[d]) == 0 && as_int(buffer->shape[d]) == 1)) {
        return edit.fail("block " + e->name + " does not read " + buffer->name +
                         " at its own iteration variables");
      }
    }
  }
  for (const IterVar& v : e->iters) {
    if (map.contains(v->var.get())) continue;
    if (as_int(v->extent) != 1) {
      return edit.fail("iteration " + v->var->name + " of block " + e->name + " is not one of " +
                       buffer->name);
    }
    map[v->var.get()] = v->min;
  }
  // A dimension that the consumer's domain covers only partly would be stored out of bounds.
  for (size_t d = 0; d < loads[0]->indices.size(); ++d) {
    for (const IterVar& v : e->iters) {
      if (!(loads[0]->indices[d] == v->var)) continue;
      auto have = as_int(v->extent), want = as_int(buffer->shape[d]);
      if (!(v->extent == buffer->shape[d]) && !(have && want && *have == *want)) {
        return edit.fail("block " + e->name + " reads only a part of " + buffer->name);
      }
    }
  }
  LoadReplacer replacer(buffer, [&](const std::vector<PrimExpr>&) { return ps->value; });
  Stmt merged = replacer.apply(replace_vars(Stmt(ref(*es)), map));
  Block fused = with_access_regions(modified(*p, [&](BlockNode& n) { n.body = merged; }));
  Stmt body = replace_stmts(func_->body, {{p, fused}, {e, nullptr}});
  LoopTree tree(body);
  if (const AllocateNode* left = tree.allocation_of(buffer)) {
    body = replace_stmts(body, {{left, left->body}});
  }
  set_body(ScheduleEdit::reach_moved(body, *fused));
  record("reverse_compute_inline", {e->name});
  return {};
}

}  // namespace relay::tir
