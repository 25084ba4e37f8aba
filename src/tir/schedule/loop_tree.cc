#include "tir/schedule/loop_tree.h"

#include <algorithm>

#include "node/structural.h"
#include "tir/block_contraction.h"
#include "tir/passes/statements.h"
#include "tir/while.h"

namespace relay::tir {

namespace {

// The statement with that number directly inside, or null behind the last; those of a block are not seen.
const StmtNode* child_of(const StmtNode& stmt, size_t number) {
  auto only = [number](const Stmt& body) { return number == 0 ? body.get() : nullptr; };
  switch (stmt.kind()) {
    case StmtKind::For:
      return only(static_cast<const ForNode&>(stmt).body);
    case StmtKind::Seq: {
      const auto& stmts = static_cast<const SeqNode&>(stmt).stmts;
      return number < stmts.size() ? stmts[number].get() : nullptr;
    }
    case StmtKind::If: {
      const auto& s = static_cast<const IfNode&>(stmt);
      return number == 1 ? s.else_body.get() : only(s.then_body);
    }
    case StmtKind::While:
      return only(static_cast<const WhileNode&>(stmt).body);
    case StmtKind::Allocate:
      return only(static_cast<const AllocateNode&>(stmt).body);
    case StmtKind::LetStmt:
      return only(static_cast<const LetStmtNode&>(stmt).body);
    default:
      return nullptr;
  }
}

}  // namespace

LoopTree::LoopTree(const Stmt& root) : root_(root) {
  struct Frame {
    const StmtNode* stmt;
    size_t next = 0;
  };
  std::vector<Frame> stack;
  size_t counter = 0;
  auto enter = [&](const StmtNode* stmt, const StmtNode* parent) {
    auto [place, fresh] = places_.emplace(stmt);
    RELAY_CHECK(fresh, "a statement stands in two places");
    place = {parent, counter++, 0};
    if (auto* b = as<BlockNode>(stmt)) blocks_.push_back(b);
    if (auto* f = as<ForNode>(stmt)) loops_.push_back(f);
    if (auto* a = as<AllocateNode>(stmt)) allocations_.push_back(a);
    stack.push_back({stmt});
  };
  enter(root_.get(), nullptr);
  while (!stack.empty()) {
    Frame& top = stack.back();
    if (const StmtNode* child = child_of(*top.stmt, top.next++)) {
      enter(child, top.stmt);
    } else {
      places_[top.stmt].end = counter;
      stack.pop_back();
    }
  }
}

const BlockNode* LoopTree::find_block(std::string_view name) const {
  for (const BlockNode* b : blocks_) {
    if (b->name == name) return b;
  }
  return nullptr;
}

const ForNode* LoopTree::find_loop(const Var& var) const {
  for (const ForNode* f : loops_) {
    if (f->var == var) return f;
  }
  return nullptr;
}

const StmtNode* LoopTree::parent(const Node* stmt) const {
  const Place* place = places_.find(stmt);
  return place == nullptr ? nullptr : place->parent;
}

std::vector<const ForNode*> LoopTree::loops_around(const Node* stmt) const {
  std::vector<const ForNode*> out;
  for (const StmtNode* p = parent(stmt); p != nullptr; p = parent(p)) {
    if (auto* f = as<ForNode>(p)) out.push_back(f);
  }
  std::reverse(out.begin(), out.end());
  return out;
}

bool LoopTree::contains(const Node* outer, const Node* inner) const {
  const Place *a = places_.find(outer), *b = places_.find(inner);
  return a != nullptr && b != nullptr && a->begin <= b->begin && b->end <= a->end;
}

std::vector<const BlockNode*> LoopTree::blocks_in(const Node* stmt) const {
  std::vector<const BlockNode*> out;
  for (const BlockNode* b : blocks_) {
    if (contains(stmt, b)) out.push_back(b);
  }
  return out;
}

std::vector<const ForNode*> LoopTree::loops_in(const Node* stmt) const {
  std::vector<const ForNode*> out;
  for (const ForNode* f : loops_) {
    if (contains(stmt, f)) out.push_back(f);
  }
  return out;
}

const StmtNode* LoopTree::common_ancestor(const std::vector<const Node*>& stmts) const {
  RELAY_CHECK(!stmts.empty());
  const Node* at = stmts[0];
  while (at != nullptr &&
         !std::all_of(stmts.begin(), stmts.end(), [&](const Node* s) { return contains(at, s); })) {
    at = parent(at);
  }
  return static_cast<const StmtNode*>(at);
}

const AllocateNode* LoopTree::allocation_of(const Buffer& buffer) const {
  for (const AllocateNode* a : allocations_) {
    if (a->buffer == buffer) return a;
  }
  return nullptr;
}

namespace {

class StmtReplacer : public Rewriter {
 public:
  StmtReplacer() : Rewriter(family::tir_stmt) {}
  // The inside of a block is not part of the tree.
  NodeRef pre(const NodeRef& node) override { return isa<BlockNode>(node) ? node : NodeRef(); }
  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    return rebuilt == original ? rebuilt : without_empty(rebuilt);
  }
};

}  // namespace

