#include "lower/loop_writes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/passes/statements.h"

namespace relay {

using tir::PrimExpr;
using tir::Stmt;

namespace {

// Rows that are kept before they are written.
constexpr int64_t kMostRowsBehind = 3;
// From so many elements on, threads that share them take less time than one.
constexpr int64_t kLeastOfThreads = int64_t{1} << 16;

// The store of a nest, and what is around it. A loop of one iteration gives its variable a value.
struct Nest {
  const tir::StoreNode* store = nullptr;
  std::vector<const tir::ForNode*> loops;
  tir::NodeMap lets;
};

// The nest of the only store; without one where the statements are no such nest.
Nest nest_of(const Stmt& write, const Node* buffer) {
  Nest out;
  const tir::StmtNode* s = write.get();
  while (s != nullptr) {
    const tir::StmtNode* next = nullptr;
    if (auto* seq = as<tir::SeqNode>(s)) {
      for (const Stmt& inner : seq->stmts) {
        if (!tir::uses(inner, buffer)) continue;
        if (next != nullptr) return out;
        next = inner.get();
      }
    } else if (auto* l = as<tir::LetStmtNode>(s)) {
      if (tir::uses(l->value, buffer)) return out;
      out.lets.emplace(l->var.get(), tir::replace(l->value, out.lets));
      next = l->body.get();
    } else if (auto* f = as<tir::ForNode>(s)) {
      if (tir::uses(f->min, buffer) || tir::uses(f->extent, buffer)) return out;
      if (tir::as_int(f->extent) == 1) {
        out.lets.emplace(f->var.get(), tir::replace(f->min, out.lets));
      } else {
        out.loops.push_back(f);
      }
      next = f->body.get();
    } else if (auto* store = as<tir::StoreNode>(s)) {
      if (store->buffer.get() == buffer && !store->predicate) out.store = store;
    }
    s = next;
  }
  return out;
}

// A nest whose store writes along each axis from a number on, as the variable of a loop of its own.
struct Part {
  struct Axis {
    PrimExpr at, begin, end;
    size_t loop = kNoLoop;
  };
  static constexpr size_t kNoLoop = ~size_t{0};

  // Without a store where it is no such nest. What it finds of the loops' variables stays known to the analyzer as long as it
  // lives.
  Part(const Stmt& write, const Node* buffer, tir::Analyzer& of)
      : nest(nest_of(write, buffer)), analyzer(of) {
    if (nest.store != nullptr && !find_axes()) nest.store = nullptr;
  }

  PrimExpr plain(const PrimExpr& e) const { return analyzer.simplify(tir::replace(e, nest.lets)); }

  // Whether no iteration writes what an index of each axis says.
  bool is_apart(const std::vector<PrimExpr>& indices) const {
    for (size_t d = 0; d < axes.size(); ++d) {
      if (analyzer.can_prove(tir::lt(indices[d], axes[d].begin)) ||
          analyzer.can_prove(tir::ge(indices[d], axes[d].end)))
        return true;
    }
    return false;
  }

  Nest nest;
  tir::Analyzer& analyzer;
  std::vector<tir::Analyzer::Scope> facts;
  std::vector<PrimExpr> extents;
  std::vector<Axis> axes;

