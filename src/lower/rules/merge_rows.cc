#include "lower/rules/merge_rows.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "lower/rules/unit_axes.h"
#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
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

// An inner axis of so many rows fills tiles.
constexpr int64_t kRowsOfATile = 14;
// So many columns fill the registers that a reduction of rows has for its results.
constexpr int64_t kColumnsOfRegisters = 64;
// A vector of 64 bytes has at most so many elements.
constexpr int64_t kMostLanes = 64;
constexpr int kApart = -1;  // the place of the axes in a buffer that has none of them

// The two axes in one block: the first is iters[at], with its loop; the second is the next.
struct Pair {
  size_t at;
  const ForNode *outer, *inner;
};

class Merge {
 public:
  explicit Merge(const tir::PrimFunc& f) : f_(f), tree_(f->body) {}

  // The rows of a sum of products.
  tir::PrimFunc rows() { return find_axes() ? merged_from(0) : f_; }

  // The last two axes that rows are reduced along.
  tir::PrimFunc reduced_rows() {
    kind_ = IterKind::Reduce;
    for (const BlockNode* b : tree_.blocks()) {
      if (!b->init || b->iters.size() < 2) continue;
      const IterVar &x = b->iters[b->iters.size() - 2], &y = b->iters.back();
      auto is_sum = [&](const IterVar& i) {
        return i->kind == IterKind::Reduce && role_of(*b, i->var) == ContractionRole::None &&
               tir::as_int(i->extent).value_or(1) != 1;
      };
      if (!is_sum(x) || !is_sum(y) || !reads_rows(*b, b->iters.size() - 2)) continue;
      outer_ = x->extent;
      inner_ = y->extent;
      return merged_from(0);
    }
    return f_;
  }

  // The last two axes that are kept where axes before them are reduced.
  tir::PrimFunc kept_columns() {
    for (const BlockNode* b : tree_.blocks()) {
      size_t kept = 0;
      while (kept < b->iters.size() && b->iters[kept]->kind == IterKind::DataParallel) ++kept;
      if (!b->init || b->contraction || kept < 2 || kept == b->iters.size()) continue;
      const IterVar &x = b->iters[kept - 2], &y = b->iters[kept - 1];
      auto outer = tir::as_int(x->extent), inner = tir::as_int(y->extent);
      if (!outer || !inner || *outer < 2 || *inner < 2 || *inner >= kColumnsOfRegisters ||
          !reads_rows(*b, kept - 2)) {
        continue;
      }
      outer_ = x->extent;
      inner_ = y->extent;
      return merged_from(kept - 2);
    }
    return f_;
  }

  // The iterations `at` and `at + 1` of the first block of a kernel that only moves or maps elements.
  tir::PrimFunc moved(size_t at) {
    const BlockNode& b = *tree_.blocks()[0];
    outer_ = b.iters[at]->extent;
    inner_ = b.iters[at + 1]->extent;
    const bool several = tir::as_int(outer_) != 1 && tir::as_int(inner_) != 1;
    return several ? merged_from(at) : f_;
  }

 private:
  tir::PrimFunc merged_from(size_t first) {
    if (!find_pairs(first)) return f_;
    bool legal = std::all_of(tree_.blocks().begin(), tree_.blocks().end(),
                             [&](const BlockNode* b) { return find_places(*b); });
    return legal && fit_buffers() ? rebuilt() : f_;
  }

  // The first two rows of the kernel's sum of products.
  bool find_axes() {
    for (const BlockNode* b : tree_.blocks()) {
      auto is_row = [&](size_t i) { return role_of(*b, b->iters[i]->var) == ContractionRole::Row; };
      auto sums = std::count_if(b->iters.begin(), b->iters.end(), [](const IterVar& i) {
        return i->kind == IterKind::Reduce && tir::as_int(i->extent) != 1;
      });
      if (b->iters.size() < 4 || sums != 1 || !is_row(0) || !is_row(1)) continue;
      if (outer_) return false;
      outer_ = b->iters[0]->extent;
      inner_ = b->iters[1]->extent;
    }
    if (!outer_) return false;
    auto rows = tir::as_int(inner_);
    // Static axes stay apart: one tile spans several lines of them.
    return (!rows || *rows < kRowsOfATile) && !(rows && tir::as_int(outer_));
  }

