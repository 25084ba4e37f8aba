#include "lower/rules/unit_axes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "node/walk.h"
#include "tir/block_contraction.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::BlockNode;
using tir::Buffer;
using tir::ForNode;
using tir::IterKind;
using tir::IterVar;
using tir::PrimExpr;

namespace {

bool is_unit(const IterVar& i) { return tir::as_int(i->extent) == 1 && tir::as_int(i->min) == 0; }

// Iterations of size 1 that are left out, by their variables, with the loops that bind nothing else.
class UnitIterations {
 public:
  explicit UnitIterations(const tir::PrimFunc& f) : f_(f), tree_(f->body) {}

  const tir::LoopTree& tree() const { return tree_; }
  void leave_out(const IterVar& i) { variables_.insert(i->var.get()); }
  bool empty() const { return variables_.empty(); }

  tir::PrimFunc rebuilt() {
    std::unordered_set<const Node*> kept;
    for (const BlockNode* b : tree_.blocks()) {
      for (size_t i = 0; i < b->iters.size(); ++i) {
        const ForNode* loop = loop_of(b->bindings[i]);
        if (loop == nullptr) continue;
        (is_left_out(b->iters[i]) ? loops_ : kept).insert(loop);
      }
    }
    std::erase_if(loops_, [&](const Node* l) { return kept.contains(l); });
    for (const Node* l : loops_) variables_.insert(static_cast<const ForNode*>(l)->var.get());
    NodeRef body = rewrite(
        f_->body,
        [&](const NodeRef& before, NodeRef after) { return rewritten(before, std::move(after)); },
        family::tir);
    return tir::modified(
        *f_.get(), [&](tir::PrimFuncNode& n) { n.body = tir::Stmt::unchecked(std::move(body)); });
  }

 private:
  bool is_left_out(const IterVar& i) const { return variables_.contains(i->var.get()); }

  const ForNode* loop_of(const PrimExpr& binding) const {
    auto* v = as<tir::VarNode>(binding);
    const ForNode* loop = v == nullptr ? nullptr : tree_.find_loop(tir::Var(v));
    const bool once = loop != nullptr && loop->loop_kind == tir::ForKind::Serial &&
                      tir::as_int(loop->extent) == 1 && tir::as_int(loop->min) == 0;
    return once ? loop : nullptr;
  }

  NodeRef rewritten(const NodeRef& before, NodeRef after) const {
    if (variables_.contains(before.get())) return tir::index(0);
    if (loops_.contains(before.get())) return static_cast<const ForNode&>(*after.get()).body;
    if (auto* sum = before == after ? nullptr : as<tir::BinaryNode>(after)) {
      return tir::binary(sum->op, sum->a, sum->b);
    }
    auto* b = as<BlockNode>(before);
    auto unit = [&](const IterVar& i) { return is_left_out(i); };
    if (b == nullptr || std::none_of(b->iters.begin(), b->iters.end(), unit)) return after;
    auto& now = static_cast<const BlockNode&>(*after.get());
    return tir::modified(now, [&](BlockNode& n) {
      n.iters.clear();
      n.bindings.clear();
      for (size_t i = 0; i < b->iters.size(); ++i) {
        if (unit(b->iters[i])) continue;
        n.iters.push_back(b->iters[i]);
        n.bindings.push_back(now.bindings[i]);
      }
      if (b->contraction)
        n.contraction = tir::state_contraction(b->contraction->dims, n.iters, n.body);
    });
  }

  const tir::PrimFunc& f_;
  tir::LoopTree tree_;
  std::unordered_set<const Node*> variables_, loops_;
};

// Dimensions of size 1 that accesses index by 0 or by an iteration of size 1 alone.
class UnitDimensions {
 public:
  explicit UnitDimensions(const tir::PrimFunc& f) : f_(f) {
    const tir::LoopTree tree(f->body);
    for (const BlockNode* b : tree.blocks()) {
      for (const IterVar& i : b->iters) {
        if (is_unit(i)) units_.insert(i->var.get());
      }
    }
    post_order(
        f->body,
        [&](const Node& n) {
          if (auto* l = as<tir::LoadNode>(&n)) look(l->buffer, l->indices);
          if (auto* s = as<tir::StoreNode>(&n)) look(s->buffer, s->indices);
          if (auto* r = as<tir::RegionNode>(&n)) look(r->buffer, r->mins);
        },
        family::tir);
  }

  tir::PrimFunc rebuilt() {
    for (auto& [node, dims] : dims_) {
      // An iteration that is left indexes what its block writes.
      auto iterated = iterated_.find(node);
      const size_t kept = iterated == iterated_.end() ? 0 : iterated->second;
      if (std::ranges::all_of(dims, std::identity{}) && !dims.empty()) dims[kept] = false;
      if (std::ranges::none_of(dims, std::identity{})) continue;
      auto& b = *static_cast<const tir::BufferNode*>(node);
      buffers_[node] = tir::modified(
          b, [&, &dims = dims](tir::BufferNode& n) { n.shape = without(dims, n.shape); });
    }
    if (buffers_.empty()) return f_;
    NodeRef body = rewrite(
        f_->body,
        [&](const NodeRef& before, NodeRef after) { return rewritten(before, std::move(after)); },
        family::tir);
    return tir::modified(*f_.get(), [&](tir::PrimFuncNode& n) {
      n.body = tir::Stmt::unchecked(std::move(body));
      for (Buffer& p : n.params) {
        if (auto b = buffers_.find(p.get()); b != buffers_.end()) p = b->second;
      }
    });
  }