Stmt replace_stmts(const Stmt& root, const std::unordered_map<const Node*, Stmt>& replacements) {
  StmtReplacer replacer;
  for (const auto& [node, stmt] : replacements) {
    replacer.set(NodeRef(node), stmt ? stmt : Stmt(make<SeqNode>()));
  }
  return replacer.apply(root);
}

Stmt with_siblings(Stmt before, Stmt stmt, Stmt after) {
  std::vector<Stmt> list;
  for (Stmt& s : std::array<Stmt, 3>{std::move(before), std::move(stmt), std::move(after)}) {
    if (s) list.push_back(std::move(s));
  }
  return seq(std::move(list));
}

void bind_loops(Analyzer& analyzer, const std::vector<const ForNode*>& loops) {
  for (const ForNode* f : loops) analyzer.bind(f->var, f->min, f->extent);
}

PrimExpr conjoin(PrimExpr a, PrimExpr b) {
  if (!a) return b;
  if (!b) return a;
  return logical_and(std::move(a), std::move(b));
}

std::vector<PrimExpr> conjuncts(const PrimExpr& e) {
  std::vector<PrimExpr> out;
  if (!e) return out;
  std::vector<PrimExpr> work{e};
  while (!work.empty()) {
    PrimExpr at = work.back();
    work.pop_back();
    auto* b = as<BinaryNode>(at);
    if (b != nullptr && b->op == BinaryOp::And) {
      work.push_back(b->b);
      work.push_back(b->a);
    } else {
      out.push_back(at);
    }
  }
  return out;
}

bool uses_var(const PrimExpr& e, const Node* var) { return uses_any_var(e, {var}); }

bool uses_any_var(const PrimExpr& e, const std::vector<const Node*>& vars) {
  bool found = false;
  post_order(
      e, [&](const Node& n) { found |= std::find(vars.begin(), vars.end(), &n) != vars.end(); });
  return found;
}

Stmt simplify_blocks(const LoopTree& tree, const std::function<bool(const BlockNode&)>& which) {
  std::unordered_map<const Node*, Stmt> edits;
  for (const BlockNode* b : tree.blocks()) {
    if (!which(*b)) continue;
    Analyzer analyzer;
    bind_loops(analyzer, tree.loops_around(b));
    bool changed = false;
    bool never = false;
    std::vector<PrimExpr> bindings;
    for (const PrimExpr& e : b->bindings) {
      bindings.push_back(analyzer.simplify(e));
      changed |= !(bindings.back() == e);
    }
    PrimExpr predicate;
    for (const PrimExpr& e : conjuncts(b->predicate)) {
      PrimExpr simple = analyzer.simplify(e);
      changed |= !(simple == e);
      if (std::optional<int64_t> value = as_int(simple)) {
        changed = true;
        never |= *value == 0;
      } else {
        predicate = conjoin(predicate, simple);
      }
    }
    if (never) {
      edits[b] = nullptr;
    } else if (changed) {
      edits[b] = modified(*b, [&](BlockNode& n) {
        n.bindings = bindings;
        n.predicate = predicate;
      });
    }
  }
  return edits.empty() ? tree.root() : replace_stmts(tree.root(), edits);
}

const StoreNode* single_store(const BlockNode& block) { return as<StoreNode>(block.body); }

VarMap bindings_of(const BlockNode& block) {
  VarMap map;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    map[block.iters[i]->var.get()] = block.bindings[i];
  }
  return map;
}