  static bool equal(const PrimExpr& a, const PrimExpr& b) {
    auto x = tir::as_int(a), y = tir::as_int(b);
    return x || y ? x == y : structural_equal(a, b);
  }

  // Whether the iterations `at` and `at + 1` of the block are the last two indices of a tensor that it reads.
  static bool reads_rows(const BlockNode& b, size_t at) {
    const Node *x = b.iters[at]->var.get(), *y = b.iters[at + 1]->var.get();
    return std::ranges::any_of(b.reads, [&](const tir::Region& r) {
      const std::vector<PrimExpr>& at = r->mins;
      return at.size() >= 2 && at[at.size() - 2].get() == x && at.back().get() == y;
    });
  }

  // In every block that has such neighbours from iteration `first` on, with a loop directly inside the other.
  bool find_pairs(size_t first) {
    for (const BlockNode* b : tree_.blocks()) {
      if (b->predicate) return false;
      for (size_t i = first; i + 1 < b->iters.size(); ++i) {
        const IterVar &x = b->iters[i], &y = b->iters[i + 1];
        if (x->kind != y->kind || (x->kind != IterKind::DataParallel && x->kind != kind_) ||
            !equal(x->extent, outer_) || !equal(y->extent, inner_) || tir::as_int(x->min) != 0 ||
            tir::as_int(y->min) != 0) {
          continue;
        }
        auto *lx = loop_of(b->bindings[i]), *ly = loop_of(b->bindings[i + 1]);
        if (lx == nullptr || ly == nullptr || lx->body.get() != ly) return false;
        pairs_.emplace(b, Pair{i, lx, ly});
        break;
      }
    }
    return true;
  }

  const ForNode* loop_of(const PrimExpr& binding) const {
    auto* v = as<tir::VarNode>(binding);
    const ForNode* f = v == nullptr ? nullptr : tree_.find_loop(tir::Var(v));
    bool plain = f != nullptr && f->loop_kind == tir::ForKind::Serial && tir::as_int(f->min) == 0;
    return plain ? f : nullptr;
  }

