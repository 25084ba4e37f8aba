#include "lower/rules/tiled_sum.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "node/walk.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::LoopRV;
using tir::Schedule;

namespace {

bool uses(const NodeRef& e, const tir::Var& v) {
  bool found = false;
  post_order(e, [&](const Node& n) { found |= &n == v.get(); });
  return found;
}

// What the rule has to know of a sum.
struct Sum {
  BlockRV block;
  std::vector<tir::IterVar> spatial;
  std::vector<int64_t> extents;  // of the spatial iterations
  int64_t reduction = 1;         // products in one sum
  bool depthwise = false;        // every operand has the columns: there is nothing to reuse
  // The operand with the columns (the weights) is the same for all of the second last but one axis,
  // so that a tile may span several of its values.
  bool rows_span_two_axes = false;
  int64_t panel = 0;       // columns that packed weights hold together, 0: not packed
  int64_t row_stride = 0;  // bytes between neighbouring rows of the other operand

  int64_t columns() const { return extents.back(); }
  int64_t rows() const { return extents[extents.size() - 2]; }
};

// Columns at the last index of `l`, or in the last two as panel and place in the panel. Sets the
// panel; false when neighbouring columns are no neighbours in memory.
bool columns_are_contiguous(const tir::LoadNode& l, const tir::Var& column, int64_t& panel) {
  for (size_t d = 0; d + 1 < l.indices.size(); ++d) {
    if (!uses(l.indices[d], column)) continue;
    auto* quotient = as<tir::BinaryNode>(l.indices[d]);
    if (quotient == nullptr || quotient->op != tir::BinaryOp::FloorDiv) return false;
    auto width = tir::as_int(quotient->b);
    if (!width || (panel != 0 && panel != *width)) return false;
    panel = *width;
  }
  return true;
}

// The kernel's only sum, when its shape is constant and lanes over its last axis read neighbouring
// elements or one element.
std::optional<Sum> find_sum(const Schedule& s) {
  Sum out;
  for (const BlockRV& rv : s.get_blocks()) {
    if (!s.block(rv)->init || !reduces(s.block(rv))) continue;
    if (!out.block.name.empty()) return std::nullopt;
    out.block = rv;
  }
  if (out.block.name.empty()) return std::nullopt;
  Block b = s.block(out.block);
  for (const tir::IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (!extent || i->kind == IterKind::Opaque) return std::nullopt;
    if (i->kind == IterKind::Reduce) {
      out.reduction *= *extent;
    } else {
      out.spatial.push_back(i);
      out.extents.push_back(*extent);
    }
  }
  if (out.spatial.size() < 2 || b->writes.size() != 1 ||
      !b->writes[0]->buffer->dtype.is_float(32)) {
    return std::nullopt;
  }
  const tir::Var& column = out.spatial.back()->var;
  const tir::Var& row = out.spatial[out.spatial.size() - 2]->var;
  bool legal = true;
  int operands = 0, with_columns = 0;
  if (out.spatial.size() > 2) out.rows_span_two_axes = true;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l == nullptr || l->buffer == b->writes[0]->buffer) return;
    ++operands;
    bool has_columns = false;
    for (const tir::PrimExpr& e : l->indices) has_columns |= uses(e, column);
    legal = legal && columns_are_contiguous(*l, column, out.panel);
    with_columns += has_columns;
    if (has_columns && out.rows_span_two_axes) {
      for (const tir::PrimExpr& e : l->indices) {
        bool here = uses(e, out.spatial[out.spatial.size() - 3]->var);
        if (here && !uses(l->indices[0], row)) out.rows_span_two_axes = false;
      }
    }
    if (has_columns) return;
    int64_t stride = l->buffer->dtype.bytes();
    for (size_t d = l->indices.size(); d-- > 0;) {
      if (uses(l->indices[d], row)) out.row_stride = stride;
      auto extent = tir::as_int(l->buffer->shape[d]);
      stride *= extent ? *extent : 1;
    }
  });
  if (!legal) return std::nullopt;
  out.depthwise = with_columns == operands;
  return out;
}

// A register tile: `height` values of the second last spatial axis for each of `outer` values of
// the one before, by `columns`.
struct Tile {
  int64_t outer = 1;
  int64_t height = 1;
  int64_t columns = 1;
};

// Cycles for one step of the reduction over tiles of rows x columns: multiply-adds, or their
// latency when there are too few to hide it, and loads.
double step_cost(int64_t rows, int64_t columns, int64_t lanes) {
  if (rows == 0 || columns == 0) return 0;
  constexpr double kLatency = 8;
  double vectors = static_cast<double>((columns + lanes - 1) / lanes);
  double r = static_cast<double>(rows);
  return std::max(r * vectors, kLatency) + 0.5 * vectors + 0.15 * r + 1;
}