Block with_access_regions(const Block& block) {
  bool has_loops = false;
  auto look = [&](const Node& n) { has_loops |= isa<ForNode>(&n) || isa<AllocateNode>(&n); };
  post_order(block->body, look, family::tir_stmt);
  if (block->init) post_order(block->init, look, family::tir_stmt);
  return has_loops ? block : with_regions_of_body(block);
}

Block with_regions_of_body(const Block& block) {
  std::vector<const LoadNode*> loads;
  std::vector<const StoreNode*> stores;
  std::vector<const Node*> local_vars;
  std::vector<const Node*> own;
  auto look = [&](const Node& n) {
    if (auto* f = as<ForNode>(&n)) local_vars.push_back(f->var.get());
    if (auto* a = as<AllocateNode>(&n)) own.push_back(a->buffer.get());
    if (auto* l = as<LoadNode>(&n)) loads.push_back(l);
    if (auto* s = as<StoreNode>(&n)) stores.push_back(s);
    if (auto* l = as<LetNode>(&n)) local_vars.push_back(l->var.get());
    if (auto* l = as<LetStmtNode>(&n)) local_vars.push_back(l->var.get());
  };
  const uint32_t code = family::tir_expr | family::tir_stmt;
  post_order(block->body, look, code);
  if (block->init) post_order(block->init, look, code);

  auto region_of = [&](const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    std::vector<PrimExpr> mins, extents;
    for (size_t d = 0; d < indices.size(); ++d) {
      bool known = !uses_any_var(indices[d], local_vars);
      post_order(indices[d], [&](const Node& n) { known &= !isa<LoadNode>(&n); });
      mins.push_back(known ? indices[d] : index(0));
      extents.push_back(known ? index(1) : buffer->shape[d]);
    }
    return region(buffer, std::move(mins), std::move(extents));
  };
  auto add = [&](std::vector<Region>& list, Region r) {
    if (std::find(own.begin(), own.end(), r->buffer.get()) != own.end()) return;
    for (const Region& have : list) {
      if (structural_equal(have, r)) return;
    }
    list.push_back(std::move(r));
  };
  std::vector<Region> writes, reads;
  for (const StoreNode* s : stores) add(writes, region_of(s->buffer, s->indices));
  for (const LoadNode* l : loads) {
    // A reduction's reads of its own result are no dependence on another block.
    bool own = block->init && std::any_of(writes.begin(), writes.end(),
                                          [&](const Region& w) { return w->buffer == l->buffer; });
    if (!own) add(reads, region_of(l->buffer, l->indices));
  }
  return modified(*block, [&](BlockNode& n) {
    n.reads = reads;
    n.writes = writes;
    restate_contraction(n);
  });
}

Box relaxed_box(const Buffer& buffer, const std::vector<Box>& regions,
                const std::vector<const ForNode*>& outer,
                const std::vector<const ForNode*>& inner) {
  Analyzer analyzer;
  bind_loops(analyzer, outer);
  bind_loops(analyzer, inner);
  VarMap at_start;
  for (const ForNode* f : inner) at_start[f->var.get()] = f->min;
  Box out;
  size_t rank = buffer->shape.size();
  for (size_t d = 0; d < rank; ++d) {
    PrimExpr base;    // least index of the first region when all inner loops are at their start
    int64_t low = 0;  // least and greatest index relative to base
    int64_t high = 0;
    bool known = true;
    for (const Box& r : regions) {
      PrimExpr start = analyzer.simplify(replace_vars(r.mins[d], at_start));
      if (!base) base = start;
      Bounds first = analyzer.bounds(analyzer.simplify(r.mins[d] - base));
      Bounds size = analyzer.bounds(analyzer.simplify(r.extents[d]));
      if (!first.has_min() || !first.has_max() || !size.has_max()) {
        known = false;
        break;
      }
      bool fresh = &r == &regions.front();
      low = fresh ? first.min : std::min(low, first.min);
      high = fresh ? first.max + size.max - 1 : std::max(high, first.max + size.max - 1);
    }
    std::optional<int64_t> whole = as_int(buffer->shape[d]);
    int64_t count = high - low + 1;
    if (known && (!whole || count < *whole)) {
      out.mins.push_back(analyzer.simplify(base + low));
      out.extents.push_back(index(count));
    } else {
      out.mins.push_back(index(0));
      out.extents.push_back(buffer->shape[d]);
    }
  }
  return out;
}

}  // namespace relay::tir