  // Where the block's accesses have the axes. False when something else reads them.
  bool find_places(const BlockNode& b) {
    auto it = pairs_.find(&b);
    const Node* x = it == pairs_.end() ? nullptr : b.iters[it->second.at]->var.get();
    const Node* y = it == pairs_.end() ? nullptr : b.iters[it->second.at + 1]->var.get();
    bool legal = true;
    auto is_axis = [&](const Node* n) { return n != nullptr && (n == x || n == y); };
    auto access = [&](const Buffer& buffer, const std::vector<PrimExpr>& indices) {
      int place = kApart;
      for (size_t i = 0; i < indices.size(); ++i) {
        if (!is_axis(indices[i].get())) continue;
        bool both = indices[i].get() == x && i + 1 < indices.size() && indices[i + 1].get() == y;
        if (!both || place != kApart) return false;
        place = static_cast<int>(i++);
      }
      auto [known, is_new] = places_.emplace(buffer.get(), place);
      return is_new || known->second == place;
    };
    for (const auto* regions : {&b.reads, &b.writes}) {
      for (const tir::Region& r : *regions) {
        legal = legal && access(r->buffer, r->mins);
        for (const PrimExpr& e : r->mins) {
          bool inside =
              !is_axis(e.get()) && x != nullptr && (tir::uses_var(e, x) || tir::uses_var(e, y));
          legal = legal && !inside;
        }
      }
    }
    auto look = [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) {
        legal = legal && access(l->buffer, l->indices) && !is_axis(l->predicate.get());
      } else if (auto* s = as<tir::StoreNode>(&n)) {
        legal = legal && access(s->buffer, s->indices) && !is_axis(s->value.get()) &&
                !is_axis(s->predicate.get());
      } else {
        for_each_child(n, [&](const NodeRef& c) { legal = legal && !is_axis(c.get()); });
      }
    };
    post_order(b.body, look, family::tir_code);
    if (b.init) post_order(b.init, look, family::tir_code);
    return legal;
  }

  bool fit_buffers() {
    merged_ = tir::Analyzer().simplify(outer_ * inner_);
    for (const auto& [node, place] : places_) {
      if (place == kApart) continue;
      auto& b = *static_cast<const tir::BufferNode*>(node);
      auto at = static_cast<size_t>(place);
      if (!b.within.empty() || !equal(b.shape[at], outer_) || !equal(b.shape[at + 1], inner_)) {
        return false;
      }
      buffers_[node] = tir::modified(b, [&](tir::BufferNode& n) {
        n.shape.erase(n.shape.begin() + place);
        n.shape[at] = merged_;
      });
    }
    return true;
  }

  tir::PrimFunc rebuilt() const {
    std::unordered_map<const Node*, tir::Var> of_axis, of_loop;
    std::unordered_map<const Node*, const BlockNode*> outer, inner;
    for (const auto& [b, p] : pairs_) {
      of_axis[b->iters[p.at]->var.get()] = tir::var(b->iters[p.at]->var->name);
      of_loop[p.outer] = tir::var(p.outer->var->name);
      outer[p.outer] = b;
      inner[p.inner] = b;
    }
    // Of rewritten indices, which may hold reads themselves; the axes in them are what they were.
    auto indices = [&](const Node* buffer, std::vector<PrimExpr> all) {
      auto place = places_.find(buffer);
      if (place == places_.end() || place->second == kApart) return all;
      auto at = static_cast<size_t>(place->second);
      all.erase(all.begin() + place->second + 1);
      all[at] = of_axis.at(all[at].get());
      return all;
    };
    NodeRef body = rewrite(
        f_->body,
        [&](const NodeRef& before, NodeRef after) -> NodeRef {
          if (auto b = buffers_.find(before.get()); b != buffers_.end()) return b->second;
          if (auto* l = as<tir::LoadNode>(before)) {
            auto& now = static_cast<const tir::LoadNode&>(*after.get());
            auto all = indices(l->buffer.get(), now.indices);
            if (all.size() == now.indices.size()) return after;
            return tir::modified(now, [&](tir::LoadNode& n) { n.indices = all; });
          }
          if (auto* s = as<tir::StoreNode>(before)) {
            auto& now = static_cast<const tir::StoreNode&>(*after.get());
            auto all = indices(s->buffer.get(), now.indices);
            if (all.size() == now.indices.size()) return after;
            return tir::modified(now, [&](tir::StoreNode& n) { n.indices = all; });
          }
          if (auto* r = as<tir::RegionNode>(before)) {
            auto& now = static_cast<const tir::RegionNode&>(*after.get());
            auto all = indices(r->buffer.get(), now.mins);
            if (all.size() == now.mins.size()) return after;
            return tir::modified(now, [&](tir::RegionNode& n) {
              n.mins = all;
              n.extents.erase(n.extents.begin() + places_.at(r->buffer.get()));
            });
          }
          if (inner.contains(before.get())) return static_cast<const ForNode&>(*after.get()).body;
          if (outer.contains(before.get())) {
            auto& now = static_cast<const ForNode&>(*after.get());
            return tir::modified(now, [&](ForNode& n) {
              n.var = of_loop.at(before.get());
              n.extent = merged_;
            });
          }
          auto* block = as<BlockNode>(before);
          auto pair = block == nullptr ? pairs_.end() : pairs_.find(block);
          if (pair == pairs_.end()) return after;
          auto& now = static_cast<const BlockNode&>(*after.get());
          return tir::modified(now, [&](BlockNode& n) {
            size_t at = pair->second.at;
            const IterVar& x = n.iters[at];
            const ContractionRole role = role_of(*block, x->var);
            IterVar rows =
                tir::iter_var(of_axis.at(pair->first->iters[at]->var.get()), merged_, x->kind);
            n.bindings[at] = of_loop.at(pair->second.outer);
            n.iters[at] = rows;
            n.iters.erase(n.iters.begin() + static_cast<std::ptrdiff_t>(at) + 1);
            n.bindings.erase(n.bindings.begin() + static_cast<std::ptrdiff_t>(at) + 1);
            if (!block->contraction) return;
            std::vector<tir::BlockDimension> dims = block->contraction->dims;
            dims.push_back(tir::block_dimension(rows->var, merged_, role));
            n.contraction = tir::state_contraction(dims, n.iters, n.body);
          });
        },
        family::tir);
    return tir::modified(*f_.get(), [&](tir::PrimFuncNode& n) {
      n.body = tir::Stmt::unchecked(std::move(body));
      for (Buffer& p : n.params) {
        if (auto b = buffers_.find(p.get()); b != buffers_.end()) p = b->second;
      }
    });
  }

  const tir::PrimFunc& f_;
  tir::LoopTree tree_;
  IterKind kind_ = IterKind::DataParallel;  // the axes in some block
  PrimExpr outer_, inner_, merged_;
  std::unordered_map<const BlockNode*, Pair> pairs_;
  std::unordered_map<const Node*, int> places_;
  std::unordered_map<const Node*, Buffer> buffers_;
};