 private:
  bool find_axes() {
    for (const tir::ForNode* f : nest.loops) {
      extents.push_back(tir::replace(f->extent, nest.lets));
      facts.push_back(analyzer.inside(f->var, tir::replace(f->min, nest.lets), extents.back()));
    }
    std::vector<bool> found(nest.loops.size());
    for (const PrimExpr& index : nest.store->indices) {
      Axis axis{plain(index), nullptr, nullptr};
      axis.begin = axis.at;
      axis.end = axis.at + 1;
      for (size_t k = 0; k < nest.loops.size(); ++k) {
        const tir::ForNode& f = *nest.loops[k];
        if (!tir::uses(axis.at, f.var.get())) continue;
        if (found[k] || axis.loop != kNoLoop) return false;
        found[k] = true;
        axis.loop = k;
        axis.begin = analyzer.simplify(axis.begin - f.var + tir::replace(f.min, nest.lets));
        axis.end = axis.begin + extents[k];
      }
      for (const tir::ForNode* f : nest.loops) {
        if (tir::uses(axis.begin, f->var.get()) || tir::uses(axis.end, f->var.get())) return false;
      }
      axes.push_back(axis);
    }
    return std::ranges::count(found, false) == 0;
  }
};

// Of the elements that a nest of rows reads of the buffer that it writes: how many rows the row of an iteration is in front of
// the first one, at most; null: not known.
std::optional<int64_t> rows_behind(const Part& part, const tir::Buffer& buffer) {
  const auto row = std::ranges::find(part.axes, size_t{0}, &Part::Axis::loop);
  const auto d = static_cast<size_t>(row - part.axes.begin());
  std::optional<int64_t> out = 0;
  post_order(
      part.nest.store->value,
      [&](const Node& n) {
        auto* load = as<tir::LoadNode>(&n);
        if (load == nullptr || load->buffer != buffer || !out) return;
        std::vector<PrimExpr> at;
        for (const PrimExpr& index : load->indices) {
          if (tir::uses(index, buffer.get())) return out.reset();
          at.push_back(part.plain(index));
        }
        if (part.is_apart(at)) return;
        const tir::Bounds distance = part.analyzer.bounds(part.plain(at[d] - row->at));
        if (!distance.has_min() || distance.min < -kMostRowsBehind) return out.reset();
        out = std::max(*out, -distance.min);
      },
      family::tir_expr);
  return out;
}

}  // namespace

Stmt with_own_elements(const Stmt& write, const tir::Buffer& buffer, tir::Analyzer& analyzer) {
  const Part part(write, buffer.get(), analyzer);
  if (part.nest.store == nullptr) return nullptr;
  bool safe = true;
  tir::NodeMap own;
  post_order(
      part.nest.store->value,
      [&](const Node& n) {
        auto* load = as<tir::LoadNode>(&n);
        if (load == nullptr || load->buffer != buffer || !safe) return;
        bool same = true, apart = false;
        for (size_t d = 0; d < part.axes.size(); ++d) {
          if (tir::uses(load->indices[d], buffer.get())) {
            same = false;
            continue;
          }
          const PrimExpr at = part.plain(load->indices[d]);
          const Part::Axis& axis = part.axes[d];
          same = same && structural_equal(at, axis.at);
          apart = apart || analyzer.can_prove(tir::lt(at, axis.begin)) ||
                  analyzer.can_prove(tir::ge(at, axis.end));
        }
        safe = same || apart;
        if (same) own.emplace(load, tir::load(buffer, part.nest.store->indices));
      },
      family::tir_expr);
  return safe ? tir::replace(write, own) : nullptr;
}

Stmt with_late_rows(const Stmt& write, const tir::Buffer& buffer, tir::Analyzer& analyzer,
                    const MakeBuffer& make_buffer) {
  const Part part(write, buffer.get(), analyzer);
  if (part.nest.store == nullptr || part.nest.loops.size() < 2) return nullptr;
  const std::optional<int64_t> behind = rows_behind(part, buffer);
  if (!behind) return nullptr;
  const tir::ForNode& rows = *part.nest.loops[0];
  // Copies of a nest have no statement in common where each holds its variable.
  bool is_chain = true;
  post_order(
      rows.body, [&](const Node& n) { is_chain = is_chain && !isa<tir::SeqNode>(&n); },
      family::tir_stmt);
  if (!is_chain) return nullptr;
  const tir::StoreNode& store = *part.nest.store;
  std::vector<PrimExpr> shape{tir::index(*behind + 1)};
  shape.insert(shape.end(), part.extents.begin() + 1, part.extents.end());
  const tir::Buffer kept = make_buffer(shape);
  if (!kept) return nullptr;

  std::vector<PrimExpr> place{tir::floor_mod(rows.var - rows.min, shape[0])};
  for (size_t k = 1; k < part.nest.loops.size(); ++k)
    place.push_back(part.nest.loops[k]->var - part.nest.loops[k]->min);
  auto with_store = [&](const Stmt& s) { return tir::replace(rows.body, {{&store, s}}); };
  const Stmt computed = with_store(tir::store(kept, place, store.value));
  const Stmt copied = with_store(tir::store(buffer, store.indices, tir::load(kept, place)));
  auto copied_at = [&](const PrimExpr& row) {
    return tir::replace(copied, {{rows.var.get(), row}});
  };
  const PrimExpr late = tir::index(*behind);
  Stmt step = copied_at(rows.var - late);
  if (*behind > 0) step = tir::if_(tir::ge(rows.var - rows.min, late), step);
  const tir::Var last = tir::var(rows.var->name);
  const PrimExpr begin = rows.min + tir::max(rows.extent - late, tir::index(0));
  return tir::replace(
      write,
      {{&rows, tir::seq({tir::with_body(rows, tir::seq({computed, step})),
                         tir::for_(last, begin, tir::min(rows.extent, late), copied_at(last))})}});
}

Stmt on_threads(const Stmt& nest) {
  PrimExpr elements = tir::index(1);
  size_t loops = 0;
  // The loops on threads have variables of their own.
  tir::NodeMap fixed;
  for (const tir::StmtNode* s = nest.get(); isa<tir::ForNode>(s); ++loops) {
    const auto& f = *static_cast<const tir::ForNode*>(s);
    elements = loops == 0 ? f.extent : elements * f.extent;
    fixed.emplace(f.var.get(), tir::var(f.var->name, f.var->dtype));
    s = f.body.get();
  }
  auto count = tir::as_int(elements);
  if (loops < 2 || (count && *count < kLeastOfThreads)) return nest;
  // The body of a parallel loop is a function of its own, to which registers are memory.
  std::vector<std::pair<tir::Var, PrimExpr>> lets;
  post_order(
      nest,
      [&](const Node& n) {
        auto* load = as<tir::LoadNode>(&n);
        if (load == nullptr || load->buffer->scope != tir::Scope::Register) return;
        lets.emplace_back(tir::var("r" + std::to_string(lets.size()), load->dtype), ref(*load));
        fixed.emplace(load, lets.back().first);
      },
      family::tir_stmt | family::tir_expr);
  Stmt shared = tir::modified(*as<tir::ForNode>(tir::replace(nest, fixed)),
                              [](tir::ForNode& f) { f.loop_kind = tir::ForKind::Parallel; });
  for (const auto& [var, value] : lets) shared = tir::let_stmt(var, value, shared);
  return count ? shared : tir::if_(tir::ge(elements, tir::index(kLeastOfThreads)), shared, nest);
}

}  // namespace relay