// The tile with the least work, by performance.md's rule: as many results as there are registers
// beside one vector for each column and one for a row's element.
Tile choose_tile(const Sum& sum, const TargetInfo& target) {
  int64_t lanes = target.vector_bits / 32;
  int64_t rows = sum.rows(), columns = sum.columns();
  int64_t before = sum.extents.size() > 2 ? sum.extents[sum.extents.size() - 3] : 1;
  Tile best;
  double least = 0;
  auto consider = [&](const Tile& t) {
    int64_t height = t.outer * t.height;
    double all = 0;
    auto over_columns = [&](int64_t r) {
      return static_cast<double>(columns / t.columns) * step_cost(r, t.columns, lanes) +
             step_cost(r, columns % t.columns, lanes);
    };
    all = static_cast<double>((before / t.outer) * (rows / t.height)) * over_columns(height);
    all += static_cast<double>(before / t.outer) * over_columns(t.outer * (rows % t.height));
    all += static_cast<double>(rows / t.height) * over_columns(before % t.outer * t.height);
    // Rows that are a multiple of 4 KB apart share the sets of the cache.
    if (sum.row_stride % 4096 == 0 && height > 8 && !sum.depthwise) all *= 1.05;
    if (least == 0 || all < least * 0.999) {
      least = all;
      best = t;
    }
  };
  for (int64_t vectors = 1; vectors <= 8; ++vectors) {
    int64_t width = std::min(columns, vectors * lanes);
    if (vectors > 1 && width <= (vectors - 1) * lanes) break;
    if (sum.panel != 0 && width != columns && width % sum.panel != 0 && sum.panel % width != 0) {
      continue;
    }
    int64_t most = (target.num_vector_registers - vectors - 1) / vectors;
    for (int64_t h = std::min(most, rows); h >= 1; --h) consider({1, h, width});
    if (sum.rows_span_two_axes) {
      for (int64_t o = 2; o <= std::min(before, most / std::max<int64_t>(rows, 1)); ++o) {
        consider({o, rows, width});
      }
    }
  }
  return best;
}

// An axis of the tile in one nest: the loop over tiles and the loop inside a tile.
struct Axis {
  LoopRV outer;
  LoopRV inner;
  int64_t extent;
  int64_t tile;
};

// A block of a tile, with its loops over the tile's axes in order (rows, then columns); an axis of
// one value has none.
struct Part {
  BlockRV block;
  std::vector<LoopRV> loops;
};

class Tiling {
 public:
  Tiling(Schedule& s, const TargetInfo& target) : s_(s), lanes_(target.vector_bits / 32) {}

  // Peels the tiles at the end of each axis that are smaller than the others, from axis `a` on.
  void peel(std::vector<Axis> axes, std::vector<Part> parts, size_t a) {
    while (a < axes.size() && axes[a].extent % axes[a].tile == 0) ++a;
    if (a == axes.size()) {
      for (const Part& p : parts) finish(p);
      return;
    }
    int64_t whole = axes[a].extent / axes[a].tile, rest = axes[a].extent % axes[a].tile;
    RELAY_CHECK(whole > 0, "a tile is no larger than its axis");
    tir::Partition cut = s_.partition(axes[a].outer, whole);
    auto copied = [&](const LoopRV& l) {
      for (const auto& [head, tail] : cut.loops) {
        if (head == l) return tail;
      }
      return l == axes[a].outer ? cut.tail : l;
    };
    std::vector<Axis> tail_axes = axes;
    for (Axis& x : tail_axes) x.outer = copied(x.outer);
    std::vector<Part> tail_parts = parts;
    for (Part& p : tail_parts) {
      p.block = cut.copy_of(p.block);
      for (LoopRV& l : p.loops) {
        if (l.var) l = copied(l);
      }
      s_.partition(p.loops[a], rest);
    }
    peel(std::move(axes), std::move(parts), a + 1);
    peel(std::move(tail_axes), std::move(tail_parts), a + 1);
  }

 private:
  // Rows are copies, columns are lanes: whole vectors, then one shorter vector.
  void finish(const Part& p) {
    for (size_t i = 0; i + 1 < p.loops.size(); ++i) {
      if (p.loops[i].var) s_.unroll(p.loops[i]);
    }
    LoopRV column = p.loops.back();
    int64_t extent = s_.extent(column), rest = extent % lanes_;
    if (extent > lanes_ && rest != 0) {
      tir::Partition cut = s_.partition(column, extent - rest);
      s_.vectorize(cut.tail);
      extent -= rest;
    }
    if (extent > lanes_) {
      std::vector<LoopRV> parts = s_.split(column, {-1, lanes_});
      s_.unroll(parts[0]);
      column = parts[1];
    }
    s_.vectorize(column);
  }

  Schedule& s_;
  int64_t lanes_;
};

}  // namespace