// The first block of a kernel that only maps elements over three or more axes, the last of which fills no whole vectors of
// any element type; null for others. Two axes stay, which threads share.
const BlockNode* maps_ragged_rows(const tir::PrimFunc& f) {
  tir::LoopTree tree(f->body);
  auto maps = [](const BlockNode* b) {
    return !b->init && !b->contraction && !b->predicate && b->role.empty() &&
           std::ranges::all_of(b->iters, [](const IterVar& i) {
             return i->kind == IterKind::DataParallel && tir::as_int(i->extent);
           });
  };
  if (tree.blocks().empty() || !std::ranges::all_of(tree.blocks(), maps)) return nullptr;
  const BlockNode& b = *tree.blocks()[0];
  return b.iters.size() > 2 && *tir::as_int(b.iters.back()->extent) % kMostLanes != 0 ? &b
                                                                                      : nullptr;
}

// The only block of a kernel that reads some tensor across the order in which it writes; null for others.
const BlockNode* moves_elements(const tir::PrimFunc& f) {
  tir::LoopTree tree(f->body);
  if (tree.blocks().size() != 1) return nullptr;
  const BlockNode& b = *tree.blocks()[0];
  if (b.iters.size() < 2 || b.init) return nullptr;
  const Node* last = b.iters.back()->var.get();
  bool moves = false;
  post_order(
      b.body,
      [&](const Node& n) {
        auto* l = as<tir::LoadNode>(&n);
        if (l == nullptr || l->indices.empty()) return;
        bool uses = false;
        for (const PrimExpr& e : l->indices) uses |= e.get() == last;
        moves |= uses && !(l->indices.back().get() == last);
      },
      family::tir_code);
  return moves ? &b : nullptr;
}

}  // namespace

tir::PrimFunc merge_rows(const tir::PrimFunc& f) {
  const tir::PrimFunc given = without_unit_axes(f), plain = without_unit_windows(given);
  tir::PrimFunc out = plain;
  while (true) {
    tir::PrimFunc next = Merge(out).rows();
    if (next == out) break;
    out = next;
  }
  // Alone, windows that are left out change nothing.
  if (out == plain) out = given;
  size_t at = 0;
  while (const BlockNode* b = moves_elements(out)) {
    if (at + 1 >= b->iters.size()) break;
    tir::PrimFunc next = Merge(out).moved(at);
    if (next == out) ++at;
    out = next;
  }
  while (const BlockNode* b = maps_ragged_rows(out)) {
    tir::PrimFunc next = Merge(out).moved(b->iters.size() - 2);
    if (next == out) break;
    out = next;
  }
  for (auto merged : {&Merge::reduced_rows, &Merge::kept_columns}) {
    while (true) {
      Merge merge(out);
      tir::PrimFunc next = (merge.*merged)();
      if (next == out) break;
      out = next;
    }
  }
  return out;
}

}  // namespace relay