 private:
  // By dimension, whether it is left out.
  using Dimensions = std::vector<bool>;

  static std::vector<PrimExpr> without(const Dimensions& dims, const std::vector<PrimExpr>& all) {
    std::vector<PrimExpr> out;
    for (size_t d = 0; d < all.size(); ++d) {
      if (!dims[d]) out.push_back(all[d]);
    }
    return out;
  }

  void look(const Buffer& buffer, const std::vector<PrimExpr>& indices) {
    auto [at, is_new] = dims_.try_emplace(buffer.get());
    Dimensions& dims = at->second;
    if (is_new) {
      for (const PrimExpr& extent : buffer->shape) {
        dims.push_back(buffer->within.empty() && tir::as_int(extent) == 1);
      }
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      const bool fits = dims[d] && indices.size() == dims.size();
      const bool iterates = fits && units_.contains(indices[d].get());
      if (iterates) iterated_[buffer.get()] = d;
      dims[d] = fits && (iterates || tir::as_int(indices[d]) == 0);
    }
  }

  NodeRef rewritten(const NodeRef& before, NodeRef after) const {
    if (auto b = buffers_.find(before.get()); b != buffers_.end()) return b->second;
    if (auto* l = as<tir::LoadNode>(before); l != nullptr && buffers_.contains(l->buffer.get())) {
      return tir::modified(static_cast<const tir::LoadNode&>(*after.get()), [&](tir::LoadNode& n) {
        n.indices = without(dims_.at(l->buffer.get()), n.indices);
      });
    }
    if (auto* s = as<tir::StoreNode>(before); s != nullptr && buffers_.contains(s->buffer.get())) {
      return tir::modified(
          static_cast<const tir::StoreNode&>(*after.get()),
          [&](tir::StoreNode& n) { n.indices = without(dims_.at(s->buffer.get()), n.indices); });
    }
    if (auto* r = as<tir::RegionNode>(before); r != nullptr && buffers_.contains(r->buffer.get())) {
      return tir::modified(static_cast<const tir::RegionNode&>(*after.get()),
                           [&](tir::RegionNode& n) {
                             const Dimensions& dims = dims_.at(r->buffer.get());
                             n.mins = without(dims, n.mins);
                             n.extents = without(dims, n.extents);
                           });
    }
    return after;
  }

  const tir::PrimFunc& f_;
  std::unordered_set<const Node*> units_;  // iterations of size 1
  std::unordered_map<const Node*, Dimensions> dims_;
  std::unordered_map<const Node*, size_t> iterated_;  // a dimension that such an iteration indexes
  std::unordered_map<const Node*, Buffer> buffers_;
};

// Whether some block has its last data-parallel iteration over one element, or is the only one, with an axis of size 1 and
// reads that do not end with its last axis.
bool hides_axes(const std::vector<const BlockNode*>& blocks) {
  return std::ranges::any_of(blocks, [&](const BlockNode* b) {
    const IterVar* last = nullptr;
    bool unit = false;
    for (const IterVar& i : b->iters) {
      if (i->kind != IterKind::DataParallel) continue;
      last = &i;
      unit |= is_unit(i);
    }
    if (!unit) return false;
    const bool moves =
        blocks.size() == 1 && !b->init && std::ranges::any_of(b->reads, [&](const tir::Region& r) {
          return !r->mins.empty() && r->mins.back().get() != (*last)->var.get();
        });
    return is_unit(*last) || moves;
  });
}

}  // namespace

tir::PrimFunc without_unit_windows(const tir::PrimFunc& f) {
  UnitIterations units(f);
  for (const BlockNode* b : units.tree().blocks()) {
    for (const IterVar& i : b->iters) {
      const bool window = role_of(*b, i->var) == ContractionRole::Window &&
                          i->kind == IterKind::Reduce && is_unit(i);
      if (window) units.leave_out(i);
    }
  }
  return units.empty() ? f : units.rebuilt();
}

tir::PrimFunc without_unit_axes(const tir::PrimFunc& f) {
  UnitIterations units(f);
  const std::vector<const BlockNode*>& blocks = units.tree().blocks();
  // Rules find the parts of a computation that has one of its own by their iterations.
  auto is_plain = [](const BlockNode* b) {
    return !b->contraction && !b->predicate && b->role.empty();
  };
  if (!std::ranges::all_of(blocks, is_plain) || !hides_axes(blocks)) return f;
  for (const BlockNode* b : blocks) {
    // What sums needs no other iteration.
    bool keeps = std::ranges::all_of(b->iters, is_unit);
    for (const IterVar& i : b->iters) {
      if (i->kind != IterKind::DataParallel || !is_unit(i)) continue;
      if (!keeps) units.leave_out(i);
      keeps = false;
    }
  }
  return units.empty() ? f : UnitDimensions(units.rebuilt()).rebuilt();
}

}  // namespace relay