std::string schedule_tiled_sum(Schedule& s, const TargetInfo& target) {
  std::optional<Sum> found = find_sum(s);
  if (!found) return "";
  const Sum& sum = *found;
  if (sum.columns() == 1) return "";
  std::vector<BlockRV> consumers = s.consumers(sum.block);
  if (consumers.size() > 1) return "";
  BlockRV out;
  if (consumers.empty()) {
    out = s.cache_write(sum.block, tir::Scope::Register);
  } else {
    out = consumers[0];
    if (reduces(s.block(out)) || !s.consumers(out).empty()) return "";
    s.set_scope(sum.block, tir::Scope::Register);
  }
  std::vector<LoopRV> loops = s.get_loops(out);
  if (loops.size() != sum.spatial.size()) return "";

  // The tile's axes: columns, rows, and the axis before the rows when one line of rows is short.
  Tile tile = choose_tile(sum, target);
  std::vector<int64_t> sizes{tile.height, tile.columns};
  if (tile.outer > 1) sizes.insert(sizes.begin(), tile.outer);
  size_t first = loops.size() - sizes.size();
  std::vector<Axis> axes;
  for (size_t i = 0; i < sizes.size(); ++i) {
    std::vector<LoopRV> parts = s.split(loops[first + i], {-1, sizes[i]});
    axes.push_back({parts[0], parts[1], sum.extents[first + i], sizes[i]});
  }
  // One panel of weights serves all rows before the next is read, unless all weights stay in half
  // of the second cache: then a row is read once.
  int64_t weights = sum.depthwise ? 0 : sum.reduction * sum.columns() * 4;
  bool rows_outside = weights <= target.l2_bytes / 2;
  std::vector<LoopRV> order(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(first));
  if (sum.depthwise || (rows_outside && order.empty())) {
    for (const Axis& a : axes) order.push_back(a.outer);
  } else {
    order.insert(rows_outside ? order.end() : order.begin(), axes.back().outer);
    for (size_t i = 0; i + 1 < axes.size(); ++i) order.push_back(axes[i].outer);
  }
  size_t outside = order.size();
  for (const Axis& a : axes) order.push_back(a.inner);
  s.reorder(order);
  s.compute_at(sum.block, order[outside - 1]);

  // The sum's own loops: reduction outside, the tile inside, and zeros before them.
  Block b = s.block(sum.block);
  std::vector<LoopRV> all = s.get_loops(sum.block);
  std::vector<LoopRV> reduction;
  Part update{sum.block, std::vector<LoopRV>(axes.size())};
  size_t spatial = 0;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    bool sums = b->iters[i]->kind == IterKind::Reduce;
    for (size_t l = outside; l < all.size(); ++l) {
      if (!uses(b->bindings[i], all[l].var)) continue;
      if (sums) {
        reduction.push_back(all[l]);
      } else if (spatial >= first) {
        update.loops[spatial - first] = all[l];
      }
    }
    if (!sums) ++spatial;
  }
  if (reduction.empty()) return "";
  std::vector<LoopRV> nest = reduction;
  for (const LoopRV& l : update.loops) {
    if (l.var) nest.push_back(l);
  }
  s.reorder(nest);
  Part zeros{s.decompose_reduction(sum.block, reduction[0]), std::vector<LoopRV>(axes.size())};
  std::vector<LoopRV> zero_loops = s.get_loops(zeros.block);
  for (size_t i = axes.size(), at = zero_loops.size(); i-- > 0;) {
    if (update.loops[i].var) zeros.loops[i] = zero_loops[--at];
  }
  Part epilogue{out, {}};
  for (const Axis& a : axes) epilogue.loops.push_back(a.inner);

  double work = static_cast<double>(sum.reduction);
  for (int64_t e : sum.extents) work *= static_cast<double>(e);
  std::string text = "sum: " + std::to_string(tile.outer * tile.height) + "x" +
                     std::to_string(tile.columns) + " register tile, " +
                     (order[0] == axes.back().outer ? "columns" : "rows") + " outside";
  if (target.num_cores > 1 && work >= 4 * kMinParallelWork) {
    // Loops that are not peeled share the work in fine portions.
    std::vector<LoopRV> shared;
    for (size_t i = 0; i < outside; ++i) {
      bool peeled = std::any_of(axes.begin(), axes.end(), [&](const Axis& a) {
        return a.outer == order[i] && a.extent % a.tile != 0;
      });
      if (peeled) break;
      shared.push_back(order[i]);
    }
    if (shared.empty()) shared.push_back(order[0]);
    s.parallel(shared.size() > 1 ? s.fuse(shared) : shared[0]);
    text += ", threads over tiles";
  }
  Tiling(s, target).peel(axes, {zeros, update, epilogue}, 0);
  // What else there is (a padded input) gets plain loops.
  for (const BlockRV& rv : s.get_blocks()) {
    Block other = s.block(rv);
    std::vector<LoopRV> around = s.get_loops(rv);
    bool scheduled = std::any_of(around.begin(), around.end(), [&](const LoopRV& l) {
      return s.loop(l)->loop_kind != tir::ForKind::Serial;
    });
    if (scheduled || other->init || reduces(other) || around.size() != other->iters.size())
      continue;
    std::string note = schedule_block(s, rv, target);
    if (!note.empty()) text += "; " + rv.name + " " + note;
  }
  return text;
}

}  // namespace relay
